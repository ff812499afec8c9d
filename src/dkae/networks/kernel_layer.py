r"""The kernel layer: a code is linear in the kernel values of a row with landmark rows.

.. math:: c(x) = \bigl(W^\top \kappa(L, x),\; U^\top (x - \mu)\bigr), \qquad
    \tilde x = \ell(A\,c + b) + g(c) .

W comes from the Nyström features of the landmarks L. The second part, a linear path, keeps what
the kernel says too little of for rows to be given back; it may be empty, and is so faint that inner
products are the kernel's all the same. The decoder starts as ridge regression, A c + b, with a
network g beside it that starts at zero. `dkae.training.starts` computes all of them. Where rows lie
in [0, 1], ℓ is the logit and a sigmoid follows; it is the identity elsewhere.

Kernels are unknown here: κ(L, ·) is a module that somebody else made.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dkae._support.checks import check_choice, check_integer
from dkae.networks.scaling import Scaling
from dkae.networks.stacked import ACTIVATIONS

#: Names of the sigmoid, and what is given to its inverse.
SIGMOIDS = ("sigmoid", "logistic")
WITHIN = (0.005, 0.995)
#: Ways to choose landmark rows.
LANDMARKS = ("random", "k-means")


@dataclass(frozen=True)
class KernelLayerNetwork:
    """What to build a kernel layer from, as the parameter `network` of the estimator.

    Parameters
    ----------
    n_landmarks : int, optional
        Landmark rows; twice the width of the code and at least 1,000 if not given, and at most as
        many as there are rows.
    landmarks : {"random", "k-means"}, default="random"
        Rows of X, or centres of its clusters (for kernels of vectors).
    n_linear : int, optional
        Width of the linear path, at most that of the code; what has the least loss on held-out rows
        if not given.
    """

    n_landmarks: int | None = None
    landmarks: str = "random"
    n_linear: int | None = None

    def __post_init__(self) -> None:
        if self.n_landmarks is not None:
            check_integer("n_landmarks", self.n_landmarks, at_least=1)
        if self.n_linear is not None:
            check_integer("n_linear", self.n_linear, at_least=0)
        check_choice("landmarks", self.landmarks, LANDMARKS)

    def count(self, n_rows: int, n_components: int) -> int:
        """Return the number of landmarks for so many rows and components."""
        wanted = max(1000, 2 * n_components) if self.n_landmarks is None else self.n_landmarks
        return min(n_rows, wanted)


class RidgeDecoder(nn.Module):
    """ℓ(A c + b) + g(c), with codes standardised and g a network that starts at zero.

    Parameters
    ----------
    n_components, n_features : int
        Width of codes and rows.
    hidden_layer_sizes : sequence of int
        Hidden layers of g, each with layer normalisation and GELU.
    scaling : Scaling
        What turns standardised rows into rows.
    output_activation : str, default="identity"
        The last activation. The regression goes through the inverse of the sigmoid first.
    """

    code_mean: Tensor
    code_scale: Tensor

    def __init__(
        self,
        n_components: int,
        n_features: int,
        hidden_layer_sizes: Sequence[int],
        scaling: Scaling,
        output_activation: str = "identity",
    ) -> None:
        super().__init__()
        self.register_buffer("code_mean", torch.zeros(n_components))
        self.register_buffer("code_scale", torch.ones(n_components))
        self.linear = nn.Linear(n_components, n_features)
        sizes = [n_components, *hidden_layer_sizes]
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        self.last = nn.Linear(sizes[-1], n_features)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)
        self.scaling = scaling
        self.output_activation = check_choice("output_activation", output_activation, ACTIVATIONS)

    def forward(self, codes: Tensor) -> Tensor:
        h = (codes - self.code_mean) / self.code_scale
        start: Tensor = self.linear(h)
        for layer in self.hidden:
            product = layer(h)
            h = F.gelu(F.layer_norm(product, product.shape[1:]))
        correction: Tensor = self.last(h)
        if self.output_activation == "identity":
            return self.scaling.inverse(start + correction)
        rows = self.scaling.inverse(start)
        if self.output_activation in SIGMOIDS:
            rows = torch.logit(rows.clamp(*WITHIN))
        return ACTIVATIONS[self.output_activation](rows + correction)


class KernelLayer(nn.Module):
    """Codes from kernel values with landmark rows and a linear path, and a decoder.

    Parameters
    ----------
    similarity : torch.nn.Module
        Maps k rows to their kernel values with m landmarks, (k, m); with gradients if it has a
        formula.
    weight : Tensor of shape (m, n_kernel)
        W.
    directions : Tensor of shape (n_features, n_linear)
        U, the linear path.
    center : Tensor of shape (n_features,)
        μ.
    decoder : torch.nn.Module
        Maps codes to rows.
    """

    #: It takes rows as they are, not as they are scaled for networks, and gives such rows back.
    sees_rows = True
    #: Of its training end to end: codes are sums of many kernel values, and start near their best.
    learning_rate_factor = 0.01
    center: Tensor

    def __init__(
        self,
        similarity: nn.Module,
        weight: Tensor,
        directions: Tensor,
        center: Tensor,
        decoder: nn.Module,
    ) -> None:
        super().__init__()
        self.similarity = similarity
        self.weight = nn.Parameter(weight)
        self.directions = nn.Parameter(directions)
        self.register_buffer("center", center)
        self.decoder = decoder

    @property
    def n_linear(self) -> int:
        """The width of the linear path."""
        return self.directions.shape[1]

    def encode(self, x: Tensor) -> Tensor:
        return self.encode_values(self.similarity(x), x)

    def encode_values(self, values: Tensor, x: Tensor) -> Tensor:
        """Return the codes of rows whose kernel values with the landmarks are known."""
        codes = values @ self.weight
        if not self.n_linear:
            return codes
        # A missing value lies at the mean.
        path = torch.nan_to_num(x - self.center, nan=0.0) @ self.directions
        return torch.cat([codes, path], dim=1)

    def decode(self, codes: Tensor) -> Tensor:
        rows: Tensor = self.decoder(codes)
        return rows

    def encoder_parameters(self) -> list[nn.Parameter]:
        """Return W and U."""
        return [self.weight, self.directions]

    def decoder_parameters(self) -> list[nn.Parameter]:
        """Return what the decoder learns, alone or not."""
        return list(self.decoder.parameters())
