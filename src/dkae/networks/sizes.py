r"""How wide the hidden layers are where nobody says so.

Two layers of the same width h, the largest of at most 1,000 for which a network has no more
weights on the way to the code than the data and the codes have numbers:

.. math:: d\,h + h^2 + h\,N_c \le n\,(d + N_c) .

At n = 14,000, d = 784 and N_c = 500 that is 1,000; for 200 rows of 20,000 features, 198; for 20
rows of 10 features and N_c = 5, 11.
"""

import math
from collections.abc import Iterable
from typing import Any

from dkae._support.checks import check_integer

#: The bounds of a width.
NARROWEST, WIDEST = 8, 1000


def hidden_sizes(given: Any, shape: tuple[int, ...], n_components: int) -> list[int]:
    """Return the widths of the hidden layers that a user asks for, by the formula for "auto".

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
