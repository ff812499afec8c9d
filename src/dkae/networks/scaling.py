r"""What a network sees of a row, and how its output becomes a row again.

.. math:: z = \frac{x - \mu}{s}, \qquad \hat x = \mu + s\,h ,

with the mean μ of each feature, and one scale s for each feature or one for all of them. An output
that has an activation of its own, such as the sigmoid, is a row as it is. The units of the data end
here, and so do missing values.
"""

from typing import Any, cast

import torch
from torch import Tensor, nn

from dkae.networks.protocol import Stage, decoder_parameters_of

#: L_r is this part of 1 − R²: the variance of a pixel of MNIST in [0, 1], so that λ weighs the two
#: terms on every data set as the paper's λ does on its own.
VARIANCE = 1 / 15


class Scaling(nn.Module):
    """The map from rows to what a network sees, and back from what it puts out.

    Parameters
    ----------
    mean : Tensor
        μ, of the shape of a row.
    scale : Tensor
        s, of the shape of a row, or one number for all features.
    fill : Tensor, optional
        What missing values, NaN, are taken for; of the shape of a row. They stay without it.
    scales_output : bool, default=True
        Whether a row is μ + s h; if not, the output h is a row.
    """

    mean: Tensor
    scale: Tensor
    fill: Tensor | None

    def __init__(
        self,
        mean: Tensor,
        scale: Tensor,
        fill: Tensor | None = None,
        *,
        scales_output: bool = True,
    ) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("scale", scale)
        self.register_buffer("fill", fill)
        self.scales_output = scales_output

    def forward(self, x: Tensor) -> Tensor:
        return (self.filled(x) - self.mean) / self.scale

    def filled(self, x: Tensor) -> Tensor:
        """Return rows without missing values."""
        return x if self.fill is None else torch.where(x.isnan(), self.fill, x)

    def inverse(self, z: Tensor) -> Tensor:
        """Return the rows that standardised rows stand for."""
        return self.mean + self.scale * z

    @property
    def unit(self) -> Tensor:
        """What a difference of rows is measured in, for L_r to be `VARIANCE` · (1 − R²)."""
        unit: Tensor = self.scale / VARIANCE**0.5
        return unit

    @property
    def config(self) -> dict[str, Any]:
        """What builds a scaling of the same shape, as plain data."""
        shapes = {"mean": list(self.mean.shape), "scale": list(self.scale.shape)}
        return {"scales_output": self.scales_output, "fill": self.fill is not None, **shapes}

    def extra_repr(self) -> str:
        return f"shared={self.scale.ndim == 0}, scales_output={self.scales_output}"


class Scaled(nn.Module):
    """A network between rows in the units of the data: its scaling stands before and behind it."""

    def __init__(self, network: nn.Module, scaling: Scaling) -> None:
        super().__init__()
        self.network: Any = network
        self.scaling = scaling

    def encode(self, x: Tensor) -> Tensor:
        codes: Tensor = self.network.encode(self.scaling(x))
        return codes

    def decode(self, codes: Tensor) -> Tensor:
        output: Tensor = self.network.decode(codes)
        return self.scaling.inverse(output) if self.scaling.scales_output else output

    def decoder_parameters(self) -> list[nn.Parameter]:
        """Return what the decoder learns alone."""
        parameters = decoder_parameters_of(self.network)
        return list(parameters()) if parameters else []

    def stages(self) -> list[Stage]:
        """Return the parts of the network that are pretrained, on rows as it sees them."""
        return [
            stage._replace(below=_Chain(self.scaling, stage.below))
            for stage in self.network.stages()
        ]

    @property
    def n_pretrained(self) -> int:
        """The number of the network's lowest layers that are trained already."""
        return int(getattr(self.network, "n_pretrained", 0))


def scaled(network: nn.Module, scaling: Scaling | None) -> nn.Module:
    """Return a network between rows in the units of the data.

    One with an attribute ``sees_rows`` that is true takes and gives such rows by itself.
    """
    if scaling is None or getattr(network, "sees_rows", False):
        return network
    return Scaled(network, scaling)


class _Chain:
    """One map after the other."""

    def __init__(self, first: Any, second: Any) -> None:
        self.first, self.second = first, second

    def __call__(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.second(self.first(x)))
