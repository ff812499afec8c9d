"""What the runs of a study share: data, kernels, pretrained layers and networks, each made once.

Everything that takes time is kept in a cache folder under the hash of what it depends on, so that
a sweep over λ trains the layers that do not depend on λ once, two experiments with the same network
train it once, and a study that was interrupted does not begin anew.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from dkae._runtime.files import replacing
from dkae.datasets import load_mnist20k
from dkae.estimator import DeepKernelizedAutoencoder
from dkae.kernels import ProbabilisticClusterKernel
from dkae.kernels.base import Floats
from dkae.networks.stacked import Autoencoder
from dkae.persistence import load, save
from dkae.training.progress import Progress, Silence
from dkae_study import provenance
from dkae_study.scales import Scale
from dkae_study.shared_kernel import SharedKernel

__all__ = ["REG_COVAR", "Layers", "Network", "Part", "Workshop", "digest"]

#: Regulariser of the mixtures' variances, which the paper does not state.
REG_COVAR = 1e-3
#: Raised when a change of the code makes results that were kept worthless.
VERSION = 1
#: Parameters of the estimator that do not change a result, or that stand elsewhere in a config.
_NO_PART_OF_CONFIG = ("device", "kernel", "kernel_params", "random_state", "verbose")

Result = TypeVar("Result")


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


@dataclass(frozen=True)
class Layers:
    """The layers below the code, which depend on neither λ nor N_c: pretrained once for a seed."""

    recipe: str
    seed: int


class Workshop:
    """Makes data, kernels and networks of a scale, or takes them from the cache.

    Several threads may train networks at once, but no two of them the same one.

    Parameters
    ----------
    scale : Scale
        How large everything is.
    cache : Path
        Folder for what can be used again.
    reg_covar : float
        Regulariser of the variances of the kernel's mixtures.
    """

    def __init__(self, scale: Scale, cache: Path, reg_covar: float = REG_COVAR) -> None:
        self.scale = scale
        self.cache = cache
        self.reg_covar = reg_covar
        self._kernels: dict[tuple[int, float], SharedKernel] = {}
        self._kernels_lock = threading.Lock()
        self._layers_locks: dict[Layers, threading.Lock] = {}
        self._notes: dict[tuple[Any, ...], Any] = {}

    def once(self, key: tuple[Any, ...], measure: Callable[[], Result]) -> Result:
        """Return what `measure` returns, called once for each key while this workshop lives.

        It is for what depends on the scale and the seed, but on no network. The result is shared:
        do not change it. For the main thread only.
        """
        if key not in self._notes:
            self._notes[key] = measure()
        result: Result = self._notes[key]
        return result

    # --- data and kernel ---------------------------------------------------------------------

    @cached_property
    def parts(self) -> dict[str, Part]:
        """The rows for training, validation and test; at small scales the first of each."""
        mnist = load_mnist20k(scaled=True)
        sizes = {"train": self.scale.n_train, "validation": self.scale.n_held_out}
        sizes["test"] = self.scale.n_held_out
        rows = {name: mnist[name][:size] for name, size in sizes.items()}
        return {name: Part(mnist.data[ids], mnist.target[ids]) for name, ids in rows.items()}

    def kernel(self, seed: int, reg_covar: float | None = None) -> SharedKernel:
        """Return the Probabilistic Cluster Kernel of a seed, fitted to the training rows."""
        key = (seed, self.reg_covar if reg_covar is None else reg_covar)
        with self._kernels_lock:
            if key not in self._kernels:
                # One fitted kernel takes 175 MB. Seeds come in turn, those of the networks in
                # training before that of the run that is being measured.
                seeds = {seed, *[other for other, _ in self._kernels][-1:]}
                self._kernels = {k: v for k, v in self._kernels.items() if k[0] in seeds}
                rows = {name: part.X for name, part in self.parts.items()}
                self._kernels[key] = SharedKernel(self.kernel_config(*key), rows, self.cache)
            return self._kernels[key]

    def kernel_config(self, seed: int, reg_covar: float) -> dict[str, Any]:
        """Return what the kernel of a seed depends on."""
        kernel = ProbabilisticClusterKernel(
            **self.scale.kernel, reg_covar=reg_covar, random_state=seed
        )
        params = {k: v for k, v in kernel.get_params().items() if k != "device"}
        return {"version": VERSION, "data": self.scale.data_config, "params": params}

    # --- networks ----------------------------------------------------------------------------

    def config(self, network: Network) -> dict[str, Any]:
        """Return everything that a trained network depends on."""
        return {
            "network": asdict(network),
            "params": _params(self._estimator(network)),
            "kernel": self.kernel_config(network.seed, self.reg_covar),
        }

    def is_trained(self, network: Network) -> bool:
        """Say whether the network is in the cache."""
        return self._path(network).exists()

    def has_layers(self, layers: Layers) -> bool:
        """Say whether the pretrained layers are in the cache."""
        return self._path(layers).exists()

    def train(
        self, network: Network, progress: Progress | None = None
    ) -> DeepKernelizedAutoencoder:
        """Return the trained network: from the cache, from a checkpoint, or from the start."""
        progress = Silence() if progress is None else progress
        if self.is_trained(network):
            return _load(self._path(network))
        model = self._estimator(network).set_params(kernel=self.kernel(network.seed))
        lower = None
        if model.pretrain_max_iter:
            lower = self._pretrain(Layers(network.recipe, network.seed), progress).network_
        return self._fit(model, self._path(network), progress, lower)

    def describe(self, network: Network, model: DeepKernelizedAutoencoder) -> dict[str, Any]:
        """Return what a result file says of a network."""
        config = self.config(network)
        history = list(model.history_)
        layers = Layers(network.recipe, network.seed)
        if model.pretrain_max_iter and self.has_layers(layers):
            lower = _load(self._path(layers)).history_
            # In a cache of an older version they have an L_c, which is to another kernel.
            names = ("phase", "loss", "reconstruction_loss")
            history = [*({name: record[name] for name in names} for record in lower), *history]
        return {
            "config": config["network"] | {"params": config["params"]},
            "hash": digest(config),
            "layers": [model.n_features_in_, *model.hidden_layer_sizes, model.n_components],
            **self._note(network),
            "history": _columns(history),
        }

    def _note(self, network: Network) -> dict[str, Any]:
        """Return how the network was made."""
        path = self._path(network).with_suffix(".json")
        try:
            note: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(
                f"{path} in the cache is damaged ({error}): delete it with the network beside it, "
                "which is then trained anew"
            ) from error
        return note

    def _pretrain(self, layers: Layers, progress: Progress) -> DeepKernelizedAutoencoder:
        """Return a model of the layers below the code alone, pretrained."""
        path = self._path(layers)
        if not path.exists():
            with self._layers_locks.setdefault(layers, threading.Lock()):  # many need the same
                if not path.exists():
                    return self._fit(self._layers_estimator(layers), path, progress)
        return _load(path)

    def _fit(
        self,
        model: DeepKernelizedAutoencoder,
        path: Path,
        progress: Progress,
        pretrained: Autoencoder | None = None,
    ) -> DeepKernelizedAutoencoder:
        """Train a model and keep it; its checkpoint goes when the model is on disk."""
        checkpoint, start = path.with_suffix(".checkpoint"), time.perf_counter()
        note: dict[str, Any] = {"resumed": checkpoint.exists(), "commit": provenance.commit()}
        model.verbose = progress
        model.fit(self.parts["train"].X, checkpoint=checkpoint, pretrained=pretrained)
        model.verbose = 0
        note["seconds"] = round(time.perf_counter() - start, 1)
        with replacing(path.with_suffix(".json")) as temporary:
            temporary.write_text(json.dumps(note), encoding="utf-8")
        save(model, path)
        checkpoint.unlink(missing_ok=True)
        return model

    def _estimator(self, network: Network) -> DeepKernelizedAutoencoder:
        """Return the network's estimator, as yet without its kernel."""
        estimator = self.scale.estimator(network.recipe)
        estimator.set_params(
            n_components=network.n_components,
            alignment_weight=network.alignment_weight,
            input_noise=network.input_noise,
            random_state=network.seed,
        )
        return estimator

    def _layers_estimator(self, layers: Layers) -> DeepKernelizedAutoencoder:
        *hidden, width = self.scale.hidden_layer_sizes
        estimator = self.scale.estimator(layers.recipe)
        estimator.set_params(
            kernel="linear",  # any: λ = 0
            alignment_weight=0,
            n_components=width,
            hidden_layer_sizes=tuple(hidden),
            code_activation=estimator.activation,
            max_iter=0,
            decoder_max_iter=0,
            random_state=layers.seed,
        )
        return estimator

    def _path(self, what: Network | Layers) -> Path:
        if isinstance(what, Network):
            return self.cache / f"network-{digest(self.config(what))}.safetensors"
        config = {
            "version": VERSION,
            "data": self.scale.data_config,
            "seed": what.seed,
            "params": _params(self._layers_estimator(what)),
        }
        return self.cache / f"layers-{digest(config)}.safetensors"


def _load(path: Path) -> DeepKernelizedAutoencoder:
    """Return a model from the cache."""
    try:
        return load(path)
    except ValueError as error:
        raise ValueError(f"{error}; it is of the cache: delete it to train it anew") from error


def _params(estimator: DeepKernelizedAutoencoder) -> dict[str, Any]:
    """Return the parameters that a network depends on; a phase that is left out is none."""
    return {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if name not in _NO_PART_OF_CONFIG and not (name.endswith("_max_iter") and value == 0)
    }


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
