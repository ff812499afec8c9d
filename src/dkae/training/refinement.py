r"""Nyström features of rows that come in parts: the more rows were seen, the better the directions.

The weight of a kernel layer is W = R V, with :math:`R = K^{-1/2}` of its landmarks and the leading
eigenvectors V of the moment :math:`M = \sum \Phi^\top \Phi` of the features :math:`\Phi = S R`
(`dkae.training.starts`). M is a sum over rows, so each part of them adds its own. New eigenvectors
V′ are turned to lie near the old ones,

.. math:: V'' = V' Q, \qquad Q = \arg\min_{Q^\top Q = I} \| V' Q - V \| ,

because inner products of codes do not change with Q, and the decoder knows the old codes.
"""

from typing import Any

import numpy as np
import torch

from dkae._support.processes import present
from dkae.grams import sample_rows
from dkae.networks import KernelLayer
from dkae.training.starts import N_START_ROWS, Doubles, chunks, kernel_values, root_of


class Moments:
    """The moment of all rows that a kernel layer was shown."""

    def __init__(self, layer: KernelLayer) -> None:
        landmarks: Any = _landmarks(layer)
        self.root, self.inverse = root_of(kernel_values(layer.similarity, landmarks))
        size = self.root.shape[1]
        self.moment: Doubles = np.zeros((size, size))

    def add(self, layer: KernelLayer, X: Any) -> None:
        """Add rows, 20,000 of them at most; each process adds its share."""
        rows = sample_rows(len(X), N_START_ROWS)
        rows = rows[present().part(len(rows))]
        own = torch.zeros(self.moment.shape, dtype=torch.float64)
        for part in chunks(rows):
            phi = torch.from_numpy(kernel_values(layer.similarity, X[part]) @ self.root)
            own += phi.T @ phi
        present().sum(own)
        self.moment += own.numpy()

    def refine(self, layer: KernelLayer) -> None:
        """Give a layer the leading directions of all rows, turned to lie near its own."""
        old: Doubles = self.inverse @ layer.weight.detach().cpu().double().numpy()
        n = old.shape[1]
        _, vectors = np.linalg.eigh(self.moment)
        new = vectors[:, ::-1][:, :n]
        left, _, right = np.linalg.svd(new.T @ old)
        weight = self.root @ (new @ (left @ right))
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(weight))


def _landmarks(layer: KernelLayer) -> Any:
    """Return the landmark rows, which a function that fills gaps may hold within."""
    similarity: Any = layer.similarity
    return getattr(similarity, "function", similarity).rows.cpu().numpy()
