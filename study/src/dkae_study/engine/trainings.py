"""What there is to train, resolved once: the estimator, its configuration, and its file."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from dkae import DeepKernelizedAutoencoder
from dkae_study.declaration import NetworkSpec, Scale, Study
from dkae_study.declaration.configuration import (
    data_config,
    digest,
    estimator_config,
    kernel_config,
)
from dkae_study.engine.cost import Phases, layer_sizes, operations_of, phases_of


@dataclass(frozen=True, eq=False)
class Training:
    """One model to train. There is one object for each network, and for layers that many share."""

    #: None for layers below the code.
    spec: NetworkSpec | None
    #: Unfitted; that of a network has no kernel yet.
    estimator: DeepKernelizedAutoencoder
    #: Everything that the trained model depends on, and its hash.
    config: dict[str, Any]
    hash: str
    #: Where the model is kept.
    path: Path
    layer_sizes: list[int]
    phases: Phases
    #: The training of the layers below the code; None if they start at random.
    below: Training | None = None

    @property
    def is_done(self) -> bool:
        """Whether the model is in the cache."""
        return self.path.exists()

    @cached_property
    def operations(self) -> float:
        """What it costs, in floating-point operations."""
        return operations_of(self.phases)


class Trainings:
    """The trainings of a study at a scale: each is resolved when it is first asked for."""

    def __init__(self, study: Study, scale: Scale, cache: Path) -> None:
        self.study = study
        self.scale = scale
        self.cache = cache
        self._networks: dict[NetworkSpec, Training] = {}
        self._layers: dict[tuple[str, int], Training] = {}

    def of(self, spec: NetworkSpec) -> Training:
        """Return the training of a network."""
        if spec not in self._networks:
            self._networks[spec] = self._resolve_network(spec)
        return self._networks[spec]

    def _resolve_network(self, spec: NetworkSpec) -> Training:
        estimator = self.study.estimator(self.scale, spec.recipe)
        estimator.set_params(
            n_components=spec.n_components,
            alignment_weight=spec.alignment_weight,
            input_noise=spec.input_noise,
            random_state=spec.seed,
        )
        config = {
            "network": asdict(spec),
            "params": estimator_config(estimator),
            "kernel": kernel_config(self.study, self.scale, spec.seed),
        }
        below = self._layers_below(spec) if estimator.pretrain_max_iter else None
        return self._make("network", spec, estimator, config, below)

    def _layers_below(self, spec: NetworkSpec) -> Training:
        """Return the layers below the code, which depend on neither λ nor N_c."""
        key = spec.recipe, spec.seed
        if key not in self._layers:
            *hidden, width = self.scale.hidden_layer_sizes
            estimator = self.study.estimator(self.scale, spec.recipe)
            estimator.set_params(
                kernel="linear",  # any: λ = 0
                alignment_weight=0,
                n_components=width,
                network__hidden_layer_sizes=tuple(hidden),
                network__code_activation=estimator.network.activation,
                max_iter=0,
                decoder_max_iter=0,
                random_state=spec.seed,
            )
            config = {
                "version": self.study.version,
                "data": data_config(self.study, self.scale),
                "seed": spec.seed,
                "params": estimator_config(estimator),
            }
            self._layers[key] = self._make("layers", None, estimator, config)
        return self._layers[key]

    def _make(
        self,
        kind: str,
        spec: NetworkSpec | None,
        estimator: DeepKernelizedAutoencoder,
        config: dict[str, Any],
        below: Training | None = None,
    ) -> Training:
        n_features, key = self.study.data.n_features, digest(config)
        sizes = layer_sizes(estimator, n_features)
        n_below = 0 if below is None else len(sizes) - 2
        return Training(
            spec=spec,
            estimator=estimator,
            config=config,
            hash=key,
            path=self.cache / f"{kind}-{key}.safetensors",
            layer_sizes=sizes,
            phases=phases_of(estimator, self.scale.n_train, n_features, n_below),
            below=below,
        )
