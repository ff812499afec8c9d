r"""A decoder that learns in steps: ridge regression, corrected by a network that starts at zero.

.. math:: \tilde x = \ell(A\,c + b) + g(c) ,

with standardised codes c. If rows lie in [0, 1], ℓ is the logit and a sigmoid follows; otherwise ℓ
is the identity.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from numbers import Integral
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dkae._support.checks import check_integer, check_number, draw_seed
from dkae._support.devices import choose_device, float32_math
from dkae.decoders.base import Decoder
from dkae.decoders.ridge import Ridge, fit_ridge
from dkae.grams import Floats
from dkae.networks import (
    ACTIVATIONS,
    Scaling,
    choose_output_activation,
    decode_rows,
    hidden_sizes,
    learn_scaling,
    seeded,
)
from dkae.statistics import Statistics
from dkae.training.batches import BatchSource, Source, split_rows
from dkae.training.callbacks import EarlyStopping, History
from dkae.training.optimization import Optimization
from dkae.training.phases import Settings, plan_phases
from dkae.training.trainer import train

#: With fewer rows none can be spared to watch the decoder.
N_HELD_OUT_FROM = 40
#: What goes into a logit.
WITHIN = (0.005, 0.995)


class CorrectedRidge(nn.Module):
    """ℓ(A c + b) + g(c), with g a network that starts at zero.

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

    #: It draws no random numbers in training, as dropout does.
    is_deterministic = True
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
        self.output_activation = output_activation

    def encode(self, x: Tensor) -> Tensor:
        """Return codes as they are: the map has computed them."""
        return x

    def decode(self, codes: Tensor) -> Tensor:
        h = (codes - self.code_mean) / self.code_scale
        start: Tensor = self.linear(h)
        for layer in self.hidden:
            product = layer(h)
            h = F.gelu(F.layer_norm(product, product.shape[1:]))
        correction: Tensor = self.last(h)
        if self.output_activation == "identity":
            return self.scaling.inverse(start + correction)
        rows = torch.logit(self.scaling.inverse(start).clamp(*WITHIN))
        return ACTIVATIONS[self.output_activation](rows + correction)

    def decoder_parameters(self) -> list[nn.Parameter]:
        return list(self.parameters())

    @property
    def unit(self) -> Tensor:
        """The unit of differences of rows in the loss."""
        return self.scaling.unit

    @property
    def config(self) -> dict[str, Any]:
        """The arguments that build a network like this one, but for its scaling."""
        n_features, n_components = self.linear.weight.shape
        return {
            "n_components": n_components,
            "n_features": n_features,
            "hidden_layer_sizes": [layer.out_features for layer in self.hidden],
            "output_activation": self.output_activation,
        }

    @property
    def summary(self) -> str:
        """The widths."""
        sizes = [*(layer.in_features for layer in self.hidden), *self.last.weight.shape[::-1]]
        return f"mlp {'-'.join(map(str, sizes))}"

    def start_at(self, ridge: Ridge) -> None:
        """Take over a regression from codes to standardised rows."""
        with torch.no_grad():
            for tensor, value in (
                (self.code_mean, ridge.mean),
                (self.code_scale, ridge.scale),
                (self.linear.weight, ridge.weight.T),
                (self.linear.bias, ridge.center),
            ):
                tensor.copy_(torch.from_numpy(np.asarray(value, dtype=np.float32)))


class MLPDecoder(Decoder):
    """A network from codes to rows, which starts as ridge regression.

    Parameters
    ----------
    hidden_layer_sizes : "auto" or sequence of int, default="auto"
        Widths of its hidden layers; "auto" is two layers, as wide as the data allow, see
        `dkae.networks.stack`.
    max_iter : int, default=10
        Epochs.
    batch_size : int, default=200
        Rows of a batch.
    steps_per_epoch : {"auto", "samples", "pairs"} or int, default="auto"
        Batches of an epoch, as in `DeepKernelizedAutoencoder`.
    optimization : Optimization, optional
        Optimizer, learning rate and schedule; see `dkae.training.Optimization`.
    validation_fraction : float, default=0.1
        Share of the rows that nothing is fitted to; the weights of the epoch with the least error
        on them are kept, the regression among them. With fewer than 40 rows, none.
    patience : int, default=10
        Epochs without a gain that end the training.
    tol : float, default=1e-4
        Smallest gain that counts.
    random_state : int, RandomState or None, default=None
        Seed of weights and batches; with None, a map passes its own.

    Attributes
    ----------
    network_ : CorrectedRidge
        The trained network.
    history_ : list of dict
        One record for each epoch.
    """

    def __init__(
        self,
        hidden_layer_sizes: Any = "auto",
        *,
        max_iter: int = 10,
        batch_size: int = 200,
        steps_per_epoch: str | int = "auto",
        optimization: Any = None,
        validation_fraction: float = 0.1,
        patience: int = 10,
        tol: float = 1e-4,
        random_state: Any = None,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.steps_per_epoch = steps_per_epoch
        self.optimization = optimization
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.tol = tol
        self.random_state = random_state

    # --- as a regressor ----------------------------------------------------------------------

    def _learn_rows(self, codes: Any, rows: Any) -> None:
        codes, rows = codes.astype(np.float32), rows.astype(np.float32)
        settings, seed = self.settings(len(rows), "auto"), draw_seed(self.random_state)
        rng = np.random.default_rng(seed)
        ids, held_out = split_rows(len(rows), settings.validation_fraction, rng)
        with float32_math():
            self.start(codes[ids], rows[ids], Statistics.of(rows, ids))
        source = BatchSource(
            rows, None, ids, held_out, settings.batch_size, settings.steps_per_epoch, rng,
            choose_device("auto"), codes=codes,
        )  # fmt: skip
        self.learn(source, settings)

    def _rows_of(self, codes: Any) -> Any:
        single = np.require(codes, np.float32, ["C_CONTIGUOUS", "WRITEABLE"])
        return decode_rows(self.network_, single).astype(codes.dtype, copy=False)

    @property
    def n_iter_(self) -> int:
        """Epochs that were trained."""
        return len(self.history_)

    # --- what a map calls --------------------------------------------------------------------

    def settings(self, n_rows: int, device: Any) -> Settings:
        """Return how to train on so many rows, checked."""
        n_epochs = check_integer("max_iter", self.max_iter, at_least=1)
        check_integer("patience", self.patience, at_least=1)
        check_number("tol", self.tol, 0)
        settings = Settings.of(self, max_iter=0, decoder_max_iter=n_epochs, device=device)
        few = n_rows < N_HELD_OUT_FROM
        return replace(settings, validation_fraction=0.0) if few else settings

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of an optimization that is given by default."""
        if self.optimization is None and any(name.startswith("optimization__") for name in params):
            self.optimization = Optimization()
        super().set_params(**params)
        return self

    def start(self, codes: Floats, rows: Any, known: Statistics) -> None:
        """Build the network, as ridge regression from codes to some of the training rows.

        `known` are the statistics of all training rows.
        """
        (width,), output = known.shape, choose_output_activation("auto", *known.range)
        sizes = hidden_sizes(
            self.hidden_layer_sizes, (known.n_rows, width), codes.shape[1]
        )[::-1]  # fmt: skip
        scaling = learn_scaling(known)
        state = self.random_state
        with seeded(int(state) if isinstance(state, Integral) else draw_seed(state)):
            network = CorrectedRidge(codes.shape[1], width, sizes, scaling, output)
        seen = scaling(torch.from_numpy(np.ascontiguousarray(rows))).nan_to_num(0.0).numpy()
        network.start_at(fit_ridge(codes.astype(np.float64), seen))
        self.network_ = network.eval()
        self.n_features_in_ = codes.shape[1]
        self.history_: list[Any] = []

    def learn(
        self,
        source: Source,
        settings: Settings,
        callbacks: Sequence[Any] = (),
    ) -> History:
        """Train the network on batches of codes and rows; held-out rows choose the best epoch."""
        network = copy.deepcopy(self.network_)
        watches = settings.validation_fraction > 0
        stopping = [EarlyStopping(self.patience, self.tol)] if watches else []
        phases = plan_phases(network, settings)
        outcome = train(network, phases, source, settings, [*stopping, *callbacks])
        self.network_, self.history_ = network, outcome.records
        return outcome
