"""How an array lies in memory changes no result: reversed, transposed, read-only, on disk, ..."""

from __future__ import annotations

import copy
import functools

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse

from dkae import baselines, codespace, metrics
from dkae.kernels import Precomputed
from dkae.spectral import KernelPCA, PreImage, spectral_clustering, spectral_embedding
from tests.laws.odd import (
    KERNELS,
    WIDTH,
    N,
    P,
    X,
    Y,
    clusters,
    fitted,
    fitted_kernel,
    layer,
    pca_of_gram,
    preimage,
    stack,
)

CODES = np.random.default_rng(1).uniform(0.1, 1, (N, WIDTH)).astype(np.float32)


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


def on_disk(a, path):
    memory = np.memmap(path, dtype=a.dtype, mode="w+", shape=a.shape)
    memory[:] = a
    memory.flush()
    return np.memmap(path, dtype=a.dtype, mode="r", shape=a.shape)


def with_gaps(a):
    wide = np.zeros((2 * len(a), 3 * a.shape[1]), a.dtype)
    wide[::2, ::3] = a
    return wide[::2, ::3]


class Subclass(np.ndarray):
    """An array with another name."""


#: Each returns the same numbers in the same order, which lie in memory in another way.
LAYOUTS = {
    "reversed rows": lambda a: a[::-1].copy()[::-1],
    "reversed columns": lambda a: np.fliplr(np.fliplr(a).copy()),
    "reversed all": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "Fortran": np.asfortranarray,
    "transposed": lambda a: a.T.copy().T,
    "with gaps": with_gaps,
    "read-only": read_only,
    "other byte order": lambda a: a.astype(a.dtype.newbyteorder()),
    "subclass": lambda a: a.view(Subclass),
    "not aligned": lambda a: np.frombuffer(b"x" + a.tobytes(), a.dtype, offset=1).reshape(a.shape),
    "on disk": on_disk,
}


def fitted_codes(model):
    def codes(a):
        return model().fit(a).transform(X)

    return codes


def model_methods(name):
    model = fitted(name)
    return {
        f"{name} transform": model.transform,
        f"{name} gram": getattr(model, "gram", None) or model.reconstruct_gram,
    }


ROWS = {
    "stack fit": fitted_codes(stack),
    "stack fit, no scaling": fitted_codes(lambda: stack(standardize=False)),
    "layer fit": fitted_codes(layer),
    "layer fit, pck": fitted_codes(lambda: layer(kernel=clusters())),
    "pca fit": fitted_codes(lambda: KernelPCA(2)),
    "preimage fit": lambda a: PreImage(alpha=0.1).fit(a, X).predict(X),
    "preimage fit, y": lambda a: PreImage(alpha=0.1).fit(CODES, a).predict(CODES),
    **model_methods("stack"),
    **model_methods("layer"),
    **model_methods("pca"),
    "stack score": lambda a: fitted("stack").score(a),
    "stack score, gram": lambda a: fitted("stack").score(a, gram=P),
    "stack gram, Y": lambda a: fitted("stack").gram(X[:3], a),
    "stack prior": lambda a: fitted("stack").prior_gram(a).block(np.arange(N)),
    "code_pca": lambda a: codespace.code_pca(fitted("stack"), a, 2).transform(X),
    "denoise": lambda a: codespace.denoise(fitted("stack"), a, X, 2),
    "denoise, clean": lambda a: codespace.denoise(fitted("stack"), X, a, 2),
    "traverse": lambda a: codespace.traverse(fitted("layer"), a),
    "traverse, x": lambda a: codespace.traverse(fitted("layer"), X, x=a[:1]),
    "interpolate": lambda a: codespace.interpolate(fitted("stack"), a, X),
    "class_means": lambda a: codespace.class_means(fitted("stack"), a, Y)[1],
    "combine": lambda a: codespace.combine(fitted("stack"), [(1, a), (-1, X[:2])]),
    "reconstruction_error": lambda a: metrics.reconstruction_error(a, X / 2),
    "reconstruction_r2": lambda a: metrics.reconstruction_r2(X / 2, a),
    "psnr": lambda a: metrics.psnr(a, X / 2),
    "label score": lambda a: metrics.label_alignment_score(fitted("stack"), a, Y),
    "centered score": lambda a: metrics.centered_alignment_score(fitted("stack"), a),
    "r2 score": lambda a: metrics.reconstruction_r2_score(fitted("stack"), a),
    "baselines": lambda a: baselines.compare_with_baselines(fitted("stack"), a)[3].alignment,
    "pck transform": lambda a: fitted_kernel("pck").transform(a),
    "precomputed rows": lambda a: Precomputed(P, a).fit(X).gram(X[3:5]),
}
CODE_FUNCTIONS = {
    "stack inverse": lambda a: fitted("stack").inverse_transform(a),
    "layer inverse": lambda a: fitted("layer").inverse_transform(a),
    "pca inverse": lambda a: fitted("pca").inverse_transform(a),
    "preimage predict": lambda a: preimage().predict(a),
    "code_gram": lambda a: metrics.code_gram(a).block(np.arange(N)),
    "alignment_loss_curve": lambda a: metrics.alignment_loss_curve(a, P),
    "spectral_embedding": lambda a: np.abs(spectral_embedding(a, 2)),
    "spectral_clustering": lambda a: spectral_clustering(a, 2, random_state=0),
}
MATRICES = {
    "stack fit": lambda a: stack().fit(X, gram=a).transform(X),
    "stack score": lambda a: fitted("stack").score(X, gram=a),
    "pca fit": lambda a: np.abs(KernelPCA(2).fit_transform(X, gram=a)),
    "pca fit, lanczos": lambda a: np.abs(
        KernelPCA(2, solver="lanczos", random_state=0).fit_transform(X, gram=a)
    ),
    "pca transform": lambda a: pca_of_gram().transform(X, gram=a),
    "precomputed": lambda a: Precomputed(a).fit(X).gram(X),
    "alignment": lambda a: metrics.alignment(a, P**2),
    "centered_alignment": lambda a: metrics.centered_alignment(P**2, a),
    "alignment_loss": lambda a: metrics.alignment_loss(a, P**2),
    "relative_error": lambda a: metrics.relative_error(P**2, a),
    "compare_grams": lambda a: metrics.compare_grams(CODES, a).scale,
    "ideal_loss": lambda a: metrics.ideal_loss(a, Y),
    "mean_over_blocks": lambda a: metrics.mean_over_blocks(metrics.alignment, a, P**2, 5, 0),
    "prior of a curve": lambda a: metrics.alignment_loss_curve(CODES, a),
}
#: A function, and what it is a function of.
CASES = {
    **{f"{name}, rows": (function, X) for name, function in ROWS.items()},
    **{f"{name}, codes": (function, CODES) for name, function in CODE_FUNCTIONS.items()},
    **{f"{name}, matrix": (function, P) for name, function in MATRICES.items()},
}


def laid_out(layout, a, tmp_path):
    return on_disk(a, tmp_path / "array") if layout == "on disk" else LAYOUTS[layout](a)


@functools.cache
def expected(case):
    function, a = CASES[case]
    return function(a)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", CASES)
def test_a_layout_changes_nothing(layout, case, tmp_path):
    function, a = CASES[case]
    odd = laid_out(layout, a, tmp_path)
    np.testing.assert_array_equal(odd, a)
    np.testing.assert_allclose(function(odd), expected(case), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", KERNELS)
def test_a_layout_changes_no_kernel(layout, name, tmp_path):
    odd = laid_out(layout, X, tmp_path)
    kernel, rows = fitted_kernel(name), np.arange(N)
    again = copy.copy(KERNELS[name]).fit(odd, Y)
    grams = [again.gram(odd), kernel.gram(odd), kernel.gram(X, odd), kernel.values(odd, X)]
    grams += [kernel.on(odd).block(rows), again.on(odd).block(rows, rows)]
    diagonals = [kernel.diag(odd), again.on(odd).diagonal()]
    for gram in grams:
        np.testing.assert_allclose(gram, kernel.gram(X), rtol=1e-5, atol=1e-5)
    for diagonal in diagonals:
        np.testing.assert_allclose(diagonal, kernel.diag(X), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("axis", [0, 1])
def test_rows_without_strides_are_rows(axis):
    one = X[:1] if axis == 0 else X[:, :1]
    rows = np.broadcast_to(one, X.shape)
    for name in ("stack", "layer", "pca"):
        model = fitted(name)
        codes = model.transform(rows)
        np.testing.assert_allclose(codes, model.transform(rows.copy()), atol=1e-6)
        assert np.isfinite(model.inverse_transform(np.broadcast_to(codes[:1], codes.shape))).all()
    for name in set(KERNELS) - {"ideal", "precomputed"}:
        kernel = fitted_kernel(name)
        np.testing.assert_allclose(kernel.gram(rows), kernel.gram(rows.copy()), atol=1e-6)
    matrix = np.broadcast_to(P[:1, :1], P.shape)
    assert metrics.alignment(matrix, P) == metrics.alignment(matrix.copy(), P)


#: What is no array, but has rows.
OTHERS = {
    "list": np.ndarray.tolist,
    "table": pd.DataFrame,
    "tensor": torch.tensor,
    "sparse by rows": sparse.csr_array,
    "sparse by entries": sparse.coo_array,
}


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_take_rows_that_are_no_array(kind, name):
    rows, kernel = OTHERS[kind](X), fitted_kernel(name)
    if name.startswith("pck") and kind.startswith("sparse"):
        with pytest.raises(TypeError, match="Sparse data was passed for X, but dense data is"):
            copy.copy(kernel).fit(rows)
        return
    again = copy.copy(KERNELS[name]).fit(rows, Y)
    for gram in (kernel.gram(rows), kernel.gram(X, rows), again.on(rows).block(np.arange(N))):
        np.testing.assert_allclose(gram, kernel.gram(X), rtol=1e-5, atol=1e-5)
