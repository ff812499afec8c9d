r"""Builds the stacked autoencoder of the paper.

Without a choice of widths there are two hidden layers of the same width h, the largest of at most
1,000 for which a network has no more weights on the way to the code than the data and the codes
have numbers:

.. math:: d\,h + h^2 + h\,N_c \le n\,(d + N_c) .

At n = 14,000, d = 784 and N_c = 500 that is 1,000; for 200 rows of 20,000 features, 198; for 20
rows of 10 features and N_c = 5, 11.
"""

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import torch
from sklearn.base import BaseEstimator

from dkae._support.checks import check_boolean, check_choice, check_integer, warn_caller
from dkae.networks.layers import ACTIVATIONS, Autoencoder, Layer, learn_scaling
from dkae.statistics import Statistics

#: The bounds of a width that is chosen.
NARROWEST, WIDEST = 8, 1000


class Stack(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """The paper's network, d - h_1 - ... - N_c and back, as parameters.

    Parameters
    ----------
    hidden_layer_sizes : "auto" or sequence of int, default="auto"
        Widths of the layers between input and code; the decoder has them in reverse. May be empty.
        "auto" is two layers, as wide as the data allow; see `dkae.networks.stack`.
    activation, code_activation : str, default="gelu" and "identity"
        Activation of the hidden layers and of the code.
    output_activation : str, default="auto"
        Activation of the reconstruction. "auto" is the sigmoid if all of X lies in [0, 1] and
        reaches beyond 0.5, and the identity otherwise.
    layer_norm : bool, default=True
        Whether hidden layers of the encoder normalise over their units.
    tied_weights : bool, default=True
        Whether the decoder uses the transposed weights of the encoder while both are trained. If
        not, it starts from them.
    input_scaling : {"auto", "features", "shared"} or False, default="auto"
        How the network scales rows, and the loss their differences: each feature by its standard
        deviation, or all by one, after each is centred. "auto" is "shared" if features share a
        unit, as pixels do: the tenth percentile of their ranges is at least a tenth of the largest.
        With False rows stay as they are. The kernel never sees this scaling.

    Examples
    --------
    >>> from dkae import DeepKernelizedAutoencoder
    >>> from dkae.networks import Stack
    >>> model = DeepKernelizedAutoencoder(32, network=Stack((500, 500), activation="relu"))
    """

    #: Rows are vectors.
    takes_vectors = True

    def __init__(
        self,
        hidden_layer_sizes: Any = "auto",
        *,
        activation: str = "gelu",
        code_activation: str = "identity",
        output_activation: str = "auto",
        layer_norm: bool = True,
        tied_weights: bool = True,
        input_scaling: str | bool = "auto",
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.code_activation = code_activation
        self.output_activation = output_activation
        self.layer_norm = layer_norm
        self.tied_weights = tied_weights
        self.input_scaling = input_scaling

    def build(
        self, known: Statistics, n_components: int, generator: torch.Generator | None = None
    ) -> Autoencoder:
        """Return the network for rows of these statistics, with weights drawn at random."""
        if len(known.shape) != 1:
            raise ValueError(
                f"a Stack maps vectors, but a row of X has the shape {known.shape}: flatten X to "
                "two dimensions, or pass another network="
            )
        n_components = check_integer("n_components", n_components, at_least=1)
        hidden = hidden_sizes(self.hidden_layer_sizes, (known.n_rows, *known.shape), n_components)
        output = choose_output_activation(self.output_activation, *known.range)
        layers = self._layers([*known.shape, *hidden, n_components], output, generator)
        if self.input_scaling is False:
            return Autoencoder(layers)
        scales_output = output == "identity"
        scaling = learn_scaling(known, str(self.input_scaling), scales_output=scales_output)
        return Autoencoder(layers, scaling)

    def _layers(
        self, sizes: list[int], output: str, generator: torch.Generator | None
    ) -> list[Layer]:
        n_hidden = len(sizes) - 2
        hidden = check_choice("activation", self.activation, ACTIVATIONS)
        code = check_choice("code_activation", self.code_activation, ACTIVATIONS)
        tied = check_boolean("tied_weights", self.tied_weights)
        up = [hidden] * n_hidden + [code]
        # The decoder of a layer reconstructs the output of the layer below, with its activation.
        down = [output, *up]
        norms = [check_boolean("layer_norm", self.layer_norm)] * n_hidden + [False]
        return [
            Layer(
                m, n, activation=a, output_activation=b, tied=tied, norm=norm, generator=generator
            )
            for (m, n), a, b, norm in zip(pairwise(sizes), up, down, norms, strict=False)
        ]


def hidden_sizes(given: Any, shape: tuple[int, ...], n_components: int) -> list[int]:
    """Return the widths of the hidden layers; by the formula for "auto".

    `shape` is that of the rows, (n, d).
    """
    if isinstance(given, str):
        if given != "auto":
            raise ValueError(
                f"hidden_layer_sizes={given!r} is not known: pass 'auto' or widths, such as "
                "(1000, 1000)"
            )
        n_rows, width = shape[0], shape[1] + n_components
        h = (math.sqrt(width**2 + 4 * n_rows * width) - width) / 2
        return [max(NARROWEST, min(WIDEST, int(h)))] * 2
    # An array of one number, without an axis, is an Iterable too.
    is_several = isinstance(given, Iterable) and getattr(given, "ndim", 1) > 0
    sizes = given if is_several else (given,)
    return [check_integer("each of hidden_layer_sizes", n, at_least=1) for n in sizes]


def choose_output_activation(name: str, low: float, high: float) -> str:
    """Return the activation for rows with values from `low` to `high`, resolving "auto"."""
    check_choice("output_activation", name, ["auto", *ACTIVATIONS])
    in_unit_interval = low >= 0 and high <= 1
    if name == "auto":
        # A sigmoid reconstructs values badly that all lie far below 1, such as [0, 0.01].
        return "sigmoid" if in_unit_interval and high > 0.5 else "identity"
    if name in ("sigmoid", "logistic") and not in_unit_interval:
        warn_caller(
            f"output_activation={name!r} gives values in (0, 1) only, but X ranges over "
            f"[{low:.4g}, {high:.4g}], out of its reach: scale X to [0, 1] or use "
            "output_activation='auto'"
        )
    return name
