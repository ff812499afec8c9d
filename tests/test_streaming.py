"""Rows that come in parts: partial_fit, warm_start, and iterables of batches."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
import torch
from dkae.streaming import is_loader
from dkae.training.starts import kernel_values, weight_of
from torch.utils.data import DataLoader, TensorDataset

from dkae import DeepKernelizedAutoencoder, load, save
from dkae.kernels import PairwiseKernel, Precomputed, ideal_kernel
from dkae.networks import Autoencoder
from dkae.training.optimization import endless_factor
from tests.nets import Noisy

RNG = np.random.default_rng(0)
X = (RNG.random((240, 5)) @ RNG.random((5, 12))).astype(np.float32)
NETWORKS = pytest.mark.parametrize("network", ["stacked", "kernel_layer", Noisy])


def make(**params):
    defaults = {
        "n_components": 4, "hidden_layer_sizes": (10,), "batch_size": 40, "max_iter": 2,
        "steps_per_epoch": 6, "decoder_max_iter": 1, "random_state": 0, "network": "stacked",
    }  # fmt: skip
    return DeepKernelizedAutoencoder(**defaults | params)


def weights(model):
    return {name: t.clone() for name, t in model.network_.state_dict().items()}


def moved(before, after):
    return {name for name in before if not torch.equal(before[name], after[name])}


# --- passes ---------------------------------------------------------------------------------------


@NETWORKS
def test_a_pass_sees_each_row_once(network, monkeypatch):
    from dkae.training.batches import PassSource

    seen, draw = [], PassSource._draw_rows

    def watched(self, k):
        rows = draw(self, k)
        seen.append(rows)
        return rows

    monkeypatch.setattr(PassSource, "_draw_rows", watched)
    model = make(network=network, max_iter="auto").partial_fit(X[:230])
    assert sorted(np.concatenate(seen)) == list(range(230))
    assert {len(rows) for rows in seen} <= {38, 39}
    assert len(model.history_) == 1
    order = np.concatenate(seen)
    seen.clear()
    model.partial_fit(X[:230])
    assert not np.array_equal(np.concatenate(seen), order)


@NETWORKS
def test_later_passes_leave_kernel_and_scaling(network):
    model = make(network=network, max_iter="auto").partial_fit(X)
    gamma, before = model.kernel_.gamma_, weights(model)
    mean = None if model.scaling_ is None else model.scaling_.mean.clone()
    model.partial_fit(3 * X + 1)
    assert model.kernel_.gamma_ == gamma
    assert mean is None or torch.equal(model.scaling_.mean, mean)
    changed = moved(before, weights(model))
    if network == "kernel_layer":  # its codes are computed
        assert changed
        assert all(name.startswith("decoder") or name == "weight" for name in changed)
    else:
        assert len(changed) > 2
    assert [record["epoch"] for record in model.history_] == [1, 2]


def test_codes_of_a_kernel_layer_are_the_nystroem_features_of_all_rows_seen():
    model = make(network="kernel_layer", max_iter="auto")
    for part in np.array_split(X, 3):
        model.partial_fit(part)
    layer = model.network_
    landmarks = layer.similarity.rows.numpy()
    assert len(landmarks) == 80  # of the first part alone
    gram, values = (kernel_values(layer.similarity, rows) for rows in (landmarks, X))
    n_kernel = layer.weight.shape[1]
    expected = values @ weight_of(gram, [values], n_kernel)
    codes = values @ layer.weight.detach().double().numpy()
    np.testing.assert_allclose(codes @ codes.T, expected @ expected.T, atol=2e-5)
    first = make(network="kernel_layer", max_iter="auto").partial_fit(X[:80]).network_
    old = values @ first.weight.detach().double().numpy()
    assert np.abs(old @ old.T - expected @ expected.T).max() > 1e-3
    # They have moved, but are not turned around: the decoder knows them.
    assert np.linalg.norm(codes - old) < 0.4 * np.linalg.norm(old)


def test_codes_of_fit_and_of_a_file_stay(tmp_path):
    model = make(network="kernel_layer", max_iter="auto").fit(X)
    before = model.network_.weight.clone()
    assert torch.equal(model.partial_fit(3 * X).network_.weight, before)


def test_passes_learn():
    model = make(max_iter="auto", alignment_weight=0.3)
    losses = [model.partial_fit(X).history_[-1]["loss"] for _ in range(40)]
    assert losses[-1] < 0.5 * losses[0]
    assert model.score(X) > make(max_iter="auto").partial_fit(X).score(X)


@NETWORKS
def test_passes_after_fit_and_after_a_file(network, tmp_path):
    model = make(network=network).fit(X)
    n = len(model.history_)
    before = weights(model)
    save(model, tmp_path / "model.safetensors")
    given = {"network": Noisy((12,), 4)} if network is Noisy else {}
    other = load(tmp_path / "model.safetensors", **given)
    for one in (model, other):
        one.partial_fit(X)
        assert len(one.history_) == n + 1
        assert moved(before, weights(one))
    assert not moved(weights(model), weights(other))


def test_the_optimizer_goes_on():
    once = make(max_iter="auto").partial_fit(X)
    copied = pickle.loads(pickle.dumps(once))
    once.partial_fit(X)
    copied.partial_fit(X)
    assert not moved(weights(once), weights(copied))
    steps = once._continued["optimizer"]["state"][0]["step"]
    assert int(steps) == 12
    fresh = pickle.loads(pickle.dumps(once))
    fresh._continued = None
    assert moved(weights(once.partial_fit(X)), weights(fresh.partial_fit(X)))
    once.fit(X)
    assert once._continued is None


def test_the_rate_rises_and_falls_without_an_end():
    factors = [endless_factor(step) for step in range(5000)]
    assert factors[0] == pytest.approx(1 / 50)
    assert max(factors) == pytest.approx(factors[49])
    assert all(a > b for a, b in pairwise(factors[49:]))
    assert endless_factor(100_000) > 0.05
    model = make(max_iter="auto", learning_rate_init=0.1).partial_fit(X)
    (lr,) = model._continued["schedule"]["_last_lr"]
    assert lr == pytest.approx(0.1 * endless_factor(6))


def test_a_pass_of_a_model_of_a_gram_matrix():
    gram = PairwiseKernel().fit(X).gram(X)
    model = make().partial_fit(X, gram=gram)
    model.partial_fit(X[:100], gram=gram[:100, :100])
    with pytest.raises(ValueError, match="no kernel that it could evaluate on X"):
        model.partial_fit(X)


def test_labels_reach_the_kernel_at_the_first_pass():
    y = np.arange(240) % 3
    model = make(kernel=ideal_kernel(y)).partial_fit(X, y)
    assert model.history_


def test_bad_passes():
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        make().partial_fit(X[:1])
    model = make().partial_fit(X)
    before = weights(model)
    with pytest.raises(ValueError, match="1 row: a pass of partial_fit needs at least 2"):
        model.partial_fit(X[:1])
    with pytest.raises(ValueError, match="X has 11 features"):
        model.partial_fit(X[:, :11])
    hole = X.copy()
    hole[3, 3] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        model.partial_fit(hole)
    assert not moved(before, weights(model))
    assert len(model.history_) == 1


def test_a_pass_that_fails_leaves_the_optimizer():
    class Failing:
        def on_step_end(self, trainer, phase):
            if trainer.step == 3:
                raise RuntimeError("stop here")

    model = make(max_iter="auto").partial_fit(X)
    other = pickle.loads(pickle.dumps(model))
    with pytest.raises(RuntimeError, match="stop here"):
        model.set_params(callbacks=[Failing()]).partial_fit(X)
    model.set_params(callbacks=None).partial_fit(X)
    assert not moved(weights(model), weights(other.partial_fit(X)))


@pytest.mark.parametrize(("n", "k", "sizes"), [(5, 2, [3, 2]), (7, 3, [3, 2, 2]), (3, 2, [3])])
def test_no_batch_of_a_pass_has_one_row(n, k, sizes, monkeypatch):
    from dkae.training.batches import PassSource

    seen, draw = [], PassSource._draw_rows

    def watched(self, size):
        seen.append(len(rows := draw(self, size)))
        return rows

    monkeypatch.setattr(PassSource, "_draw_rows", watched)
    make(batch_size=k).partial_fit(X[:n])
    assert seen == sizes


@pytest.mark.parametrize("go_on", ["partial_fit", "fit"])
def test_a_network_that_goes_on_keeps_its_width(go_on):
    model = make(warm_start=True).fit(X).set_params(n_components=3)
    with pytest.raises(ValueError, match="n_components=3, but the network that is to go on has 4"):
        getattr(model, go_on)(X)


# --- warm starts ----------------------------------------------------------------------------------


@NETWORKS
def test_a_warm_start_goes_on_from_the_present_weights(network):
    model = make(network=network, warm_start=True).fit(X)
    before = {name: p.clone() for name, p in model.network_.named_parameters()}
    gamma = model.kernel_.gamma_
    model.set_params(learning_rate_init=1e-12, decoder_max_iter=0, early_stopping=False, max_iter=1)
    model.fit(2 * X)
    assert model.kernel_.gamma_ == gamma
    for name, tensor in model.network_.named_parameters():
        torch.testing.assert_close(tensor, before[name], atol=1e-6, rtol=1e-6)
    cold = make(network=network).set_params(**model.get_params()).set_params(warm_start=False)
    cold.fit(2 * X)
    assert cold.kernel_.gamma_ != gamma


def test_a_warm_start_with_batches():
    model = make(warm_start=True).fit(X)
    before = model.transform(X)
    model.set_params(learning_rate_init=1e-12, decoder_max_iter=0, max_iter=1)
    np.testing.assert_allclose(model.fit(Batches(X)).transform(X), before, atol=1e-5)


def test_a_warm_start_that_fails_leaves_the_model(monkeypatch):
    model = make(warm_start=True).fit(X)
    before = weights(model)

    class Failing:
        def on_epoch_end(self, trainer, phase, record):
            raise RuntimeError("stop here")

    model.set_params(callbacks=[Failing()])
    with pytest.raises(RuntimeError, match="stop here"):
        model.fit(X)
    assert not moved(before, weights(model))
    with pytest.raises(ValueError, match="X has 11 features"):
        model.fit(X[:, :11])


# --- iterables of batches -------------------------------------------------------------------------


class Batches:
    """An iterable that can be iterated again, and counts how often."""

    def __init__(self, *batches):
        self.batches, self.n = batches, 0

    def __iter__(self):
        self.n += 1
        return iter(self.batches)


def parts(form):
    return [form(torch.from_numpy(X[i : i + 40])) for i in range(0, 240, 40)]


FORMS = {
    "rows": lambda x: x,
    "arrays": lambda x: x.numpy(),
    "(rows,)": lambda x: (x,),
    "[rows, labels]": lambda x: [x, torch.zeros(len(x))],
}


@NETWORKS
@pytest.mark.parametrize("form", FORMS)
def test_batches_in_any_form(network, form):
    batches = Batches(*parts(FORMS[form]))
    model = make(network=network).fit(batches)
    assert batches.n >= 3  # twelve steps of end-to-end training alone are two rounds
    plain = make(network=network).fit(Batches(*parts(FORMS["rows"])))
    assert not moved(weights(model), weights(plain))
    assert model.transform(X).shape == (240, 4)
    assert not any("validation_loss" in record for record in model.history_)


@NETWORKS
def test_batches_that_come_once(network):
    model = make(network=network, max_iter=1, decoder_max_iter=0, steps_per_epoch=6)
    generator = (batch for batch in parts(FORMS["rows"]))
    model.fit(generator)
    again = make(network=network, max_iter=1, decoder_max_iter=0, steps_per_epoch=6)
    again.fit(Batches(*parts(FORMS["rows"])))
    assert not moved(weights(model), weights(again))
    with pytest.raises(ValueError, match="X ended after 6 batches, before the training did: pass"):
        make(network=network).fit(batch for batch in parts(FORMS["rows"]))


def test_a_loader_learns_what_an_array_teaches():
    generator = torch.Generator().manual_seed(0)
    loader = DataLoader(TensorDataset(torch.from_numpy(X)), 40, shuffle=True, generator=generator)
    params = {"max_iter": 20, "alignment_weight": 0.3, "steps_per_epoch": "samples"}
    ours, other = make(**params).fit(loader), make(**params).fit(X)
    assert ours.score(X) == pytest.approx(other.score(X), abs=0.01)
    assert len(ours.history_) == 21


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_the_last_batch_of_a_round_may_have_one_row(noise):
    batches = Batches(X[:40], X[40:41])
    assert make(input_noise=noise).fit(batches).n_iter_ == 2


def test_what_is_an_iterable_of_batches():
    assert is_loader(Batches(X))
    assert is_loader(iter([X]))
    assert is_loader(DataLoader(TensorDataset(torch.from_numpy(X))))
    for other in (X, X.tolist(), (X,), "rows.csv", {"a": 1}, torch.from_numpy(X), None, 3):
        assert not is_loader(other)


WISHES = {
    "y": ({}, {"y": np.zeros(3)}),
    "gram": ({}, {"gram": np.eye(3)}),
    "checkpoint": ({}, {"checkpoint": "c"}),
    "early_stopping=True": ({"early_stopping": True}, {}),
    "validation_fraction": ({"validation_fraction": 0.1}, {}),
    "distillation": ({"distillation": 1.0}, {}),
    "missing='mask'": ({"missing": "mask"}, {}),
    "steps_per_epoch='pairs'": ({"steps_per_epoch": "pairs"}, {}),
}


@pytest.mark.parametrize("wish", WISHES)
def test_what_needs_rows_that_can_be_asked_for_again(wish):
    params, arguments = WISHES[wish]
    with pytest.raises(ValueError, match=f"iterable of batches, and {wish} needs rows that can be"):
        make(**params).fit(Batches(X), **arguments)


BAD_BATCHES = {
    "nothing": ([], "X is an iterable without batches"),
    "a row": ([X[0]], "batch 0 of X is a ndarray: expected rows"),
    "a table of names": ([{"x": X}], "batch 0 of X is a dict: expected rows"),
    "three": ([(X, X, X)], "batch 0 of X is a tuple: expected rows"),
    "another width": (
        [X[:20], X[:20, :5]],
        r"batch 1 of X has rows of shape \(5,\), and the first",
    ),
    "a gap": ([X[:20], np.where(X > 1, np.nan, X)], "contains NaN"),
    "one row": ([X[:1]], "minimum of 2 is required"),
}


@pytest.mark.parametrize("case", BAD_BATCHES)
def test_bad_batches(case):
    batches, message = BAD_BATCHES[case]
    with pytest.raises(ValueError, match=message):
        make().fit(Batches(*batches))


def test_bad_batches_after_the_first(monkeypatch):
    monkeypatch.setattr("dkae.streaming.N_HEAD_ROWS", 30)
    with pytest.raises(ValueError, match=r"batch 1 of X has rows of shape \(5,\)"):
        make().fit(Batches(X[:40], X[:40, :5]))
    with pytest.raises(ValueError, match="batch 1 of X contains NaN or infinite values"):
        make().fit(Batches(X[:40], np.full_like(X[:40], np.nan)))


def test_kernels_of_known_rows_alone():
    with pytest.raises(ValueError, match="is of known rows alone, and X is an iterable of batches"):
        make(kernel=Precomputed(np.eye(240), rows=X)).fit(Batches(X))
    with pytest.raises(ValueError, match="steps_per_epoch='samples' needs the number of batches"):
        make(steps_per_epoch="samples").fit(iter([X]))


def test_a_network_of_trained_layers_can_be_streamed_to():
    layers = make().fit(X).network_
    model = make(network=layers).partial_fit(X)
    assert isinstance(model.network_, Autoencoder)
    assert moved(layers.state_dict(), weights(model))
