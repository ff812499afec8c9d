"""The rows that a decoder learns to give back, in units in which all features count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkae.networks import choose_output_activation, learn_scaling
from dkae.statistics import Statistics

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Targets:
    """How rows become regression targets: z = (x − center) / scale, and back."""

    center: Doubles
    scale: Doubles
    #: Whether all of the rows lie in [0, 1], as pixels do: so do reconstructions.
    is_unit_interval: bool

    @classmethod
    def of(cls, known: Statistics) -> Targets:
        """Return the units of rows with these statistics: one for all if features share it."""
        scaling = learn_scaling(known)
        return cls(
            known.mean,
            np.broadcast_to(scaling.scale.double().numpy(), known.shape).copy(),
            choose_output_activation("auto", *known.range) == "sigmoid",
        )

    def scaled(self, rows: Any) -> Doubles:
        """Return the targets of rows, as vectors; a missing value lies at the mean."""
        z = (np.asarray(rows, dtype=np.float64) - self.center) / self.scale
        flat: Doubles = np.nan_to_num(z.reshape(len(z), -1), nan=0.0)
        return flat

    def restored(self, z: Doubles) -> Doubles:
        """Return the rows of predicted targets."""
        rows = self.center + self.scale * z.reshape(len(z), *self.center.shape)
        return np.clip(rows, 0.0, 1.0) if self.is_unit_interval else rows


def held_out_mask(n: int, every: int = 8) -> NDArray[np.bool_]:
    """Return which of n training rows a closed form chooses its strength on: one in eight."""
    return np.asarray(np.arange(n) % every == 0)
