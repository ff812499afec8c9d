r"""Rows that cost nothing: a kernel can be evaluated anywhere, not only at the rows of the data.

An augmentation is a function ``(rows, rng) -> rows`` that returns a view of each row, drawn with a
NumPy generator. Training on views needs no label that might change with them: the prior is the
kernel *at the views*, and the decoder reconstructs the view.

===================  ====================================================================
:class:`Jitter`      :math:`x + s\,\sigma \odot \varepsilon`, with σ the deviation of each feature
:class:`Mixup`       :math:`a\,x + (1 - a)\,x'`, between two rows
:class:`Images`      small rotations, zooms, shears and shifts of an image
===================  ====================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from dkae._support.checks import (
    check_choice,
    check_integer,
    check_number,
    check_sequence,
    check_takes,
)
from dkae.grams import Floats

__all__ = ["AUGMENTATIONS", "Augmentation", "Images", "Jitter", "Mixup", "make_augmentation"]

#: ``(rows, rng) -> rows`` of the same shape.
Augmentation = Callable[[Floats, np.random.Generator], Any]
#: Images that are moved together.
N_CHUNK = 1024


class Jitter(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Gaussian noise on each feature, in units of its deviation.

    Parameters
    ----------
    scale : float, default=0.2
        Standard deviation of the noise, in standard deviations of the feature.
    """

    def __init__(self, scale: float = 0.2) -> None:
        self.scale = scale

    def __call__(self, rows: Floats, rng: np.random.Generator) -> Floats:
        scale = check_number("scale", self.scale, 0, open_low=True)
        deviation = np.nanstd(rows, axis=0, dtype=np.float64).astype(np.float32)
        noise = rng.standard_normal(rows.shape, dtype=np.float32)
        jittered: Floats = rows + np.float32(scale) * deviation * noise
        return jittered


class Mixup(BaseEstimator):  # type: ignore[misc]
    """Points between two rows; a value is missing where either is.

    Parameters
    ----------
    alpha : float, default=1.0
        The share of the other row follows Beta(α, α), folded to at most a half.
    """

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def __call__(self, rows: Floats, rng: np.random.Generator) -> Floats:
        alpha = check_number("alpha", self.alpha, 0, open_low=True)
        drawn = rng.beta(alpha, alpha, (len(rows), *[1] * (rows.ndim - 1)))
        share = np.minimum(drawn, 1 - drawn).astype(np.float32)
        others = rows[rng.permutation(len(rows))]
        mixed: Floats = (1 - share) * rows + share * others
        return mixed


class Images(BaseEstimator):  # type: ignore[misc]
    """Small affine maps of images, with bilinear interpolation; the border is continued.

    Parameters
    ----------
    shape : tuple of int, optional
        (height, width) or (channels, height, width) of an image, if rows are vectors.
    rotation : float, default=12
        Largest angle, in degrees.
    zoom, shear : float, default=0.1
        Largest change of the size, and of the angle between the axes.
    shift : float, default=1.5
        Largest shift along each axis, in pixels.
    """

    def __init__(
        self,
        shape: tuple[int, ...] | None = None,
        *,
        rotation: float = 12.0,
        zoom: float = 0.1,
        shear: float = 0.1,
        shift: float = 1.5,
    ) -> None:
        self.shape = shape
        self.rotation = rotation
        self.zoom = zoom
        self.shear = shear
        self.shift = shift

    def __call__(self, rows: Floats, rng: np.random.Generator) -> Floats:
        shape = self._image_shape(rows.shape[1:])
        maps = torch.from_numpy(self._maps(len(rows), shape[1:], rng))
        views = np.empty_like(rows)
        for i in range(0, len(rows), N_CHUNK):
            part = torch.from_numpy(rows[i : i + N_CHUNK]).reshape(-1, *shape)
            views[i : i + N_CHUNK] = (
                _moved(part, maps[i : i + N_CHUNK]).reshape(-1, *rows.shape[1:]).numpy()
            )
        return views

    def _image_shape(self, row: tuple[int, ...]) -> tuple[int, int, int]:
        """Return (channels, height, width) of rows."""
        given = row if self.shape is None else check_sequence("shape", self.shape)
        shape = [check_integer("each of shape", n, at_least=1) for n in given]
        if len(shape) not in (2, 3) or math.prod(shape) != math.prod(row):
            raise ValueError(
                f"augment=Images(shape={self.shape}) does not fit rows of shape {row}: pass the "
                "shape of an image, (height, width) or (channels, height, width)"
            )
        channels, height, width = shape if len(shape) == 3 else (1, *shape)
        return channels, height, width

    def _maps(self, n: int, size: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Return where each pixel comes from, in units of half an image: (n, 2, 3)."""

        def uniform(name: str) -> Any:
            return rng.uniform(-1, 1, n) * check_number(name, getattr(self, name), 0)

        angle, zoom, shear = np.deg2rad(uniform("rotation")), 1 + uniform("zoom"), uniform("shear")
        down, right = uniform("shift") / (size[0] / 2), uniform("shift") / (size[1] / 2)
        cos, sin = np.cos(angle) / zoom, np.sin(angle) / zoom
        maps = np.stack([cos, shear * cos - sin, right, sin, shear * sin + cos, down], axis=1)
        return maps.reshape(n, 2, 3).astype(np.float32)


def _moved(images: Tensor, maps: Tensor) -> Tensor:
    grid = affine_grid(maps, list(images.shape), align_corners=False)
    missing = images.isnan()
    moved = grid_sample(images.nan_to_num(0.0), grid, padding_mode="border", align_corners=False)
    if not missing.any():
        return moved
    gaps = grid_sample(missing.float(), grid, padding_mode="border", align_corners=False)
    return torch.where(gaps > 0, torch.nan, moved)


#: Augmentations by name.
AUGMENTATIONS: dict[str, Callable[[], Augmentation]] = {
    "images": Images,
    "jitter": Jitter,
    "mixup": Mixup,
}


def make_augmentation(given: Any) -> Augmentation | None:
    """Return the augmentation that `augment` asks for, if any."""
    if given is None:
        return None
    if isinstance(given, str):
        return AUGMENTATIONS[check_choice("augment", given, AUGMENTATIONS)]()
    check_takes("augment", given, "rows and a numpy Generator", 2)
    chosen: Augmentation = given
    return chosen


def with_views(augment: Augmentation, rows: Floats, rng: np.random.Generator) -> Floats:
    """Return the first half of the rows, and views of the others in their place."""
    half = len(rows) // 2
    return np.concatenate([rows[:half], views_of(augment, rows[half:], rng)])


def views_of(augment: Augmentation, rows: Floats, rng: np.random.Generator) -> Floats:
    """Return a view of each row, checked."""
    views = np.asarray(augment(rows.copy(), rng))  # it may write to them
    if views.shape != rows.shape or views.dtype.kind not in "iuf":
        raise ValueError(
            f"augment returned {views.dtype} of shape {views.shape} for rows of shape "
            f"{rows.shape}: return one view of each row, of its shape"
        )
    views = np.ascontiguousarray(views, dtype=np.float32)
    is_bad = ~np.isfinite(views) & ~(np.isnan(views) & np.isnan(rows).any())
    if is_bad.any():
        raise ValueError(
            f"augment returned {is_bad.sum()} entries that are NaN or infinite (in float32): "
            "return finite views of finite rows"
        )
    return views
