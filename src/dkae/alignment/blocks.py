"""The check of the two Gram matrices that every measure of alignment takes."""

import functools
from collections.abc import Callable
from typing import Any

from torch import Tensor


def of_blocks(measure: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a measure that raises unless it gets two Gram matrices of the same rows."""

    @functools.wraps(measure)
    def checked(code_gram: Tensor, prior_gram: Tensor) -> Tensor:
        _check_gram("code_gram", code_gram)
        _check_gram("prior_gram", prior_gram)
        if len(code_gram) != len(prior_gram):
            raise ValueError(
                f"code_gram has {len(code_gram)} rows, but prior_gram has {len(prior_gram)}: pass "
                "Gram matrices of the same rows"
            )
        return measure(code_gram, prior_gram)

    return checked


def _check_gram(name: str, gram: Any) -> None:
    if not isinstance(gram, Tensor):
        raise TypeError(
            f"{name} is a {type(gram).__name__}: pass a tensor, as torch.as_tensor does"
        )
    if not gram.is_floating_point() or gram.ndim != 2 or gram.shape[0] != gram.shape[1]:
        raise ValueError(
            f"{name} has shape {tuple(gram.shape)} and entries of type {gram.dtype}: pass a square "
            "matrix of floats, such as codes @ codes.T"
        )
