"""The phases of a training, in order: layers alone, the whole network, the decoder alone.

Pretraining (Sections 2.1 and 4.1 of the paper) trains each layer as an autoencoder of its own, on
the activations of the layers below it, which are frozen by then. The layers before the code layer
only reconstruct (λ = 0), so they depend on neither λ nor N_c; the code layer is trained with the
full loss of Eq. 5 *also* here.

While both maps are trained together, the gradient of L_c drowns that of L_r in the weights that
they share, the more the larger λ is. So in the last phase the encoder is frozen, and the
decoder, with weights of its own, learns from L_r alone, at half the rate.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor, nn

from dkae.networks.protocol import decoder_parameters_of
from dkae.training.settings import Settings

#: Names in the history: the training end to end, and the decoder alone.
FINE_TUNING = "fine-tuning"
DECODER = "decoder"


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
    #: The map from rows to the inputs of the network, if they are not the rows themselves.
    lift: Callable[[Tensor], Tensor] | None = None
    #: The unit of differences of rows, one number or one for each feature; None for 1.
    unit: Any = None
    #: Whether the codes stand still; then the weights that the phase begins with may be the best.
    is_encoder_fixed: bool = False


def plan_phases(network: nn.Module, settings: Settings) -> list[Phase]:
    """Return the phases that the settings ask for; the network must offer what they need."""
    phases: list[Phase] = []
    unit, noise = getattr(network, "unit", None), settings.input_noise
    whole = partial(Phase, network=network, input_noise=noise, unit=unit)
    if settings.pretrain_max_iter:
        if not callable(getattr(network, "stages", None)):
            raise _lacks(network, "stages", "pretrain_max_iter", settings)
        phases += _pretraining(network, settings)
    if settings.max_iter:
        phases.append(
            whole(
                FINE_TUNING,
                parameters=network.parameters,
                n_epochs=settings.max_iter,
                alignment_weight=settings.alignment_weight,
            )
        )
    if settings.decoder_max_iter:
        parameters = decoder_parameters_of(network)
        if parameters is None:
            raise _lacks(network, "decoder_parameters", "decoder_max_iter", settings)
        phases.append(
            whole(
                DECODER,
                parameters=parameters,
                n_epochs=settings.decoder_max_iter,
                alignment_weight=0.0,
                learning_rate_factor=0.5 if settings.max_iter else 1.0,
                is_encoder_fixed=True,
            )
        )
    _check_names([phase.name for phase in phases])
    return phases


def _pretraining(network: nn.Module, settings: Settings) -> list[Phase]:
    return [
        Phase(
            stage.name,
            stage.network,
            stage.network.parameters,
            settings.pretrain_max_iter,
            settings.alignment_weight if stage.is_code else 0.0,
            lift=stage.below,
        )
        for stage in network.stages()  # type: ignore[operator]
    ]


def _check_names(names: list[str]) -> None:
    """Check that no two phases have one name: a checkpoint would resume the wrong one."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            f"the phases {', '.join(names)} have the name {twice[0]!r} twice: give each of the "
            "network's stages() a name of its own"
        )


def _lacks(network: nn.Module, method: str, setting: str, settings: Settings) -> ValueError:
    return ValueError(
        f"network={type(network).__name__} has no {method}(), which {setting}="
        f"{getattr(settings, setting)} needs: add that method, or set {setting}=0"
    )
