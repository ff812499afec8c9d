"""Whatever comes in, a documented error or finite numbers come out.

An error is ours or scikit-learn's, and names the parameter; none is NumPy's, SciPy's or torch's.
"""

from __future__ import annotations

import re
import traceback
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import Ridge

from dkae.grams import Gram
from dkae.kernels import FunctionKernel, PairwiseKernel, Precomputed, normalize
from tests.laws.maps import MAPS, NEW, TRAINED, WIDTH, D, N, P, X, every_map, make
from tests.laws.test_kernel_laws import X as KERNEL_ROWS
from tests.laws.test_kernel_laws import every_kernel
from tests.laws.test_parameters_matter import NEEDS, PARTS

# Odd values may be warned of, in any words.
pytestmark = pytest.mark.filterwarnings("ignore")

FOREIGN = ("ufunc", "object has no attribute", "not iterable", "has no len", "broadcast together")
#: Maps that differ at the door.
KINDS = ("autoencoder", "nystroem, ridge", "kernel PCA")


def is_finite(result) -> bool:
    """Return whether all numbers are finite; what a fitted model holds counts too."""
    if isinstance(result, Gram):
        return is_finite(result.block(np.arange(len(result)))) and is_finite(result.diagonal())
    if isinstance(result, BaseEstimator):
        return all(is_finite(v) for name, v in vars(result).items() if name.endswith("_"))
    if isinstance(result, torch.nn.Module):
        return all(p.isfinite().all() for p in result.parameters())
    if isinstance(result, np.ndarray) and result.dtype.kind == "f":
        return bool(np.isfinite(result).all())
    return not isinstance(result, float) or bool(np.isfinite(result))


def error_of(call, *names: str) -> str:
    """Return the message of a documented error that names a parameter, or "" if there is none."""
    try:
        with np.errstate(all="ignore"):
            assert is_finite(call())
    except (ValueError, TypeError, FloatingPointError) as raised:
        error = raised
    else:
        return ""
    message = str(error)
    frame = list(traceback.walk_tb(error.__traceback__))[-1][0]
    assert frame.f_globals["__name__"].split(".")[0] in ("dkae", "sklearn"), repr(error)
    assert any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", message) for name in names), message
    # Their words may only stand behind ours.
    assert not any(words in message.partition("cannot be used:")[0] for words in FOREIGN), message
    return message


@pytest.fixture(scope="module")
def fitted():
    """Return one fitted model of each map; tests do not change them."""
    return {name: make(name).fit(X) for name in MAPS}


# --- rows -----------------------------------------------------------------------------------------


def with_entry(a, value, at=(3, 1)):
    a = a.astype(np.float64)
    a[at] = value
    return a


#: Odd rows, and what the error says; "" where a map is fitted to them.
ROWS = {
    "None": (None, "Expected 2D array, got scalar"),
    "number": (3, "Expected 2D array, got scalar"),
    "string": ("abc", "X"),
    "dict": ({"a": 1}, "X"),
    "set": ({1, 2}, "X"),
    "function": (len, "X"),
    "empty list": ([], "Expected 2D array"),
    "list of an empty list": ([[]], r"1 sample|0 feature"),
    "vector": (X[0], "Expected 2D array, got 1D array"),
    "images": (X[:, :, None], "Found array with dim 3"),
    "ragged": ([[1.0, 2.0], [1.0]], "X, a list, cannot be used"),
    "strings": (np.full((N, D), "a"), "X"),
    "objects": (np.array([[1.0, "a", None, 2.0]] * N, dtype=object), "X"),
    "table of strings": (pd.DataFrame({name: ["x"] * N for name in "abcd"}), "X"),
    "complex": (X + 1j, "Complex data not supported"),
    "dates": (np.full((N, D), np.datetime64("2020-01-01")), ""),
    "records": (np.zeros(N, dtype=[("a", float), ("b", float)]), "X, a ndarray, cannot be used"),
    "masked": (np.ma.masked_array(X, X > 0.5), "X is an array with masked entries: fill them"),
    "one row": (X[:1], "1 sample.*a minimum of 2 is required"),
    "no rows": (X[:0], r"0 sample\(s\)"),
    "no features": (X[:, :0], r"0 feature\(s\)"),
    "NaN": (with_entry(X, np.nan), "contains NaN"),
    "infinity": (with_entry(X, -np.inf), "contains infinity"),
    "beyond float32": (with_entry(X, 1e39), "X"),
    "one of 3e38": (with_entry(X, 3e38), "scale X"),
    "1e300": (X.astype(float) * 1e300, "X"),
    "1e30": (X * np.float32(1e30), "beyond 1e15 leave float32 arithmetic, scale X"),
    "1e17": (X * np.float32(1e17), "beyond 1e15 leave float32 arithmetic, scale X"),
    "huge integers": ([[10**400] * D] * N, "X"),
    "largest integers": (np.full((N, D), np.iinfo(np.int64).max), "scale X"),
    "1e-30": (X * np.float32(1e-30), ""),
    "1e-40": (X * np.float32(1e-40), ""),
    "zeros": (0 * X, ""),
    "constant": (np.full((N, D), 0.3), ""),
    "constant columns": (X * (np.arange(D) < 2), ""),
    "two rows": (X[:2], ""),
    "one feature": (X[:, :1], ""),
    "negative": (-X, ""),
    "bytes": ((10 * np.abs(X)).astype(np.uint8), ""),
    "truth values": (X > 0, ""),
    "tensor with gradient": (torch.tensor(X, requires_grad=True), "X"),
    "tensor of bfloat16": (torch.tensor(X).bfloat16(), ""),
}


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", KINDS)
def test_rows_to_fit(name, rows):
    bad, expected = ROWS[rows]
    message = error_of(
        lambda: make(name).fit(bad), "X", "array", "data", "sample", "feature", "rows"
    )
    if expected:
        assert re.search(expected, message), message


#: Rows that a fitted model must refuse.
NEW_ROWS = {
    "NaN": (with_entry(NEW, np.nan), "contains NaN"),
    "another width": (NEW[:, :5], "X has 5 features, but .* expecting 6 features"),
    "a vector": (NEW[0], "Expected 2D array, got 1D array"),
    "strings": (np.full(NEW.shape, "a"), "X"),
    "too large": (with_entry(NEW, 3e38), "X"),
}


@pytest.mark.parametrize("method", ["transform", "gram", "score", "prior_gram", "partial_fit"])
@every_map
def test_new_rows(name, method, fitted):
    if method == "partial_fit" and name not in TRAINED:
        assert not hasattr(fitted[name], "partial_fit")
        return
    model = make(name).fit(X) if method == "partial_fit" else fitted[name]
    for rows, (bad, expected) in NEW_ROWS.items():
        message = error_of(lambda: getattr(model, method)(bad), "X", "array", "data", "features")  # noqa: B023
        if rows != "too large":  # a bounded kernel has values there
            assert re.search(expected, message), message


CODES = {
    "another width": (np.ones((2, 6)), r"codes has 6 columns, but .* n_components=3: pass codes"),
    "NaN": (np.full((2, WIDTH), np.nan), "codes contains NaN"),
    "a vector": (np.ones(WIDTH), "Expected 2D array"),
    "strings": (np.full((2, WIDTH), "a"), "codes"),
    "too large": (np.full((2, WIDTH), 3e38), ""),
}


@pytest.mark.parametrize("codes", CODES)
@every_map
def test_codes(name, codes, fitted):
    bad, expected = CODES[codes]
    message = error_of(lambda: fitted[name].inverse_transform(bad), "codes", "array")
    if expected:
        assert re.search(expected, message), message


# --- large and small numbers ----------------------------------------------------------------------


@pytest.mark.parametrize("s", [1e-12, 1e-6, 1e6, 1e12])
@every_map
def test_units_of_rows_do_not_matter(name, s):
    model, expected = make(name).fit(X * np.float32(s)), make(name).fit(X)
    assert model.alignment_ == pytest.approx(expected.alignment_, abs=2e-3)
    assert model.centered_alignment_ == pytest.approx(expected.centered_alignment_, abs=1e-2)
    assert model.r2_ == pytest.approx(expected.r2_, abs=1e-2)
    back = model.inverse_transform(model.transform(NEW * np.float32(s)))
    other = expected.inverse_transform(expected.transform(NEW))
    np.testing.assert_allclose(back / np.float32(s), other, atol=0.05 * np.abs(other).max())


@pytest.mark.parametrize("name", TRAINED)
def test_a_loss_that_diverges_has_its_epoch_and_keeps_the_former_fit(name):
    prefix = "" if name == "autoencoder" else "decoder__"
    own = {"max_iter": 9, "optimization__learning_rate": "constant"}
    own["optimization__learning_rate_init"] = 1e25
    model = make(name).fit(X)
    codes = model.transform(X)
    message = r"the loss became (nan|inf) in epoch \d+ of '.*': scale X"
    with pytest.raises(FloatingPointError, match=message):
        model.set_params(**{prefix + key: value for key, value in own.items()}).fit(X)
    np.testing.assert_array_equal(model.transform(X), codes)


@every_map
def test_a_fit_that_fails_keeps_the_former_fit(name):
    model = make(name).fit(X)
    before = dict(vars(model))
    for bad in (with_entry(X, np.nan), X[:1], X * np.float32(1e30)):
        with pytest.raises(ValueError, match=r"X|sample"):
            model.fit(bad)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[key] is value for key, value in before.items())


# --- Gram matrices --------------------------------------------------------------------------------


class Blocks:
    """A custom Gram whose blocks are odd."""

    def __init__(self, change):
        self.change = change

    def __len__(self):
        return N

    def block(self, rows, columns=None):
        return self.change(P[np.ix_(rows, rows if columns is None else columns)])


GRAMS = {
    "number": (3, "gram"),
    "string": ("abc", "gram"),
    "empty": ([], "gram"),
    "dict": ({"a": 1}, "gram"),
    "function": (len, "gram"),
    "vector": (P[0], "gram has shape"),
    "ragged": ([[1.0, 2.0], [1.0]], "gram, a list, cannot be used"),
    "strings": (np.full((N, N), "a"), "gram has entries of type"),
    "complex": (P + 1j, "gram has entries of type complex128"),
    "not square": (P[:, :-1], r"gram has shape \(60, 59\): pass the square Gram matrix"),
    "smaller": (P[:-1, :-1], r"gram has shape \(59, 59\), but X has 60 rows: pass that"),
    "not symmetric": (P + np.triu(P, 1), "gram is not symmetric"),
    "NaN": (with_entry(P, np.nan), "gram has NaN or infinite values"),
    "infinity": (with_entry(P, np.inf, (2, 2)), "gram has NaN or infinite values"),
    "zero": (0 * P, "gram is zero everywhere"),
    "too large": (1e30 * P, "gram has entries up to 1e.30: numbers beyond 1e15"),
    "masked": (np.ma.masked_array(P, P > 0.9), "gram is an array with masked entries"),
    "a kernel": (PairwiseKernel(), "gram is a PairwiseKernel, a kernel: pass it as the parameter"),
    "rows": (X, r"gram has shape \(60, 6\): pass the square Gram matrix"),
    "blocks of NaN": (Blocks(lambda block: block * np.nan), "gram has NaN or infinite"),
    "blocks of one column": (
        Blocks(lambda block: block[:, :1]),
        r"gram\.block returned shape",
    ),
    "no blocks": (Blocks(lambda block: None), "gram"),
    "blocks of text": (Blocks(lambda block: "abc"), "gram"),
    "ones": (np.ones((N, N)), ""),
    "negative": (-P, ""),
    "tiny": (1e-12 * P, ""),
    "truth values": (P > 0.5, ""),
}


@pytest.mark.parametrize("gram", GRAMS)
@pytest.mark.parametrize("name", ["autoencoder", "kernel PCA"])
def test_gram_matrices(name, gram, fitted):
    bad, expected = GRAMS[gram]
    for call in (make(name).fit, fitted[name].score):
        message = error_of(lambda: call(X, gram=bad), "gram", "Gram")  # noqa: B023
        if expected and not (gram == "zero" and call.__name__ == "score"):
            assert re.search(expected, message), message


# --- parameters -----------------------------------------------------------------------------------

ODD = [
    None, object(), "nonsense", -1, 0.5, float("nan"), np.ones(3), Fraction(1, 2), 2**63, [], {},
]  # fmt: skip
PARAMS = [
    (part, param)
    for part, (_, _, made, _) in PARTS.items()
    for param in made.get_params(deep=False)
]


@pytest.mark.parametrize(("part", "param"), PARAMS)
def test_odd_values_of_any_parameter(part, param):
    name, prefix, _, _ = PARTS[part]
    names = (param, f"each of {param}", "network" if part == "stack" else param)
    n_errors = 0
    for value in ODD:
        model = clone(make(name, **NEEDS.get(part, {})))
        model = model.set_params(**{prefix + param: value})
        n_errors += bool(error_of(lambda: model.fit(X), *names))  # noqa: B023
    assert n_errors >= 2


#: What an error says, in full where a user will read it most.
MESSAGES = [
    ("autoencoder", {"alignment_weight": 1.1}, r"alignment_weight=1.1 must be a number in \[0, 1"),
    ("autoencoder", {"alignment": "centred"}, "alignment='centred' is not .*you mean 'centered'"),
    ("autoencoder", {"alignment": len}, "alignment=len cannot be called with two Gram"),
    ("autoencoder", {"network__activation": "rely"}, "activation='rely' is.*you mean 'relu'?"),
    ("autoencoder", {"network__hidden_layer_sizes": (5, 0)}, "each of hidden_layer_sizes=0 must"),
    ("autoencoder", {"optimization__learning_rate": "one-cycle"}, "did you mean 'onecycle'"),
    ("autoencoder", {"optimization__optimizer": len}, "optimizer=len cannot be called with param"),
    ("autoencoder", {"optimization": "adam"}, "optimization is a str: pass dkae.training.Optimiz"),
    ("autoencoder", {"batch_size": 1}, "batch_size=1 must be a whole number of at least 2"),
    ("autoencoder", {"max_iter": 0}, "max_iter=0 and pretrain_max_iter=0 leave the encoder, .*tr"),
    ("autoencoder", {"max_iter": 0, "decoder_max_iter": 0}, "leave nothing to train: set one of"),
    ("autoencoder", {"steps_per_epoch": "sample"}, "did you mean 'samples'"),
    ("autoencoder", {"validation_fraction": 1.0}, r"validation_fraction=1.0 must be .* \[0, 1\)"),
    ("autoencoder", {"callbacks": 3}, "callbacks=3 is not a list: pass a list of callbacks, such"),
    ("autoencoder", {"device": "gpu"}, "device='gpu' is not known: expected one of 'auto', 'cpu'"),
    ("autoencoder", {"verbose": "yes"}, "verbose='yes' must be a number, 0 for silence"),
    ("nystroem, ridge", {"n_landmarks": 0}, "n_landmarks=0 must be a whole number of at least 1"),
    ("nystroem, ridge", {"n_linear": -1}, "n_linear=-1 must be a whole number of at least 0"),
    ("nystroem, ridge", {"n_linear": 4}, "n_linear=4 is wider than the code, n_components=3"),
    ("nystroem, ridge", {"decoder": "rigde"}, "decoder='rigde' is not known.*you mean 'ridge'?"),
    ("nystroem, ridge", {"decoder": 3}, r"decoder=3 must be a regressor: pass one of ridge"),
    ("nystroem, ridge", {"decoder": Ridge}, r"decoder=.*Ridge.* must be a regressor: pass one of"),
    ("nystroem, ridge", {"decoder__alphas": 3}, "alphas=3 must be a sequence"),
    ("nystroem, ridge", {"decoder__alphas": []}, "alphas is empty: pass at least one number"),
    ("kernel PCA", {"solver": "arpack"}, "solver='arpack' is not known: expected one of 'auto'"),
]
SHARED_MESSAGES = [
    ({"n_components": 0}, "n_components=0 must be a whole number of at least 1"),
    ({"n_components": 2.5}, "n_components=2.5 must be a whole number"),
    ({"kernel": "rfb"}, r"kernel='rfb' is not known.*did you mean 'rbf'\?"),
    ({"kernel": "precomputed"}, r"kernel='precomputed' needs the Gram matrix: call fit\(X, gram"),
    ({"kernel": P}, r"kernel=<ndarray> needs the Gram matrix: call fit\(X, gram=P\)"),
    ({"kernel": PairwiseKernel}, r"kernel=PairwiseKernel is a class: pass an object, Pairwise"),
    ({"kernel": len}, "kernel=len cannot be called with two arrays of rows: too many"),
    ({"kernel": normalize("rbf")}, "kernel is a str: kernels are made of kernels, pass one of"),
    ({"kernel": normalize(len)}, "kernel is a builtin_function_or_method: kernels are made"),
    ({"kernel": Precomputed(P, X[:3])}, r"gram has shape \(60, 60\), but rows has 3 rows"),
    ({"gamma": -1}, r"gamma=-1 must be a number in \(0, inf\)"),
    ({"gamma": "medium"}, r"gamma='medium' is not known.*did you mean 'median'\?"),
    ({"gamma": 1.0, "kernel": "forest"}, "gamma=1.0 is for kernels by name that have one, not"),
    ({"missing": "drop"}, "missing='drop' is not known: expected one of 'error', 'mask'"),
    ({"standardize": "auto"}, "standardize='auto' must be True or False"),
    ({"random_state": -1}, r"random_state=-1 must be a whole number from 0 to 2\*\*32 - 1"),
]


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [*MESSAGES, *((name, *case) for name in KINDS for case in SHARED_MESSAGES)],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_an_error_says(name, params, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make(name, **params).fit(X)


# --- kernels --------------------------------------------------------------------------------------


@every_kernel
def test_rows_of_kernels(kernel):
    if isinstance(kernel, FunctionKernel):
        return  # its errors are its own
    fitted = clone(kernel).fit(KERNEL_ROWS)
    for rows in ("NaN", "infinity", "vector", "strings", "1e30", "no rows"):
        bad, _ = ROWS[rows]
        for call in (
            clone(kernel).fit,
            fitted.gram,
            lambda rows: fitted.gram(KERNEL_ROWS, rows),
            fitted.on,
        ):
            error_of(lambda: call(bad), "X", "Y", "rows", "array", "data", "kernel")  # noqa: B023
