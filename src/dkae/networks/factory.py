"""Builds the stacked autoencoder of the paper, new or on top of trained layers."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import torch

from dkae._support.checks import check_boolean, check_choice, check_integer, check_number
from dkae._support.warning import warn_caller
from dkae.grams import Floats
from dkae.networks.sizes import hidden_sizes
from dkae.networks.stacked import ACTIVATIONS, Autoencoder, Layer, LinearPath
from dkae.networks.statistics import Statistics


@dataclass(frozen=True)
class StackedNetwork:
    """The factory of the paper's network, d - h_1 - ... - N_c and back.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int
        Widths of the layers between input and code.
    activation, code_activation, output_activation : str
        Activations of the hidden layers, the code and the reconstruction.
    tied : bool
        Whether the decoder shares the weights of the encoder.
    layer_norm : bool, default=False
        Whether hidden layers normalise before their activation, on the way up.
    linear_path : float, default=0.0
        a, the weight of a linear path beside the stack; 0 for none.
    lower : Autoencoder, optional
        Trained lowest layers to start from, such as ``Autoencoder(model.network_.layers[:-1])``.
        Their weights are copied, and pretraining leaves these layers out.
    """

    hidden_layer_sizes: Sequence[int] = (500, 500, 2000)
    activation: str = "gelu"
    code_activation: str = "identity"
    output_activation: str = "identity"
    tied: bool = True
    layer_norm: bool = False
    linear_path: float = 0.0
    lower: Autoencoder | None = None

    def __post_init__(self) -> None:
        for n in self.hidden_layer_sizes:
            check_integer("each of hidden_layer_sizes", n, at_least=1)

    @classmethod
    def of(
        cls,
        estimator: Any,
        X: Floats,
        lower: Autoencoder | None,
        statistics: Statistics | None = None,
        n_rows: int | None = None,
    ) -> Self:
        """Return the factory that an estimator's parameters describe, for the rows X.

        `n_rows` is how many there will be, if X is a part of them.
        """
        known = Statistics.of(X) if statistics is None else statistics
        n_components = check_integer("n_components", estimator.n_components, at_least=1)
        linear_path = check_number("linear_path", estimator.linear_path, 0)
        output = choose_output_activation(estimator.output_activation, *known.range)
        if linear_path and estimator.output_activation == "auto":
            output = "identity"  # the path adds to what comes out of the stack, in its units
        return cls(
            hidden_sizes(
                estimator.hidden_layer_sizes, (n_rows or len(X), *X.shape[1:]), n_components
            ),
            activation=check_choice("activation", estimator.activation, ACTIVATIONS),
            code_activation=check_choice("code_activation", estimator.code_activation, ACTIVATIONS),
            output_activation=output,
            tied=check_boolean("tied_weights", estimator.tied_weights),
            layer_norm=check_boolean("layer_norm", estimator.layer_norm),
            linear_path=linear_path,
            lower=lower,
        )

    def __call__(
        self, shape: tuple[int, ...], n_components: int, generator: torch.Generator | None = None
    ) -> Autoencoder:
        if len(shape) != 1:
            raise ValueError(
                f"a stacked network maps vectors, but a row of X has the shape {shape}: flatten X "
                "to two dimensions, or pass another network="
            )
        sizes = [*shape, *self.hidden_layer_sizes, n_components]
        up = [self.activation] * len(self.hidden_layer_sizes) + [self.code_activation]
        # The decoder of a layer gives back what the layer below put out, with its activation.
        down = [self.output_activation, *up]
        norms = [self.layer_norm] * len(self.hidden_layer_sizes) + [False]
        network = Autoencoder(
            [
                Layer(
                    m,
                    n,
                    activation=a,
                    output_activation=b,
                    tied=self.tied,
                    norm=norm,
                    generator=generator,
                )
                for (m, n), a, b, norm in zip(pairwise(sizes), up, down, norms, strict=False)
            ],
            linear_path=self._linear_path(*shape, n_components),
        )
        if self.lower is not None:
            start_from(self.lower, network)
        return network

    def _linear_path(self, n_features: int, n_components: int) -> LinearPath | None:
        """Return the path along the first features: `fit` puts the principal directions there."""
        if not self.linear_path:
            return None
        directions = torch.eye(n_components, n_features)
        return LinearPath(directions, torch.zeros(n_features), self.linear_path)


def choose_output_activation(name: str, low: float, high: float) -> str:
    """Return the activation that gives back values of X, from `low` to `high`, for "auto"."""
    check_choice("output_activation", name, ["auto", *ACTIVATIONS])
    in_unit_interval = low >= 0 and high <= 1
    if name == "auto":
        # Far below 1 a sigmoid is steep: what all lies in [0, 0.01] it gives back badly.
        return "sigmoid" if in_unit_interval and high > 0.5 else "identity"
    if name in ("sigmoid", "logistic") and not in_unit_interval:
        warn_caller(
            f"output_activation={name!r} gives values in (0, 1) only, but X ranges over "
            f"[{low:.4g}, {high:.4g}] and cannot be given back: scale X to [0, 1] or use "
            "output_activation='auto'"
        )
    return name


def start_from(pretrained: Any, network: Autoencoder) -> None:
    """Copy trained weights into the lowest layers of `network`, which pretraining then leaves out.

    Parameters
    ----------
    pretrained : Autoencoder
        The layers to copy, of the same widths and activations as those of `network`. They are not
        changed. A layer whose decoder has weights of its own keeps them.
    """
    if not isinstance(pretrained, Autoencoder):
        raise ValueError(
            f"pretrained must be an Autoencoder, got {type(pretrained).__name__}: pass the "
            "network_ of a fitted model, or Autoencoder(model.network_.layers[:-1]) for all but "
            "its code"
        )
    n_given, n_layers = len(pretrained.layers), len(network.layers)
    if n_given > n_layers:
        raise ValueError(
            f"pretrained has {n_given} layers, but the network has {n_layers}: pass at most "
            f"{n_layers}, for example Autoencoder(pretrained.layers[:{n_layers}])"
        )
    pairs = list(zip(pretrained.layers, network.layers, strict=False))
    for i, (source, target) in enumerate(pairs):
        _check_same_config(i + 1, source.config, target.config)
    for source, target in pairs:
        _copy(source, target)
    network.n_pretrained = n_given


def _copy(source: Layer, target: Layer) -> None:
    """Copy the weights; what the decoder of either has of its own, the target has afterwards."""
    if source.decoder_weight is not None:
        target.untie()
    state = source.state_dict()
    if target.decoder_weight is not None:
        state.setdefault("decoder_weight", source.weight.T)
    target.load_state_dict(state)


def _check_same_config(number: int, given: dict[str, Any], expected: dict[str, Any]) -> None:
    for name, value in given.items():
        if name != "tied" and value != expected[name]:
            raise ValueError(
                f"layer {number} of pretrained has {name}={value!r}, but that of the network has "
                f"{name}={expected[name]!r}: pass layers of the same widths and activations, or "
                "set the model's parameters to theirs"
            )
