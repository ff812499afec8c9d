"""One list of all kernels, and every law over it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
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
    center,
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
    FunctionKernel(rbf_kernel, {"gamma": 0.3}),
    GaussianProcessKernel(gp.Matern(nu=1.5) + 0.5 * gp.RationalQuadratic()),
    Precomputed(rbf_kernel(np.vstack([X, Y])), rows=np.vstack([X, Y])),
    *(
        ProbabilisticClusterKernel(4, 2, random_state=0, reg_covar=1e-2, **params)
        for params in (
            {},
            {"tolerance": 0},
            {"normalize": "cosine"},
            {"normalize": "max"},
            {"covariance_type": "spherical"},
            {"covariance_type": "full"},
        )
    ),
    ForestKernel(n_estimators=20, random_state=0),
    ForestKernel(RandomForestRegressor(10, random_state=0).fit(X, X[:, 0])),
    TransformerKernel(Nystroem(n_components=10, random_state=0).fit(X)),
    TransformerKernel(RandomTreesEmbedding(5, random_state=0).fit(X)),
    normalize(PairwiseKernel("poly")),
    center(PairwiseKernel("rbf")),
    normalize(center(PairwiseKernel("laplacian"), max_reference=30)),
    0.3 * PairwiseKernel("rbf") + PairwiseKernel("linear"),
    PairwiseKernel("rbf") * PairwiseKernel("linear") * 2,
    ideal_kernel(np.arange(55) % 3, rows=np.vstack([X, Y])),
    ideal_kernel(np.arange(55) % 4 - 1, rows=np.vstack([X, Y])) + PairwiseKernel("rbf"),
]

#: tanh(γ⟨x, y⟩ + c) and the additive χ² kernel are not positive semi-definite in general.
PSD_KERNELS = [k for k in KERNELS if getattr(k, "metric", "") not in {"sigmoid", "additive_chi2"}]

every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=plain_id)


@every_kernel
def test_gram_is_symmetric(kernel):
    gram = clone(kernel).fit(X).gram(X)
    np.testing.assert_allclose(gram, gram.T, atol=1e-6)


@pytest.mark.parametrize("kernel", PSD_KERNELS, ids=plain_id)
def test_gram_is_positive_semidefinite(kernel):
    eigenvalues = np.linalg.eigvalsh(clone(kernel).fit(X).gram(X).astype(np.float64))
    assert eigenvalues.min() > -1e-5 * eigenvalues.max()


@every_kernel
def test_diag_agrees_with_gram(kernel):
    kernel = clone(kernel).fit(X)
    np.testing.assert_allclose(kernel.diag(X), kernel.gram(X).diagonal(), rtol=1e-5, atol=1e-6)


@every_kernel
def test_blocks_agree_with_the_whole(kernel):
    kernel = clone(kernel).fit(X)
    whole, prior = kernel.gram(X), kernel.on(X)
    rows, columns = np.array([5, 0, 17]), np.array([3, 17])
    assert len(prior) == len(X)
    np.testing.assert_allclose(prior.block(rows), whole[np.ix_(rows, rows)], atol=1e-6)
    np.testing.assert_allclose(prior.block(rows, columns), whole[np.ix_(rows, columns)], atol=1e-6)


@every_kernel
def test_rectangular_gram_agrees_with_the_square_one(kernel):
    both = np.vstack([X, Y])
    kernel = clone(kernel).fit(X)
    np.testing.assert_allclose(
        kernel.gram(X, Y), kernel.gram(both)[: len(X), len(X) :], rtol=1e-5, atol=1e-6
    )


@every_kernel
def test_result_is_float32_for_any_input_type(kernel):
    kernel = clone(kernel).fit(X)
    gram = kernel.gram(X.astype(np.float64), Y.astype(np.float64))
    assert gram.dtype == kernel.gram(X).dtype == np.float32
    np.testing.assert_allclose(gram, kernel.gram(X, Y), rtol=1e-4, atol=1e-5)


@every_kernel
def test_towards_fixed_rows_it_is_the_same_kernel(kernel):
    kernel = clone(kernel).fit(X)
    towards = pickle.loads(pickle.dumps(kernel.towards(Y)))
    for rows in (X, X[:1]):
        values = towards(rows)
        assert values.dtype == np.float32
        np.testing.assert_allclose(values, kernel.gram(rows, Y), rtol=1e-4, atol=1e-5)


@every_kernel
def test_it_says_whether_it_knows_new_rows(kernel):
    kernel, new = clone(kernel).fit(X), X + np.float32(0.01)
    if kernel.knows_new_rows:
        assert np.isfinite(kernel.gram(new, X)).all()
    else:
        with pytest.raises(ValueError, match="row 0 of X is not among the 55 known rows"):
            kernel.gram(new, X)


@every_kernel
def test_it_says_whether_fit_must_see_rows(kernel):
    if not kernel.needs_rows:
        blind = clone(kernel).fit(np.zeros((1, 1), np.float32))
        np.testing.assert_array_equal(blind.gram(X, Y), clone(kernel).fit(X).gram(X, Y))


@every_kernel
def test_clone_and_pickle_give_the_same_kernel(kernel):
    expected = clone(kernel).fit(X).gram(X)
    for copy in (clone(clone(kernel)).fit(X), pickle.loads(pickle.dumps(clone(kernel).fit(X)))):
        np.testing.assert_array_equal(copy.gram(X), expected)


@every_kernel
def test_fit_does_not_change_parameters(kernel):
    before = repr(kernel.get_params())
    assert repr(clone(kernel).fit(X).get_params()) == before
    assert repr(make_kernel(kernel)) == repr(kernel)


@every_kernel
@pytest.mark.filterwarnings("ignore:.*not positive semi-definite")
def test_it_passes_its_own_checks(kernel):
    check_block(clone(kernel).fit(X).gram(X), str(kernel))
