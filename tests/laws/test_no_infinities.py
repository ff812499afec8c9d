"""Numbers so large or small that arithmetic fails: no NaN is handed out in silence."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer

from dkae import metrics
from dkae.kernels import PairwiseKernel, TransformerKernel, center
from dkae.spectral import KernelPCA, PreImage
from tests.laws.odd import P, X, fitted, layer, pca_of_gram, preimage, stack

LARGE = X * np.float32(3e38)
MODELS = pytest.mark.parametrize("name", ["stack", "layer"])


@MODELS
@pytest.mark.parametrize("method", ["transform", "gram"])
def test_rows_that_a_network_does_not_reach(method, name):
    rows = X.copy()
    rows[3] = 3e38
    message = r"row 3 of X, with entries up to 3e\+38, has no finite codes: .* in the range of the"
    with pytest.raises(ValueError, match=message):
        getattr(fitted(name), method)(rows)


def test_codes_that_a_network_does_not_reach():
    codes = np.full((2, 3), 3e38)
    message = r"row 0 of codes, with entries up to 3e\+38, has no finite rows: .* pass codes in the"
    with pytest.raises(ValueError, match=message):
        fitted("layer").inverse_transform(codes)


def test_products_of_codes_that_leave_float32():
    # The linear path of a kernel layer grows with rows, which have no bound.
    with pytest.raises(ValueError, match=r"the Gram matrix of the codes of X has NaN or infinite"):
        fitted("layer").gram(X * np.float32(1e30))


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_a_kernel_layer_whose_kernel_leaves_float32(kernel):
    with pytest.raises(
        ValueError, match=r"kernel of X \(in float32\) has NaN or infinite .*scale X"
    ):
        layer(kernel=kernel, gamma=1.0).fit(X * np.float32(1e30))


@pytest.mark.parametrize(
    ("params", "s"),
    [
        ({"learning_rate_init": 1e3}, 1.0),
        ({"learning_rate_init": 1e3, "standardize": False}, 1.0),
        ({"learning_rate_init": 1e30}, 1.0),
        ({"standardize": False}, 1e30),
        ({"standardize": False}, 1e-30),
        ({"kernel": "linear"}, 1e15),
        ({"kernel": "linear"}, 1e-15),
        ({"alignment": "centered"}, 1e30),
        ({"input_noise": 1e30}, 1.0),
    ],
    ids=str,
)
@pytest.mark.parametrize("make", [stack, layer], ids=["stack", "layer"])
@pytest.mark.filterwarnings("ignore:the (codes|reconstructions) are")
def test_training_ends_with_numbers_or_says_where_it_failed(make, params, s):
    model = make(max_iter=3, **params)
    try:
        model.fit(X * np.float32(s))
    except FloatingPointError as error:
        message = str(error)
    else:
        assert np.isfinite(model.transform(X * np.float32(s))).all()
        assert np.isfinite([model.r2_, model.alignment_, model.kernel_scale_]).all()
        return
    assert "step" in message
    assert "lower learning_rate_init" in message
    assert not hasattr(model, "network_")


def test_a_loss_that_diverges_has_its_step():
    message = (
        r"the loss became (nan|inf) at step \d+ of epoch \d+ of 'fine-tuning' in training: scale X"
    )
    with pytest.raises(FloatingPointError, match=message):
        stack(max_iter=9, learning_rate_init=1e25, learning_rate="constant").fit(X)


def test_a_failure_keeps_the_former_fit():
    model = stack().fit(X)
    codes = model.transform(X)
    with pytest.raises(FloatingPointError, match=r"the loss became"):
        model.set_params(learning_rate_init=1e30, max_iter=9, learning_rate="constant").fit(X)
    np.testing.assert_array_equal(model.transform(X), codes)


class TestKernelPCA:
    def test_scores_that_leave_the_type_of_the_rows(self):
        with pytest.raises(ValueError, match=r"the scores of X has NaN or .* pass X in float64"):
            pca_of_gram().transform(X, gram=1e39 * P)
        assert np.isfinite(pca_of_gram().transform(X.astype(np.float64), gram=1e39 * P)).all()

    def test_products_of_features_that_leave_their_type(self):
        kernel = TransformerKernel(FunctionTransformer())
        for solver in ("dense", "lanczos"):
            model = KernelPCA(2, kernel=kernel, solver=solver, random_state=0)
            with pytest.raises(ValueError, match=r"the Gram matrix of kernel of .* scale X, or"):
                model.fit(X * np.float32(1e30))

    def test_eigenvalues_whose_inverse_leaves_float32(self):
        with pytest.raises(ValueError, match=r"1 / √λ of gram .* too small; scale it up"):
            KernelPCA(2, center=False, solver="lanczos").fit(X, gram=(1e-300 * P).view(Lazy))

    def test_pre_images_that_leave_float32(self):
        model = PreImage(kernel="poly", alpha=0.1).fit(X[:, :3], X)
        with pytest.raises(ValueError, match=r"the pre-image of X has NaN .* too far from those"):
            model.predict(np.full((1, 3), 1e30))
        assert np.isfinite(preimage().predict(np.full((1, 3), 1e300))).all()


class Lazy(np.ndarray):
    """A matrix that is read block by block, in float32."""

    def block(self, rows, columns=None):
        return np.asarray(self)[np.ix_(rows, rows if columns is None else columns)]


def test_a_mean_that_leaves_float32():
    with pytest.raises(ValueError, match=r"the mean of kernel 'linear' has NaN or .*: scale X"):
        center(PairwiseKernel("linear")).fit(X * np.float32(1e19))


def test_rows_that_are_all_the_same_have_no_variance():
    rows = np.full((23, 3), 0.1)  # whose mean is not 0.1, by round-off
    assert metrics.reconstruction_r2(rows, rows + 1) == 0
    assert metrics.reconstruction_r2(rows, rows) == 1
    assert stack(output_activation="identity").fit(np.full((24, 3), 0.3)).r2_ == 0
