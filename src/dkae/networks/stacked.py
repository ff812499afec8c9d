r"""The stacked autoencoder: encoder and decoder of fully connected layers, weights tied or not.

One layer is the autoencoder of Eq. 1,

.. math:: h = \sigma(W_E x + b_E), \qquad \tilde x = \sigma'(W_D h + b_D),

with :math:`W_D = W_E^\top` where weights are tied. A stack composes the encoders and, in reverse
order, the decoders. Because a stack *is* a list of layers, the network that pretrains layer i is
``Autoencoder([layer_i])``, and unfolding costs nothing: the parameters are shared.

Kernels are unknown here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from dkae._runtime.checks import check_choice

__all__ = ["ACTIVATIONS", "Autoencoder", "Layer", "build_autoencoder", "choose_output_activation"]

#: Rows of an array that go through the network together.
N_CHUNK_ROWS = 4096
#: Activations by name; the first four are spelled as in scikit-learn's MLPRegressor.
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": lambda x: x,
    "logistic": torch.sigmoid,
    "tanh": torch.tanh,
    "relu": F.relu,
    "sigmoid": torch.sigmoid,
    "leaky_relu": F.leaky_relu,
    "elu": F.elu,
    "gelu": F.gelu,
    "silu": F.silu,
    "softplus": F.softplus,
}


class Layer(nn.Module):
    """A single-hidden-layer autoencoder (Eq. 1).

    Parameters
    ----------
    n_in, n_out : int
        Width of the input and of the hidden representation.
    activation, output_activation : str
        Activation of the hidden representation and of the reconstruction.
    tied : bool, default=True
        Whether the decoder uses the transpose of the encoder's weight (the same tensor). If not,
        it has a weight of its own, which starts as that transpose. The biases are separate in any
        case.
    generator : torch.Generator, optional
        Source of the Glorot-uniform weights. Biases start at zero.
    """

    def __init__(
        self,
        n_in: int,
        n_out: int,
        *,
        activation: str,
        output_activation: str,
        tied: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.activation = check_choice("activation", activation, ACTIVATIONS)
        self.output_activation = check_choice("output_activation", output_activation, ACTIVATIONS)
        self.weight = nn.Parameter(_glorot(n_out, n_in, generator))
        self.bias = nn.Parameter(torch.zeros(n_out))
        self.decoder_weight: nn.Parameter | None = None
        self.decoder_bias = nn.Parameter(torch.zeros(n_in))
        if not tied:
            self.untie()

    def encode(self, x: Tensor) -> Tensor:
        return ACTIVATIONS[self.activation](F.linear(x, self.weight, self.bias))

    def untie(self) -> None:
        """Give the decoder a weight of its own, equal to the one it shared."""
        if self.decoder_weight is None:
            self.decoder_weight = nn.Parameter(_transposed_copy(self.weight))

    def decode(self, h: Tensor) -> Tensor:
        """Return what the rows of `h`, (k, n_out), decode to."""
        if self.decoder_weight is None:
            # Without a transpose: then autograd adds both gradients of the weight in place.
            product = torch.addmm(self.decoder_bias, h, self.weight)
        else:
            product = F.linear(h, self.decoder_weight, self.decoder_bias)
        return ACTIVATIONS[self.output_activation](product)

    @property
    def config(self) -> dict[str, Any]:
        """The arguments that build a layer like this one."""
        n_out, n_in = self.weight.shape
        return {
            "n_in": n_in,
            "n_out": n_out,
            "activation": self.activation,
            "output_activation": self.output_activation,
            "tied": self.decoder_weight is None,
        }

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self.config.items())


class Autoencoder(nn.Module):
    """A stack of layers: ``encode`` goes up through all of them, ``decode`` comes back down."""

    def __init__(self, layers: Iterable[Layer]) -> None:
        super().__init__()
        self._layers = nn.ModuleList(layers)

    @property
    def layers(self) -> list[Layer]:
        """The layers from the input to the code."""
        return cast(list[Layer], list(self._layers))

    @property
    def n_components(self) -> int:
        """The width of the code."""
        return self.layers[-1].weight.shape[0]

    def encode(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer.encode(x)
        return x

    def decode(self, codes: Tensor) -> Tensor:
        for layer in reversed(self.layers):
            codes = layer.decode(codes)
        return codes

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the codes of x and its reconstruction."""
        codes = self.encode(x)
        return codes, self.decode(codes)

    def encode_rows(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the codes of the rows of an array, without gradients."""
        return self._in_chunks(self.encode, X)

    def decode_rows(self, codes: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the rows that an array of codes decodes to, without gradients."""
        return self._in_chunks(self.decode, codes)

    def _in_chunks(
        self, function: Callable[[Tensor], Tensor], X: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Apply one direction of the network; the activations of all rows never coexist."""
        device = next(self.parameters()).device
        with torch.inference_mode():
            chunks = [
                # A copy, because torch warns of arrays that it must not write to.
                function(torch.tensor(X[i : i + N_CHUNK_ROWS], device=device)).cpu().numpy()
                for i in range(0, len(X), N_CHUNK_ROWS)
            ]
        return np.concatenate(chunks)


def build_autoencoder(
    sizes: Sequence[int],
    *,
    activation: str,
    code_activation: str,
    output_activation: str,
    tied: bool = True,
    generator: torch.Generator | None = None,
) -> Autoencoder:
    """Build the stack d - h_1 - ... - N_c from the list of all its widths.

    The decoder of a layer gives back what the layer below put out, so it uses that layer's
    activation; only the decoder of the first layer uses `output_activation`.
    """
    up = [activation] * (len(sizes) - 2) + [code_activation]
    down = [output_activation, *up]
    return Autoencoder(
        Layer(n_in, n_out, activation=a, output_activation=b, tied=tied, generator=generator)
        for (n_in, n_out), a, b in zip(pairwise(sizes), up, down, strict=False)
    )


def choose_output_activation(name: str, low: float, high: float) -> str:
    """Return the activation that gives back data from `low` to `high`, where `name` is "auto"."""
    check_choice("output_activation", name, ["auto", *ACTIVATIONS])
    in_unit_interval = low >= 0 and high <= 1
    if name == "auto":
        return "sigmoid" if in_unit_interval else "identity"
    if name in ("sigmoid", "logistic") and not in_unit_interval:
        warnings.warn(
            f"output_activation={name!r} gives values in (0, 1) only, but X ranges over "
            f"[{low:.4g}, {high:.4g}] and cannot be given back: scale X to [0, 1] or use "
            "output_activation='auto'",
            UserWarning,
            stacklevel=5,  # the line that called `fit`
        )
    return name


def _transposed_copy(weight: Tensor) -> Tensor:
    # Glorot's distribution is the same for a weight and its transpose.
    return weight.detach().T.clone(memory_format=torch.contiguous_format)


def _glorot(n_out: int, n_in: int, generator: torch.Generator | None) -> Tensor:
    return nn.init.xavier_uniform_(torch.empty(n_out, n_in), generator=generator)
