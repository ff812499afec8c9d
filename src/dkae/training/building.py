"""Which network an estimator trains, and how it starts: from its parameters, the rows, the kernel.

A kernel that can be evaluated at new rows, and that a model file can hold, gets the kernel layer,
which starts where Nyström features end. All others get the paper's kind of encoder.
"""

import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dkae._support.checks import check_integer
from dkae._support.warning import warn_caller
from dkae.grams import Rows
from dkae.kernels import Kernel, PairwiseKernel, ProbabilisticClusterKernel
from dkae.kernels.formulas import knows_new_rows, rows_module
from dkae.networks import (
    Autoencoder,
    KernelLayer,
    KernelLayerNetwork,
    RidgeDecoder,
    Scaling,
    StackedNetwork,
    build_network,
    check_network,
    scaled,
    seeded,
)
from dkae.networks.statistics import Statistics, learn_scaling
from dkae.training.starts import start_kernel_layer, start_linear_path

#: Networks by name.
NETWORKS = ("auto", "kernel_layer", "stacked")
#: Measures for which Nyström features are best: those of Frobenius norms.
NYSTROEM_MEASURES = ("frobenius", "offdiagonal")
#: One feature that has more than this part of the squared distances is the kernel, all others
#: hardly matter to it.
DOMINANT_SHARE = 0.9


@dataclass(frozen=True)
class Built:
    """A network, what stands between it and the rows, and whether its codes mean something yet."""

    network: nn.Module
    scaling: Scaling | None
    is_started: bool
    #: Whether the scaling changes units; if not, it only fills in what is missing.
    is_standardized: bool = True
    #: Rows of X whose kernel values the network takes from the Gram matrix.
    landmarks: Rows | None = None

    @property
    def unit(self) -> Tensor | None:
        """What L_r measures differences of rows in; None where rows keep their units."""
        return self.scaling.unit if self.scaling is not None and self.is_standardized else None

    @property
    def maps(self) -> nn.Module:
        """The network between rows in the units of the data."""
        return scaled(self.network, self.scaling)


def is_own(network: Any) -> bool:
    """Say whether a network is the user's: a module, or a factory of one."""
    return not (network is None or isinstance(network, (str, KernelLayerNetwork)))


def build(
    estimator: Any,
    X: Any,
    kernel: Kernel | None,
    seed: int,
    lower: Autoencoder | None = None,
    statistics: Statistics | None = None,
    n_rows: int | None = None,
) -> Built:
    """Return the network that an estimator's parameters ask for, at its start.

    Parameters
    ----------
    estimator : DeepKernelizedAutoencoder
        Has the parameters.
    X : array of shape (n_samples, ...)
        Training rows.
    kernel : Kernel or None
        Fitted; None where only a Gram matrix of the rows is known.
    seed : int
        Of random weights and landmarks.
    lower : Autoencoder, optional
        Trained layers, the former way to pass them.
    statistics : Statistics, optional
        What is known of the features of X: it takes a pass over all rows to find out.
    n_rows : int, optional
        How many rows there will be, if X is a part of them.
    """
    n_rows = n_rows or len(X)
    known = Statistics.of(X) if statistics is None else statistics
    n_components = check_integer("n_components", estimator.n_components, at_least=1)
    fills = estimator.missing == "mask"
    if is_own(estimator.network):
        built = _own(estimator, X, known, seed, fills)
    else:
        stack = StackedNetwork.of(estimator, X, lower, known, n_rows)
        layer = choose_kernel_layer(estimator, kernel) if lower is None else None
        if layer is None or kernel is None:
            built = _stacked(estimator, stack, X, known, seed, fills)
        else:
            scaling = learn_scaling(known, estimator.standardize, fills=fills)
            built = _kernel_layer(estimator, layer, stack, kernel, X, scaling, seed, n_rows)
    with seeded(seed + 1):  # lazy modules draw their weights at the first rows
        check_network(built.maps, X[:2], n_components)
    return built


def choose_kernel_layer(estimator: Any, kernel: Kernel | None) -> KernelLayerNetwork | None:
    """Return the kernel layer that an estimator asks for, or None where a stack is to be built."""
    network = estimator.network
    if isinstance(network, KernelLayerNetwork):
        layer: KernelLayerNetwork | None = network
    else:
        name = "auto" if network is None else _check_name(network)
        by_rule = name == "auto" and is_nystroem_best(estimator, kernel)
        layer = KernelLayerNetwork() if by_rule or name == "kernel_layer" else None
    if layer is not None and not knows_new_rows(kernel):
        what = "the Gram matrix of X alone" if kernel is None else f"{kernel}, of known rows alone"
        raise ValueError(
            f"network={network!r} needs a kernel that can be evaluated at new rows, got {what}: "
            "pass a kernel, or network='stacked'"
        )
    return layer


def is_nystroem_best(estimator: Any, kernel: Kernel | None) -> bool:
    """Say whether "auto" is the kernel layer: nothing is asked for that its codes ignore."""
    asks_for_more = estimator.pretrain_max_iter or estimator.distillation or estimator.input_noise
    return (
        type(kernel) in (PairwiseKernel, ProbabilisticClusterKernel)  # those that a file can hold
        and estimator.alignment_weight > 0
        and estimator.alignment in NYSTROEM_MEASURES
        and not asks_for_more
    )


def _check_name(network: str) -> str:
    if network not in NETWORKS:
        raise ValueError(
            f"network={network!r} is not known: expected {', '.join(map(repr, NETWORKS))}, a torch "
            "module, or a factory of one"
        )
    return network


def _own(estimator: Any, X: Any, known: Statistics, seed: int, fills: bool) -> Built:
    network = build_network(
        estimator.network, X.shape[1:], int(estimator.n_components), _generator(seed)
    )
    # A module of somebody else expects rows in units of its own.
    standardize, output = estimator.standardize, "identity"
    if isinstance(network, KernelLayer):  # it has its scaling within
        return Built(network, network.decoder.scaling, True, standardize is not False)  # type: ignore[arg-type]
    if isinstance(network, Autoencoder):
        output = network.layers[0].output_activation
    elif standardize == "auto":
        standardize = False
    scaling = _scaling(known, standardize, output, fills)
    is_started = isinstance(estimator.network, nn.Module)
    return Built(network, scaling, is_started, standardize is not False)


def _stacked(
    estimator: Any, stack: StackedNetwork, X: Any, known: Statistics, seed: int, fills: bool
) -> Built:
    network = build_network(stack, X.shape[1:], int(estimator.n_components), _generator(seed))
    scaling = _scaling(known, estimator.standardize, stack.output_activation, fills)
    start_linear_path(network, X, scaling)
    return Built(network, scaling, False, estimator.standardize is not False)


def _kernel_layer(
    estimator: Any,
    layer: KernelLayerNetwork,
    stack: StackedNetwork,
    kernel: Kernel,
    X: Any,
    scaling: Scaling,
    seed: int,
    n_rows: int,
) -> Built:
    # The decoder comes back down through the widths that lead up to a code.
    sizes, output = list(stack.hidden_layer_sizes)[::-1], stack.output_activation
    with seeded(seed):
        decoder = RidgeDecoder(int(estimator.n_components), X.shape[1], sizes, scaling, output)
    network, landmarks = start_kernel_layer(
        layer,
        partial(rows_module, kernel, fill=scaling.fill),
        X,
        scaling,
        decoder,
        float(estimator.alignment_weight),
        seed,
        n_rows,
    )
    return Built(network, scaling, True, estimator.standardize is not False, landmarks)


def built_from(model: Any) -> Built:
    """Return the network of a fitted model, to train it further.

    It is a copy: the model keeps its own until that has succeeded.
    """
    network = copy.deepcopy(model.network_)
    within = network.decoder.scaling if isinstance(network, KernelLayer) else None
    scaling = copy.deepcopy(model.scaling_) if within is None else within
    is_somebodys = is_own(model.network) and not isinstance(network, (Autoencoder, KernelLayer))
    keeps_units = model.standardize is False or (is_somebodys and model.standardize == "auto")
    return Built(network, scaling, True, not keeps_units)  # type: ignore[arg-type]


def _scaling(known: Statistics, standardize: Any, output: str, fills: bool) -> Scaling | None:
    """Return the scaling that is needed; None where rows go in as they are."""
    if standardize is False and not fills:
        return None
    return learn_scaling(known, standardize, fills=fills, scales_output=output == "identity")


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def warn_of_dominance(kernel: Kernel | None, statistics: Statistics, names: Any = None) -> None:
    """Warn if a named kernel hardly depends on any feature but one."""
    if type(kernel) is not PairwiseKernel or statistics.mean.ndim != 1:
        return
    j, share = statistics.largest_share
    # Where all other features are constant, there is nothing else to see.
    if share > DOMINANT_SHARE and np.count_nonzero(statistics.deviation) > 1:
        name = f"{j}" if names is None else f"{names[j]!r}"
        warn_caller(
            f"feature {name} has {100 * share:.3g} % of the squared distances between rows, so "
            f"{kernel} hardly sees the others: scale X first, for example with "
            "make_pipeline(StandardScaler(), model), or `dkae fit --standardize`"
        )
