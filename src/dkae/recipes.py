"""Recipes: each function returns an unfitted estimator, and any parameter can be overridden.

====================  ============================================================================
:func:`default`       the defaults of the estimator: the kernel layer for kernels that a model file
                      can hold (by name, the Probabilistic Cluster Kernel), the network for others
:func:`kernel_layer`  codes from kernel values with landmark rows, for any kernel that can be
                      evaluated at new rows
:func:`network`       the paper's kind of encoder, for any kernel, also a Gram matrix alone
:func:`paper`         the paper to the letter
====================  ============================================================================

docs/decisions.md has the measurements behind them.
"""

from typing import Any

from dkae.autoencoder import DeepKernelizedAutoencoder

__all__ = ["RECIPES", "default", "kernel_layer", "network", "paper"]


def default(**overrides: Any) -> DeepKernelizedAutoencoder:
    """Return the library's own recipe: the defaults of the estimator."""
    return DeepKernelizedAutoencoder(**overrides)


def kernel_layer(**overrides: Any) -> DeepKernelizedAutoencoder:
    """Return the recipe of the kernel layer, which holds landmark rows and evaluates the kernel."""
    return DeepKernelizedAutoencoder(**({"network": "kernel_layer"} | overrides))


def network(**overrides: Any) -> DeepKernelizedAutoencoder:
    """Return the recipe of the learned encoder, which holds no row and evaluates no kernel."""
    return DeepKernelizedAutoencoder(**({"network": "stacked"} | overrides))


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
        "network": "stacked",
        "standardize": False,
        "layer_norm": False,
        "hidden_layer_sizes": (500, 500, 2000),
        "activation": "sigmoid",
        "code_activation": "sigmoid",
        "output_activation": "sigmoid",
        "tied_weights": True,
        "alignment_weight": 0.1,
        "batch_size": 200,
        "pretrain_max_iter": 30,
        "max_iter": 100,
        "decoder_max_iter": 0,
        "steps_per_epoch": "pairs",
        "learning_rate": "constant",
        "learning_rate_init": 0.001,
        "early_stopping": False,
    }
    if "epoch" in overrides:  # the deprecated name, of which the estimator warns
        del settings["steps_per_epoch"]
    return DeepKernelizedAutoencoder(**(settings | overrides))


#: The recipes by name, for the command line.
RECIPES = {"default": default, "kernel_layer": kernel_layer, "network": network, "paper": paper}
