"""A convolutional network for images: strided convolutions up, transposed ones down."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from dkae._support.checks import check_integer, check_sequence


class ConvolutionalAutoencoder(nn.Module):
    """Halves an image once for each number of channels; the code is linear in the last ones.

    The class itself is a factory: ``network=ConvolutionalAutoencoder``, or with other sizes
    ``network=functools.partial(ConvolutionalAutoencoder, channels=(16, 32, 64))``.

    Parameters
    ----------
    shape : tuple of int
        (channels, height, width) of an image, of any size.
    n_components : int
        Width of the code.
    generator : torch.Generator, optional
        Not used: weights follow torch's own random numbers, which `fit` seeds.
    channels : sequence of int, default=(32, 64)
        Channels after each halving.
    """

    #: It draws no random numbers in training, as dropout does.
    is_deterministic = True

    def __init__(
        self,
        shape: tuple[int, ...],
        n_components: int,
        generator: torch.Generator | None = None,
        *,
        channels: Sequence[int] = (32, 64),
    ) -> None:
        super().__init__()
        sides = check_sequence("shape", shape)
        shape = tuple(check_integer("each of shape", n, at_least=1) for n in sides)
        n_components = check_integer("n_components", n_components, at_least=1)
        if len(shape) != 3:
            raise ValueError(
                f"a convolutional network maps images, but a row of X has the shape {shape}: pass "
                "X of shape (n, channels, height, width)"
            )
        channels = [
            check_integer("each of channels", n, at_least=1)
            for n in check_sequence("channels", channels)
        ]
        sizes = {"shape": list(shape), "n_components": n_components, "channels": channels}
        self.config: dict[str, Any] = sizes
        widths = [shape[0], *channels]
        #: Height and width before each halving, and after the last: ⌈h / 2⌉ at a time.
        self.sizes = [tuple(math.ceil(n / 2**i) for n in shape[1:]) for i in range(len(widths))]
        top = (widths[-1], *self.sizes[-1])
        self.down = nn.ModuleList(
            nn.Conv2d(a, b, 3, stride=2, padding=1) for a, b in pairwise(widths)
        )
        self.to_code = nn.Linear(math.prod(top), n_components)
        self.from_code = nn.Sequential(
            nn.Linear(n_components, math.prod(top)), nn.Unflatten(1, top)
        )
        self.up = nn.ModuleList(
            nn.ConvTranspose2d(b, a, 3, stride=2, padding=1)
            for a, b in reversed(list(pairwise(widths)))
        )

    def encode(self, x: Tensor) -> Tensor:
        for layer in self.down:
            x = nn.functional.gelu(layer(x))
        codes: Tensor = self.to_code(x.flatten(1))
        return codes

    def decode(self, codes: Tensor) -> Tensor:
        x: Tensor = self.from_code(codes)
        for layer, size in zip(self.up, reversed(self.sizes[:-1]), strict=True):
            # Of the two sizes that halve to the same one, the image's own.
            x = layer(nn.functional.gelu(x), output_size=list(size))
        return x

    def decoder_parameters(self) -> list[nn.Parameter]:
        return [*self.from_code.parameters(), *self.up.parameters()]
