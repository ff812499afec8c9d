"""A fitted forest as plain arrays: the leaf of a row in each tree, without scikit-learn's objects.

A node asks whether x[feature] ≤ threshold, and goes left or right; a leaf has no children. The
nodes of all trees lie in one array, each tree after the one before.
"""

from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dkae._support.states import check_array
from dkae._support.trees import State

#: Rows that go down the trees together.
N_CHUNK_ROWS = 1024
#: What scikit-learn has in place of a child of a leaf.
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
        """Return the trees of a fitted forest of scikit-learn's; any other forest as it is."""
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
        chunks = [rows[i : i + N_CHUNK_ROWS] for i in range(0, max(1, len(rows)), N_CHUNK_ROWS)]
        return np.concatenate([self._leaves(chunk) for chunk in chunks])

    def _leaves(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        roots = self.bounds[:-1].astype(np.int64)
        node = np.broadcast_to(roots, (len(rows), len(roots)))
        while True:
            is_inner = self.left[node] != NO_CHILD
            if not is_inner.any():
                return node - roots
            x = np.take_along_axis(rows, self.feature[node].astype(np.int64), axis=1)
            goes_left = (x <= self.threshold[node]) | (np.isnan(x) & self.missing_left[node])
            child = np.where(goes_left, self.left[node], self.right[node])
            node = np.where(is_inner, child, node)

    @property
    def n_nodes(self) -> NDArray[Any]:
        """The number of nodes of each tree."""
        return np.diff(self.bounds)

    def to_state(self) -> State:
        """Return the arrays."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the forest; children come after their parents, in the same tree."""
        try:
            forest = cls(**state)
        except TypeError as error:
            raise ValueError(f"a forest cannot be made: {error}") from None
        n = len(check_array("left", forest.left, (None,)))
        for name in ("right", "feature", "missing_left"):
            check_array(name, getattr(forest, name), (n,))
        # Infinity parts the rows with a missing value from all others.
        check_array("threshold", forest.threshold, (n,), may_be_missing=True)
        bounds = check_array("bounds", forest.bounds, (None,))
        numbers = (forest.left, forest.right, forest.feature, bounds)
        if any(v.dtype.kind not in "iu" for v in numbers) or np.isnan(forest.threshold).any():
            raise ValueError("a forest has children, features or thresholds that are none")
        if type(forest.n_features_in_) is not int or forest.missing_left.dtype != bool:
            raise ValueError("a forest does not say what its rows are, or where missing values go")
        is_whole = len(bounds) > 1 and bounds[0] == 0 and bounds[-1] == n and n > 0
        if not is_whole or not (np.diff(bounds) > 0).all():
            raise ValueError("the trees of a forest do not fill it")
        end = np.repeat(bounds[1:], np.diff(bounds))
        for child in (forest.left, forest.right):
            is_inner = forest.left != NO_CHILD
            if not ((child > np.arange(n)) & (child < end))[is_inner].all():
                raise ValueError("a child in a forest is no child of its parent")
        if not ((forest.feature >= 0) & (forest.feature < forest.n_features_in_)).all():
            raise ValueError("a forest asks for features that its rows have not")
        return forest


def node_counts(forest: Any) -> NDArray[Any]:
    """Return the number of nodes of each tree of a fitted forest."""
    if isinstance(forest, ArrayForest):
        return forest.n_nodes
    return np.array([tree.tree_.node_count for tree in np.ravel(forest.estimators_)])


def _shifted(children: NDArray[Any], by: int) -> NDArray[np.int32]:
    return np.where(children == NO_CHILD, NO_CHILD, children + by).astype(np.int32)
