r"""The stacked autoencoder: encoder and decoder of fully connected layers, weights tied or not.

One layer is the autoencoder of Eq. 1,

.. math:: h = \sigma(W_E x + b_E), \qquad \tilde x = \sigma'(W_D h + b_D),

with :math:`W_D = W_E^\top` where weights are tied. A stack composes the encoders and, in reverse
order, the decoders. Because a stack *is* a list of layers, the network that pretrains layer i is
``Autoencoder([layer_i])``, and unfolding costs nothing: the parameters are shared.

Two options go beyond the paper: layer normalisation, without parameters, before the activation of
a layer, :math:`h = \sigma(\mathrm{LN}(W_E x + b_E))`, and a scaling of the rows before the first
layer and behind the last.

Kernels are unknown here.
"""

from collections.abc import Callable, Iterable
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from dkae._support.checks import check_choice
from dkae.networks.protocol import Stage
from dkae.statistics import Statistics

#: Activations by name; the first four are spelled as in scikit-learn's MLPRegressor.
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": lambda x: x,
    "logistic": torch.sigmoid,
    "tanh": torch.tanh,
    "relu": F.relu,
    "sigmoid": torch.sigmoid,
    "leaky_relu": F.leaky_relu,
    "elu": F.elu,
    "gelu": F.gelu,
    "silu": F.silu,
    "softplus": F.softplus,
}

#: L_r is this part of 1 − R²: the variance of a pixel of MNIST in [0, 1], so that λ weighs the two
#: terms on every data set as the paper's λ does on its own.
VARIANCE = 1 / 15
#: Names of scalings.
SCALINGS = ("auto", "features", "shared")


class Scaling(nn.Module):
    r"""The map from rows to what a network sees, and back from what it puts out.

    .. math:: z = \frac{x - \mu}{s}, \qquad \hat x = \mu + s\,h ,

    with the mean μ of each feature, and one scale s for each feature or one for all of them. An
    output that has an activation of its own, such as the sigmoid, is a row as it is.

    A table needs a scale for each feature. Where features share a unit, as pixels and the points of
    a spectrum do, one scale serves all: dividing a border pixel by its tiny deviation would only
    amplify noise.

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


class Layer(nn.Module):
    """A single-hidden-layer autoencoder (Eq. 1).

    Parameters
    ----------
    n_in, n_out : int
        Width of the input and of the hidden representation.
    activation, output_activation : str
        Activation of the hidden representation and of the reconstruction.
    tied : bool, default=True
        Whether the decoder uses the transpose of the encoder's weight (the same tensor). If not,
        it has a weight of its own, which starts as that transpose. The biases are separate in any
        case.
    norm : bool, default=False
        Whether the encoder normalises over its units before the activation.
    generator : torch.Generator, optional
        Source of the Glorot-uniform weights. Biases start at zero.
    """

    def __init__(
        self,
        n_in: int,
        n_out: int,
        *,
        activation: str,
        output_activation: str,
        tied: bool = True,
        norm: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.norm = norm
        self.activation = check_choice("activation", activation, ACTIVATIONS)
        self.output_activation = check_choice("output_activation", output_activation, ACTIVATIONS)
        glorot = nn.init.xavier_uniform_(torch.empty(n_out, n_in), generator=generator)
        self.weight = nn.Parameter(glorot)
        self.bias = nn.Parameter(torch.zeros(n_out))
        self.decoder_weight: nn.Parameter | None = None
        self.decoder_bias = nn.Parameter(torch.zeros(n_in))
        if not tied:
            self.untie()

    def encode(self, x: Tensor) -> Tensor:
        product = F.linear(x, self.weight, self.bias)
        if self.norm:
            product = F.layer_norm(product, product.shape[1:])
        return ACTIVATIONS[self.activation](product)

    def untie(self) -> None:
        """Give the decoder a weight of its own, equal to the one it shared."""
        if self.decoder_weight is None:
            # Glorot's distribution is the same for a weight and its transpose.
            copied = self.weight.detach().T.clone(memory_format=torch.contiguous_format)
            self.decoder_weight = nn.Parameter(copied)

    def decode(self, h: Tensor) -> Tensor:
        """Return what the rows of `h`, (k, n_out), decode to."""
        if self.decoder_weight is None:
            # Without a transpose: then autograd adds both gradients of the weight in place.
            product = torch.addmm(self.decoder_bias, h, self.weight)
        else:
            product = F.linear(h, self.decoder_weight, self.decoder_bias)
        return ACTIVATIONS[self.output_activation](product)

    @property
    def config(self) -> dict[str, Any]:
        """The arguments that build a layer like this one."""
        n_out, n_in = self.weight.shape
        return {
            "n_in": n_in,
            "n_out": n_out,
            "activation": self.activation,
            "output_activation": self.output_activation,
            "tied": self.decoder_weight is None,
            "norm": self.norm,
        }

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self.config.items())


class Autoencoder(nn.Module):
    """A stack of layers: ``encode`` goes up through all of them, ``decode`` comes back down."""

    #: It draws no random numbers in training, as dropout does.
    is_deterministic = True

    def __init__(
        self, layers: Iterable[Layer], scaling: Scaling | None = None, n_pretrained: int = 0
    ) -> None:
        super().__init__()
        self._layers = nn.ModuleList(layers)
        self.scaling = scaling
        #: The number of the lowest layers that are trained already: pretraining leaves them out.
        self.n_pretrained = n_pretrained

    @property
    def layers(self) -> list[Layer]:
        """The layers from the input to the code."""
        return cast(list[Layer], list(self._layers))

    @property
    def config(self) -> dict[str, Any]:
        """The arguments that build a network like this one, but for its scaling."""
        return {"layers": [layer.config for layer in self.layers]}

    @property
    def summary(self) -> str:
        """The widths, and the activation of the reconstruction."""
        sizes = [self.layers[0].weight.shape[1], *(len(layer.weight) for layer in self.layers)]
        return f"{'-'.join(map(str, sizes))}, output {self.layers[0].output_activation}"

    @property
    def unit(self) -> Tensor | None:
        """The unit of differences of rows in the loss; None for that of the rows."""
        return None if self.scaling is None else self.scaling.unit

    def encode(self, x: Tensor) -> Tensor:
        h: Tensor = x if self.scaling is None else self.scaling(x)
        for layer in self.layers:
            h = layer.encode(h)
        return h

    def decode(self, codes: Tensor) -> Tensor:
        h = codes
        for layer in reversed(self.layers):
            h = layer.decode(h)
        return h if self.scaling is None else self.scaling.inverse(h)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the codes of x and its reconstruction."""
        codes = self.encode(x)
        return codes, self.decode(codes)

    # --- what training asks for beyond the two maps ------------------------------------------

    def decoder_parameters(self) -> list[nn.Parameter]:
        """Give the decoder weights of its own if it shares them, and return what it has."""
        parameters = []
        for layer in self.layers:
            layer.untie()
            parameters += [cast(nn.Parameter, layer.decoder_weight), layer.decoder_bias]
        return parameters

    def stages(self) -> list[Stage]:
        """Return the layers that are not pretrained yet, each as an autoencoder of its own."""
        return [
            Stage(
                name=f"layer {i + 1}",
                network=Autoencoder([self.layers[i]]),
                below=Autoencoder(self.layers[:i], self.scaling).encode,
                is_code=i == len(self.layers) - 1,
            )
            for i in range(self.n_pretrained, len(self.layers))
        ]
