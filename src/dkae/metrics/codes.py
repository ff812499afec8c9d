"""Measures of codes: how well they represent the prior, and how well they reconstruct rows."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from dkae._support.arrays import naming, real_numbers
from dkae._support.checks import check_number
from dkae._support.units import exponent_of, in_unit, largest_entry
from dkae.grams import Gram, GramLike, as_gram
from dkae.kernels.features import FeatureGram
from dkae.metrics.comparison import Doubles, check_sizes, read_in_units, tiles
from dkae.rows import is_row_array, row_array

#: Entries of X that are read together: 8 MB in float64.
N_CHUNK_ENTRIES = 2**20
#: Rows of codes that are read together.
N_CHUNK_ROWS = 1024
#: A deviation below this part of the mean is its round-off.
MEAN_ROUND_OFF = 1e-14


def code_gram(codes: Any) -> Gram:
    """Return the Gram matrix of codes, ``codes @ codes.T``, read block by block.

    Parameters
    ----------
    codes : array-like of shape (n, n_components)
        Codes, or any other features. Of those on a disk, the rows of a block are read.
    """
    return FeatureGram(_check_codes(codes), "the Gram matrix of codes")


def alignment_loss_curve(codes: Any, prior: GramLike) -> Doubles:
    r"""Return L_c of the first m components of the codes, for every m, in one pass over the prior.

    With the components :math:`z_i`, the columns of the codes :math:`Z`, and
    :math:`Z_m = (z_1, \dots, z_m)`,

    .. math::
        \langle Z_m Z_m^\top, P \rangle = \sum_{i \le m} z_i^\top P z_i, \qquad
        \| Z_m Z_m^\top \|^2 = \| Z_m^\top Z_m \|^2 = \sum_{i, j \le m} (z_i^\top z_j)^2 .

    Parameters
    ----------
    codes : array-like of shape (n, n_components)
        Codes, the most important component first, such as scores of kernel PCA.
    prior : GramLike of n rows
        Gram matrix that they should represent.

    Returns
    -------
    array of shape (n_components,)
        The losses for m = 1, 2, ...; values below 1e-7 cannot be told from zero.
    """
    Z, P = _check_codes(codes), as_gram(prior, "prior")
    check_sizes((FeatureGram(Z, "codes"), P), ("codes", "prior"))
    # The losses are free of scale; ‖Z_m Z_mᵀ‖² has fourth powers of codes.
    exponent = exponent_of(_largest(Z, "codes"), np.float32)
    with_prior, prior_squares = np.zeros(Z.shape[1]), 0.0
    for tile in tiles(read_in_units((P,), ("prior",))):
        (values,) = tile.values
        left, right = (_doubles(Z[part], exponent) for part in (tile.rows, tile.columns))
        with_prior += tile.weight * np.einsum("im,im->m", left, values @ right)
        prior_squares += tile.weight * float(np.vdot(values, values))
    squares = _products_of_columns(Z, exponent) ** 2
    code_norms = np.sqrt(squares.cumsum(axis=0).cumsum(axis=1).diagonal())
    return _losses(with_prior.cumsum(), code_norms, math.sqrt(prior_squares))


def _products_of_columns(Z: Any, exponent: int) -> Doubles:
    """Return ZᵀZ in float64 by chunks of rows, without a float64 copy of the codes."""
    products = np.zeros((Z.shape[1], Z.shape[1]))
    for start in range(0, len(Z), N_CHUNK_ROWS):
        chunk = _doubles(Z[start : start + N_CHUNK_ROWS], exponent)
        products += chunk.T @ chunk
    return products


def _losses(products: Doubles, code_norms: Doubles, prior_norm: float) -> Doubles:
    """Return √(2 - 2A), with the convention of `alignment_loss` for zero matrices."""
    norms = code_norms * prior_norm
    cosines = np.divide(products, norms, out=np.zeros_like(norms), where=norms > 0)
    losses: Doubles = np.sqrt(2 - 2 * np.clip(cosines, -1, 1))
    losses[norms == 0] = ((code_norms > 0) != (prior_norm > 0))[norms == 0]
    return losses


def _check_codes(codes: Any) -> Any:
    with naming("codes", codes):
        if not _is_read_by_parts(codes):
            types = [np.float32, np.float64]
            return check_array(codes, dtype=types, input_name="codes")
        if len(codes.shape) != 2 or not all(codes.shape):
            raise ValueError(f"codes has shape {codes.shape}: pass a matrix, a row for each sample")
        return row_array(codes)


def _is_read_by_parts(values: Any) -> bool:
    """Say whether numbers are not in memory; of a memmap of floats, parts need no conversion."""
    is_mapped_float = isinstance(values, np.memmap) and values.dtype in (np.float32, np.float64)
    return is_row_array(values) and not is_mapped_float


def reconstruction_error(X: Any, X_hat: Any) -> float:
    r"""Return the mean squared error over all entries (Eq. 3, averaged as in Eq. 8).

    .. math:: \frac{1}{nd} \sum_{i=1}^{n} \| x_i - \hat x_i \|^2

    Parameters
    ----------
    X, X_hat : array-like of the same shape, with rows along the first axis
        Rows and their reconstructions. Only a few rows at a time are copied to float64.
    """
    a, b, exponent = _check_pair(X, X_hat)
    try:
        return math.ldexp(_mean_square(a, b, exponent), 2 * exponent)
    except OverflowError as error:
        raise ValueError(
            "X and X_hat differ by so much (beyond 1e150) that squares leave float64: scale both"
        ) from error


def reconstruction_r2(X: Any, X_hat: Any) -> float:
    r"""Return the share of the variance of all features that reconstructions keep.

    .. math:: R^2 = 1 - \frac{\sum_i \| x_i - \hat x_i \|^2}{\sum_i \| x_i - \bar x \|^2}

    This is ``sklearn.metrics.r2_score`` with ``multioutput="variance_weighted"``: a feature counts
    by its variance. 1 is perfect, 0 is what the mean row gives for each row, and there is no worst.
    Rows that are all the same have no variance: 1 if they come back as they are, else 0.

    Parameters
    ----------
    X, X_hat : array-like of the same shape, with rows along the first axis
        Rows and their reconstructions. Only a few rows at a time are copied to float64.
    """
    a, b, exponent = _check_pair(X, X_hat)
    error, mean = _mean_square(a, b, exponent), _mean_row(a, exponent)
    variance = _mean_square(a, mean, exponent)
    # The mean of equal numbers may differ from them by round-off.
    varies = variance > (MEAN_ROUND_OFF * np.abs(mean).max()) ** 2
    return 1 - error / variance if varies else float(error == 0)


def psnr(X: Any, X_hat: Any, peak: float = 1.0) -> float:
    r"""Return the peak signal-to-noise ratio in decibels, infinite for a perfect reconstruction.

    .. math:: 10 \log_{10} \frac{\text{peak}^2}{\text{MSE}}

    Parameters
    ----------
    X, X_hat : array-like of the same shape
        Rows and their reconstructions.
    peak : float, default=1.0
        The range of the values: 1 for pixels in [0, 1], 255 for bytes.
    """
    peak = check_number("peak", peak, 0, open_low=True)
    a, b, exponent = _check_pair(X, X_hat)
    error = _mean_square(a, b, exponent)
    if error == 0:
        return math.inf
    return 20 * (math.log10(peak) - exponent * math.log10(2)) - 10 * math.log10(error)


def _check_pair(X: Any, X_hat: Any) -> tuple[Any, Any, int]:
    """Return rows and reconstructions, and e of a unit 2ᵉ in which squares exist."""
    a, b = _check_numbers(X, "X"), _check_numbers(X_hat, "X_hat")
    if a.shape != b.shape:
        raise ValueError(
            f"X has shape {a.shape}, but X_hat has shape {b.shape}: pass a reconstruction of each "
            "row, in the same order"
        )
    return a, b, exponent_of(max(_largest(a, "X"), _largest(b, "X_hat")))


def _mean_square(a: Any, b: Any, exponent: int) -> float:
    """Return the mean of (a - b)² in units of 2ᵉ, for rows b or one row, which is in them."""
    total, is_one = 0.0, b.shape != a.shape
    for rows in _chunks(a):
        difference = _doubles(a[rows], exponent)
        difference -= b if is_one else _doubles(b[rows], exponent)
        total += float(np.vdot(difference, difference))
    return total / int(a.size)


def _mean_row(a: Any, exponent: int) -> Doubles:
    """Return the mean of rows in units of 2ᵉ, summed in float64."""
    total: Doubles = np.zeros(a.shape[1:])
    for rows in _chunks(a):
        total += _doubles(a[rows], exponent).sum(axis=0)
    return np.asarray(total / len(a))


def _doubles(values: NDArray[Any], exponent: int) -> Doubles:
    """Return a copy in float64, in units of 2ᵉ."""
    return in_unit(values.astype(np.float64), exponent)


def _largest(values: Any, name: str) -> float:
    """Return the largest absolute value, and refuse NaN and infinities."""
    with naming(name, values):
        largest = float(np.max([largest_entry(values[rows]) for rows in _chunks(values)]))
    if not math.isfinite(largest):
        raise ValueError(f"{name} has NaN or infinite values: leave out or impute these rows")
    return largest


def _chunks(values: Any) -> list[slice]:
    step = max(1, N_CHUNK_ENTRIES * len(values) // values.size)
    return [slice(i, i + step) for i in range(0, len(values), step)]


def _check_numbers(X: Any, name: str) -> Any:
    with naming(name, X):
        is_lazy = is_row_array(X) and not isinstance(X, np.memmap)  # which keeps its precision
        values = row_array(X) if is_lazy else real_numbers(X, name)
    if values.ndim == 0:
        raise ValueError(f"{name} is a single number: pass an array with one row for each sample")
    if values.size == 0:
        raise ValueError(f"{name} has shape {values.shape} and is empty: pass at least one entry")
    return values
