r"""Kernels with explicit features, :math:`\kappa(x, y) = \langle \Phi(x), \Phi(y) \rangle`.

Φ, or another description of rows such as their leaves, is computed once for all rows and held. If
it would take too much memory, it is computed for the rows of each block.
"""

from __future__ import annotations

import logging
import os
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted

from dkae._support.arrays import naming
from dkae._support.checks import check_number, shown
from dkae._support.processes import present
from dkae.grams import FeatureGram, Floats, Gram, Ids, RowsGram, finite_float32, sample_ids
from dkae.kernels.base import Kernel
from dkae.rows import RowArray, as_rows, chunks_of, indexable, is_row_array

LOGGER = logging.getLogger("dkae")

#: Features of so few rows are held unless `cache_bytes` is given.
N_HELD_ROWS = 1024
#: Rows whose features serve to estimate the memory of all.
N_SAMPLE_ROWS = 256
#: Numbers of rows that are read together: 16 MB in float32.
N_CHUNK_NUMBERS = 2**22
#: The share of memory for features that are held, unless `cache_bytes` is given.
BUDGET_SHARE = 0.25
#: Files with the limit of a container, in version 2 and 1 of control groups.
LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


class FeatureKernel(Kernel):
    """A kernel that is the inner product of explicit features."""

    takes_missing = False
    has_features = True

    @abstractmethod
    def features(self, X: Any) -> Any:
        """Return Φ(X): an array or a sparse matrix with one row for each row of X."""

    def evaluate(self, X: Any, Y: Any) -> Any:
        describe = self._describer()
        gram = self._gram_of(describe(X))
        return gram.function(gram.rows, None if Y is None else describe(Y))

    def on(self, X: Any, cache_bytes: float | None = None) -> Gram:
        """Return the Gram matrix of the rows of `X`, from features that are held if they fit.

        If they take more than `cache_bytes`, it is a `ComputedGram`; see `Kernel.on`. Both have the
        same entries, up to the round-off of Φ, which may depend on how many rows it is of.
        """
        describe = self._describer()
        with naming("X", X):
            n = _num_samples(X)
        if n == 0 or (cache_bytes is None and n <= N_HELD_ROWS):
            return self._gram_of(describe(X))
        budget = default_budget()
        if cache_bytes is not None:
            budget = check_number("cache_bytes", cache_bytes, 0)
        rows = indexable(X)
        sample = self._gram_of(describe(_take(rows, sample_ids(n, N_SAMPLE_ROWS))))
        n_bytes = sum(a.nbytes for a in to_arrays(sample.rows).values()) / len(sample) * n
        is_held = all(present().gather(n_bytes <= budget))  # by all processes, or by none
        LOGGER.info(
            "%s: features of %d rows take about %s, and may take %s: %s",
            *(self, n, in_words(n_bytes), in_words(budget)),
            "held" if is_held else "computed for each batch",
        )
        return (
            self._gram_of(shared(describe, rows, sample.rows))
            if is_held
            else ComputedGram(rows, describe, sample)
        )

    def feature_matrix(self, X: Any) -> Any:
        """Return Φ(X) in the form that takes least memory: dense, or sparse in CSR format."""
        phi = by_chunks(self.features, X)
        return sparse.csr_array(phi) if sparse.issparse(phi) else np.asarray(phi)

    def _describer(self) -> Callable[[Any], Any]:
        """Return the function that computes the features, or another description, of rows."""
        return partial(by_chunks, self.features)

    def _gram_of(self, described: Any) -> RowsGram:
        """Return the Gram matrix of described rows."""
        return FeatureGram(described, str(self), self)


class ComputedGram(RowsGram):
    """A Gram matrix of rows whose features are computed whenever they are asked for.

    `describe` computes the features of rows of the same kind as `rows`; `gram` is of a few of them.
    """

    def __init__(self, rows: Any, describe: Callable[[Any], Any], gram: RowsGram) -> None:
        super().__init__(rows, gram.function, gram.name, gram.kernel)
        self.describe = describe

    def block(self, rows: Ids, columns: Ids | None = None) -> Floats:
        others = None if columns is None else _take(self.rows, columns)
        return self.between(_take(self.rows, rows), others)

    def between(self, rows: Any, others: Any) -> Floats:
        described = None if others is None else self.describe(others)
        return finite_float32(self.function(self.describe(rows), described), self.name)


class TransformerKernel(FeatureKernel):
    """Any fitted scikit-learn transformer T as a kernel: κ(x, y) = ⟨T(x), T(y)⟩.

    Parameters
    ----------
    transformer : fitted transformer
        Nystroem, RBFSampler, PCA, a vectoriser, a pipeline, ... It is neither fitted nor copied,
        not even by ``sklearn.base.clone``.
    """

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def __str__(self) -> str:
        return f"kernel of {type(self.transformer).__name__}"

    def __sklearn_clone__(self) -> TransformerKernel:
        return TransformerKernel(self.transformer)

    def fit(self, X: Any, y: object = None) -> TransformerKernel:
        check_fitted(self.transformer, "transformer", "transform")
        return self

    def features(self, X: Any) -> Any:
        check_fitted(self.transformer, "transformer", "transform")
        with naming("X", X):
            return by_chunks(self.transformer.transform, X)


def by_chunks(function: Callable[[Any], Any], X: Any) -> Any:
    """Return a function of rows; those on a disk are read and described part by part."""
    if not is_row_array(X):
        return function(X)
    return _joined([function(part) for part in chunks_of(as_rows(X), N_CHUNK_NUMBERS)])


def shared(describe: Callable[[Any], Any], rows: Any, like: Any) -> Any:
    """Return the description of rows, each process computing its share; `like` is of some."""
    processes = present()
    if processes.size == 1:
        return describe(rows)
    own = processes.part(len(rows))
    parts = [describe(part) for part in chunks_of(rows, N_CHUNK_NUMBERS, own)]
    sent = processes.gather_arrays(to_arrays(_joined(parts)) if parts else {})
    return _joined([from_arrays(arrays, like) for arrays in sent if arrays])


def _joined(parts: Sequence[Any]) -> Any:
    first = parts[0]
    if sparse.issparse(first):
        return sparse.vstack(parts, format="csr")
    return first.joined(parts) if hasattr(first, "joined") else np.concatenate(parts)


def to_arrays(described: Any) -> dict[str, NDArray[Any]]:
    """Return plain arrays, which processes can send to each other."""
    if sparse.issparse(described):
        csr = described.tocsr()
        arrays = {name: getattr(csr, name) for name in ("data", "indices", "indptr")}
        return arrays | {"shape": np.array(csr.shape)}
    is_plain = not hasattr(described, "to_arrays")
    return {"array": np.asarray(described)} if is_plain else dict(described.to_arrays())


def from_arrays(arrays: Mapping[str, NDArray[Any]], like: Any) -> Any:
    """Return a description like another one."""
    if sparse.issparse(like):
        parts = tuple(arrays[name] for name in ("data", "indices", "indptr"))
        return sparse.csr_array(parts, shape=tuple(arrays["shape"]))
    return like.from_arrays(arrays) if hasattr(like, "from_arrays") else arrays["array"]


def _take(X: Any, ids: Ids) -> Any:
    """Return some rows of an array, a table, a list or a sparse matrix."""
    if isinstance(X, np.ndarray | RowArray):
        return X[ids]
    with naming("X", X):
        return _safe_indexing(X, ids)


def check_fitted(estimator: Any, name: str, method: str) -> None:
    """Raise if an estimator is not fitted or lacks the method."""
    if not hasattr(estimator, method):
        raise ValueError(f"{name}={shown(estimator)} has no method {method}: pass one with it")
    if not hasattr(estimator, "fit"):
        return
    try:
        check_is_fitted(estimator)
    except Exception as error:
        raise ValueError(
            f"{name}={shown(estimator)} is not fitted: fit it on rows like those of X first"
        ) from error


# --- the memory of this machine -------------------------------------------------------------------


def total_memory() -> float:
    """Return the bytes of memory of this machine, or of its container if that has fewer."""
    return min(_of_machine(), *map(_limit_of, LIMITS))


def default_budget() -> float:
    """Return the bytes that may be held for later; processes of one machine share them."""
    n_processes = os.environ.get("LOCAL_WORLD_SIZE", "1")  # set by torchrun
    return BUDGET_SHARE * total_memory() / max(1, int(n_processes))


def in_words(n_bytes: float) -> str:
    """Return a number of bytes in words, such as 1.5 GB."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.3g} {unit}"
    return f"{n_bytes:.0f} bytes"


def _of_machine() -> float:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not known on every system
        return float("inf")


def _limit_of(path: Path) -> float:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # no such file, or the word "max"
        return float("inf")
