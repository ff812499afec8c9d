"""What the runs of a study share: data, kernels, pretrained layers and networks, each made once.

Everything that takes time is kept in a cache folder under the hash of what it depends on, so that
a sweep over λ trains the layers that do not depend on λ once, two experiments with the same network
train it once, and a study that was interrupted does not begin anew.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dkae.atomic import replacing
from dkae.autoencoder import Autoencoder
from dkae.datasets import load_mnist20k
from dkae.estimator import DeepKernelizedAutoencoder
from dkae.experiments.scales import Scale
from dkae.experiments.shared_kernel import SharedKernel
from dkae.kernels.base import Floats
from dkae.persistence import load, save
from dkae.training.progress import Progress, Silence

__all__ = ["REG_COVAR", "Network", "Part", "Workshop", "digest"]

#: Regulariser of the mixtures' variances, which the paper does not state.
REG_COVAR = 1e-3
#: Raised when a change of the code makes results that were kept worthless.
VERSION = 1
#: Parameters of the estimator that do not change a result, or that stand elsewhere in a config.
_NO_PART_OF_CONFIG = ("device", "kernel", "kernel_params", "random_state", "verbose")


class Part(NamedTuple):
    """Rows and their labels."""

    X: Floats
    y: NDArray[np.int64]


@dataclass(frozen=True)
class Network:
    """A network of the study: what makes it differ from the others."""

    recipe: str
    seed: int
    alignment_weight: float
    n_components: int
    input_noise: float = 0.0


class Workshop:
    """Makes data, kernels and networks of a scale, or takes them from the cache.

    Parameters
    ----------
    scale : Scale
        How large everything is.
    cache : Path
        Folder for what can be used again.
    progress : Progress, optional
        Is told of each training step.
    """

    def __init__(self, scale: Scale, cache: Path, progress: Progress | None = None) -> None:
        self.scale = scale
        self.cache = cache
        self.progress = Silence() if progress is None else progress
        self._kernels: dict[int, SharedKernel] = {}

    # --- data and kernel ---------------------------------------------------------------------

    @cached_property
    def parts(self) -> dict[str, Part]:
        """The rows for training, validation and test; at small scales the first of each."""
        mnist = load_mnist20k(scaled=True)
        sizes = {"train": self.scale.n_train, "validation": self.scale.n_held_out}
        sizes["test"] = self.scale.n_held_out
        rows = {name: mnist[name][:size] for name, size in sizes.items()}
        return {name: Part(mnist.data[ids], mnist.target[ids]) for name, ids in rows.items()}

    def kernel(self, seed: int) -> SharedKernel:
        """Return the Probabilistic Cluster Kernel of a seed, fitted to the training rows."""
        if seed not in self._kernels:
            self._kernels.clear()  # one fitted kernel takes 175 MB, and seeds come in turn
            rows = {name: part.X for name, part in self.parts.items()}
            self._kernels[seed] = SharedKernel(self.kernel_config(seed), rows, self.cache)
        return self._kernels[seed]

    def kernel_config(self, seed: int) -> dict[str, Any]:
        """Return what the kernel of a seed depends on."""
        params = {**self.scale.kernel, "reg_covar": REG_COVAR, "random_state": seed}
        return {"version": VERSION, "data": self.scale.data_config, "params": params}

    # --- networks ----------------------------------------------------------------------------

    def config(self, network: Network) -> dict[str, Any]:
        """Return everything that a trained network depends on."""
        estimator = self._estimator(network)
        params = estimator.get_params(deep=False)
        return {
            "network": asdict(network),
            "params": {k: v for k, v in params.items() if k not in _NO_PART_OF_CONFIG},
            "kernel": self.kernel_config(network.seed),
        }

    def is_trained(self, network: Network) -> bool:
        """Say whether the network is in the cache."""
        return self._path(network, ".safetensors").exists()

    def train(self, network: Network) -> DeepKernelizedAutoencoder:
        """Return the trained network: from the cache, from a checkpoint, or from the start."""
        path = self._path(network, ".safetensors")
        if path.exists():
            return load(path)
        checkpoint = self._path(network, ".checkpoint")
        resumed, start = checkpoint.exists(), time.perf_counter()
        model = self._estimator(network)
        model.verbose = self.progress
        lower = self._lower_layers(network) if model.pretrain_max_iter else None
        model.fit(self.parts["train"].X, checkpoint=checkpoint, pretrained=lower)
        times = {"seconds": round(time.perf_counter() - start, 1), "resumed": resumed}
        with replacing(self._path(network, ".json")) as temporary:
            temporary.write_text(json.dumps(times), encoding="utf-8")
        model.verbose = 0
        save(model, path)
        return model

    def describe(self, network: Network, model: DeepKernelizedAutoencoder) -> dict[str, Any]:
        """Return what a result file says of a network."""
        config = self.config(network)
        times = json.loads(self._path(network, ".json").read_text(encoding="utf-8"))
        return {
            "config": config["network"] | {"params": config["params"]},
            "hash": digest(config),
            "layers": [model.n_features_in_, *model.hidden_layer_sizes, model.n_components],
            **times,
            "history": _columns(model.history_),
        }

    def _estimator(self, network: Network) -> DeepKernelizedAutoencoder:
        estimator = self.scale.estimator(network.recipe)
        estimator.set_params(
            kernel=self.kernel(network.seed),
            n_components=network.n_components,
            alignment_weight=network.alignment_weight,
            input_noise=network.input_noise,
            random_state=network.seed,
        )
        return estimator

    def _lower_layers(self, network: Network) -> Autoencoder:
        """Return the pretrained layers below the code, which depend on neither λ nor N_c."""
        *hidden, width = self.scale.hidden_layer_sizes
        model = self.scale.estimator(network.recipe)
        model.set_params(
            kernel="linear",  # is not looked at, because λ = 0
            alignment_weight=0,
            n_components=width,
            hidden_layer_sizes=tuple(hidden),
            code_activation=model.activation,
            max_iter=0,
            random_state=network.seed,
        )
        params = model.get_params(deep=False)
        config = {
            "version": VERSION,
            "data": self.scale.data_config,
            "seed": network.seed,
            "params": {k: v for k, v in params.items() if k not in _NO_PART_OF_CONFIG},
        }
        path = self.cache / f"layers-{digest(config)}.safetensors"
        if not path.exists():
            checkpoint = path.with_suffix(".checkpoint")
            model.verbose = self.progress
            model.fit(self.parts["train"].X, checkpoint=checkpoint)
            model.verbose = 0
            save(model, path)
        return load(path).network_

    def _path(self, network: Network, ending: str) -> Path:
        return self.cache / f"network-{digest(self.config(network))}{ending}"


def digest(config: Mapping[str, Any]) -> str:
    """Return a short hash of a configuration."""
    text = json.dumps(config, sort_keys=True, default=list)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _columns(history: list[dict[str, Any]]) -> dict[str, dict[str, list[float]]]:
    """Return the history by phase and loss, to 5 digits: a tenth of the size of the records."""
    columns: dict[str, dict[str, list[float]]] = {}
    for record in history:
        phase = columns.setdefault(str(record["phase"]), {})
        for name, value in record.items():
            if name not in ("phase", "epoch"):
                phase.setdefault(name, []).append(float(f"{value:.5g}"))
    return columns
