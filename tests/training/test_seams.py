"""Where two seams meet in a fit: what a user would take for granted."""

from __future__ import annotations

import numpy as np
import pytest

from dkae import InvertibleNystroem, load, save
from dkae.codespace import interpolate
from dkae.kernels import ForestKernel, PairwiseKernel, normalize
from dkae.networks import ConvolutionalAutoencoder
from dkae.spectral import KernelPCA
from tests.ids import plain_id

IMAGES = np.random.default_rng(0).random((60, 1, 6, 6)).astype(np.float32)


class TestGramsOfOtherRows:
    """The Gram counts; its kernel only if it is of the rows X."""

    def test_the_kernel_is_not_evaluated_on_rows_it_does_not_know(self, rows, tiny):
        kernel = PairwiseKernel("rbf").fit(100 * rows)
        gram = kernel.on(100 * rows)
        model = tiny().fit(rows, gram=gram)
        assert model.kernel_ is None
        assert gram.kernel is kernel  # the argument stays as it was
        with pytest.raises(ValueError, match="pass gram="):
            model.score(rows)
        assert 0 < model.score(rows, gram=gram) <= 1

    @pytest.mark.parametrize(
        "kernel", [ForestKernel(n_estimators=20, random_state=0), PairwiseKernel("rbf")], ids=str
    )
    def test_kernel_pca_decomposes_the_gram_that_it_is_given(self, kernel, rows):
        others = rows[::-1].copy()
        gram = kernel.fit(others).on(others)
        ours = KernelPCA(5, center=False).fit(rows, gram=gram)
        theirs = KernelPCA(5, center=False).fit(rows, gram=gram.block(np.arange(len(rows))))
        np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-4)

    def test_nystroem_needs_a_kernel_for_new_rows(self, rows):
        with pytest.raises(ValueError, match="new rows need a kernel that can be evaluated"):
            InvertibleNystroem(5).fit(rows, gram=rows @ rows.T)


class TestKernelsOfTablesAndImages:
    def test_a_table_has_a_gram(self, rows, tiny):
        table = pytest.importorskip("pandas").DataFrame(rows)
        kernel = PairwiseKernel("rbf").fit(table)
        assert kernel.gamma_ == PairwiseKernel("rbf").fit(rows).gamma_
        assert tiny().fit(table, gram=kernel.on(table)).kernel_ is kernel

    @pytest.mark.parametrize(
        "kernel",
        [
            0.5 * PairwiseKernel("rbf") + PairwiseKernel("linear"),
            normalize(PairwiseKernel("poly")),
            ForestKernel(n_estimators=5, random_state=0),
        ],
        ids=plain_id,
    )
    def test_kernels_of_vectors_see_images_flattened(self, kernel, tiny):
        model = tiny(network=ConvolutionalAutoencoder, kernel=kernel).fit(IMAGES)
        flat = model.kernel_.gram(IMAGES.reshape(60, -1))
        np.testing.assert_allclose(model.prior_gram(IMAGES).block(np.arange(60)), flat, atol=1e-5)
        assert interpolate(model, IMAGES[:2], IMAGES[2:4], 3).shape == (2, 3, 1, 6, 6)

    def test_a_fitted_kernel_in_a_sum_is_not_fitted_again(self, rows, tiny):
        fitted = PairwiseKernel("rbf").fit(10 * rows)
        model = tiny(kernel=0.5 * fitted + PairwiseKernel("linear")).fit(rows)
        assert model.kernel_.kernels_[0].kernels_[0].gamma_ == fitted.gamma_

    def test_a_kernel_is_no_gram_and_a_gram_no_kernel(self, rows, tiny):
        kernel = PairwiseKernel("rbf").fit(rows)
        with pytest.raises(ValueError, match=r"gram is a PairwiseKernel, a kernel: pass it as"):
            tiny().fit(rows, gram=kernel)
        with pytest.raises(ValueError, match=r"kernel=<RowsGram> needs .* fit\(X, gram=P\)"):
            tiny(kernel=kernel.on(rows)).fit(rows)


def test_a_loaded_model_can_be_fitted_again(rows, tiny, tmp_path):
    model = tiny(network__hidden_layer_sizes=(9, 7), network__activation="tanh").fit(rows)
    save(model, tmp_path / "m.safetensors")
    again = load(tmp_path / "m.safetensors").fit(rows)
    assert [layer.config["n_out"] for layer in again.network_.layers] == [9, 7, 5]
    np.testing.assert_array_equal(again.transform(rows), model.transform(rows))
