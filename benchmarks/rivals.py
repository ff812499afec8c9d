"""What a scikit-learn user would build in place of a map, and how maps and rivals are judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.model_selection import GridSearchCV, ShuffleSplit
from sklearn.preprocessing import StandardScaler

from dkae import metrics
from dkae.grams import Gram
from dkae.kernels import Kernel, NystroemFeatures, PairwiseKernel

Array = NDArray[Any]
Map = Callable[[Array], Array]

N_LANDMARKS = 1000
#: Candidates for the strength of a regression; held-out rows choose.
ALPHAS = (1e-6, 1e-4, 1e-2, 1.0)


class Rival(TransformerMixin, BaseEstimator):
    """Features of rows, cut to their best directions, and a way back.

    `features` returns the map that it finds on training rows, `regression` the fitted regression
    from codes to rows; `cut` is PCA, for example, or None.
    """

    def __init__(
        self,
        features: Callable[[Array], Map],
        cut: Any,
        regression: Callable[[Array, Array], Any],
    ) -> None:
        self.features = features
        self.cut = cut
        self.regression = regression

    def fit(self, X: Array, y: object = None) -> Rival:
        self.features_ = self.features(X)
        codes = self.features_(X)
        self.cut_ = None
        if self.cut is not None:
            self.cut_ = clone(self.cut).fit(codes)
            codes = self.cut_.transform(codes)
        self.regression_ = self.regression(codes, X)
        return self

    def transform(self, X: Array) -> Array:
        codes = self.features_(X)
        return codes if self.cut_ is None else self.cut_.transform(codes)

    def inverse_transform(self, codes: Array) -> Array:
        return np.asarray(self.regression_.predict(codes))


class Features:
    """Nyström features of any kernel, with random landmark rows."""

    def __init__(self, kernel: Kernel, n_landmarks: int, seed: int, X: Array) -> None:
        n = min(n_landmarks, len(X))
        self.landmarks = X[np.random.default_rng(seed).choice(len(X), n, replace=False)]
        self.of = NystroemFeatures(kernel, self.landmarks)

    def __call__(self, X: Array) -> Array:
        return self.of(X)


def rbf_features(gamma: float, seed: int) -> Callable[[Array], Map]:
    """Return scikit-learn's own features of an RBF kernel, as its users have them."""

    def fit(X: Array) -> Map:
        n = min(N_LANDMARKS, len(X))
        found: Map = Nystroem(gamma=gamma, n_components=n, random_state=seed).fit(X).transform
        return found

    return fit


def nystroem_ridge(kernel: Kernel, n_components: int, seed: int) -> Rival:
    """Return Nyström features with N_c landmarks, and ridge regression back."""

    def features(X: Array) -> Map:
        return Features(kernel, n_components, seed, X)

    return Rival(features, None, RidgeCV(ALPHAS).fit)


def nystroem_kernel_ridge(kernel: Kernel, n_components: int, seed: int) -> Rival:
    """Return Nyström features with 1,000 landmarks, PCA, and kernel ridge regression back."""

    def features(X: Array) -> Map:
        return Features(kernel, N_LANDMARKS, seed, X)

    return Rival(features, PCA(n_components, random_state=0), kernel_ridge)


def ridge(codes: Array, rows: Array) -> Any:
    return Ridge(alpha=1e-3).fit(codes, rows)


def kernel_ridge(codes: Array, rows: Array, alphas: Sequence[float] = ALPHAS) -> Any:
    """Return kernel ridge regression: γ by the median heuristic, α by a fifth of the rows."""
    gamma = PairwiseKernel("rbf", gamma="median").fit(codes).gamma_
    regression: Any = KernelRidge(kernel="rbf", gamma=gamma, alpha=alphas[0])
    if len(alphas) > 1:
        split = ShuffleSplit(1, test_size=0.2, random_state=0)
        grid = {"alpha": list(alphas)}
        regression = GridSearchCV(regression, grid, cv=split, scoring="neg_mean_squared_error")
    mean = StandardScaler(with_std=False)
    return TransformedTargetRegressor(regression, transformer=mean, check_inverse=False).fit(
        codes, rows
    )


# --- how they are judged --------------------------------------------------------------------------


def scores(model: Any, prior: Gram, X: Array) -> dict[str, float]:
    """Return L_c and 1 − CKA over all pairs, 1 − R² over all features, and the squared error."""
    codes = np.asarray(model.transform(X))
    comparison = metrics.compare_grams(metrics.code_gram(codes.astype(np.float32)), prior)
    back = np.asarray(model.inverse_transform(codes))
    return {
        "alignment_loss": comparison.alignment_loss,
        "one_minus_cka": 1 - comparison.centered_alignment,
        "one_minus_r2": 1 - metrics.reconstruction_r2(X, back),
        "mse": metrics.reconstruction_error(X, back),
    }


def numbers_in(value: Any) -> int:
    """Return how many numbers a fitted object holds, without its kernel."""
    if isinstance(value, torch.nn.Module):
        return sum(t.numel() for t in value.state_dict().values())
    if isinstance(value, Features):  # with K^(-1/2)
        return int(value.landmarks.size + len(value.landmarks) ** 2)
    if isinstance(value, np.ndarray):
        return int(value.size)
    if isinstance(value, BaseEstimator):
        parts = vars(value).items()
        return sum(numbers_in(part) for name, part in parts if name not in ("kernel", "kernel_"))
    return 0


def numbers_of_kernel(kernel: Any) -> int:
    """Return what a cluster kernel holds: its mixtures."""
    mixtures = getattr(kernel, "mixtures_", None)
    return 0 if mixtures is None else mixtures.means.numel() + mixtures.covariances.numel()
