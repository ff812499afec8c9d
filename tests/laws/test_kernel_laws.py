"""One list of all kernels, and every law over it."""

from __future__ import annotations

import functools
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestRegressor, RandomTreesEmbedding
from sklearn.gaussian_process import kernels as gp
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel

from dkae.grams import check_block
from dkae.kernels import (
    ForestKernel,
    FunctionKernel,
    GaussianProcessKernel,
    PairwiseKernel,
    Precomputed,
    ProbabilisticClusterKernel,
    TransformerKernel,
    ideal_kernel,
    make_kernel,
    normalize,
)
from dkae.kernels.pairwise import pairwise_names
from tests.ids import plain_id

RNG = np.random.default_rng(0)
X = RNG.uniform(0.1, 1, (40, 6)).astype(np.float32)
Y = RNG.uniform(0.1, 1, (15, 6)).astype(np.float32)

KERNELS = [
    *(PairwiseKernel(name) for name in pairwise_names()),
    PairwiseKernel("rbf", gamma=0.7),
    PairwiseKernel("poly", degree=2, coef0=0.5),
    FunctionKernel(functools.partial(rbf_kernel, gamma=0.3)),
    GaussianProcessKernel(gp.Matern(nu=1.5) + 0.5 * gp.RationalQuadratic()),
    Precomputed(rbf_kernel(np.vstack([X, Y])), rows=np.vstack([X, Y])),
    ProbabilisticClusterKernel(4, 2, random_state=0, reg_covar=1e-2),
    ForestKernel(n_estimators=20, random_state=0),
    ForestKernel(RandomForestRegressor(10, random_state=0).fit(X, X[:, 0])),
    TransformerKernel(Nystroem(n_components=10, random_state=0).fit(X)),
    TransformerKernel(RandomTreesEmbedding(5, random_state=0).fit(X)),
    normalize(PairwiseKernel("poly")),
    normalize(ProbabilisticClusterKernel(4, 2, random_state=0, reg_covar=1e-2)),
    0.3 * PairwiseKernel("rbf") + PairwiseKernel("linear"),
    PairwiseKernel("rbf") * PairwiseKernel("linear") * 2,
    ideal_kernel(np.arange(55) % 3, rows=np.vstack([X, Y])),
    ideal_kernel(np.arange(55) % 4 - 1, rows=np.vstack([X, Y])) + PairwiseKernel("rbf"),
]

#: tanh(γ⟨x, y⟩ + c) and the additive χ² kernel are not positive semi-definite in general.
PSD_KERNELS = [k for k in KERNELS if getattr(k, "metric", "") not in {"sigmoid", "additive_chi2"}]

every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=plain_id)


@every_kernel
def test_every_way_to_its_values_is_the_same_function(kernel):
    kernel, both = clone(kernel).fit(X), np.vstack([X, Y])
    whole = kernel.gram(both)
    gram, values = whole[: len(X), : len(X)], whole[: len(X), len(X) :]
    close = functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=2e-6)
    close(whole, whole.T)
    close(kernel.gram(X), gram)
    close(kernel.gram(X, Y), values)
    close(kernel.values(X, Y), values)
    close(kernel.on(X).diagonal(), gram.diagonal())
    rows, columns = np.array([5, 0, 17]), np.array([3, 17])
    prior = kernel.on(X)
    assert len(prior) == len(X)
    close(prior.block(rows), gram[np.ix_(rows, rows)])
    close(prior.block(rows, columns), gram[np.ix_(rows, columns)])
    towards = pickle.loads(pickle.dumps(kernel.towards(Y)))
    for part in (X, X[:1]):
        np.testing.assert_allclose(towards(part), values[: len(part)], rtol=1e-4, atol=1e-5)
    doubles = kernel.gram(X.astype(np.float64), Y.astype(np.float64))
    np.testing.assert_allclose(doubles, values, rtol=1e-4, atol=1e-5)
    assert {doubles.dtype, whole.dtype, towards(X).dtype} == {np.dtype(np.float32)}


@pytest.mark.parametrize("kernel", PSD_KERNELS, ids=plain_id)
def test_gram_is_positive_semidefinite(kernel):
    gram = clone(kernel).fit(X).gram(X)
    eigenvalues = np.linalg.eigvalsh(gram.astype(np.float64))
    assert eigenvalues.min() > -1e-5 * eigenvalues.max()
    check_block(gram, str(kernel))


@every_kernel
def test_it_tells_which_rows_it_knows_and_needs(kernel):
    fitted, new = clone(kernel).fit(X), X + np.float32(0.01)
    if kernel.knows_new_rows:
        assert np.isfinite(fitted.gram(new, X)).all()
    else:
        with pytest.raises(ValueError, match="row 0 of X is not among the 55 known rows"):
            fitted.gram(new, X)
    try:
        blind = clone(kernel).fit(None)
    except (TypeError, ValueError):  # it learns from rows
        return
    np.testing.assert_array_equal(blind.gram(X, Y), fitted.gram(X, Y))


@every_kernel
def test_clone_and_pickle_give_the_same_kernel_and_fit_changes_no_parameter(kernel):
    before = repr(kernel.get_params())
    fitted = clone(kernel).fit(X)
    assert repr(fitted.get_params()) == before
    assert repr(make_kernel(kernel)) == repr(kernel)
    for copy in (clone(clone(kernel)).fit(X), pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(copy.gram(X), fitted.gram(X))


def test_the_cluster_kernel_does_not_depend_on_units():
    """Powers of ten; with an absolute reg_covar, iris x 1e-4 has one value everywhere."""
    iris = load_iris().data
    kernel = ProbabilisticClusterKernel(8, 3, random_state=0)
    expected = clone(kernel).fit(iris).gram(iris)
    assert expected.std() > 0.2
    for factor in (1e-10, 1e-4, 1e4, 1e10):
        for dtype in (np.float32, np.float64):
            scaled = (factor * iris).astype(dtype)
            gram = clone(kernel).fit(scaled).gram(scaled)
            np.testing.assert_allclose(gram, expected, atol=1e-3)
