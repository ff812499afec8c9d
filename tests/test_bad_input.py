"""Bad input: each message names the parameter, what came, what was expected."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"alignment_weight": -0.1}, r"alignment_weight=-0.1 must be a number in \[0, 1\]"),
        ({"alignment_weight": 1.1}, r"alignment_weight=1.1 must be a number in \[0, 1\]"),
        ({"alignment_weight": "a"}, r"alignment_weight='a' must be a number"),
        ({"alignment_weight": float("nan")}, "alignment_weight=nan must be a number"),
        ({"n_components": 0}, "n_components=0 must be a whole number of at least 1"),
        ({"n_components": 2.5}, r"n_components=2.5 must be a whole number"),
        ({"hidden_layer_sizes": (5, 0)}, "each of hidden_layer_sizes=0 must be a whole number"),
        ({"kernel": "rfb"}, r"kernel='rfb' is not known.*did you mean 'rbf'\?"),
        ({"kernel": "precomputed"}, r"needs the Gram matrix: call fit\(X, gram=P\)"),
        ({"kernel": 3}, "kernel=3 is not known: expected one of"),
        ({"gamma": -1}, r"gamma=-1 must be a number in \(0, inf\)"),
        ({"gamma": "medium"}, r"gamma='medium' is not known.*did you mean 'median'\?"),
        ({"activation": "rely"}, r"activation='rely' is not known.*did you mean 'relu'\?"),
        ({"code_activation": "x"}, "code_activation='x' is not known: expected one of 'elu'"),
        ({"output_activation": "sigmod"}, r"output_activation=.*did you mean 'sigmoid'\?"),
        ({"learning_rate": "one-cycle"}, r"learning_rate=.*did you mean 'onecycle'\?"),
        ({"learning_rate_init": 0}, r"learning_rate_init=0 must be a number in \(0, inf\)"),
        ({"max_grad_norm": 0}, r"max_grad_norm=0 must be a number in \(0, inf\)"),
        ({"batch_size": 1}, "batch_size=1 must be a whole number of at least 2"),
        ({"max_iter": -1}, "max_iter=-1 must be a whole number of at least 0"),
        (
            {"max_iter": 0},
            "max_iter=0, pretrain_max_iter=0 and decoder_max_iter=0 leave nothing to train",
        ),
        (
            {"max_iter": 0, "decoder_max_iter": 1},
            "max_iter=0 and pretrain_max_iter=0 leave the encoder, or layers of it, untrained.*"
            "network=model.network_",
        ),
        ({"verbose": "yes"}, "verbose='yes' must be a number, 0 for silence"),
        ({"verbose": None}, "verbose=None must be a number"),
        ({"decoder_max_iter": -1}, "decoder_max_iter=-1 must be a whole number of at least 0"),
        ({"pretrain_max_iter": -1}, "pretrain_max_iter=-1 must be a whole number of at least 0"),
        (
            {"steps_per_epoch": "sample"},
            r"steps_per_epoch='sample' is not.*did you mean 'samples'\?",
        ),
        ({"steps_per_epoch": 0}, "steps_per_epoch=0 must be a whole number of at least 1"),
        ({"input_noise": -1}, r"input_noise=-1 must be a number in \[0, inf\)"),
        ({"validation_fraction": 1.0}, r"validation_fraction=1.0 must be a number in \[0, 1\)"),
        ({"n_iter_no_change": 0}, "n_iter_no_change=0 must be a whole number of at least 1"),
        ({"tol": -1}, r"tol=-1 must be a number in \[0, inf\)"),
        ({"precision": "float16"}, r"precision='float16' is not known.*did you mean 'bfloat16'\?"),
        ({"device": "gpu"}, "device='gpu' is not known: expected one of 'auto', 'cpu', 'cuda'"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_parameters(params, message, digits, tiny):
    with pytest.raises(ValueError, match=message):
        tiny(**params).fit(digits)


def with_entry(X, value):
    X = X.copy()
    X[3, 4] = value
    return X


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: with_entry(X, np.nan), "contains NaN"),
        (lambda X: with_entry(X, np.inf), "contains infinity"),
        (lambda X: X[:1], "1 sample.*a minimum of 2 is required"),
        (lambda X: X[0], "Expected 2D array, got 1D array"),
        (lambda X: X[:, :0], r"0 feature\(s\)"),
    ],
)
def test_training_data(change, message, digits, tiny):
    with pytest.raises(ValueError, match=message):
        tiny().fit(change(digits))


@pytest.mark.parametrize("method", ["transform", "gram", "score"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X[:, :5], "X has 5 features, but .* expecting 64 features"),
        (lambda X: with_entry(X, np.nan), "contains NaN"),
    ],
)
def test_new_data(method, change, message, digits, tiny):
    model = tiny().fit(digits)
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(change(digits))


@pytest.mark.parametrize("method", ["transform", "inverse_transform", "gram", "score"])
def test_before_fit(method, digits, tiny):
    with pytest.raises(NotFittedError, match=r"not fitted yet. Call 'fit'"):
        getattr(tiny(), method)(digits)


def test_codes_of_the_wrong_width(digits, tiny):
    model = tiny().fit(digits)
    with pytest.raises(
        ValueError, match=r"codes has 64 columns, but .* n_components=5: pass codes as transform"
    ):
        model.inverse_transform(digits)


def test_codes_that_are_not_finite(digits, tiny):
    with pytest.raises(ValueError, match="codes contains NaN"):
        tiny().fit(digits).inverse_transform(np.full((2, 5), np.nan))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda P: P[:, :-1], r"gram has shape \(300, 299\): pass the square Gram matrix"),
        (
            lambda P: P[:-1, :-1],
            r"gram has shape \(299, 299\), but X has 300 rows: pass that",
        ),
        (lambda P: P + np.triu(P, 1), "gram is not symmetric"),
        (lambda P: 0 * P, "gram is zero everywhere: there is nothing to align with"),
        (lambda P: with_entry(P, np.inf), "gram has NaN or infinite values"),
    ],
)
def test_gram_matrices(change, message, digits, tiny):
    P = rbf_kernel(digits)
    with pytest.raises(ValueError, match=message):
        tiny().fit(digits, gram=change(P))
    with pytest.raises(ValueError, match=message):
        tiny().fit(digits).score(digits, gram=change(P))


def test_indefinite_gram_is_learnt_with_a_warning(digits, tiny):
    P = rbf_kernel(digits) - 1
    with pytest.warns(UserWarning, match=r"gram is not positive semi-definite.* % of the mass"):
        model = tiny().fit(digits, gram=P)
    assert 0 <= model.score(digits, gram=P) <= 1


def test_zero_callable_kernel(digits, tiny):
    with pytest.raises(ValueError, match="is zero on all of 300 sampled rows"):
        tiny(kernel=lambda A, B: np.zeros((len(A), len(B)))).fit(digits)


def test_negative_data_for_the_chi2_kernel(digits, tiny):
    with pytest.raises(ValueError, match="X contains negative values"):
        tiny(kernel="chi2").fit(digits - 0.5)


def test_parameters_are_checked_before_the_kernel_is_computed(digits, tiny):
    def forbidden(A, B):
        pytest.fail("the kernel was evaluated")

    with pytest.raises(ValueError, match="learning_rate_init"):
        tiny(kernel=forbidden, learning_rate_init=-1).fit(digits)
    with pytest.raises(ValueError, match="activation"):
        tiny(kernel=forbidden, activation="rely").fit(digits)
