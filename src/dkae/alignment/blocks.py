"""The check of the two Gram matrices that every measure of alignment takes."""

import functools
from collections.abc import Callable

from torch import Tensor


def of_blocks(measure: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a measure that raises unless it gets two Gram matrices of the same rows."""

    @functools.wraps(measure)
    def checked(code_gram: Tensor, prior_gram: Tensor) -> Tensor:
        for name, gram in (("code_gram", code_gram), ("prior_gram", prior_gram)):
            if not isinstance(gram, Tensor) or not gram.is_floating_point() or gram.ndim != 2:
                raise TypeError(
                    f"{name} is a {type(gram).__name__}: pass a matrix of floats, as a torch tensor"
                )
        n, shapes = len(code_gram), {tuple(code_gram.shape), tuple(prior_gram.shape)}
        if shapes != {(n, n)}:
            raise ValueError(
                f"code_gram has shape {tuple(code_gram.shape)}, and prior_gram "
                f"{tuple(prior_gram.shape)}: pass square matrices of the same rows"
            )
        return measure(code_gram, prior_gram)

    return checked
