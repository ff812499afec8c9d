"""Models and data that the laws on odd input share: small, and fitted once."""

from __future__ import annotations

import copy
import functools

import numpy as np
from sklearn.decomposition import PCA
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import rbf_kernel

from dkae import DeepKernelizedAutoencoder
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
    normalize,
)
from dkae.spectral import KernelPCA, PreImage

N, D, WIDTH = 24, 4, 3
X = np.random.default_rng(0).uniform(0.1, 1, (N, D)).astype(np.float32)
Y = np.arange(N) % 3
P = rbf_kernel(X.astype(np.float64))

TINY = {
    "n_components": WIDTH,
    "hidden_layer_sizes": (8,),
    "decoder_max_iter": 1,
    "steps_per_epoch": 2,
    "batch_size": 12,
    "random_state": 0,
}


def stack(**params) -> DeepKernelizedAutoencoder:
    """Return an estimator with the paper's kind of network, which trains in milliseconds."""
    return DeepKernelizedAutoencoder(**TINY | {"network": "stacked", "max_iter": 1} | params)


def layer(**params) -> DeepKernelizedAutoencoder:
    """Return one with a kernel layer."""
    return DeepKernelizedAutoencoder(**TINY | {"network": "kernel_layer"} | params)


def clusters(**params) -> ProbabilisticClusterKernel:
    """Return a cluster kernel of a few mixtures."""
    small = {"max_components": 3, "n_initializations": 2, "random_state": 0}
    return ProbabilisticClusterKernel(**small | params)


def product(a, b):
    """Return the linear kernel, as a function of a user's."""
    return a @ b.T


KERNELS = {
    **{
        name: PairwiseKernel(name)
        for name in ("rbf", "laplacian", "chi2", "additive_chi2", "poly", "sigmoid", "linear")
    },
    "cosine": PairwiseKernel("cosine"),
    "scale": PairwiseKernel(gamma="scale"),
    "gaussian process": GaussianProcessKernel(RBF()),
    "function": FunctionKernel(product),
    "forest": ForestKernel(n_estimators=3, random_state=0),
    "transformer": TransformerKernel(PCA(2).fit(X)),
    "sum": PairwiseKernel() + PairwiseKernel("linear"),
    "product": PairwiseKernel() * PairwiseKernel("linear"),
    "normalize": normalize(PairwiseKernel("poly")),
    "center": center(PairwiseKernel("linear")),
    "ideal": ideal_kernel(Y, X),
    "precomputed": Precomputed(P, X),
    "pck": clusters(),
    "pck full": clusters(covariance_type="full"),
    "pck exact": clusters(tolerance=0, normalize="max"),
}


@functools.cache
def fitted_kernel(name: str):
    """Return a kernel of the list, fitted to X."""
    return copy.copy(KERNELS[name]).fit(X, Y)


@functools.cache
def fitted(name: str):
    """Return a fitted model."""
    makers = {
        "stack": stack,
        "layer": layer,
        "pca": lambda: KernelPCA(WIDTH, preimage=PreImage(alpha=0.1)),
    }
    return makers[name]().fit(X)


@functools.cache
def pca_of_gram() -> KernelPCA:
    """Return a kernel PCA that knows a Gram matrix only."""
    return KernelPCA(WIDTH).fit(X, gram=P)


@functools.cache
def preimage() -> PreImage:
    """Return a fitted pre-image, from scores of the same width."""
    return PreImage(alpha=0.1).fit(X[:, :WIDTH].astype(np.float64), X)
