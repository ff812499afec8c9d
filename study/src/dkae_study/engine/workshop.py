"""What the runs of a study share: data, kernels, pretrained layers and networks, each made once.

Networks are kept in a cache folder under the hash of what they depend on, so that a sweep over λ
trains the layers that do not depend on λ once, two experiments with the same network train it once,
and a study that was interrupted does not begin anew.
"""

from __future__ import annotations

import copy
import json
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

import torch
from sklearn.base import BaseEstimator, clone

from dkae import DeepKernelizedAutoencoder
from dkae.files import replacing
from dkae.grams import Gram
from dkae.kernels import Kernel
from dkae.networks import Autoencoder, Stack
from dkae.persistence import load, save
from dkae.training import Callback, has_checkpoint, remove_checkpoint
from dkae_study.declaration import NetworkSpec, Part, Scale, Study
from dkae_study.engine import provenance
from dkae_study.engine.trainings import Training, Trainings

Result = TypeVar("Result")


class StackOnLayers(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """A Stack whose lowest layers are copies of trained ones, which pretraining leaves out."""

    takes_vectors = True

    def __init__(self, stack: Stack, lower: Autoencoder) -> None:
        self.stack = stack
        self.lower = lower

    def build(self, known: Any, n_components: int, generator: torch.Generator) -> Autoencoder:
        """Return the network; the weights of the layers above are drawn as those of the Stack."""
        network = self.stack.build(known, n_components, generator)
        layers = copy.deepcopy(self.lower).layers
        upper = network.layers[len(layers) :]
        return Autoencoder([*layers, *upper], network.scaling, n_pretrained=len(layers))


class Workshop:
    """Makes data, kernels and networks of a study at a scale, or takes them from the cache.

    Several threads may train networks at once, but no two of them the same one.

    Parameters
    ----------
    study : Study
        Its data, kernel, recipes and experiments.
    scale : Scale
        How large everything is.
    cache : Path
        Folder for trained networks.
    """

    def __init__(self, study: Study, scale: Scale, cache: Path) -> None:
        self.study = study
        self.scale = scale
        self.cache = cache
        self.trainings = Trainings(study, scale, cache)
        self._kernels: dict[tuple[int, tuple[Any, ...]], tuple[Kernel, dict[str, Gram]]] = {}
        self._kernels_lock = threading.Lock()
        self._layers_locks: dict[Path, threading.Lock] = {}
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
        """The rows for training, validation and test."""
        return self.study.parts(self.scale)

    def kernel(self, seed: int, **changes: Any) -> Kernel:
        """Return the kernel of a seed, fitted to the training rows; `changes` are parameters."""
        with self._kernels_lock:
            return self._fitted(seed, changes)[0]

    def gram(self, seed: int, part: str, **changes: Any) -> Gram:
        """Return the Gram matrix of a seed's kernel on a part of the data, prepared once."""
        with self._kernels_lock:
            kernel, grams = self._fitted(seed, changes)
            if part not in grams:
                grams[part] = kernel.on(self.parts[part].X)
            return grams[part]

    def _fitted(self, seed: int, changes: dict[str, Any]) -> tuple[Kernel, dict[str, Gram]]:
        """Return a fitted kernel and its Gram matrices so far; the caller holds the lock."""
        key = seed, tuple(sorted(changes.items()))
        if key not in self._kernels:
            # A kernel of the paper's size takes 175 MB. Seeds come in turn, those of the networks
            # in training before that of the run that is being measured.
            seeds = {seed, *[other for other, _ in self._kernels][-1:]}
            self._kernels = {k: v for k, v in self._kernels.items() if k[0] in seeds}
            kernel = self.study.kernel(**(dict(self.scale.kernel) | changes), random_state=seed)
            with warnings.catch_warnings():
                # Every result states how many mixtures converged.
                warnings.filterwarnings("ignore", ".*did not converge", UserWarning)
                self._kernels[key] = kernel.fit(self.parts["train"].X), {}
        return self._kernels[key]

    # --- networks ----------------------------------------------------------------------------

    def train(
        self, what: NetworkSpec | Training, callbacks: Sequence[Callback] = ()
    ) -> DeepKernelizedAutoencoder:
        """Return the trained network: from the cache, from a checkpoint, or from the start."""
        training = what if isinstance(what, Training) else self.trainings.of(what)
        if training.is_done:
            return _load(training.path)
        lower = None if training.below is None else self._pretrain(training.below, callbacks)
        return self._fit(training, callbacks, lower)

    def describe(self, training: Training, model: DeepKernelizedAutoencoder) -> dict[str, Any]:
        """Return what a result file says of a network."""
        history = list(model.history_)
        if training.below is not None and training.below.is_done:
            history = [*_load(training.below.path).history_, *history]
        return {
            "config": training.config["network"] | {"params": training.config["params"]},
            "hash": training.hash,
            "layers": training.layer_sizes,
            **_read_note(training.path.with_suffix(".json")),
            "history": _columns(history),
        }

    def _pretrain(self, below: Training, callbacks: Sequence[Callback]) -> Autoencoder:
        """Return the layers below a code, pretrained."""
        if not below.is_done:
            with self._layers_locks.setdefault(below.path, threading.Lock()):  # many need the same
                if not below.is_done:
                    self._fit(below, callbacks)
        return cast(Autoencoder, _load(below.path).network_)

    def _fit(
        self, training: Training, callbacks: Sequence[Callback], lower: Autoencoder | None = None
    ) -> DeepKernelizedAutoencoder:
        """Train a model and keep it; its checkpoint goes when the model is on disk.

        Whatever ends the training early is raised before anything is written.
        """
        model: DeepKernelizedAutoencoder = clone(training.estimator)
        gram = None
        if training.spec is not None:
            gram = self.gram(training.spec.seed, "train")
            model.kernel = "precomputed"  # its file must not name another kernel
        stack = model.network
        model.set_params(
            network=stack if lower is None else StackOnLayers(stack, lower),
            callbacks=list(callbacks),
        )
        checkpoint, start = training.path.with_suffix(".checkpoint"), time.perf_counter()
        note: dict[str, Any] = {
            "resumed": has_checkpoint(checkpoint),
            "commit": provenance.commit(),
        }
        model.fit(self.parts["train"].X, gram=gram, checkpoint=checkpoint)
        note["seconds"] = round(time.perf_counter() - start, 1)
        # As it comes from the cache: neither what watched it nor what it started from.
        model.set_params(callbacks=None, network=stack)
        with replacing(training.path.with_suffix(".json")) as temporary:
            temporary.write_text(json.dumps(note), encoding="utf-8")
        save(model, training.path, kernel=False)  # mixtures are 130 MB
        remove_checkpoint(checkpoint)
        return model


def _load(path: Path) -> DeepKernelizedAutoencoder:
    """Return a model from the cache."""
    try:
        model: DeepKernelizedAutoencoder = load(path)
    except ValueError as error:
        raise ValueError(f"{error}; it is of the cache: delete it to train it anew") from error
    return model


def _read_note(path: Path) -> dict[str, Any]:
    """Return how a network was made."""
    try:
        note: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(
            f"{path} in the cache is damaged ({error}): delete it with its network, "
            "which is then trained anew"
        ) from error
    return note


def _columns(history: list[dict[str, Any]]) -> dict[str, dict[str, list[float]]]:
    """Return the history by phase and loss, to 5 digits: a tenth of the size of the records."""
    columns: dict[str, dict[str, list[float]]] = {}
    for record in history:
        phase = columns.setdefault(str(record["phase"]), {})
        for name, value in record.items():
            if name not in ("phase", "epoch"):
                phase.setdefault(name, []).append(float(f"{value:.5g}"))
    return columns
