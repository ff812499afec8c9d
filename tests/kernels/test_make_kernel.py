"""Kernels that users pass: names, callables, Gaussian-process kernels, objects, Gram matrices."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as gp

from dkae.attached_kernel import check_same_values, values_on
from dkae.grams import MatrixGram
from dkae.kernels import (
    ForestKernel,
    FunctionKernel,
    PairwiseKernel,
    ProbabilisticClusterKernel,
    gram_of,
    is_fitted,
    make_kernel,
)

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 1, (30, 4)).astype(np.float32)


def test_names_of_ensembles():
    assert isinstance(make_kernel("pck", random_state=3), ProbabilisticClusterKernel)
    assert isinstance(make_kernel("forest"), ForestKernel)
    assert make_kernel("forest", random_state=3).random_state == 3


def test_callable_gets_whole_arrays():
    calls = []

    def kernel(A, B, power=1):
        calls.append((A.shape, B.shape))
        return (A @ B.T) ** power

    gram = make_kernel(partial(kernel, power=2)).fit(X).gram(X, X[:7])
    assert calls == [((30, 4), (7, 4))]
    np.testing.assert_allclose(gram, (X @ X[:7].T) ** 2)
    np.testing.assert_allclose(make_kernel(kernel).gram(X), X @ X.T, rtol=1e-6)


def test_gaussian_process_kernels_keep_their_algebra():
    kernel = 2.0 * gp.RBF(0.5) * gp.Matern() + gp.WhiteKernel(0.1)
    np.testing.assert_allclose(make_kernel(kernel).fit(X).gram(X), kernel(X), rtol=1e-6)


def test_objects_are_copied_unless_they_are_fitted():
    mine = PairwiseKernel("rbf")
    make_kernel(mine).fit(X)
    assert not is_fitted(mine)
    mine.fit(X)
    assert make_kernel(mine) is mine


@pytest.mark.parametrize(
    ("kernel", "params", "message"),
    [
        ("rfb", {}, r"kernel='rfb' is not known.*did you mean 'rbf'"),
        ("forrest", {}, r"kernel='forrest'.*did you mean 'forest'\?"),
        ("precomputed", {}, r"kernel='precomputed' needs the Gram matrix: call fit\(X, gram=P\)"),
        (np.eye(3), {}, r"kernel=<ndarray> needs the Gram matrix"),
        (MatrixGram(np.eye(3)), {}, r"kernel=<MatrixGram> needs the Gram matrix"),
        (PairwiseKernel, {}, r"kernel=PairwiseKernel is a class: pass an object, PairwiseKernel\("),
        (3, {}, "kernel=3 is not known"),
        ("linear", {"gamma": 0.5}, "gamma=0.5 is not a parameter of kernel 'linear'.*leave it out"),
        (
            "pck",
            {"gamma": 0.5},
            "gamma=0.5 is for kernels by name that have one, not for kernel",
        ),
        (np.dot, {"gamma": 1}, "gamma=1 is for .*not for kernel dot: leave it out, and pass param"),
        (PairwiseKernel("rbf"), {"gamma": None}, "gamma=None is for .*, not for kernel 'rbf'"),
        (gp.RBF(), {"gamma": "scale"}, r"gamma='scale' is for .*, not for kernel RBF"),
    ],
    ids=str,
)
def test_kernels_that_cannot_be_made(kernel, params, message):
    with pytest.raises(ValueError, match=message):
        make_kernel(kernel, **params)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda A, B: A.sum(axis=1), r"kernel <lambda> returned .* \(30,\), expected \(30, 30\)"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), "<lambda> has NaN or infinite"),
        (lambda A, B: np.full((len(A), len(B)), 1e20), r"<lambda> has entries up to 1e\+20"),
        (lambda A, B: np.full((len(A), len(B)), "a"), "<lambda> has entries of type"),
        (lambda A: A, "cannot be called with two arrays of rows"),
    ],
    ids=["shape", "NaN", "large", "text", "arguments"],
)
def test_functions_that_are_not_kernels(function, message):
    with pytest.raises(ValueError, match=message):
        make_kernel(function).gram(X)


@pytest.mark.parametrize("view", [lambda G: np.broadcast_to(1.0, G.shape), lambda G: G[::-1]])
def test_callable_may_return_any_kind_of_view(view):
    block = make_kernel(lambda A, B: view(A @ B.T)).gram(X)
    assert block.flags.c_contiguous
    assert block.flags.writeable


# --- a Gram in place of a kernel -----------------------------------------------------------------


def test_a_gram_keeps_its_kernel_only_for_the_rows_that_it_is_of():
    kernel = PairwiseKernel("rbf").fit(X)
    assert gram_of(kernel.on(X), X).kernel is kernel
    assert gram_of(kernel.on(X), 2 * X).kernel is None
    assert gram_of(kernel.gram(X), X).kernel is None


@pytest.mark.parametrize(
    ("gram", "message"),
    [
        (PairwiseKernel("rbf"), "gram is a PairwiseKernel, a kernel: pass it as the parameter"),
        (np.eye(29), r"gram has shape \(29, 29\), but X has 30 rows: pass that of the rows of X"),
        (MatrixGram(np.eye(29)), "gram has 29 rows, but X has 30: pass the Gram of the same rows"),
        (np.ones((30, 29)), r"gram has shape \(30, 29\): pass the square Gram matrix"),
    ],
    ids=["kernel", "matrix", "Gram", "not square"],
)
def test_grams_of_other_rows(gram, message):
    with pytest.raises(ValueError, match=message):
        gram_of(gram, X)


# --- recognition ---------------------------------------------------------------------------------


def test_the_same_kernel_is_recognised_up_to_the_processor():
    kernel = PairwiseKernel("rbf").fit(X)
    values = values_on(kernel, X[:8])
    check_same_values(kernel, values * 1.005, values)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (
            PairwiseKernel("rbf", gamma=9).fit(X),
            "'rbf' is not the kernel of the fit: on 8 rows",
        ),
        (PairwiseKernel("rbf"), "cannot be evaluated on rows like .*; if it learns from data"),
        (
            FunctionKernel(lambda A, B: 1 / 0),
            "kernel <lambda> cannot be evaluated .*division",
        ),
    ],
    ids=["other", "not fitted", "raises"],
)
def test_another_kernel_is_not_taken_for_it(kernel, message):
    stored = values_on(PairwiseKernel("rbf").fit(X), X[:8])
    with pytest.raises(ValueError, match=message):
        check_same_values(kernel, values_on(kernel, X[:8]), stored)


@pytest.mark.parametrize("values", [None, np.ones((3, 3))], ids=["none", "shape"])
def test_values_on_other_rows(values):
    with pytest.raises(ValueError, match="kernel 'rbf' has no such values on these rows: pass the"):
        check_same_values(PairwiseKernel("rbf"), values, np.ones((8, 8)))
