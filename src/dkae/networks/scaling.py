r"""What a network sees of a row, and how its output becomes a row again.

.. math:: z = \frac{x - \mu}{s}, \qquad \hat x = \mu + s\,h ,

with the mean μ of each feature, and one scale s for each feature or one for all of them. An output
that has an activation of its own, such as the sigmoid, is a row as it is.

A table needs a scale for each feature. Where features share a unit, as pixels and the points of a
spectrum do, one scale serves all: dividing a border pixel by its tiny deviation would only amplify
noise.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dkae._support.checks import check_choice
from dkae.statistics import Statistics

#: L_r is this part of 1 − R²: the variance of a pixel of MNIST in [0, 1], so that λ weighs the two
#: terms on every data set as the paper's λ does on its own.
VARIANCE = 1 / 15
#: Names of scalings.
SCALINGS = ("auto", "features", "shared")


class Scaling(nn.Module):
    """The map from rows to what a network sees, and back from what it puts out.

    Parameters
    ----------
    mean : Tensor
        μ, of the shape of a row.
    scale : Tensor
        s, of the shape of a row, or one number for all features.
    scales_output : bool, default=True
        Whether a row is μ + s h; if not, the output h is a row.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, mean: Tensor, scale: Tensor, *, scales_output: bool = True) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("scale", scale)
        self.scales_output = scales_output

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.scale

    def inverse(self, h: Tensor) -> Tensor:
        """Return the rows that the output of a network stands for."""
        return self.mean + self.scale * h if self.scales_output else h

    @property
    def unit(self) -> Tensor:
        """The unit of differences of rows in which L_r is `VARIANCE` · (1 − R²)."""
        unit: Tensor = self.scale / VARIANCE**0.5
        return unit

    def extra_repr(self) -> str:
        return f"shared={self.scale.ndim == 0}, scales_output={self.scales_output}"


def learn_scaling(known: Statistics, how: str = "auto", *, scales_output: bool = True) -> Scaling:
    """Return the scaling by each feature, by one number for all, or by the rule "auto"."""
    if check_choice("input_scaling", how, SCALINGS) == "auto":
        how = "shared" if known.share_a_unit else "features"
    deviation = known.deviation
    scale = np.sqrt(np.square(deviation).mean()) if how == "shared" else deviation
    return Scaling(
        _tensor(known.mean),
        _tensor(np.where(scale > 0, scale, 1.0)),  # a constant feature is only centred
        scales_output=scales_output,
    )


def _tensor(values: NDArray[Any]) -> Tensor:
    return torch.from_numpy(np.asarray(values, dtype=np.float32))
