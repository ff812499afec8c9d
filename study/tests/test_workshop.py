"""What is shared is made once, and under the right name."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from dkae_study.declaration import NetworkSpec
from dkae_study.engine.trainings import Trainings
from dkae_study.engine.workshop import Workshop
from dkae_study.paper import PAPER

from dkae import DeepKernelizedAutoencoder
from dkae.kernels import ProbabilisticClusterKernel
from dkae.networks import Stack
from dkae.persistence import load
from dkae.training import Callback
from study.tests.helpers import SMOKE

NETWORK = NetworkSpec("paper", 0, 0.1, 8)


@pytest.fixture
def workshop(tmp_path) -> Workshop:
    return Workshop(PAPER, SMOKE, tmp_path)


def count_fits(monkeypatch) -> list[DeepKernelizedAutoencoder]:
    fits = []
    fit = DeepKernelizedAutoencoder.fit

    def counted(self, *args, **kwargs):
        fits.append(self)
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(DeepKernelizedAutoencoder, "fit", counted)
    return fits


def weights_of(model):
    return {name: w.numpy() for name, w in model.network_.state_dict().items()}


def test_parts_are_disjoint_and_of_the_size_of_the_scale(workshop):
    sizes = {name: part.X.shape for name, part in workshop.parts.items()}
    assert sizes == {"train": (600, 784), "validation": (200, 784), "test": (200, 784)}
    rows = {row.tobytes() for part in workshop.parts.values() for row in part.X}
    assert len(rows) == 1000
    assert all(len(part.X) == len(part.y) for part in workshop.parts.values())


def test_a_network_is_trained_once(workshop, monkeypatch):
    first = workshop.train(NETWORK)
    fits = count_fits(monkeypatch)
    again = Workshop(PAPER, SMOKE, workshop.cache).train(NETWORK)
    assert fits == []
    X = workshop.parts["test"].X
    assert np.array_equal(first.transform(X), again.transform(X))
    assert workshop.trainings.of(NETWORK).is_done


def test_layers_below_the_code_are_pretrained_once_for_a_seed(workshop, monkeypatch):
    fits = count_fits(monkeypatch)
    others = ({}, {"alignment_weight": 0.9}, {"n_components": 4})
    for network in (replace(NETWORK, **other) for other in others):
        phases = {record["phase"] for record in workshop.train(network).history_}
        assert phases == {"layer 4", "fine-tuning"}
    assert len(fits) == 4
    assert len(list(workshop.cache.glob("layers-*.safetensors"))) == 1
    workshop.train(replace(NETWORK, seed=1))
    assert len(list(workshop.cache.glob("layers-*.safetensors"))) == 2


def test_the_network_starts_from_the_shared_layers(workshop, monkeypatch):
    seen = []
    fit = DeepKernelizedAutoencoder.fit
    monkeypatch.setattr(
        DeepKernelizedAutoencoder,
        "fit",
        lambda self, *args, **kwargs: (seen.append(self.network), fit(self, *args, **kwargs))[1],
    )
    workshop.train(NETWORK)
    workshop.train(replace(NETWORK, alignment_weight=0.9))
    alone, first, second = seen
    assert isinstance(alone, Stack)
    (path,) = workshop.cache.glob("layers-*.safetensors")
    layers = load(path).network_
    assert [layer.config["n_out"] for layer in layers.layers] == list(SMOKE.hidden_layer_sizes)
    for network in (first, second):
        for a, b in zip(layers.parameters(), network.lower.parameters(), strict=True):
            assert np.array_equal(a.detach().numpy(), b.detach().numpy())


def test_a_network_is_as_if_it_came_from_the_cache(workshop):
    trained, loaded = workshop.train(NETWORK), workshop.train(NETWORK)
    for model in (trained, loaded):
        assert model.callbacks is None
        assert isinstance(model.network, Stack)
        assert model.kernel == "precomputed"
    assert trained.get_params().keys() == loaded.get_params().keys()


@pytest.mark.filterwarnings("ignore:training was interrupted")
def test_a_training_that_was_interrupted_is_not_kept(workshop):
    class Interrupted(Callback):
        def on_step_end(self, trainer, phase):
            raise KeyboardInterrupt

    for training in (workshop.trainings.of(NETWORK), workshop.trainings.of(NETWORK).below):
        with pytest.raises(KeyboardInterrupt):
            workshop.train(training, [Interrupted()])
        assert {path.suffix for path in workshop.cache.iterdir()} <= {".checkpoint", ".previous"}


def test_a_model_that_cannot_be_saved_is_not_lost(workshop, monkeypatch):
    monkeypatch.setattr("dkae.training.checkpoint.EVERY_SECONDS", 0)
    with monkeypatch.context() as patch:
        patch.setattr("dkae_study.engine.workshop.save", _no_space)
        with pytest.raises(OSError, match="No space left"):
            workshop.train(NetworkSpec("network", 0, 0.1, 8))
    assert len(list(workshop.cache.glob("network-*.checkpoint"))) == 1
    steps = []
    count = type("Count", (Callback,), {"on_step_end": lambda *_: steps.append(1)})()
    workshop.train(NetworkSpec("network", 0, 0.1, 8), [count])
    assert steps == []  # the last epoch was in the checkpoint
    assert list(workshop.cache.glob("*.checkpoint")) == []


def _no_space(model, path, **_):
    raise OSError("No space left on device")


def test_whatever_differs_has_another_hash(workshop, tmp_path):
    specs = [{"recipe": "network"}, {"seed": 1}, {"alignment_weight": 0.2}, {"n_components": 9}]
    specs = [NETWORK, *(replace(NETWORK, **change) for change in (*specs, {"input_noise": 0.5}))]
    scales = [
        {"n_train": 500},
        {"batch_size": 40},
        {"kernel": {**SMOKE.kernel, "max_components": 5}},
        {"schedules": SMOKE.schedules | {"paper": {"steps_per_epoch": 2}}},
        {"hidden_layer_sizes": (16,)},
    ]
    others = [Trainings(PAPER, replace(SMOKE, **change), tmp_path) for change in scales]
    hashes = [workshop.trainings.of(spec).hash for spec in specs]
    hashes += [trainings.of(NETWORK).hash for trainings in others]
    assert len(set(hashes)) == len(specs) + len(scales)


def test_posteriors_are_computed_once(workshop, monkeypatch):
    gram = workshop.gram(0, "train")
    assert len(gram) == SMOKE.n_train
    monkeypatch.setattr(ProbabilisticClusterKernel, "on", None)
    assert workshop.gram(0, "train") is gram
    assert gram.kernel is workshop.kernel(0)
    assert list(workshop.cache.iterdir()) == []


def cut(path):
    path.write_bytes(path.read_bytes()[:1000])


def test_a_damaged_network_is_named_with_the_remedy(workshop):
    workshop.train(NETWORK)
    (path,) = workshop.cache.glob("network-*.safetensors")
    cut(path)
    with pytest.raises(
        ValueError, match=rf"{path.name} is not .* of the cache: delete it to train"
    ):
        Workshop(PAPER, SMOKE, workshop.cache).train(NETWORK)


def test_threads_that_ask_at_once_share_their_kernel(workshop, monkeypatch):
    fits, fit = [], ProbabilisticClusterKernel.fit

    def slow(self, X):
        fits.append(self.random_state)
        time.sleep(0.1)  # until the other threads wait for it
        return fit(self, X)

    monkeypatch.setattr(ProbabilisticClusterKernel, "fit", slow)
    with ThreadPoolExecutor(4) as pool:
        grams = list(pool.map(workshop.gram, [0, 1, 0, 1], ["test"] * 4))
    assert sorted(fits) == [0, 1]
    assert grams[0] is grams[2]
    assert grams[1] is grams[3]


def test_an_alignment_loss_is_always_to_the_prior(workshop):
    """Layers that only reconstruct know nothing of it, and what is said of them has none."""
    history = workshop.describe(workshop.trainings.of(NETWORK), workshop.train(NETWORK))["history"]
    for i in (1, 2, 3):
        assert set(history[f"layer {i}"]) == {"loss", "reconstruction_loss"}
    assert "alignment_loss" in history["layer 4"]


def test_a_damaged_note_is_named_with_the_remedy(workshop):
    model = workshop.train(NETWORK)
    (path,) = workshop.cache.glob("network-*.json")
    path.write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match=rf"{path.name} in the cache is damaged .*: delete it"):
        workshop.describe(workshop.trainings.of(NETWORK), model)
