"""The Gram matrix of codes, and how its distance to the prior falls with their number."""

import math
from typing import Any

import numpy as np
from sklearn.utils import check_array

from dkae._support.arrays import check_magnitude, naming
from dkae.grams import FeatureGram, Gram, GramLike, as_gram
from dkae.metrics.comparison import Doubles, check_sizes, tiles
from dkae.rows import is_row_array, row_array


def code_gram(codes: Any) -> Gram:
    """Return the Gram matrix of codes, ``codes @ codes.T``, read block by block.

    Parameters
    ----------
    codes : array-like of shape (n, n_components)
        Codes, or any other features. If they are on a disk, only the rows of a block are read.
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
        The losses for m = 1, 2, ...; values below 1e-7 are round-off.
    """
    Z, P = _check_codes(codes), as_gram(prior, "prior")
    check_sizes((FeatureGram(Z, "codes"), P), ("codes", "prior"))
    m = Z.shape[1]
    with_prior, products, prior_squares = np.zeros(m), np.zeros((m, m)), 0.0
    for tile in tiles((P,), ("prior",)):
        (values,) = tile.values
        left, right = (_doubles(Z[part]) for part in (tile.rows, tile.columns))
        with_prior += tile.weight * np.einsum("im,im->m", left, values @ right)
        prior_squares += tile.weight * float(np.vdot(values, values))
        if tile.rows == tile.columns:
            products += left.T @ left
    code_norms = np.sqrt((products**2).cumsum(axis=0).cumsum(axis=1).diagonal())
    return _losses(with_prior.cumsum(), code_norms, math.sqrt(prior_squares))


def _losses(products: Doubles, code_norms: Doubles, prior_norm: float) -> Doubles:
    """Return √(2 - 2A), with the convention of `alignment_loss` for zero matrices."""
    norms = code_norms * prior_norm
    cosines = np.divide(products, norms, out=np.zeros_like(norms), where=norms > 0)
    losses: Doubles = np.sqrt(2 - 2 * np.clip(cosines, -1, 1))
    losses[norms == 0] = ((code_norms > 0) != (prior_norm > 0))[norms == 0]
    return losses


def _doubles(part: Any) -> Doubles:
    check_magnitude(part, "codes")
    return np.asarray(part, dtype=np.float64)


def _check_codes(codes: Any) -> Any:
    """Return codes as a matrix of floats; those on a disk stay there."""
    with naming("codes", codes):
        # Parts of mapped floats need no conversion.
        is_mapped = isinstance(codes, np.memmap) and codes.dtype in (np.float32, np.float64)
        if not is_row_array(codes) or is_mapped:
            return check_array(codes, dtype=[np.float32, np.float64], input_name="codes")
        if len(codes.shape) != 2 or not all(codes.shape):
            raise ValueError(f"codes has shape {codes.shape}: pass a matrix, a row for each sample")
        return row_array(codes)
