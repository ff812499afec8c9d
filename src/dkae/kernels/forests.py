"""Kernels of ensembles of partitions, such as the trees of a forest.

κ(x, y) is the share of partitions in which x and y fall into the same cell. To compute it, one byte
for each row and partition is enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.ensemble import RandomTreesEmbedding
from sklearn.utils.validation import check_is_fitted

from dkae._support.arrays import naming, smallest_integers
from dkae._support.checks import check_integer, check_state, draw_seed, shown
from dkae._support.processes import present
from dkae.grams import Floats, RowsGram, sample_ids
from dkae.kernels.base import vectors
from dkae.kernels.features import FeatureKernel, by_chunks, check_fitted
from dkae.rows import RowArray, as_rows, is_row_array

#: Rows of those on a disk that an embedding is fitted to.
N_FIT_ROWS = 100_000
#: Pairs of a row and a tree that are computed together: 32 MB.
N_CHUNK_PAIRS = 2**22
#: scikit-learn's mark of a missing child.
NO_CHILD = -1


class ForestKernel(FeatureKernel):
    """Share of the trees in which two rows fall into the same leaf.

    Parameters
    ----------
    forest : fitted forest, optional
        A model whose ``apply`` returns the leaf of each row in each tree, such as a fitted
        RandomForestClassifier (a supervised kernel). It is neither fitted nor copied. By default
        scikit-learn's RandomTreesEmbedding is fitted, which needs no labels; of rows on a disk or
        in a sparse matrix, to a sample of at most 100,000.
    n_estimators, max_depth : int, default=100 and 5
        Size of the embedding, if no forest is given.
    random_state : int, RandomState or None
        Seed of the embedding.
    """

    def __init__(
        self,
        forest: Any = None,
        *,
        n_estimators: int = 100,
        max_depth: int = 5,
        random_state: Any = None,
    ) -> None:
        self.forest = forest
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.random_state = random_state

    def __sklearn_clone__(self) -> ForestKernel:
        # get_params(deep=False) passes the fitted forest on, not a copy.
        return ForestKernel(**self.get_params(deep=False))

    @property
    def has_features(self) -> bool:  # type: ignore[override]
        # Φ has a column for each node, and only forests of scikit-learn tell their nodes.
        forest = getattr(self, "forest_", self.forest)
        return forest is None or isinstance(ArrayForest.of(forest), ArrayForest)

    def fit(self, X: Any, y: object = None) -> Self:
        if self.forest is not None:
            check_fitted(self.forest, "forest", "apply")
            self.forest_ = self.forest
            return self
        forest = RandomTreesEmbedding(
            n_estimators=check_integer("n_estimators", self.n_estimators, at_least=1),
            max_depth=check_integer("max_depth", self.max_depth, at_least=1),
            random_state=self._common_state(),
        )
        rows = vectors(as_rows(X))
        if isinstance(rows, RowArray) or is_row_array(X):
            rows = rows[sample_ids(len(rows), N_FIT_ROWS)]
        with naming("X", X):
            self.forest_ = forest.fit(rows)
        return self

    def features(self, X: Any) -> sparse.csr_array:
        """Return Φ(x): 1 / √n_trees at the leaf of x in each tree, 0 elsewhere."""
        leaves = self._leaves(X)
        if not self.has_features:
            raise ValueError(
                f"forest={shown(self.forest_)} has no estimators_ with trees of scikit-learn, so "
                "its leaves cannot be numbered: use gram(X, Y), which compares them"
            )
        n_rows, n_trees = leaves.shape
        n_nodes = np.diff(ArrayForest.of(self.forest_).bounds)
        columns = (np.cumsum(n_nodes) - n_nodes + leaves).ravel()
        ones = np.full(columns.size, 1 / np.sqrt(n_trees), dtype=np.float32)
        bounds = np.arange(0, columns.size + 1, n_trees)
        return sparse.csr_array((ones, columns, bounds), shape=(n_rows, n_nodes.sum()))

    def _common_state(self) -> Any:
        """Return a seed that all processes share, so that they grow the same forest."""
        check_state(self.random_state)
        if present().size == 1 or isinstance(self.random_state, Integral):
            return self.random_state
        return present().first(draw_seed(self.random_state))

    # From the leaves themselves: faster than Φ, and one or two bytes for each row and tree.
    def _describer(self) -> Callable[[Any], Any]:
        return self._leaves

    def _gram_of(self, described: Any) -> RowsGram:
        return RowsGram(described, _share, str(self), self)

    def _leaves(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        # Rows of a sparse matrix become dense a part at a time.
        rows = as_rows(X) if sparse.issparse(X) else X
        leaves: NDArray[Any] = by_chunks(self._leaves_of, rows)
        return leaves

    def _leaves_of(self, X: Any) -> NDArray[Any]:
        with naming("X", X):
            leaves = np.asarray(self.forest_.apply(vectors(as_rows(X))))
        # Boosted forests add an axis for the classes; each of their trees is a partition too.
        return smallest_integers(leaves.reshape(len(leaves), -1).astype(np.int64))


def _share(a: NDArray[Any], b: NDArray[Any] | None) -> Floats:
    """Return the share of columns in which each row of `a` equals each row of `b`.

    The number of columns that differ is the Hamming distance, which torch computes as an L0 norm:
    vectorised, on all cores, and without an array of (rows × rows × columns).
    """
    # float32 is exact for integers up to 2²⁴, more cells than any partition here has.
    x, y = (torch.from_numpy(t.astype(np.float32)) for t in (a, a if b is None else b))
    n_columns = a.shape[1]
    share: Floats = (n_columns - torch.cdist(x, y, p=0.0).numpy()) / np.float32(n_columns)
    return share


@dataclass(frozen=True)
class ArrayForest:
    """A fitted forest as plain arrays, which files hold: without scikit-learn's objects.

    A node asks whether x[feature] ≤ threshold, and goes left or right; a leaf has no children. The
    nodes of all trees lie in one array, each tree after the one before, and children are numbered
    within all of them.
    """

    left: NDArray[Any]
    right: NDArray[Any]
    feature: NDArray[Any]
    threshold: NDArray[Any]
    #: Whether a missing value goes left.
    missing_left: NDArray[Any]
    #: The first node of each tree, and the number of all nodes.
    bounds: NDArray[Any]
    n_features_in_: int

    def __repr__(self) -> str:
        return f"ArrayForest(<{len(self.bounds) - 1} trees of {len(self.left)} nodes>)"

    @classmethod
    def of(cls, forest: Any) -> Any:
        """Return the trees of a fitted forest of scikit-learn; any other forest as it is."""
        try:
            trees = [estimator.tree_ for estimator in np.ravel(forest.estimators_)]
        except AttributeError:
            return forest
        counts = [tree.node_count for tree in trees]
        bounds = np.cumsum([0, *counts])
        first = np.repeat(bounds[:-1], counts)

        def joined(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(tree, name) for tree in trees])

        def children(name: str) -> NDArray[np.int32]:
            found = joined(name)
            return np.where(found == NO_CHILD, NO_CHILD, found + first).astype(np.int32)

        return cls(
            left=children("children_left"),
            right=children("children_right"),
            feature=np.maximum(joined("feature"), 0).astype(np.int32),
            threshold=joined("threshold"),
            missing_left=joined("missing_go_to_left").astype(bool),
            bounds=bounds.astype(np.int32),
            n_features_in_=int(forest.n_features_in_),
        )

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Return the leaf of each row in each tree, numbered within the tree."""
        rows = np.asarray(X, dtype=np.float32)  # as scikit-learn compares them
        if rows.ndim != 2 or rows.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has the shape {rows.shape}, but the forest was fitted to rows of "
                f"{self.n_features_in_} features"
            )
        leaves = np.empty((len(rows), len(self.bounds) - 1), np.int64)
        n = max(1, N_CHUNK_PAIRS // leaves.shape[1])
        for i in range(0, len(rows), n):
            leaves[i : i + n] = self._leaves(rows[i : i + n])
        return leaves

    def _leaves(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        roots = self.bounds[:-1].astype(np.int64)
        nodes = np.tile(roots, len(rows))  # of all pairs of a row and a tree
        # Only pairs that have not reached their leaf go on: rows x trees x depth in all.
        going = np.flatnonzero(self.left[nodes] != NO_CHILD)
        while going.size:
            node = nodes[going]
            x = rows[going // len(roots), self.feature[node]]
            goes_left = (x <= self.threshold[node]) | (np.isnan(x) & self.missing_left[node])
            child = np.where(goes_left, self.left[node], self.right[node])
            nodes[going] = child
            going = going[self.left[child] != NO_CHILD]
        return nodes.reshape(len(rows), -1) - roots
