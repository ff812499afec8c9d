"""How close reconstructions are to their rows. Missing values of the rows (NaN) do not count.

Rows and reconstructions have the same shape, with rows along the first axis. They are read a few
rows at a time, from memory or a disk, and summed in float64.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from dkae._support.arrays import check_magnitude, naming, real_numbers
from dkae.metrics.grams import Doubles
from dkae.rows import as_rows, chunks_of
from dkae.statistics import Statistics

#: Entries of X that are read together: 8 MB in float64.
N_CHUNK_ENTRIES = 2**20
#: A variance below the square of this part of the numbers themselves is round-off.
ROUND_OFF = 1e-14


def reconstruction_error(X: Any, X_hat: Any) -> float:
    r"""Return the mean squared error over all entries (Eq. 3, averaged as in Eq. 8).

    .. math:: \frac{1}{nd} \sum_{i=1}^{n} \| x_i - \hat x_i \|^2

    Parameters
    ----------
    X, X_hat : array-like of the same shape
        Rows and their reconstructions; missing values (NaN) of X do not count.
    """
    squares, n_known = 0.0, 0
    for x, x_hat in _parts(*_check_pair(X, X_hat)):
        squares += _squares(x - x_hat)
        n_known += int(np.count_nonzero(~np.isnan(x)))
    _check_known(n_known)
    return squares / n_known


def reconstruction_r2(X: Any, X_hat: Any, *, scale: Any = None) -> float:
    r"""Return the share of the variance of all features that reconstructions keep.

    .. math:: R^2 = 1 - \frac{\sum_{ij} (x_{ij} - \hat x_{ij})^2 / s_j^2}
        {\sum_{ij} (x_{ij} - \bar x_j)^2 / s_j^2}

    Without scales this is ``sklearn.metrics.r2_score`` with ``multioutput="variance_weighted"``: a
    feature counts by its variance. 1 is perfect, 0 is the score of the mean row, and there is no
    worst. Rows that are all the same have no variance: 1 if they come back unchanged, else 0.

    Parameters
    ----------
    X, X_hat : array-like of the same shape
        Rows and their reconstructions; missing values (NaN) of X do not count.
    scale : float or array-like of the shape of a row, optional
        The scales s, positive numbers. 1 by default.
    """
    rows, back = _check_pair(X, X_hat)
    s, width = _check_scale(scale, rows.shape[1:]), math.prod(rows.shape[1:])
    known = Statistics.of_chunks(_vectors(rows, "X"), (width,))
    _check_known(known.n.sum())
    error = sum(_squares((x - x_hat) / s) for x, x_hat in _parts(rows, back))
    # The mean of equal numbers may differ from them by round-off.
    varies = known.variance > np.square(ROUND_OFF * known.mean)
    deviation = float((known.n * known.variance / np.square(s))[varies].sum())
    return 1 - error / deviation if deviation > 0 else float(error == 0)


def _squares(values: Doubles) -> float:
    """Return the sum of the squares of the known values."""
    known = np.nan_to_num(values)
    return float(np.vdot(known, known))


def _parts(rows: Any, back: Any) -> Iterator[tuple[Doubles, Doubles]]:
    """Yield a few rows at a time and their reconstructions."""
    for x, x_hat in zip(_vectors(rows, "X"), _vectors(back, "X_hat"), strict=True):
        if np.isnan(x_hat).any():
            raise ValueError("X_hat has NaN values: only values of X may be missing")
        yield x, x_hat


def _vectors(rows: Any, name: str) -> Iterator[Doubles]:
    """Yield a few rows at a time as vectors."""
    for part in chunks_of(rows, N_CHUNK_ENTRIES):
        values = np.asarray(part, dtype=np.float64).reshape(len(part), -1)
        check_magnitude(values, name)
        yield values


def _check_pair(X: Any, X_hat: Any) -> tuple[Any, Any]:
    rows, back = _check_rows(X, "X"), _check_rows(X_hat, "X_hat")
    if rows.shape != back.shape:
        raise ValueError(
            f"X has shape {rows.shape}, but X_hat has shape {back.shape}: pass a reconstruction of "
            "each row, in the same order"
        )
    return rows, back


def _check_rows(X: Any, name: str) -> Any:
    with naming(name, X):
        rows = as_rows(X, name)
        rows = real_numbers(rows, name) if isinstance(rows, np.ndarray) else rows
    if 0 in rows.shape:
        raise ValueError(f"{name} has shape {rows.shape} and is empty: pass at least one entry")
    return rows


def _check_scale(scale: Any, shape: tuple[int, ...]) -> Doubles | float:
    if scale is None:
        return 1.0
    scales = real_numbers(scale, "scale").astype(np.float64).reshape(-1)
    is_positive = bool((np.isfinite(scales) & (scales > 0)).all())
    if len(scales) not in (1, math.prod(shape)) or not is_positive:
        raise ValueError(
            f"scale has {len(scales)} numbers{'' if is_positive else ', not all positive'}: pass "
            f"a positive one for each feature of rows of shape {shape}, or one for all"
        )
    return scales


def _check_known(n_known: float) -> None:
    if n_known == 0:
        raise ValueError("X has only missing values: pass rows with at least one known value")
