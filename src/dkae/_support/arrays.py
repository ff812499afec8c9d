"""The door for arrays: each is converted and checked here, and errors name the parameter.

NumPy, torch, pandas and SciPy name the fault of an array, but not the parameter.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from dkae._support.checks import shown

#: Kinds of real numbers: truth values, whole numbers with and without a sign, floats.
REAL_KINDS = "buif"
#: Larger numbers leave float32 arithmetic: their squares and sums of squares overflow.
MOST = 1e15


@contextmanager
def naming(name: str, value: Any, *others: str) -> Iterator[None]:
    """Name the parameter in errors of the libraries that convert its value.

    Errors that already name it, or one of `others`, stay as they are.
    """
    if np.ma.is_masked(value):  # NumPy would read the hidden values
        raise ValueError(
            f"{name} is an array with masked entries: fill them, as with {name}.filled(0), or "
            "leave out their rows"
        )
    try:
        yield
    except Exception as error:
        is_named = any(_is_named(known, str(error)) for known in (name, *others))
        if is_named and isinstance(error, (TypeError, ValueError)):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name}, a {type(value).__name__}, cannot be used: {error}") from error


def as_array(value: Any, name: str) -> NDArray[Any]:
    """Return a value as an array, without a copy if it is one."""
    with naming(name, value):
        return np.asarray(value)


def real_numbers(value: Any, name: str) -> NDArray[Any]:
    """Return a value as an array of real numbers, not of strings, dates or complex numbers."""
    array = as_array(value, name)
    if array.dtype.kind not in REAL_KINDS:
        raise ValueError(
            f"{name} has entries of type {array.dtype}: pass real numbers, in a dense array"
        )
    return array


def check_out(out: Any, shape: tuple[int, ...], dtype: Any = np.float32, name: str = "out") -> Any:
    """Return the array for results of this shape, a new one if `out` is None.

    `out` may be anything with shape, dtype and assignment to slices: a memmap, a Zarr array, ...
    """
    if out is None:
        return np.empty(shape, dtype)
    if not all(hasattr(out, attribute) for attribute in ("shape", "dtype", "__setitem__")):
        raise TypeError(
            f"{name}={shown(out)} cannot be written to: pass an array of shape {shape}, such as "
            "np.lib.format.open_memmap(path, 'w+', np.float32, shape)"
        )
    if tuple(out.shape) != shape:
        raise ValueError(f"{name} has shape {tuple(out.shape)}: pass an array of shape {shape}")
    if np.dtype(out.dtype).kind != "f":
        raise ValueError(f"{name} has entries of type {out.dtype}: pass an array of floats")
    if isinstance(out, np.ndarray) and not out.flags.writeable:
        raise ValueError(f"{name} is read-only: pass an array that can be written to")
    return out


def finite_matrix(value: Any, name: str, remedy: str) -> NDArray[Any]:
    """Return a value as a matrix of finite numbers."""
    matrix = real_numbers(value, name)
    if matrix.ndim != 2:
        raise ValueError(f"{name} has shape {matrix.shape}, expected a matrix: {remedy}")
    finite_numbers(matrix, name, remedy)
    return matrix


def finite_numbers(values: Any, name: str, remedy: str) -> Any:
    """Return numbers, dense or sparse, if all are finite."""
    if not np.isfinite(values.data if sparse.issparse(values) else values).all():
        raise ValueError(f"{name} has NaN or infinite values: {remedy}")
    return values


def check_magnitude(
    values: Any,
    name: str,
    remedy: str = "scale X (for example with standardize=True, or divide by its largest entry)",
) -> None:
    """Raise if a number, dense or sparse, is larger than `MOST`; NaN passes."""
    numbers = values.data if sparse.issparse(values) else values
    if not numbers.size:
        return
    largest = largest_entry(numbers)
    if np.isnan(largest):  # a missing value
        largest = float(np.fmax.reduce(np.abs(numbers), axis=None))
    if largest > MOST:
        raise ValueError(
            f"{name} has entries up to {largest:.3g}: numbers beyond 1e15 leave float32 "
            f"arithmetic, {remedy}"
        )


def largest_entry(values: NDArray[Any]) -> float:
    """Return the largest absolute value, or NaN if there is one, without a copy."""
    return float(np.maximum(float(values.max()), -float(values.min())))


def smallest_integers(values: NDArray[Any]) -> NDArray[Any]:
    """Return non-negative integers in the smallest type that holds them."""
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))


def _is_named(name: str, message: str) -> bool:
    # "a" is a word of English too, and NumPy's.
    return name != "a" and bool(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", message))


# --- products ------------------------------------------------------------------------------------


def product(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Return the matrix product, by torch.

    Torch evaluates kernels: NumPy's threads would wait on the cores that those of torch need.
    """
    kind = np.result_type(a, b)
    left, right = (torch.from_numpy(np.require(m, kind, ["W"])) for m in (a, b))
    result: NDArray[Any] = (left @ right).numpy()
    return result


def eigh(matrix: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the eigenvalues of a symmetric matrix, ascending, and its eigenvectors; by torch."""
    eigenvalues, vectors = torch.linalg.eigh(torch.from_numpy(matrix))
    return eigenvalues.numpy(), vectors.numpy()
