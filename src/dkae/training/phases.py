"""How to train, and the phases of it: layers alone, the whole network, the decoder alone.

Pretraining (Sections 2.1 and 4.1 of the paper) trains each layer as an autoencoder of its own, on
the activations of the layers below it, which are frozen by then. The layers before the code layer
only reconstruct (λ = 0), so they depend on neither λ nor N_c; the code layer is trained with the
full loss of Eq. 5 *also* here.

While both maps are trained together, the gradient of L_c drowns that of L_r in the weights that
they share, the more the larger λ is. So in the last phase the encoder is frozen, and the
decoder, with weights of its own, learns from L_r alone, at half the rate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from torch import Tensor, nn

from dkae._support.checks import check_integer, check_number
from dkae._support.devices import choose_device
from dkae.alignment import make_measure
from dkae.augmentation import make_augmentation
from dkae.networks.protocol import decoder_parameters_of
from dkae.training.batches import batches_per_epoch
from dkae.training.optimization import Optimization

#: Names in the history: the training end to end, and the decoder alone.
FINE_TUNING = "fine-tuning"
DECODER = "decoder"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The parameters of a map that say how to train, checked.

    The docstring of `DeepKernelizedAutoencoder` has the meaning of each.
    """

    alignment: Any = "frobenius"
    alignment_weight: float = 0.0
    batch_size: int = 200
    max_iter: int = 0
    steps_per_epoch: str | int = "auto"
    pretrain_max_iter: int = 0
    decoder_max_iter: int = 0
    input_noise: float = 0.0
    augment: Any = None
    validation_fraction: float = 0.0
    device: Any = "auto"
    optimization: Optimization = field(default_factory=Optimization)

    def __post_init__(self) -> None:
        make_measure(self.alignment)
        check_number("alignment_weight", self.alignment_weight, 0, 1)
        check_integer("batch_size", self.batch_size, at_least=2)
        batches_per_epoch(1, 1, self.steps_per_epoch)
        for name in ("max_iter", "pretrain_max_iter", "decoder_max_iter"):
            check_integer(name, getattr(self, name), at_least=0)
        if self.max_iter == self.pretrain_max_iter == self.decoder_max_iter == 0:
            raise ValueError(
                "max_iter=0, pretrain_max_iter=0 and decoder_max_iter=0 leave nothing to train: "
                "set one of them to at least 1"
            )
        check_number("input_noise", self.input_noise, 0)
        make_augmentation(self.augment)
        check_number("validation_fraction", self.validation_fraction, 0, 1, open_high=True)
        choose_device(self.device)
        self.optimization.check()

    @classmethod
    def of(cls, model: Any, **others: Any) -> Settings:
        """Return the settings that are parameters of a model; `others` are those that are not."""
        given = Optimization() if model.optimization is None else model.optimization
        if not isinstance(given, Optimization):
            raise ValueError(
                f"optimization is a {type(given).__name__}: pass dkae.training.Optimization(...)"
            )
        names = [f.name for f in fields(cls) if hasattr(model, f.name)]
        values = {name: getattr(model, name) for name in names} | others
        return cls(**_plain(values | {"optimization": Optimization(**_plain(given.get_params()))}))

    def one_pass(self) -> Settings:
        """Return the settings of one epoch over all rows, at a rate that needs to know no end.

        The whole network learns in it if it learns in `fit`, and otherwise the decoder.
        """
        endless = self.optimization.get_params() | {"learning_rate": "endless"}
        return replace(
            self,
            max_iter=int(self.max_iter > 0),
            decoder_max_iter=int(self.max_iter == 0),
            pretrain_max_iter=0,
            optimization=Optimization(**endless),
            steps_per_epoch="samples",
            validation_fraction=0.0,
        )


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """Return values with Python's numbers: those of NumPy would get into optimizers and files."""
    return {k: v.item() if isinstance(v, np.generic) else v for k, v in values.items()}


@dataclass(frozen=True)
class Phase:
    """A part of the training: what learns, from what, and for how long."""

    name: str
    #: What the batch goes through: the whole network, or a stage of it.
    network: nn.Module
    #: Returns what learns; called when the phase begins.
    parameters: Callable[[], Iterable[nn.Parameter]]
    n_epochs: int
    #: λ.
    alignment_weight: float
    learning_rate_factor: float = 1.0
    #: Largest noise on the inputs.
    input_noise: float = 0.0
    #: Of a stage: the map from rows to its inputs, which it reconstructs instead of the rows.
    lift: Callable[[Tensor], Tensor] | None = None
    #: Whether the codes stand still; then the weights that the phase begins with may be the best.
    is_encoder_fixed: bool = False


def plan_phases(network: nn.Module, settings: Settings) -> list[Phase]:
    """Return the phases that the settings ask for; the network must offer what they need."""
    phases, weight = [], settings.alignment_weight
    if settings.pretrain_max_iter:
        stages = _offered(network, "stages", getattr(network, "stages", None), settings)
        phases += [
            Phase(
                stage.name,
                stage.network,
                stage.network.parameters,
                settings.pretrain_max_iter,
                weight if stage.is_code else 0.0,
                lift=stage.below,
            )
            for stage in stages()
        ]
    whole = Phase(
        FINE_TUNING,
        network,
        network.parameters,
        settings.max_iter,
        weight,
        input_noise=settings.input_noise,
    )
    if settings.max_iter:
        phases.append(whole)
    if settings.decoder_max_iter:
        own = decoder_parameters_of(network)
        phases.append(
            replace(
                whole,
                name=DECODER,
                parameters=_offered(network, "decoder_parameters", own, settings),
                n_epochs=settings.decoder_max_iter,
                alignment_weight=0.0,
                learning_rate_factor=0.5 if settings.max_iter else 1.0,
                is_encoder_fixed=True,
            )
        )
    names = [phase.name for phase in phases]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(  # a checkpoint would resume the wrong one
            f"the phases {', '.join(names)} have the name {twice[0]!r} twice: give each of the "
            "network's stages() a name of its own"
        )
    return phases


def _offered(network: nn.Module, name: str, method: Any, settings: Settings) -> Any:
    """Return a method of the network; raise if there is none."""
    if callable(method):
        return method
    setting = {"stages": "pretrain_max_iter", "decoder_parameters": "decoder_max_iter"}[name]
    raise ValueError(
        f"network={type(network).__name__} has no {name}(), which {setting}="
        f"{getattr(settings, setting)} needs: add that method, or set {setting}=0"
    )
