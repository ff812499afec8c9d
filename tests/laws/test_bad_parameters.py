"""Parameters of estimators, kernels and functions: each message names the parameter."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from dkae import baselines, codespace, metrics
from dkae.grams import Gram
from dkae.kernels import (
    FunctionKernel,
    GaussianProcessKernel,
    PairwiseKernel,
    Precomputed,
    center,
    ideal_kernel,
    normalize,
)
from dkae.spectral import KernelPCA, PreImage, spectral_clustering
from tests.laws.odd import KERNELS, P, X, Y, clusters, fitted, layer, product, stack

MODEL = [stack, layer, KernelPCA]
every_model = pytest.mark.parametrize("make", MODEL, ids=lambda make: make.__name__)


@every_model
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"kernel": P}, r"kernel=<ndarray> needs the Gram matrix: call fit\(X, gram=P\)"),
        ({"kernel": P.tolist()}, "kernel=.* is not known: expected one of"),
        ({"kernel": PairwiseKernel}, r"kernel=PairwiseKernel is a class: pass an object, Pair"),
        ({"kernel": len}, "kernel=len cannot be called with two arrays of rows: too many"),
        (
            {"kernel": product, "kernel_params": {"c": 1}},
            "kernel=product cannot be called with two arrays of rows and c=: got an unexpected",
        ),
        ({"kernel_params": 3}, "kernel_params=3 must be a mapping of names to values"),
        ({"kernel": center("rbf")}, "kernel is a str: kernels are made of kernels, pass one of"),
        ({"kernel": normalize(len)}, "kernel is a builtin_function_or_method: kernels are made"),
        ({"gamma": float("nan")}, r"gamma=nan must be a number in \(0, inf\)"),
        ({"gamma": P}, "gamma=.* must be a number"),
        ({"random_state": -1}, r"random_state=-1 must be a whole number from 0 to 2\*\*32 - 1"),
        ({"random_state": "a"}, "random_state='a' must be a whole number"),
        ({"n_components": P}, "n_components=.* must be a whole number"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_parameters_of_all_models(make, params, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make(**params).fit(X)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stack(missing=P).fit(X), "missing=.* is not known: expected one of 'error'"),
        (lambda: stack(early_stopping=P).fit(X), "early_stopping=.* must be True or False"),
        (lambda: stack(device=P).fit(X), "device=.* is not known"),
        (lambda: stack(device=10**30).fit(X), "device=1000.* is not known"),
        (lambda: stack(alignment=len).fit(X), "alignment=len cannot be called with two Gram"),
        (lambda: stack(optimizer=len).fit(X), "optimizer=len cannot be called with parameters and"),
        (lambda: stack(hidden_layer_sizes=np.array(0)).fit(X), "each of hidden_layer_sizes="),
        (lambda: KernelPCA(preimage=3).fit(X), "preimage=3 has no fit and predict: pass PreImage"),
        (lambda: KernelPCA(preimage=PreImage).fit(X), "preimage=<class .* has no fit and predict"),
        (lambda: PreImage(kernel=P).fit(X, X), "kernel=.* is not known: expected one of"),
        (lambda: PreImage(alphas=3).fit(X, X), "alphas=3 must be a sequence"),
        (lambda: PreImage(random_state=1.5).fit(X, X), "random_state=1.5 must be a whole number"),
        (lambda: PreImage().fit(X, None), "requires y to be passed"),
        (lambda: PreImage().fit(X, Y.astype(str)), "y has entries of type <U"),
        (lambda: PreImage().fit(X, [[1], [1, 2]]), "y, a list, cannot be used"),
        (lambda: PreImage().fit(X, X * np.float32(np.nan)), "Input y contains NaN"),
        (lambda: clusters(random_state=-1).fit(X), "random_state=-1 must be a whole number"),
        (lambda: clusters(device=P).fit(X), "device=.* is not known"),
        (
            lambda: (2 * PairwiseKernel()).set_params(kernels=3).fit(X),
            "kernels=3 must be a sequence",
        ),
        (lambda: (0.5 * PairwiseKernel()).set_params(weights=3).fit(X), "weights=3 must be a seq"),
        (lambda: FunctionKernel(3).gram(X), "kernel=3 must be a function of two arrays of rows"),
        (lambda: FunctionKernel(product, 3).gram(X), "params=3 must be a mapping"),
        (lambda: GaussianProcessKernel(3).gram(X), "kernel=3 must be a function of two arrays"),
        (lambda: Precomputed(P, X[:3]).fit(X), r"gram has shape \(24, 24\), but rows has 3 rows"),
        (lambda: Precomputed(P, 3).fit(X), "rows=3 has no rows"),
        (lambda: Precomputed([[1], [1, 2]]).fit(X), "gram, a list, cannot be used"),
        (lambda: ideal_kernel([[1], [1, 2]]).fit(X), "labels, a list, cannot be used"),
        (lambda: codespace.combine(fitted("stack"), 3), "terms=3 must be a sequence"),
        (lambda: codespace.combine(fitted("stack"), [(1, [[1], [1, 2]])]), r"terms\[0\], a list"),
        (lambda: codespace.interpolate(fitted("stack"), X, X, [[1], [1, 2]]), "n_steps, a list"),
        (lambda: codespace.interpolate(fitted("stack"), X, X, ["a"]), "n_steps has entries of"),
        (lambda: codespace.class_means(fitted("stack"), X, [[1], [1, 2]]), "y, a list, cannot be"),
        (lambda: codespace.class_means(fitted("stack"), X, [None, 1] * 12), "y, a list, cannot"),
        (lambda: metrics.cluster_accuracy([[1], [1, 2]], Y), "y, a list, cannot be used"),
        (lambda: metrics.cluster_accuracy([{}] * 24, Y), "y, a list, cannot be used: unhashable"),
        (lambda: metrics.mean_over_blocks(3, P, P), "measure=3 must be a function of two Gram"),
        (lambda: metrics.mean_over_blocks(len, P, P), "measure=len cannot be called with two Gram"),
        (
            lambda: metrics.mean_over_blocks(metrics.alignment, P, P, 5, "a"),
            "random_state='a' must be a whole number",
        ),
        (lambda: metrics.label_alignment_score(3, X, Y), "estimator=int has no transform: pass"),
        (
            lambda: metrics.reconstruction_r2_score(3, X),
            "has no transform and no inverse_transform",
        ),
        (lambda: metrics.centered_alignment_score(3, X), "estimator=int has no kernel"),
        (lambda: baselines.compare_with_baselines(3, X), "model=int has no kernel to compare"),
        (
            lambda: baselines.compare_with_baselines(fitted("stack"), X[:1]),
            "X has one row: the rivals learn from at least two",
        ),
        (
            lambda: baselines.compare_with_baselines(fitted("stack"), X, X[:, :2]),
            r"train has rows of shape \(2,\), but X of \(4,\)",
        ),
        (lambda: spectral_clustering(X, P), "n_clusters=.* must be a whole number"),
    ],
)
def test_parameters(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def read(result):
    """Read a Gram: some ask the kernel only then."""
    return result.block(np.arange(3)) if isinstance(result, Gram) else result


@pytest.mark.parametrize("method", ["gram", "values", "diag", "on"])
@pytest.mark.parametrize("name", sorted(set(KERNELS) - {"function", "gaussian process"}))
def test_kernels_before_fit(name, method):
    kernel = KERNELS[name]
    if name == "transformer":  # it learns nothing
        assert len(getattr(kernel, method)(X)) == len(X)
        return
    with pytest.raises(NotFittedError, match=r"not fitted yet"):
        read(getattr(kernel, method)(X))


class NoCodes:
    """A model whose codes are none."""

    def __init__(self, codes):
        self.codes = codes

    def transform(self, X):
        return self.codes

    def inverse_transform(self, X):
        return X


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (np.ones(24), r"the code of X has shape \(24,\), expected a matrix: check the model's"),
        (np.full((24, 2), np.nan), "the code of X has NaN or infinite values: check the model"),
        (np.full((24, 2), "a"), "the code of X has entries of type <U1"),
        (None, "the code of X has entries of type object"),
    ],
    ids=["vector", "NaN", "strings", "None"],
)
def test_codes_of_a_model_of_yours(codes, message):
    model = NoCodes(codes)
    with pytest.raises(ValueError, match=message):
        codespace.traverse(model, X)
    with pytest.raises(ValueError, match=message):
        codespace.class_means(model, X, Y)
    with pytest.raises(ValueError, match=message.replace("of X", "of X_clean")):
        codespace.code_pca(model, X, 2)
