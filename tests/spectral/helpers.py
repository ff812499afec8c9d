"""What the tests of this room share."""

from __future__ import annotations

import numpy as np


def assert_same_up_to_sign(actual, expected, atol):
    """Compare scores column by column; a column has no sign of its own."""
    assert actual.shape == expected.shape
    signs = np.sign((actual * expected).sum(axis=0))
    np.testing.assert_allclose(actual * signs, expected, rtol=0, atol=atol)


def centered(gram):
    """Return H K H, by the textbook's formula."""
    H = np.eye(len(gram)) - 1 / len(gram)
    return H @ gram @ H
