"""Whatever comes in, a documented error or finite numbers come out.

An error is ours or scikit-learn's, and names the parameter; none is NumPy's, SciPy's or torch's.
"""

from __future__ import annotations

import copy
import re
import traceback
from numbers import Number

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.base import BaseEstimator

from dkae import baselines, codespace, metrics
from dkae.grams import Gram
from dkae.kernels import PairwiseKernel, Precomputed
from dkae.spectral import KernelPCA, PreImage, spectral_embedding
from tests.laws.odd import (
    KERNELS,
    WIDTH,
    D,
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

# What is odd may be warned of, in any words.
pytestmark = pytest.mark.filterwarnings("ignore")

#: What a message may call a parameter; those of one letter that are words begin it.
NAMED = re.compile(
    r"(?<!\w)(X|Y|X_hat|codes|gram|kernel|rows|prior|x|y|labels|terms\[0\]|max_iter)(?!\w)"
    r"|^[ab][ ,.]"
)
FOREIGN = ("ufunc", "object has no attribute", "not iterable", "has no len", "broadcast together")


def is_finite(result) -> bool:
    """Say whether all numbers are finite; what a fitted model holds counts too."""
    if isinstance(result, Gram):
        return is_finite(result.block(np.arange(len(result)))) and is_finite(result.diagonal())
    if isinstance(result, BaseEstimator):
        return all(is_finite(v) for name, v in vars(result).items() if name.endswith("_"))
    if isinstance(result, torch.nn.Module):
        return all(p.isfinite().all() for p in result.parameters())
    if isinstance(result, (list, tuple)):
        return all(map(is_finite, result))
    if isinstance(result, dict):
        return all(map(is_finite, result.values()))
    if sparse.issparse(result):
        result = result.data
    if isinstance(result, np.ndarray) and result.dtype.kind == "f":
        return bool(np.isfinite(result).all())
    return not isinstance(result, Number) or bool(np.isfinite(result))


def check(call) -> None:
    """Call it, and accept a documented error or finite numbers."""
    error = None
    try:
        with np.errstate(all="ignore"):
            assert is_finite(call())
    except (ValueError, TypeError, FloatingPointError) as raised:
        error = raised
    if error is None:
        return
    frame = list(traceback.walk_tb(error.__traceback__))[-1][0]
    assert frame.f_globals["__name__"].split(".")[0] in ("dkae", "sklearn"), repr(error)
    assert NAMED.search(str(error)), str(error)
    # Their words may only stand behind ours.
    first = str(error).partition("cannot be used:")[0]
    assert not any(words in first for words in FOREIGN), str(error)


def with_entry(a, value, at=(3, 1)):
    a = a.astype(np.float64)
    a[at] = value
    return a


# --- rows ----------------------------------------------------------------------------------------

BAD_ROWS = {
    "None": None,
    "number": 3,
    "string": "abc",
    "empty list": [],
    "list of an empty list": [[]],
    "dict": {"a": 1},
    "function": len,
    "vector": X[0],
    "scalar array": np.array(1.0),
    "images": X[:, :, None],
    "ragged": [[1.0, 2.0], [1.0]],
    "strings": np.full((N, D), "a"),
    "objects": np.array([[1.0, "a", None, 2.0]] * N, dtype=object),
    "complex": X + 1j,
    "dates": np.full((N, D), np.datetime64("2020-01-01")),
    "records": np.zeros(N, dtype=[("a", float), ("b", float)]),
    "sparse": sparse.coo_array(X),
    "NaN": with_entry(X, np.nan),
    "infinity": with_entry(X, -np.inf),
    "beyond float32": with_entry(X, 1e39),
    "one of 3e38": with_entry(X, 3e38),
    "3e38": X * np.float32(3e38),
    "1e300": X.astype(float) * 1e300,
    "1e30": X * np.float32(1e30),
    "1e19": X * np.float32(1e19),
    "1e-30": X * np.float32(1e-30),
    "1e-40": X * np.float32(1e-40),
    "1e-300": X.astype(float) * 1e-300,
    "zeros": 0 * X,
    "constant": np.full((N, D), 0.3),
    "one row": X[:1],
    "no rows": X[:0],
    "no features": X[:, :0],
    "fewer features": X[:, :2],
    "more features": np.hstack([X, X]),
    "negative": -X,
    "masked": np.ma.masked_array(X, X > 0.5),
    "tensor with gradient": torch.tensor(X, requires_grad=True),
    "tensor of bfloat16": torch.tensor(X).bfloat16(),
    "table of strings": pd.DataFrame({name: ["x"] * N for name in "abcd"}),
    "huge integers": [[10**400] * D] * N,
    "largest integers": np.full((N, D), np.iinfo(np.int64).max),
}


def narrow(a):
    """Return the first columns, as many as codes have, of what has the features of X."""
    return a[:, :WIDTH] if isinstance(a, np.ndarray) and a.shape[1:] == (D,) else a


ROW_FUNCTIONS = {
    "stack fit": lambda a: stack().fit(a),
    "stack fit, no scaling": lambda a: stack(standardize=False, kernel="linear").fit(a),
    "stack fit, missing": lambda a: stack(missing="mask").fit(a),
    "layer fit": lambda a: layer().fit(a),
    "layer fit, linear": lambda a: layer(kernel="linear").fit(a),
    "layer fit, pck": lambda a: layer(kernel=clusters()).fit(a),
    "stack transform": lambda a: fitted("stack").transform(a),
    "stack inverse": lambda a: fitted("stack").inverse_transform(narrow(a)),
    "stack gram": lambda a: fitted("stack").gram(X, a),
    "stack score": lambda a: fitted("stack").score(a),
    "layer transform": lambda a: fitted("layer").transform(a),
    "layer inverse": lambda a: fitted("layer").inverse_transform(narrow(a)),
    "layer gram": lambda a: fitted("layer").gram(a),
    "layer prior": lambda a: fitted("layer").prior_gram(a),
    "pca fit": lambda a: KernelPCA(2).fit(a),
    "pca fit, lanczos": lambda a: KernelPCA(2, kernel="linear", solver="lanczos").fit(a),
    "pca fit, features": lambda a: KernelPCA(2, kernel=KERNELS["transformer"]).fit(a),
    "pca transform": lambda a: fitted("pca").transform(a),
    "pca inverse": lambda a: fitted("pca").inverse_transform(narrow(a)),
    "pca gram": lambda a: fitted("pca").reconstruct_gram(X, a),
    "preimage fit": lambda a: PreImage().fit(a, X),
    "preimage fit, y": lambda a: PreImage(alpha=0.1).fit(X, a),
    "preimage predict": lambda a: preimage().predict(narrow(a)),
    "pck transform": lambda a: fitted_kernel("pck").transform(a),
    "code_pca": lambda a: codespace.code_pca(fitted("stack"), a, 2).transform(X),
    "denoise": lambda a: codespace.denoise(fitted("stack"), a, X, 2),
    "traverse": lambda a: codespace.traverse(fitted("layer"), a),
    "traverse, x": lambda a: codespace.traverse(fitted("layer"), X, x=a),
    "interpolate": lambda a: codespace.interpolate(fitted("stack"), a, X),
    "interpolate, y": lambda a: codespace.interpolate(fitted("pca"), X, a),
    "class_means": lambda a: codespace.class_means(fitted("stack"), a, Y),
    "combine": lambda a: codespace.combine(fitted("stack"), [(1, a), (1, X)]),
    "code_gram": metrics.code_gram,
    "alignment_loss_curve": lambda a: metrics.alignment_loss_curve(a, P),
    "reconstruction_error": lambda a: metrics.reconstruction_error(a, X),
    "reconstruction_r2": lambda a: metrics.reconstruction_r2(X, a),
    "reconstruction_r2, both": lambda a: metrics.reconstruction_r2(a, a),
    "psnr": lambda a: metrics.psnr(2 * X, a),
    "centered score": lambda a: metrics.centered_alignment_score(fitted("stack"), a),
    "label score": lambda a: metrics.label_alignment_score(fitted("stack"), a, Y),
    "r2 score": lambda a: metrics.reconstruction_r2_score(fitted("layer"), a),
    "spectral_embedding": lambda a: spectral_embedding(a, 2),
    "baselines": lambda a: baselines.compare_with_baselines(fitted("stack"), a),
    "precomputed rows": lambda a: Precomputed(P, a).fit(X),
}


@pytest.mark.parametrize("rows", BAD_ROWS)
@pytest.mark.parametrize("function", ROW_FUNCTIONS)
def test_rows(function, rows):
    check(lambda: ROW_FUNCTIONS[function](BAD_ROWS[rows]))


@pytest.mark.parametrize("rows", BAD_ROWS)
@pytest.mark.parametrize("name", sorted(set(KERNELS) - {"function"}))  # whose errors are its own
def test_kernels(name, rows):
    bad, kernel = BAD_ROWS[rows], fitted_kernel(name)
    for call in (
        lambda: copy.copy(KERNELS[name]).fit(bad, Y),
        lambda: kernel.gram(bad),
        lambda: kernel.gram(X, bad),
        lambda: kernel.values(bad),
        lambda: kernel.diag(bad),
        lambda: kernel.on(bad),
    ):
        check(call)


# --- matrices ------------------------------------------------------------------------------------


class Blocks:
    """A Gram of a user's, whose blocks are odd."""

    def __init__(self, change):
        self.change = change

    def __len__(self):
        return N

    def block(self, rows, columns=None):
        return self.change(P[np.ix_(rows, rows if columns is None else columns)])


BAD_GRAMS = {
    "number": 3,
    "string": "abc",
    "empty": [],
    "dict": {"a": 1},
    "function": len,
    "vector": P[0],
    "cube": P[:, :, None],
    "ragged": [[1.0, 2.0], [1.0]],
    "strings": np.full((N, N), "a"),
    "objects": P.astype(object),
    "complex": P + 1j,
    "sparse": sparse.csr_array(P),
    "not square": P[:, :-1],
    "smaller": P[:-1, :-1],
    "not symmetric": P + np.triu(P, 1),
    "NaN": with_entry(with_entry(P, np.nan), np.nan, (1, 3)),
    "infinity": with_entry(P, np.inf, (2, 2)),
    "zero": 0 * P,
    "zero block": np.diag(np.arange(N) >= 12).astype(float),
    "ones": np.ones((N, N)),
    "negative": -P,
    "indefinite": P - 1,
    **{f"{s:g}": s * P for s in (1e38, 3e38, 1e39, 1e155, 1e300, 1e-30, 1e-40, 1e-160, 1e-300)},
    "float16": (6e4 * P).astype(np.float16),
    "truth values": P > 0.5,
    "whole numbers": (100 * P).astype(np.int8),
    "masked": np.ma.masked_array(P, P > 0.9),
    "tensor with gradient": torch.tensor(P, requires_grad=True),
    "a kernel": PairwiseKernel(),
    "a class": PairwiseKernel,
    "rows": X,
    "blocks of NaN": Blocks(lambda block: block * np.nan),
    "blocks of one column": Blocks(lambda block: block[:, :1]),
    "no blocks": Blocks(lambda block: None),
    "blocks of text": Blocks(lambda block: "abc"),
    "complex blocks": Blocks(lambda block: block * 1j),
    "sparse blocks": Blocks(sparse.csr_array),
    "large blocks": Blocks(lambda block: block * 1e38),
    "tiny blocks": Blocks(lambda block: block * 1e-300),
}
GRAM_FUNCTIONS = {
    "stack fit": lambda a: stack().fit(X, gram=a),
    "stack fit, centered": lambda a: stack(alignment="centered").fit(X, gram=a),
    "stack fit, bures": lambda a: stack(alignment="bures").fit(X, gram=a),
    "stack fit, distillation": lambda a: stack(distillation=0.1).fit(X, gram=a),
    "stack score": lambda a: fitted("stack").score(X, gram=a),
    "pca fit": lambda a: KernelPCA(2).fit(X, gram=a),
    "pca fit, lanczos": lambda a: KernelPCA(2, center=False, solver="lanczos").fit(X, gram=a),
    "pca transform": lambda a: pca_of_gram().transform(X, gram=a),
    "precomputed": lambda a: Precomputed(a, X).fit(X).gram(X[:3]),
    "alignment": lambda a: metrics.alignment(a, P),
    "centered_alignment": lambda a: metrics.centered_alignment(P, a),
    "alignment_loss": lambda a: metrics.alignment_loss(a, a),
    "relative_error": lambda a: metrics.relative_error(P, a),
    "compare_grams": lambda a: metrics.compare_grams(X, a).scale,
    "ideal_loss": lambda a: metrics.ideal_loss(a, Y),
    "mean_over_blocks": lambda a: metrics.mean_over_blocks(metrics.alignment, a, P, 5, 0),
    "alignment_loss_curve": lambda a: metrics.alignment_loss_curve(X, a),
    "baselines": lambda a: baselines.compare_with_baselines(fitted("stack"), X, gram=a),
    # Where a kernel is expected.
    "kernel of a stack": lambda a: stack(kernel=a).fit(X),
    "kernel of a pca": lambda a: KernelPCA(kernel=a).fit(X),
    "kernel of a preimage": lambda a: PreImage(kernel=a).fit(X, X),
    "kernel of a sum": lambda a: (
        (PairwiseKernel() + PairwiseKernel()).set_params(kernels=[PairwiseKernel(), a]).fit(X)
    ),
    "kernel to be centred": lambda a: KERNELS["center"].__class__(a).fit(X),
    "kernel to be normalised": lambda a: stack(kernel=KERNELS["normalize"].__class__(a)).fit(X),
    "metric": lambda a: PairwiseKernel(a).fit(X),
}


@pytest.mark.parametrize("gram", BAD_GRAMS)
@pytest.mark.parametrize("function", GRAM_FUNCTIONS)
def test_matrices(function, gram):
    check(lambda: GRAM_FUNCTIONS[function](BAD_GRAMS[gram]))
