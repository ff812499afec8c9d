r"""A residual network on vectors: :math:`h \leftarrow h + W_2 \, \sigma(W_1 \, \mathrm{LN}(h))`."""

import math

import torch
from torch import Tensor, nn

from dkae._support.checks import check_integer
from dkae.networks.protocol import check_size


class ResidualBlock(nn.Module):
    """One step of the formula above: what it adds starts small, so that deep stacks train."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.change = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Linear(width, width)
        )

    def forward(self, h: Tensor) -> Tensor:
        changed: Tensor = h + self.change(h)
        return changed


class ResidualAutoencoder(nn.Module):
    """A multilayer perceptron with residual blocks, up and down; the code is linear.

    The class itself is a factory: ``network=ResidualAutoencoder``, or with other sizes
    ``network=functools.partial(ResidualAutoencoder, width=256)``.

    Parameters
    ----------
    shape : tuple of int
        Shape of a row, of any number of dimensions.
    n_components : int
        Width of the code.
    generator : torch.Generator, optional
        Not used: weights follow torch's own random numbers, which `fit` seeds.
    width : int, default=512
        Width of the hidden layers.
    n_blocks : int, default=2
        Residual blocks of the encoder, and as many of the decoder.
    """

    #: It draws no random numbers in training, as dropout does.
    is_deterministic = True

    def __init__(
        self,
        shape: tuple[int, ...],
        n_components: int,
        generator: torch.Generator | None = None,
        *,
        width: int = 512,
        n_blocks: int = 2,
    ) -> None:
        super().__init__()
        shape, n_components = check_size(shape, n_components)
        width = check_integer("width", width, at_least=1)
        n_blocks = check_integer("n_blocks", n_blocks, at_least=0)
        self.config = {
            "shape": list(shape),
            "n_components": n_components,
            "width": width,
            "n_blocks": n_blocks,
        }
        n_features = math.prod(shape)
        self.encoder = nn.Sequential(
            nn.Flatten(),
            nn.Linear(n_features, width),
            *(ResidualBlock(width) for _ in range(n_blocks)),
            nn.LayerNorm(width),
            nn.Linear(width, n_components),
        )
        self.decoder = nn.Sequential(
            nn.Linear(n_components, width),
            *(ResidualBlock(width) for _ in range(n_blocks)),
            nn.LayerNorm(width),
            nn.Linear(width, n_features),
            nn.Unflatten(1, shape),
        )

    def encode(self, x: Tensor) -> Tensor:
        codes: Tensor = self.encoder(x)
        return codes

    def decode(self, codes: Tensor) -> Tensor:
        rows: Tensor = self.decoder(codes)
        return rows

    def decoder_parameters(self) -> list[nn.Parameter]:
        return list(self.decoder.parameters())
