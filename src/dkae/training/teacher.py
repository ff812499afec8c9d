r"""Codes that a network may be trained towards, beside the prior: those of the kernel layer.

With landmark rows L of the training rows and W from the Nyström features
(`dkae.training.starts`),

.. math:: T = P_{\cdot L} W, \qquad
    L_d = \frac{\|C - T\|_F^2}{\|T\|_F^2} ,

is added to L_c. Only blocks of the Gram matrix are read: it may be one that a user hands in.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dkae.grams import Floats, Gram, Rows, sample_rows
from dkae.training.starts import N_START_ROWS, weight_of

#: Landmark rows.
N_LANDMARKS = 1000


@dataclass(frozen=True)
class Teacher:
    """Gives the target codes of training rows."""

    gram: Gram
    landmarks: Rows
    weight: Floats

    @classmethod
    def of(cls, gram: Gram, n_components: int, seed: int) -> "Teacher":
        """Choose landmarks among the rows of a Gram matrix, and compute W from its blocks."""
        n = min(len(gram), max(N_LANDMARKS, 2 * n_components))
        landmarks = np.sort(np.random.default_rng(seed).choice(len(gram), n, replace=False))
        rows = sample_rows(len(gram), N_START_ROWS)
        parts = np.array_split(rows, max(1, len(rows) // 2048))
        weight = weight_of(
            np.asarray(gram.block(landmarks), dtype=np.float64),
            (np.asarray(gram.block(part, landmarks), dtype=np.float64) for part in parts),
            n_components,
        )
        wide = np.zeros((n, n_components), dtype=np.float32)
        wide[:, : weight.shape[1]] = weight
        return cls(gram, landmarks, wide)

    def codes(self, rows: Rows) -> Tensor:
        """Return the target codes of some of the training rows."""
        block = np.asarray(self.gram.block(rows, self.landmarks), dtype=np.float32)
        return torch.from_numpy(block @ self.weight)


def distillation_loss(codes: Tensor, targets: Tensor) -> Tensor:
    """Return L_d, the part of the targets that codes miss."""
    return (codes - targets).square().sum() / targets.square().sum()
