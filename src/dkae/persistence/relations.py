"""What fields of one object must have in common, and what using the object takes."""

from __future__ import annotations

import math

import numpy as np
import torch

from dkae._support.json_state import Fields
from dkae.persistence.schema import N_ROWS, Cost, Scope

#: Of a tree in a forest.
MAX_DEPTH = 2**14
#: A step down a tree takes as long as so many operations.
STEP_WORK = 256


def check_forest(forest: Fields, scope: Scope) -> None:
    """Raise an error unless each node but the roots has one parent, before it in its tree."""
    bounds, n = forest["bounds"], scope["nodes"]
    if len(bounds) < 2 or bounds[0] != 0 or bounds[-1] != n or not (np.diff(bounds) > 0).all():
        raise ValueError("the trees of a forest do not fill it")
    inner = np.flatnonzero(forest["left"] != -1)
    end = np.repeat(bounds[1:], np.diff(bounds))[inner]
    children = np.stack([forest["left"][inner], forest["right"][inner]])
    if not ((children > inner) & (children < end)).all():
        raise ValueError("a node of a forest has children that come before it")
    n_parents = np.bincount(children.ravel(), minlength=n)
    n_parents[bounds[:-1]] += 1
    if not (n_parents == 1).all():
        raise ValueError("a node of a forest has no parent, or several")


def forest_cost(forest: Fields, parts: Cost) -> Cost:
    """Return trees times depth."""
    n_trees = len(forest["bounds"]) - 1
    return Cost(0, N_ROWS * STEP_WORK * n_trees * max(1, _depth(forest)), 32 * n_trees)


def _depth(forest: Fields) -> int:
    """Return how many steps the longest way down takes, level by level over all trees."""
    left, right, level, depth = forest["left"], forest["right"], forest["bounds"][:-1], 0
    while len(level := level[left[level] != -1]):
        level, depth = np.concatenate([left[level], right[level]]), depth + 1
        if depth > MAX_DEPTH:
            raise ValueError(f"a forest has a tree that is deeper than {MAX_DEPTH}")
    return depth


def check_mixtures(fields: Fields, scope: Scope) -> None:
    """Raise an error unless each mixture has weights that sum to one."""
    if any(fields[name].dtype is not torch.float64 for name in ("means", "weights", "covariances")):
        raise ValueError("mixtures are not float64")
    sizes, weights = fields["sizes"].numpy(), fields["weights"].numpy()
    if sizes.dtype != np.int64 or sizes.sum() != len(weights):
        raise ValueError(f"the sizes of mixtures do not sum to the {len(weights)} components")
    starts = np.cumsum(sizes) - sizes
    if not np.allclose(np.add.reduceat(weights, starts), 1, atol=1e-3):
        raise ValueError("the weights of a mixture do not sum to one")


def check_pck(fields: Fields, scope: Scope) -> None:
    """Raise an error unless the mixtures are of the features that are kept."""
    mixtures = fields.get("mixtures_")
    if mixtures is None:
        return
    n_features = mixtures.means.shape[1]
    if len(fields["_basis"]) != n_features or fields["n_mixtures_"] != len(mixtures.sizes):
        raise ValueError("mixtures_ are not those of _basis and n_mixtures_")


def check_weights(fields: Fields, scope: Scope) -> None:
    """Raise an error unless a sum has a weight for each kernel."""
    if "kernels_" in fields and len(fields["kernels_"]) != len(fields["weights_"]):
        raise ValueError("weights_ are not one for each kernel")


def centred_cost(fields: Fields, parts: Cost) -> Cost:
    """Return what a block and its two means take, with the reference rows."""
    total = parts.against(fields.get("reference_", np.empty((0, 0))))
    return Cost(*(3 * part for part in total))


def map_cost(rows: str, fields: Fields, parts: Cost) -> Cost:
    """Return what the kernel takes with the rows that a map holds."""
    held = fields.get(rows)
    return parts if held is None else parts.against(held)


def check_row(fields: Fields, scope: Scope) -> None:
    """Raise an error if a row is larger than the file explains, or not what `fit` has seen."""
    shape = fields.get("row_shape_")
    if shape is not None and (
        math.prod(shape) > scope["widest"] or shape[0] != fields["n_features_in_"]
    ):
        raise ValueError(f"row_shape_ {shape} does not fit the rest")
    for name in ("center_", "scale_", "fill_", "rows_", "landmarks_"):
        found = fields.get(name)
        # Another shape might be broadcast to much more than the file holds.
        if found is not None and shape not in (found.shape, found.shape[1:]):
            raise ValueError(f"{name} does not have the shape of a row")


def check_targets(fields: Fields, scope: Scope) -> None:
    """Raise an error unless the units are those of one row."""
    if fields["center"].shape != fields["scale"].shape or fields["center"].ndim < 1:
        raise ValueError("center and scale of Targets do not have the shape of a row")


def check_scaling(fields: Fields, scope: Scope) -> None:
    """Raise an error unless there is one scale, or one for each feature."""
    if fields["scale"].shape not in ((), fields["mean"].shape):
        raise ValueError("mean and scale of Scaling have several shapes")
