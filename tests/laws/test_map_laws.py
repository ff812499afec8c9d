"""What every map promises: the same bits, one kernel, honest scores, and rows in any form."""

from __future__ import annotations

import logging
import pickle
import warnings
from itertools import chain

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dkae import RowArray, load, save
from dkae._support.checks import draw_seed
from dkae.grams import Gram
from dkae.kernels import (
    ForestKernel,
    PairwiseKernel,
    Precomputed,
    ProbabilisticClusterKernel,
    TransformerKernel,
)
from dkae.training import Callback
from dkae.training.batches import split_rows
from tests.ids import plain_id
from tests.laws.maps import (
    MAPS,
    NEW,
    RNG,
    TRAINED,
    WIDTH,
    D,
    N,
    P,
    X,
    assert_same_map,
    every_map,
    every_trained_map,
    make,
    make_of_all_rows,
    results,
)
from tests.stores import Results, Store, on_disk

pytestmark = pytest.mark.filterwarnings("ignore:the (codes|reconstructions) are")


@pytest.fixture(scope="module")
def fitted():
    """Return one fitted model of each map; tests do not change them."""
    return {name: make(name).fit(X) for name in MAPS}


# --- the same bits --------------------------------------------------------------------------------


@every_map
def test_same_rows_and_seed_give_the_same_bits(name, fitted, tmp_path):
    model = fitted[name]
    again = make(name).fit(2 * X[:30]).fit(X)  # a fit leaves no trace of the one before
    save(model, tmp_path / "model")
    for other in (
        again,
        clone(model).fit(X),
        clone(again).set_params(random_state=np.random.RandomState(0)).fit(X),
        pickle.loads(pickle.dumps(model)),
    ):
        assert_same_map(other, model)
    loaded = load(tmp_path / "model")
    assert_same_map(loaded, model)
    assert_same_map(clone(loaded).fit(X), model)
    assert loaded.score(NEW) == model.score(NEW)
    assert repr(loaded).partition("  # ")[2] == repr(model).partition("  # ")[2]


@every_map
def test_defaults_of_torch_do_not_matter(name, fitted):
    torch.set_default_dtype(torch.float64)
    try:
        doubles = make(name).fit(X)
        assert_same_map(doubles, fitted[name])
    finally:
        torch.set_default_dtype(torch.float32)
    with torch.autocast("cpu"):
        assert_same_map(make(name).fit(X), fitted[name])


FORMS = {
    "list": np.ndarray.tolist,
    "table": lambda a: pd.DataFrame(a).add_prefix("feature"),
    "tensor": torch.tensor,
    "CSR": sparse.csr_array,
    "COO": sparse.coo_array,
    "CSC matrix": sparse.csc_matrix,
    "RowArray": RowArray,
    "RowArray in chunks": lambda a: RowArray(2 * a, scale=2),
    "store": Store,
    "Fortran": np.asfortranarray,
    "reversed": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "with gaps": lambda a: np.repeat(np.repeat(a, 2, axis=0), 3, axis=1)[::2, ::3],
    "read-only": lambda a: np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape),
    "other byte order": lambda a: a.astype(a.dtype.newbyteorder()),
    "not aligned": lambda a: np.frombuffer(b"x" + a.tobytes(), a.dtype, offset=1).reshape(a.shape),
    "on disk": None,
    "float64": lambda a: a.astype(np.float64),
}


#: The exact map keeps rows that are not of NumPy's float32 in float64.
FLOAT64 = {("kernel PCA", form) for form in ("list", "tensor", "other byte order", "float64")}


@pytest.mark.parametrize("form", FORMS)
@every_map
def test_rows_in_any_form_give_the_same_map(name, form, fitted, tmp_path):
    rows = on_disk(X, tmp_path / "X.npy") if form == "on disk" else FORMS[form](X)
    model, expected = make(name).fit(rows), fitted[name]
    if model.transform(rows).dtype == np.float64:
        assert (name, form) in FLOAT64
        np.testing.assert_allclose(np.abs(model.transform(rows)), np.abs(expected.transform(X)),
                                   rtol=1e-4, atol=1e-4)  # fmt: skip
        return
    for mine, other in zip(results(model, rows), results(expected, X), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-5)
        if form not in ("Fortran", "reversed", "with gaps"):  # whose sums have another order
            np.testing.assert_array_equal(mine, other)
    assert model.score(rows) == pytest.approx(expected.score(X), abs=1e-6)


# --- held-out rows --------------------------------------------------------------------------------


class Recorder(Callback):
    """Notes all weights after each step, by phase."""

    def on_train_begin(self, trainer):
        self.weights = []

    def on_phase_begin(self, trainer, phase):
        self.weights.append([])

    def on_step_end(self, trainer, phase):
        weights = torch.cat([p.detach().ravel() for p in phase.network.parameters()])
        self.weights[-1].append(weights)


LEARNED = (
    "landmarks_", "projection_", "linear_path_", "linear_center_", "center_", "scale_", "fill_"
)  # fmt: skip


@pytest.mark.parametrize(
    "params",
    [{}, {"standardize": True}, {"missing": "mask"}, {"kernel": "forest"}, {"kernel": "linear"}],
    ids=str,
)
@every_trained_map
def test_nothing_that_is_fitted_sees_held_out_rows(name, params):
    """Two fits to the same training rows; the rows that are held out have wild values."""
    own = {"pretrain_max_iter": 1, "validation_fraction": 0.2} if name == "autoencoder" else {}
    model = make(name, **params, **own)
    share = own.get("validation_fraction") or model.decoder.validation_fraction
    _, held_out = split_rows(N, share, np.random.default_rng(draw_seed(0)))
    assert 0 < len(held_out) < N / 2
    wild = X.copy()
    wild[held_out] = 1e3 * RNG.normal(size=(len(held_out), D)) + 7
    a, b = (clone(model).set_params(callbacks=[Recorder()]).fit(rows) for rows in (X, wild))
    losses = [m.history_[0]["validation_loss"] for m in (a, b)]
    assert losses[1] > 10 * losses[0]  # those are the rows
    steps, other_steps = (list(chain(*m.callbacks[0].weights)) for m in (a, b))
    assert len(steps) == len(other_steps) >= 6
    assert all(map(torch.equal, steps, other_steps))
    for learned in LEARNED:
        assert hasattr(a, learned) == hasattr(b, learned)
        np.testing.assert_array_equal(getattr(a, learned, None), getattr(b, learned, None))
    np.testing.assert_array_equal(a.kernel_.gram(X), b.kernel_.gram(X))
    np.testing.assert_array_equal(a.transform(X), b.transform(X))
    if name == "autoencoder":  # no one chooses an epoch by them
        assert_same_map(a, b, X)


# --- the kernel of the codes ----------------------------------------------------------------------


def centred_alignment(a, b) -> float:
    """Return A(HaH, HbH), from whole matrices in float64."""
    h = np.eye(len(a)) - 1 / len(a)
    a, b = h @ a.astype(float) @ h, h @ b.astype(float) @ h
    return float((a * b).sum() / (np.linalg.norm(a) * np.linalg.norm(b)))


@every_map
def test_gram_prior_and_score_are_their_formulas(name):
    model = make_of_all_rows(name).fit(X)
    codes, new = model.transform(X).astype(float), model.transform(NEW).astype(float)
    prior = rbf_kernel(X.astype(float), gamma=model.kernel_.gamma_)
    scale = model.kernel_scale_
    np.testing.assert_allclose(model.gram(X), scale * codes @ codes.T, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model.gram(NEW, X), scale * new @ codes.T, rtol=1e-4, atol=1e-5)
    assert isinstance(model.prior_gram(X), Gram)
    np.testing.assert_allclose(model.prior_gram(X).block(np.arange(N)), prior, atol=1e-5)
    expected = centred_alignment(codes @ codes.T, prior)
    assert 0.1 < expected < 1
    assert model.score(X) == pytest.approx(expected, abs=1e-5)
    assert model.score(X, gram=prior) == pytest.approx(expected, abs=1e-5)
    assert model.centered_alignment_ == pytest.approx(expected, abs=1e-5)
    # The paper's A, on all rows, of which there are few.
    a = (codes @ codes.T * prior).sum() / (np.linalg.norm(codes @ codes.T) * np.linalg.norm(prior))
    assert model.alignment_ == pytest.approx(a, abs=1e-5)
    if name != "kernel PCA":  # whose codes are not scaled
        best = (codes @ codes.T * prior).sum() / np.linalg.norm(codes @ codes.T) ** 2
        assert scale == pytest.approx(best, rel=1e-4)


@every_map
def test_a_constant_kernel_scores_0_and_is_told_of(name, fitted):
    assert fitted[name].score(X, gram=np.ones((N, N))) == 0
    assert fitted[name].score(np.repeat(X[:1], N, axis=0), gram=P) == 0  # constant codes
    model = make(name, kernel=lambda A, B: np.ones((len(A), len(B))))
    if name == "kernel PCA":
        with pytest.raises(ValueError, match="has no component of positive eigenvalue on these"):
            model.fit(X)
        return
    with pytest.warns(UserWarning, match="the kernel is constant on these rows, so that codes can"):
        model.fit(X)
    assert model.score(X) == 0


@every_map
def test_it_learns(name):
    budget = {"max_iter": 40, "steps_per_epoch": 20, "decoder_max_iter": 5}
    params = {"autoencoder": budget, "nystroem, mlp": {"decoder__max_iter": 20}}
    model = make(name, **params.get(name, {})).fit(X)
    assert model.score(NEW) > 0.5
    assert model.r2_ > 0.5
    assert np.square(model.inverse_transform(model.transform(NEW)) - NEW).mean() < 0.5 * X.var()


# --- rows come and go -----------------------------------------------------------------------------


@every_map
def test_results_are_written_where_they_are_wanted(name, fitted):
    model = fitted[name]
    codes, back = results(model, X)
    for call, rows, expected in (
        (model.transform, X, codes),
        (model.inverse_transform, codes, back),
    ):
        out = Results(expected.shape)
        assert call(rows, out=out) is out
        np.testing.assert_array_equal(out.rows, expected)
        with pytest.raises(ValueError, match=r"out has shape \(60, 1\): pass an array of shape"):
            call(rows, out=Results((N, 1)))
        with pytest.raises(TypeError, match=r"out='codes.npy' cannot be written to"):
            call(rows, out="codes.npy")


@every_map
def test_few_rows_are_read_at_a_time_and_parts_make_no_difference(name, fitted, monkeypatch):
    monkeypatch.setattr("dkae.rows.N_MAPPED_ROWS", 7)
    order = RNG.permutation(N)
    store, whole = Store(X[order]), results(fitted[name], X)
    for part, all_rows in zip(results(fitted[name], store), whole, strict=True):
        np.testing.assert_allclose(part, all_rows[order], rtol=1e-4, atol=1e-5)
    assert store.most <= 7


@every_map
def test_standardize_is_a_scaler_before_the_map(name):
    rows = X * np.float32([1, 10, 100, 1, 1, 1]) + 5
    mine = make_of_all_rows(name, standardize=True).fit(rows)
    other = make_pipeline(StandardScaler(), make_of_all_rows(name)).fit(rows)
    codes, back = results(mine, rows)
    expected = other.transform(rows)
    np.testing.assert_allclose(np.abs(codes), np.abs(expected), rtol=1e-2, atol=1e-2)
    scale = rows.std(axis=0)
    np.testing.assert_allclose(back / scale, other.inverse_transform(expected) / scale, atol=0.05)
    assert mine.score(rows) == pytest.approx(other.score(rows), abs=1e-3)


@every_map
def test_features_that_carry_the_kernel_are_named(name):
    rows = X * np.float32([1, 1, 1000, 1, 1, 1])
    with pytest.warns(
        UserWarning, match=r"sees 1 effective features of 6: feature 2 has .*Set sta"
    ):
        make(name).fit(rows)


@every_map
@pytest.mark.filterwarnings("ignore:.*(round-off|positive semi-definite|effective features)")
def test_digits_that_are_lost_are_warned_of(name):
    rows = X.astype(np.float64) + 1e6
    for form in (rows, RowArray(rows)):
        with pytest.warns(UserWarning, match="6 of 6 features of X range over less than 5e-05 of"):
            make(name).fit(form)
    constant = np.where(np.arange(D) < 3, 0.3, X)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*features of X range over")
        for others in (rows - 1e6, X + np.float64(100), constant):
            make(name).fit(others)


# --- gaps -----------------------------------------------------------------------------------------

IDS = np.arange(10)
GAPS = np.random.default_rng(3).random(X.shape) < 0.15
HOLED = np.where(GAPS, np.float32(np.nan), X)


@every_map
def test_gaps_count_as_means_and_are_filled(name, tmp_path):
    model = make_of_all_rows(name, missing="mask").fit(HOLED)
    np.testing.assert_allclose(model.fill_, np.nanmean(HOLED.astype(float), axis=0), rtol=1e-6)
    filled = np.where(GAPS, model.fill_, HOLED)
    for mine, other in zip(results(model, HOLED), results(model, filled), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-4)
        assert np.isfinite(mine).all()
    assert model.kernel_.gamma_ == pytest.approx(PairwiseKernel().fit(filled).gamma_, rel=1e-5)
    lazy = make_of_all_rows(name, missing="mask").fit(sparse.csr_array(HOLED))
    np.testing.assert_allclose(lazy.transform(Store(HOLED)), model.transform(HOLED), atol=1e-5)
    save(model, tmp_path / "model")
    assert_same_map(load(tmp_path / "model"), model, HOLED)
    assert make(name, missing="mask").__sklearn_tags__().input_tags.allow_nan
    assert not make(name).__sklearn_tags__().input_tags.allow_nan


@every_map
@pytest.mark.parametrize("cache_bytes", [None, 0])
@pytest.mark.parametrize(
    "kernel",
    [
        ForestKernel(n_estimators=7, random_state=0),
        ProbabilisticClusterKernel(3, 2, reg_covar=1e-2, random_state=0),
        TransformerKernel(RBFSampler(random_state=0).fit(X)),
    ],
    ids=plain_id,
)
def test_features_of_rows_with_gaps_are_those_of_filled_rows(name, kernel, cache_bytes):
    params = {"kernel": kernel, "cache_bytes": cache_bytes}
    model = make_of_all_rows(name, missing="mask", **params).fit(HOLED)
    filled = np.where(GAPS, model.fill_, HOLED)
    plain = make_of_all_rows(name, **params).fit(filled)
    grams = [m.transform(filled) @ m.transform(filled).T for m in (model, plain)]
    if name == "autoencoder":  # whose loss leaves the gaps out
        np.testing.assert_allclose(
            model.prior_gram(HOLED).block(IDS), plain.prior_gram(filled).block(IDS)
        )
    else:
        np.testing.assert_allclose(*grams, atol=2e-3 * np.abs(grams[1]).max())


@every_map
def test_a_kernel_that_takes_gaps_sees_them(name):
    seen = []

    def of_known_entries(A, B):
        seen.append(np.isnan(A).any())
        a, b = (np.nan_to_num(rows).astype(float) for rows in (A, B))
        return a @ b.T + (~np.isnan(A)).astype(float) @ (~np.isnan(B)).astype(float).T

    model = make(name, kernel=of_known_entries, missing="mask").fit(HOLED)
    expected = of_known_entries(HOLED, HOLED)
    np.testing.assert_allclose(model.prior_gram(HOLED).block(np.arange(N)), expected, rtol=1e-4)
    assert any(seen)
    assert np.isfinite(results(model, HOLED)[1]).all()


@every_map
def test_gaps_are_an_error_without_the_mask_and_infinity_always(name, fitted):
    for call in (make(name).fit, fitted[name].transform):
        with pytest.raises(
            ValueError, match=r"(?s)contains NaN.*With missing='mask' the model acc"
        ):
            call(HOLED)
    infinite = np.where(GAPS, np.float32(-np.inf), X)
    with pytest.raises(ValueError, match="Input X contains infinity"):
        make(name, missing="mask").fit(infinite)


# --- Grams and fitted kernels ---------------------------------------------------------------------


@every_map
def test_the_gram_of_a_kernel_does_what_the_kernel_does(name):
    kernel = PairwiseKernel("rbf")
    copied = make(name, kernel=kernel).fit(2 * X)
    assert not hasattr(kernel, "gamma_")
    kernel.fit(2 * X)
    given, own = make(name).fit(X, gram=kernel.on(X)), copied.set_params(kernel=kernel).fit(X)
    assert given.kernel_ is own.kernel_ is kernel
    for mine, other in zip(results(given), results(own), strict=True):
        np.testing.assert_allclose(np.abs(mine), np.abs(other), rtol=1e-3, atol=1e-3)
    filled = np.where(GAPS, np.nanmean(HOLED, axis=0), HOLED)
    holed = make_of_all_rows(name, missing="mask").fit(HOLED, gram=kernel.on(filled))
    assert holed.kernel_ is kernel


def test_a_gram_matrix_does_what_its_kernel_does(tmp_path):
    gram = rbf_kernel(X, gamma=0.1)
    own = make("autoencoder", gamma=0.1).fit(X)
    given = make("autoencoder").fit(X, gram=gram)
    mapped = make("autoencoder").fit(X, gram=on_disk(gram, tmp_path / "gram.npy"))
    known = make("autoencoder", kernel=Precomputed(gram, rows=X)).fit(X[::-1][::-1])
    assert given.kernel_ is None
    for other in (mapped, known, own):
        np.testing.assert_allclose(other.transform(X), given.transform(X), rtol=1e-3, atol=1e-3)
        assert other.score(X, gram=gram) == pytest.approx(given.score(X, gram=gram), abs=1e-4)
    np.testing.assert_array_equal(given.fit_transform(X, gram=gram), given.transform(X))
    for ask in (given.score, given.prior_gram):
        with pytest.raises(ValueError, match="pass gram=, the Gram matrix of these rows"):
            ask(X)


def test_a_gram_matrix_of_kernel_pca_maps_rows_by_their_kernel_values():
    gram = rbf_kernel(X, gamma=0.1)
    own = make("kernel PCA", gamma=0.1).fit(X)
    given = make("kernel PCA").fit(X, gram=gram)
    codes = given.transform(NEW, gram=rbf_kernel(NEW, X, gamma=0.1))
    np.testing.assert_allclose(np.abs(codes), np.abs(own.transform(NEW)), atol=1e-3)
    with pytest.raises(ValueError, match=r"pass gram= .* κ between these rows and the 60 tr"):
        given.transform(NEW)


def test_the_autoencoder_holds_no_row():
    few, many = (len(pickle.dumps(make("autoencoder").fit(rows))) for rows in (X[:30], X))
    assert abs(few - many) < 300


# --- scikit-learn and people ----------------------------------------------------------------------


@every_map
def test_before_fit(name):
    model = make(name)
    for method in ("transform", "inverse_transform", "gram", "score", "prior_gram"):
        with pytest.raises(NotFittedError, match=r"not fitted yet. Call 'fit'"):
            getattr(model, method)(X)


@every_map
def test_tables_come_out_if_they_are_asked_for(name, fitted):
    frame = pd.DataFrame(X).add_prefix("feature")
    model = make(name).set_output(transform="pandas").fit(frame)
    codes = model.transform(frame)
    np.testing.assert_array_equal(codes.to_numpy(), fitted[name].transform(X))
    assert list(codes.columns) == [f"{type(model).__name__.lower()}{i}" for i in range(WIDTH)]
    assert model.inverse_transform(codes).shape == X.shape
    assert model.gram(frame).shape == (N, N)


SAID = {
    "autoencoder": "6-8-3, output identity, kernel 'rbf'",
    "nystroem, ridge": "20 landmarks, 3 components, kernel 'rbf', RidgeDecoder",
    "nystroem, kernel ridge": "20 landmarks, 3 components, kernel 'rbf', KernelRidgeDecoder",
    "nystroem, mlp": "20 landmarks, 3 components, kernel 'rbf', mlp 3-8-6",
    "nystroem, scikit-learn": "20 landmarks, 3 components, kernel 'rbf', Ridge",
    "kernel PCA": "3 components, kernel 'rbf', KernelRidgeDecoder",
}


@every_map
def test_it_says_what_it_resolved_to(name, caplog, fitted):
    assert "#" not in repr(make(name))
    said = repr(fitted[name]).partition("  # ")[2]
    for words in SAID[name].split(", "):
        assert words.split(" components")[0] in said
    if name in TRAINED:
        with caplog.at_level(logging.INFO, logger="dkae"):
            make(name, n_components=2).fit(X)
        assert f"{(2 + 1 if name == 'autoencoder' else 2) * 3} steps" in caplog.text
