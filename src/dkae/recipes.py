"""Recipes: each function returns an unfitted map, and any parameter can be overridden.

====================  ============================================================================
:func:`default`       the map that suits a kernel: `InvertibleNystroem` for kernels by name and the
                      Probabilistic Cluster Kernel, `DeepKernelizedAutoencoder` for all others
:func:`network`       the learned map with the settings that measure best: its defaults
:func:`paper`         the learned map, to the letter of the paper
====================  ============================================================================

docs/decisions.md has the measurements behind them.
"""

from typing import Any

from dkae.autoencoder import DeepKernelizedAutoencoder
from dkae.kernels import ProbabilisticClusterKernel
from dkae.networks import Stack
from dkae.nystroem import InvertibleNystroem
from dkae.training import Optimization

__all__ = ["default", "network", "paper"]


def default(kernel: Any = "rbf", **overrides: Any) -> Any:
    """Return the map that suits a kernel, `InvertibleNystroem` or `DeepKernelizedAutoencoder`."""
    is_named = isinstance(kernel, (str, ProbabilisticClusterKernel)) and kernel != "forest"
    chosen: Any = InvertibleNystroem if is_named else DeepKernelizedAutoencoder
    return chosen(kernel=kernel, **overrides)


def network(**overrides: Any) -> DeepKernelizedAutoencoder:
    """Return the recipe of the learned map, which holds no row and evaluates no kernel."""
    return DeepKernelizedAutoencoder(**overrides)


def paper(**overrides: Any) -> DeepKernelizedAutoencoder:
    """Return the paper's recipe (Section 4.1).

    The Probabilistic Cluster Kernel, d-500-500-2000-2000, sigmoid everywhere (Eq. 1), tied weights,
    30 epochs of pretraining for each layer and 100 epochs of fine-tuning with (n/k)² batches of
    k = 200, plain Adam, λ = 0.1.

    On n = 14,000 rows this is 1.08 million steps. ``paper(steps_per_epoch=20)`` keeps everything
    but the length of an epoch, and takes 2,000 steps of fine-tuning after 600 for each layer.
    """
    settings: dict[str, Any] = {
        "n_components": 2000,
        "kernel": "pck",
        "alignment": "frobenius",
        "network": Stack(
            (500, 500, 2000),
            activation="sigmoid",
            code_activation="sigmoid",
            output_activation="sigmoid",
            layer_norm=False,
            tied_weights=True,
            input_scaling=False,
        ),
        "alignment_weight": 0.1,
        "batch_size": 200,
        "pretrain_max_iter": 30,
        "max_iter": 100,
        "decoder_max_iter": 0,
        "steps_per_epoch": "pairs",
        "optimization": Optimization(learning_rate="constant", learning_rate_init=0.001),
    }
    return DeepKernelizedAutoencoder(**(settings | overrides))
