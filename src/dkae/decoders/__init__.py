"""The way back from codes to rows: regressors, in closed form or trained.

A decoder is any multi-output regressor: ``fit(codes, rows)`` and ``predict(codes)``. A map calls
``fit`` once, with all rows or a sample of them.

A decoder that learns in steps has three more methods. A map then trains it on all rows, with
callbacks and checkpoints, and goes on with it in `partial_fit` and warm starts; `MLPDecoder` is
the model to follow.

``settings(n_rows, device)``
    Return `dkae.training.phases.Settings`: epochs, batch size, the share of rows to hold out.
``start(codes, rows, known)``
    Build ``network_`` from a sample of codes and rows and the `Statistics` of all rows: a torch
    module whose ``decode`` maps codes to rows, ``encode`` returns its input, and
    ``decoder_parameters`` are what learns. With a ``network_`` a decoder is not started again.
``learn(source, settings, callbacks)``
    Train ``network_`` on batches, whose inputs are codes and whose targets are rows, as
    `dkae.training.trainer.train` does, and return the `dkae.training.callbacks.History`.
"""

from typing import Any

from sklearn.base import clone

from dkae._support.checks import check_choice, shown
from dkae.decoders.kernel_ridge import KernelRidgeDecoder
from dkae.decoders.mlp import MLPDecoder
from dkae.decoders.ridge import RidgeDecoder

__all__ = ["DECODERS", "KernelRidgeDecoder", "MLPDecoder", "RidgeDecoder", "make_decoder"]

#: Decoders by name.
DECODERS: dict[str, Any] = {
    "ridge": RidgeDecoder,
    "kernel_ridge": KernelRidgeDecoder,
    "mlp": MLPDecoder,
}
#: From so many rows on a trained decoder beats the closed form; docs/decisions.md has the numbers.
N_MLP_FROM = 8000


#: What every decoder has; an estimator of scikit-learn has the last one.
METHODS = ("fit", "predict", "get_params")


def make_decoder(decoder: Any, n_rows: int, seed: int | None = None) -> Any:
    """Return the unfitted decoder that a name or a regressor stands for; a regressor is cloned.

    "auto" is the closed form for few rows, and the trained decoder for many.
    """
    if isinstance(decoder, str):
        check_choice("decoder", decoder, ["auto", *DECODERS])
        name = ("mlp" if n_rows >= N_MLP_FROM else "kernel_ridge") if decoder == "auto" else decoder
        made = DECODERS[name]()
    elif isinstance(decoder, type) or not all(hasattr(decoder, n) for n in METHODS):
        raise ValueError(
            f"decoder={shown(decoder)} must be a regressor: pass one of {', '.join(DECODERS)}, or "
            "an estimator with fit(codes, rows) and predict(codes), such as KernelRidge()"
        )
    else:
        made = clone(decoder)
    if seed is not None and "random_state" in made.get_params() and made.random_state is None:
        made.set_params(random_state=seed)
    return made


def is_trained(decoder: Any) -> bool:
    """Return whether a decoder learns in steps."""
    return callable(getattr(decoder, "learn", None))
