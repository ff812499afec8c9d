"""Recipes: each function returns an unfitted estimator, and any parameter can be overridden.

``default`` is the library's own, chosen by measurements on MNIST with a budget of 2,000 steps
(docs/decisions.md has the numbers); ``paper`` is the paper to the letter.
"""

from typing import Any

from dkae.estimator import DeepKernelizedAutoencoder

__all__ = ["RECIPES", "default", "paper"]


def default(**overrides: Any) -> DeepKernelizedAutoencoder:
    """Return the library's own recipe: the defaults of the estimator."""
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
        "network": "stacked",
        "standardize": False,
        "layer_norm": False,
        "linear_path": 0.0,
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
    }
    if "epoch" in overrides:  # the deprecated name, of which the estimator warns
        del settings["steps_per_epoch"]
    return DeepKernelizedAutoencoder(**(settings | overrides))


#: The recipes by name, for the command line.
RECIPES = {"default": default, "paper": paper}
