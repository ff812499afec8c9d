"""A fitted forest as plain arrays: the leaf of a row in each tree, without scikit-learn's objects.

A node asks whether x[feature] ≤ threshold, and goes left or right; a leaf has no children. The
nodes of all trees lie in one array, each tree after the one before.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Pairs of a row and a tree that are computed together: 32 MB.
N_CHUNK_PAIRS = 2**22
#: scikit-learn's mark of a missing child.
NO_CHILD = -1


@dataclass(frozen=True)
class ArrayForest:
    """The trees of a forest, as arrays over all nodes; children are numbered within all of them."""

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
        bounds = np.cumsum([0, *(tree.node_count for tree in trees)])
        pairs = list(zip(trees, bounds, strict=False))
        return cls(
            left=np.concatenate([_shifted(tree.children_left, b) for tree, b in pairs]),
            right=np.concatenate([_shifted(tree.children_right, b) for tree, b in pairs]),
            feature=np.concatenate([np.maximum(t.feature, 0) for t in trees]).astype(np.int32),
            threshold=np.concatenate([tree.threshold for tree in trees]),
            missing_left=np.concatenate([tree.missing_go_to_left for tree in trees]).astype(bool),
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

    @property
    def n_nodes(self) -> NDArray[Any]:
        """The number of nodes of each tree."""
        return np.diff(self.bounds)


def _shifted(children: NDArray[Any], by: int) -> NDArray[np.int32]:
    return np.where(children == NO_CHILD, NO_CHILD, children + by).astype(np.int32)
