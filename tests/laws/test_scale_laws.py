"""Measures and kernels that are free of scale are so from the smallest to the largest numbers.

The oracle is the same function of ordinary numbers: f(s a, t b) = f(a, b).
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dkae import alignment, metrics
from dkae.kernels import PairwiseKernel
from dkae.kernels.formulas import rows_module
from dkae.metrics import comparison
from dkae.spectral import KernelPCA, spectral_clustering, spectral_embedding
from tests.laws.odd import N, P, X, Y, layer, stack

CODES = np.random.default_rng(1).uniform(-1, 1, (N, 3))
Q = CODES @ CODES.T
#: Of numbers in float64, and in float32.
WIDE = [1e-300, 1e-200, 1e-160, 1e-100, 1e-30, 1e30, 1e100, 1e150, 1e170, 1e300]
NARROW = [1e-37, 1e-30, 1e-20, 1e20, 1e30, 1e38]
MEASURES = [
    metrics.alignment,
    metrics.centered_alignment,
    metrics.alignment_loss,
    metrics.relative_error,
]
wide = pytest.mark.parametrize("s", WIDE)
narrow = pytest.mark.parametrize("s", NARROW)
every_measure = pytest.mark.parametrize("measure", MEASURES, ids=lambda m: m.__name__)


@pytest.fixture(params=[5, 1024], ids=["small tiles", "one tile"])
def tiles(request, monkeypatch):
    monkeypatch.setattr(comparison, "N_TILE_ROWS", request.param)


@wide
@every_measure
@pytest.mark.usefixtures("tiles")
def test_measures_of_matrices(measure, s):
    expected = measure(P, Q)
    for a, b in ((s * P, Q), (P, s * Q), (s * P, s * Q), (s * P, Q / s)):
        assert measure(a, b) == pytest.approx(expected, rel=1e-9)


@wide
@pytest.mark.usefixtures("tiles")
def test_measures_of_codes(s):
    expected = metrics.compare_grams(CODES, P)
    found = metrics.compare_grams(s * CODES, P)
    assert found.alignment == pytest.approx(expected.alignment, rel=1e-6)
    assert found.centered_alignment == pytest.approx(expected.centered_alignment, rel=1e-6)
    curve = metrics.alignment_loss_curve(CODES, P)
    np.testing.assert_allclose(metrics.alignment_loss_curve(s * CODES, P), curve, rtol=1e-9)
    np.testing.assert_allclose(metrics.alignment_loss_curve(CODES, s * P), curve, rtol=1e-9)
    loss = metrics.ideal_loss(metrics.code_gram(CODES), Y)
    assert metrics.ideal_loss(metrics.code_gram(s * CODES), Y) == pytest.approx(loss, rel=1e-6)


@pytest.mark.parametrize("s", [1e-130, 1e-20, 1e20, 1e130])
def test_the_factor_between_codes_and_kernel_has_the_scales_of_both(s):
    expected = metrics.compare_grams(CODES, P).scale
    assert metrics.compare_grams(s * CODES, P).scale == pytest.approx(expected / s**2, rel=1e-6)
    assert metrics.compare_grams(CODES, s * P).scale == pytest.approx(expected * s, rel=1e-6)


def test_a_factor_beyond_all_numbers_is_an_error():
    with pytest.raises(ValueError, match=r"b is so much larger than a .* no number in float64"):
        _ = metrics.compare_grams(1e-160 * CODES, P).scale


@every_measure
def test_a_range_beyond_squares_is_an_error(measure, monkeypatch):
    monkeypatch.setattr(comparison, "N_TILE_ROWS", 5)
    a = np.diag(np.where(np.arange(N) < 8, 1e-200, 1e100))
    with pytest.raises(ValueError, match=r"a has entries near 1e\+100 .* leave out one kind"):
        measure(a, P)
    monkeypatch.setattr(comparison, "N_TILE_ROWS", 1024)
    assert np.isfinite(measure(a, P))


@wide
def test_reconstructions(s):
    rows, back = X.astype(np.float64), X[::-1].astype(np.float64)
    r2 = metrics.reconstruction_r2(rows, back)
    assert metrics.reconstruction_r2(s * rows, s * back) == pytest.approx(r2, rel=1e-9)
    psnr = metrics.psnr(rows, back)
    assert metrics.psnr(s * rows, s * back, peak=s) == pytest.approx(psnr, rel=1e-9)


def test_an_error_whose_square_is_no_number():
    with pytest.raises(ValueError, match="X and X_hat differ by so much"):
        metrics.reconstruction_error(1e200 * CODES, -1e200 * CODES)
    assert metrics.reconstruction_error(1e200 * CODES, 1e200 * CODES) == 0


@wide
def test_spectral_embedding(s):
    codes = np.abs(CODES)
    expected = np.abs(spectral_embedding(codes, 2))
    np.testing.assert_allclose(np.abs(spectral_embedding(s * codes, 2)), expected, rtol=1e-6)
    assert len(set(spectral_clustering(s * codes, 2, random_state=0))) == 2


@pytest.mark.parametrize("name", [*alignment.MEASURES, "alignment"])
@pytest.mark.parametrize(
    ("s", "dtype"),
    [
        *((s, torch.float64) for s in WIDE if s < 1e300),
        *((s, torch.float32) for s in NARROW),
    ],
    ids=str,
)
def test_losses_in_torch(name, s, dtype):
    measure = getattr(alignment, name)
    code, prior = torch.tensor(P, dtype=dtype), torch.tensor(Q, dtype=dtype)
    expected = measure(code, prior).item()
    for a, b in ((s * code, prior), (code, s * prior), (s * code, prior / s)):
        a.requires_grad_()
        loss = measure(a, b)
        assert loss.item() == pytest.approx(expected, rel=1e-4)
        loss.backward()
        # What a step of size 1 in units of a changes.
        assert torch.isfinite(a.grad * a.detach()).all()


# --- kernels -------------------------------------------------------------------------------------

FREE = ["rbf", "laplacian", "chi2", "poly", "sigmoid"]


@narrow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("metric", "gamma"),
    [*((m, "median") for m in FREE), ("rbf", "scale"), ("poly", "scale"), ("cosine", "median")],
)
def test_kernels_with_a_bandwidth_from_the_data(metric, gamma, s, dtype):
    rows = X.astype(dtype)
    kernel = PairwiseKernel(metric, gamma=gamma)
    expected = kernel.fit(rows).gram(rows)
    scaled = (rows * dtype(s)).astype(dtype)
    kernel = PairwiseKernel(metric, gamma=gamma).fit(scaled)
    np.testing.assert_allclose(kernel.gram(scaled), expected, rtol=2e-5, atol=1e-6)
    part, diagonal = kernel.gram(scaled, scaled[:5]), kernel.on(scaled).diagonal()
    np.testing.assert_allclose(part, expected[:, :5], rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(diagonal, expected.diagonal(), rtol=2e-5, atol=1e-6)


@narrow
@pytest.mark.parametrize("metric", ["rbf", "laplacian", "poly", "sigmoid", "cosine"])
def test_formulas_in_torch(metric, s):
    scaled = X * np.float32(s)
    kernel = PairwiseKernel(metric).fit(scaled)
    x = torch.tensor(scaled, requires_grad=True)
    values = rows_module(kernel, scaled)(x)
    np.testing.assert_allclose(values.detach(), kernel.gram(scaled), rtol=1e-4, atol=1e-5)
    values.sum().backward()
    if s > 1e-37:  # there, slopes themselves leave float32
        assert x.grad.abs().max() * s < 1e3


@pytest.mark.parametrize("s", [1e-160, 1e160])
@pytest.mark.parametrize("gamma", ["median", "scale"])
def test_a_bandwidth_beyond_all_numbers_is_an_error(s, gamma):
    with pytest.raises(ValueError, match=r"X has entries so large or small .* scale X"):
        PairwiseKernel(gamma=gamma).fit(s * X.astype(np.float64))


@narrow
def test_kernel_pca(s):
    expected = np.abs(KernelPCA(3).fit_transform(X))
    scaled = X * np.float32(s)
    model = KernelPCA(3).fit(scaled)
    np.testing.assert_allclose(np.abs(model.transform(scaled)), expected, atol=1e-4)


@pytest.mark.parametrize("s", [1e-30, 1e30])
@pytest.mark.parametrize("make", [stack, layer], ids=lambda make: make.__name__)
def test_models(make, s):
    # The identity: rows in [0, 1] would have a sigmoid, those of another unit would not.
    expected = make(output_activation="identity").fit(X)
    model = make(output_activation="identity").fit(X * np.float32(s))
    assert model.alignment_ == pytest.approx(expected.alignment_, rel=1e-3)
    assert model.centered_alignment_ == pytest.approx(expected.centered_alignment_, abs=1e-2)
    assert model.r2_ == pytest.approx(expected.r2_, abs=1e-2)
    assert np.isfinite(model.gram(X * np.float32(s))).all()
