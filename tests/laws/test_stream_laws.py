"""Maps that learn in steps: partial_fit, warm starts, checkpoints, and iterables of batches."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch.utils.data import DataLoader, TensorDataset

from dkae import load, save
from dkae.kernels import PairwiseKernel, Precomputed, ideal_kernel
from dkae.training import Callback
from dkae.training.loaders import is_loader
from dkae.training.optimization import endless_factor
from tests.laws.maps import WIDTH, D, N, P, X, Y, assert_same_map, every_trained_map, make
from tests.laws.maps import make_of_all_rows as make_all

pytestmark = pytest.mark.filterwarnings("ignore:the (codes|reconstructions) are")


def network_of(model):
    return model.decoder_.network_ if hasattr(model, "decoder_") else model.network_


def weights(model) -> dict[str, torch.Tensor]:
    return {name: t.clone() for name, t in network_of(model).state_dict().items()}


def moved(before, after) -> set[str]:
    return {name for name in before if not torch.equal(before[name], after[name])}


def still(name: str) -> dict[str, object]:
    """Return parameters with which weights stay where they are."""
    return {
        "autoencoder": {"optimization__learning_rate_init": 1e-12, "decoder_max_iter": 0},
        "nystroem, mlp": {"decoder__optimization__learning_rate_init": 1e-12},
    }[name]


class Failing(Callback):
    def on_step_end(self, trainer, phase):
        if trainer.step == 2:
            raise RuntimeError("stop here")


class Watching(Callback):
    """Notes the inputs of each batch."""

    def on_train_begin(self, trainer):
        source = getattr(trainer.source, "source", trainer.source)
        draw, self.ids = source.draw_ids, []

        def watched(k):
            self.ids.append(ids := draw(k))
            return ids

        source.draw_ids = watched


# --- parts ----------------------------------------------------------------------------------------


@every_trained_map
def test_a_pass_sees_each_row_once_and_later_ones_leave_the_map_s_units(name):
    watching = Watching()
    model = make(name, callbacks=[watching], standardize=True).partial_fit(X)
    first = np.concatenate(watching.ids)
    assert sorted(first) == list(range(N))
    gamma, units, before = model.kernel_.gamma_, (model.center_, model.scale_), weights(model)
    codes = model.transform(X)
    model.partial_fit(3 * X + 1)
    assert not np.array_equal(np.concatenate(watching.ids), first)
    assert model.kernel_.gamma_ == gamma
    assert (model.center_ is units[0], model.scale_ is units[1]) == (True, True)
    assert moved(before, weights(model))
    if name != "autoencoder":  # its codes are computed
        np.testing.assert_array_equal(model.transform(X), codes)
    assert [record["epoch"] for record in model.history_] == [1, 2]


@pytest.mark.parametrize(("n", "k", "sizes"), [(5, 2, [3, 2]), (7, 3, [3, 2, 2]), (3, 2, [3])])
def test_no_batch_of_a_pass_has_one_row(n, k, sizes):
    watching = Watching()
    make("autoencoder", batch_size=k, callbacks=[watching]).partial_fit(X[:n])
    assert [len(ids) for ids in watching.ids] == sizes


@every_trained_map
def test_passes_learn(name):
    model = make(name)
    losses = [model.partial_fit(X).history_[-1]["reconstruction_loss"] for _ in range(60)]
    assert losses[-1] < 0.8 * losses[0]


@every_trained_map
def test_passes_after_fit_and_after_a_file(name, tmp_path):
    model = make(name).fit(X)
    n, before = len(model.history_), weights(model)
    save(model, tmp_path / "model")
    other = load(tmp_path / "model")
    for one in (model, other):
        one.partial_fit(X)
        assert len(one.history_) == n + 1
        assert moved(before, weights(one))
    assert_same_map(model, other)


@every_trained_map
def test_the_optimizer_goes_on_from_pass_to_pass(name):
    model = make(name).partial_fit(X)
    copied, fresh = (pickle.loads(pickle.dumps(model)) for _ in range(2))
    fresh._continued = None  # as of a file
    after = [weights(one.partial_fit(X)) for one in (model, copied, fresh)]
    assert not moved(after[0], after[1])
    assert moved(after[0], after[2])


def test_the_rate_of_passes_rises_and_falls_without_an_end():
    factors = [endless_factor(step) for step in range(5000)]
    assert factors[0] == pytest.approx(1 / 50)
    assert max(factors) == pytest.approx(factors[49])
    assert all(a > b for a, b in pairwise(factors[49:]))
    assert endless_factor(100_000) > 0.05


def test_passes_of_a_gram_matrix_and_of_labels():
    model = make("autoencoder").partial_fit(X, gram=P).partial_fit(X[:30], gram=P[:30, :30])
    with pytest.raises(ValueError, match="no kernel that it could evaluate on X"):
        model.partial_fit(X)
    assert make("autoencoder", kernel=ideal_kernel(Y)).partial_fit(X, Y).history_


@every_trained_map
def test_a_pass_that_fails_changes_nothing(name):
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        make(name).partial_fit(X[:1])
    model = make(name).partial_fit(X)
    expected = pickle.loads(pickle.dumps(model)).partial_fit(X)
    for rows, message in ((X[:1], "needs at least 2"), (X[:, :5], "X has 5 features")):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(rows)
    model.set_params(callbacks=[Failing()], warm_start=True)
    for call in (model.partial_fit, model.fit):
        with pytest.raises(RuntimeError, match="stop here"):
            call(X)
    assert_same_map(model.set_params(callbacks=None).partial_fit(X), expected)


def test_closed_forms_learn_from_all_rows_at_once():
    model = make("nystroem, ridge").fit(X)
    with pytest.raises(AttributeError) as caught:
        model.partial_fit(X)
    assert "learns from all rows at once" in str(caught.value.__cause__)
    with pytest.raises(ValueError, match="iterable of batches needs one that learns in steps: set"):
        model.fit(Batches(X))
    with pytest.raises(
        ValueError, match="checkpoint was passed, but the decoder, RidgeDecoder, is"
    ):
        model.fit(X, checkpoint="c")
    model = make("nystroem, ridge", decoder="auto")
    assert clone(model).partial_fit(X).history_  # "mlp" here
    with pytest.warns(UserWarning, match="KernelRidgeDecoder learns from all rows at once: partia"):
        model.fit(X).partial_fit(X)


# --- warm starts and checkpoints ------------------------------------------------------------------


@every_trained_map
def test_a_warm_start_goes_on_from_the_present_weights(name):
    model = make_all(name, warm_start=True).fit(X)
    before, gamma = weights(model), model.kernel_.gamma_
    if name != "autoencoder":  # a decoder of another kind is fitted anew
        other = pickle.loads(pickle.dumps(model)).set_params(decoder="ridge").fit(X)
        assert type(other.decoder_).__name__ == "RidgeDecoder"
    model.set_params(**still(name)).fit(2 * X)
    assert model.kernel_.gamma_ == gamma
    for tensor, other in zip(before.values(), weights(model).values(), strict=True):
        torch.testing.assert_close(tensor, other, atol=1e-6, rtol=1e-6)
    model.fit(Batches(X))
    for tensor, other in zip(before.values(), weights(model).values(), strict=True):
        torch.testing.assert_close(tensor, other, atol=1e-6, rtol=1e-6)
    assert model.set_params(warm_start=False).fit(2 * X).kernel_.gamma_ != gamma


@pytest.mark.parametrize("go_on", ["partial_fit", "fit"])
@every_trained_map
def test_a_map_that_goes_on_keeps_its_width(name, go_on):
    model = make(name, warm_start=True).fit(X).set_params(n_components=4)
    with pytest.raises(ValueError, match="n_components=4, but the map that is to go on has 3"):
        getattr(model, go_on)(X)


@every_trained_map
def test_a_checkpoint_goes_on_to_the_very_result(name, tmp_path):
    expected = make(name).fit(X)
    with pytest.raises(RuntimeError, match="stop here"):
        make(name, callbacks=[Failing()]).fit(X, checkpoint=tmp_path / "state")
    assert_same_map(make(name).fit(X, checkpoint=tmp_path / "state"), expected)


# --- iterables of batches -------------------------------------------------------------------------


class Batches:
    """An iterable that can be iterated again, and counts how often."""

    def __init__(self, *batches):
        self.batches, self.n = batches, 0

    def __iter__(self):
        self.n += 1
        return iter(self.batches)


def parts(form):
    return [form(torch.from_numpy(X[i : i + 10])) for i in range(0, N, 10)]


FORMS = {
    "arrays": lambda x: x.numpy(),
    "(rows,)": lambda x: (x,),
    "[rows, labels]": lambda x: [x, torch.zeros(len(x))],
}


@every_trained_map
def test_batches_in_any_form(name):
    batches = Batches(*parts(lambda x: x))
    plain = make(name).fit(batches)
    assert batches.n >= 2
    assert not any("validation_loss" in record for record in plain.history_)
    for form in FORMS.values():
        assert_same_map(make(name).fit(Batches(*parts(form))), plain)


def test_batches_that_come_once():
    one = {"max_iter": 1, "decoder_max_iter": 0, "steps_per_epoch": 6}
    once = make("autoencoder", **one).fit(iter(parts(lambda x: x)))
    assert_same_map(make("autoencoder", **one).fit(Batches(*parts(lambda x: x))), once)
    with pytest.raises(ValueError, match="X ended after 6 batches, before the training did: pass"):
        make("autoencoder").fit(iter(parts(lambda x: x)))


def test_a_loader_teaches_what_an_array_does():
    generator = torch.Generator().manual_seed(0)
    loader = DataLoader(TensorDataset(torch.from_numpy(X)), 15, shuffle=True, generator=generator)
    params = {"max_iter": 60, "steps_per_epoch": "samples"}
    ours, other = (make("autoencoder", **params).fit(rows) for rows in (loader, X))
    assert ours.score(X) == pytest.approx(other.score(X), abs=0.03)
    assert len(ours.history_) == 61


def test_what_is_an_iterable_of_batches_and_who_takes_it():
    for batches in (Batches(X), iter([X]), DataLoader(TensorDataset(torch.from_numpy(X)))):
        assert is_loader(batches)
    for other in (X, X.tolist(), (X,), "rows.csv", {"a": 1}, torch.from_numpy(X), None, 3):
        assert not is_loader(other)
    model = make("nystroem, mlp").fit(X)
    for call in (model.partial_fit, model.transform, make("kernel PCA").fit):
        with pytest.raises(ValueError, match="iterable of batches, which only fit of a map"):
            call(iter([X]))
    # The last batch of a round may have one row.
    assert make("autoencoder", input_noise=0.5).fit(Batches(X[:40], X[40:41])).n_iter_ == 2


WISHES = {
    "y": ({}, {"y": Y}),
    "gram": ({}, {"gram": P}),
    "checkpoint": ({}, {"checkpoint": "c"}),
    "validation_fraction": ({"validation_fraction": 0.1}, {}),
    "missing='mask'": ({"missing": "mask"}, {}),
    "steps_per_epoch='pairs'": ({"steps_per_epoch": "pairs"}, {}),
}


@pytest.mark.parametrize("wish", WISHES)
def test_what_needs_rows_that_can_be_read_again(wish):
    params, arguments = WISHES[wish]
    with pytest.raises(ValueError, match=f"iterable of batches, and {wish} needs rows that can be"):
        make("autoencoder", **params).fit(Batches(X), **arguments)


GAPPY = np.where(X > 1, np.nan, X)
BAD_BATCHES = {
    "nothing": ([], "X is an iterable without batches"),
    "a row": ([X[0]], "batch 0 of X is a ndarray: expected rows"),
    "a table of names": ([{"x": X}], "batch 0 of X is a dict: expected rows"),
    "three": ([(X, X, X)], "batch 0 of X is a tuple: expected rows"),
    "another width": ([X[:20], X[:20, :5]], r"batch 1 of X has rows of shape \(5,\), and the firs"),
    "a gap": ([X[:20], GAPPY], "contains NaN"),
    "one row": ([X[:1]], "minimum of 2 is required"),
}


@pytest.mark.parametrize("case", BAD_BATCHES)
def test_bad_batches(case, monkeypatch):
    batches, message = BAD_BATCHES[case]
    with pytest.raises(ValueError, match=message):
        make("autoencoder").fit(Batches(*batches))
    monkeypatch.setattr("dkae.training.loaders.N_HEAD_ROWS", 30)
    if len(batches) == 2:  # the second one is met in training
        with pytest.raises(ValueError, match=r"batch 1 of X (has rows of shape|contains NaN or)"):
            make("autoencoder").fit(Batches(X[:40], batches[1]))


def test_batches_need_a_kernel_for_new_rows_and_a_length_if_they_are_counted():
    with pytest.raises(
        ValueError, match="new rows need a kernel that can be evaluated, and the mo"
    ):
        make("autoencoder", kernel=Precomputed(P, rows=X)).fit(Batches(X))
    with pytest.raises(ValueError, match="steps_per_epoch='samples' needs the number of batches"):
        make("autoencoder", steps_per_epoch="samples").fit(iter([X]))
    model = make("autoencoder", kernel=PairwiseKernel("rbf", gamma=0.1)).fit(Batches(X))
    assert model.transform(X).shape == (N, WIDTH)
    assert model.inverse_transform(model.transform(X)).shape == (N, D)
