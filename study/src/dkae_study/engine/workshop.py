"""What the runs of a study share: data, kernels, pretrained layers and networks, each made once.

Networks are kept in a cache folder under the hash of what they depend on, so that a sweep over λ
trains the layers that do not depend on λ once, two experiments with the same network train it once,
and a study that was interrupted does not begin anew.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from dkae.training.progress import Progress, Silence
from sklearn.base import clone

from dkae import DeepKernelizedAutoencoder
from dkae._runtime.files import replacing
from dkae.networks import Autoencoder
from dkae.persistence import load, save
from dkae_study.declaration import NetworkSpec, Part, Scale, Study
from dkae_study.engine import provenance
from dkae_study.engine.kernels import SharedKernel
from dkae_study.engine.trainings import Training, Trainings

__all__ = ["Workshop"]

Result = TypeVar("Result")


class Workshop:
    """Makes data, kernels and networks of a study at a scale, or takes them from the cache.

    Several threads may train networks at once, but no two of them the same one.

    Parameters
    ----------
    study : Study
        What is made.
    scale : Scale
        How large everything is.
    cache : Path
        Folder for what can be used again.
    """

    def __init__(self, study: Study, scale: Scale, cache: Path) -> None:
        self.study = study
        self.scale = scale
        self.cache = cache
        self.trainings = Trainings(study, scale, cache)
        self._kernels: dict[tuple[int, tuple[Any, ...]], SharedKernel] = {}
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

    def kernel(self, seed: int, **changes: Any) -> SharedKernel:
        """Return the kernel of a seed, for the training rows; `changes` are other parameters."""
        key = seed, tuple(sorted(changes.items()))
        with self._kernels_lock:
            if key not in self._kernels:
                # A kernel of the paper's size takes 175 MB. Seeds come in turn, those of the
                # networks in training before that of the run that is being measured.
                seeds = {seed, *[other for other, _ in self._kernels][-1:]}
                self._kernels = {k: v for k, v in self._kernels.items() if k[0] in seeds}
                params = dict(self.scale.kernel) | changes
                kernel = self.study.kernel(**params, random_state=seed)
                rows = {name: part.X for name, part in self.parts.items()}
                self._kernels[key] = SharedKernel(kernel, rows)
            return self._kernels[key]

    def gram(self, seed: int, part: str, **changes: Any) -> Any:
        """Return the Gram matrix of a seed's kernel on a part of the data, prepared once."""
        return self.kernel(seed, **changes).on(self.parts[part].X)

    # --- networks ----------------------------------------------------------------------------

    def train(
        self, what: NetworkSpec | Training, progress: Progress | None = None
    ) -> DeepKernelizedAutoencoder:
        """Return the trained network: from the cache, from a checkpoint, or from the start."""
        training = what if isinstance(what, Training) else self.trainings.of(what)
        if training.is_done:
            return _load(training.path)
        progress = Silence() if progress is None else progress
        lower = None if training.below is None else self._pretrain(training.below, progress)
        return self._fit(training, progress, lower)

    def describe(self, training: Training, model: DeepKernelizedAutoencoder) -> dict[str, Any]:
        """Return what a result file says of a network."""
        history = list(model.history_)
        if training.below is not None and training.below.is_done:
            lower = _load(training.below.path).history_
            # In a cache of an older version they have an L_c, which is to another kernel.
            names = ("phase", "loss", "reconstruction_loss")
            history = [*({name: record[name] for name in names} for record in lower), *history]
        return {
            "config": training.config["network"] | {"params": training.config["params"]},
            "hash": training.hash,
            "layers": training.layer_sizes,
            **_read_note(training.path.with_suffix(".json")),
            "history": _columns(history),
        }

    def _pretrain(self, below: Training, progress: Progress) -> Autoencoder:
        """Return the layers below a code, pretrained."""
        if not below.is_done:
            with self._layers_locks.setdefault(below.path, threading.Lock()):  # many need the same
                if not below.is_done:
                    return self._fit(below, progress).network_
        return _load(below.path).network_

    def _fit(
        self, training: Training, progress: Progress, lower: Autoencoder | None = None
    ) -> DeepKernelizedAutoencoder:
        """Train a model and keep it; its checkpoint goes when the model is on disk."""
        model: DeepKernelizedAutoencoder = clone(training.estimator)
        if training.spec is not None:
            model.set_params(kernel=self.kernel(training.spec.seed))
        checkpoint, start = training.path.with_suffix(".checkpoint"), time.perf_counter()
        note: dict[str, Any] = {"resumed": checkpoint.exists(), "commit": provenance.commit()}
        model.verbose = progress
        model.fit(self.parts["train"].X, checkpoint=checkpoint, pretrained=lower)
        model.verbose = 0
        note["seconds"] = round(time.perf_counter() - start, 1)
        with replacing(training.path.with_suffix(".json")) as temporary:
            temporary.write_text(json.dumps(note), encoding="utf-8")
        save(model, training.path)
        checkpoint.unlink(missing_ok=True)
        return model


def _load(path: Path) -> DeepKernelizedAutoencoder:
    """Return a model from the cache."""
    try:
        return load(path)
    except ValueError as error:
        raise ValueError(f"{error}; it is of the cache: delete it to train it anew") from error


def _read_note(path: Path) -> dict[str, Any]:
    """Return how a network was made."""
    try:
        note: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(
            f"{path} in the cache is damaged ({error}): delete it with the network beside it, "
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
