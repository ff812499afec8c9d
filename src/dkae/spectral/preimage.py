r"""Learned pre-images: kernel ridge regression from scores back to rows (Bakır et al., 2004).

With the scores :math:`z_i` of the training rows :math:`x_i`, their mean :math:`\bar x`, and a
kernel :math:`l` of its own,

.. math:: x(z) = \bar x + \sum_i a_i \, l(z, z_i), \qquad A = (L + \alpha I)^{-1} (X - \bar x) .
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted, validate_data

from dkae._support.arrays import as_array, finite_numbers, naming, real_numbers
from dkae._support.checks import (
    check_choice,
    check_integer,
    check_number,
    check_sequence,
    draw_seed,
)
from dkae._support.states import StateMixin, check_array
from dkae._support.warning import unchanged_on_failure, warn_caller
from dkae.kernels.bandwidth import choose_gamma
from dkae.kernels.pairwise import pairwise_names
from dkae.spectral.operators import DTYPES

#: Candidates for α; the paper found 0.5.
ALPHAS = (1e-4, 1e-3, 1e-2, 0.1, 0.5, 1.0, 5.0)


class PreImage(StateMixin, MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Regression from scores in kernel space to the rows that they belong to.

    Parameters
    ----------
    kernel : str, default="rbf"
        A kernel of scikit-learn's ``pairwise_kernels``; it need not be the one of the scores.
    gamma : {"median", "scale"}, float or None, default="median"
        See :mod:`dkae.kernels.bandwidth`. The median sets σ to the median distance of the
        training scores, as in the paper.
    degree, coef0 : float
        Parameters of the polynomial and the sigmoid kernel.
    alpha : "grid" or float, default="grid"
        Strength of the regularisation. "grid" takes the best of `alphas` on held-out training
        rows, and then fits on all of them.
    alphas : sequence of float
        The candidates.
    validation_fraction : float, default=0.2
        Share of the rows that is held out.
    max_samples : int, default=5000
        With more rows than this the regression, which takes O(n³) time and O(n²) memory, is
        approximated, with a warning.
    approximation : {"nystroem", "subsample"}, default="nystroem"
        Regression of all rows on the Nyström features of `max_samples` of them, or on
        `max_samples` rows alone.
    random_state : int, RandomState or None, default=None
        Seed of the held-out rows and of the approximation.

    Attributes
    ----------
    gamma_, alpha_ : float
        The chosen values; γ is None for kernels without one.
    mean_ : array
        Mean of the training rows, the pre-image of a score far from all others.
    regression_ : estimator
        The fitted regression, of rows minus their mean.
    """

    def __init__(
        self,
        *,
        kernel: str = "rbf",
        gamma: str | float | None = "median",
        degree: float = 3,
        coef0: float = 1,
        alpha: str | float = "grid",
        alphas: Sequence[float] = ALPHAS,
        validation_fraction: float = 0.2,
        max_samples: int = 5000,
        approximation: str = "nystroem",
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.alpha = alpha
        self.alphas = alphas
        self.validation_fraction = validation_fraction
        self.max_samples = max_samples
        self.approximation = approximation
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the map from scores `X` to rows `y`."""
        with unchanged_on_failure(self):
            return self._fit(X, y)

    def _fit(self, X: Any, y: Any) -> Self:
        self._check_params()
        y = None if y is None else as_array(y, "y")
        with naming("X", X, "y"):
            X, y = validate_data(
                self, X, y, dtype=DTYPES, multi_output=True, y_numeric=True, ensure_min_samples=2
            )
        y = real_numbers(y, "y")
        seed = draw_seed(self.random_state)
        # Scores are few: in float32 the equations with a small α would be ill-conditioned.
        X = X.astype(np.float64)
        self.gamma_ = choose_gamma(self.gamma, self.kernel, X)
        mean = y.mean(axis=0, dtype=np.float64)
        self.mean_ = mean.astype(y.dtype if y.dtype == np.float32 else np.float64)
        features, model, X, y = self._regression(X, y - self.mean_, seed)
        if self.alpha == "grid":
            search = self._search(model, seed).fit(X, y)
            self.alpha_ = float(search.best_params_["alpha"])
            model = search.best_estimator_
        else:
            self.alpha_ = float(self.alpha)
            model.set_params(alpha=self.alpha_).fit(X, y)
        self.regression_ = model if features is None else make_pipeline(features, model)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the pre-images of scores."""
        check_is_fitted(self)
        with naming("X", X):
            X = validate_data(self, X, dtype=DTYPES, reset=False)
        with np.errstate(over="ignore", invalid="ignore"):
            rows = self.regression_.predict(X.astype(np.float64)) + self.mean_
            rows = np.asarray(rows, dtype=self.mean_.dtype)
        remedy = "these scores are too far from those of the training rows"
        return np.asarray(finite_numbers(rows, "the pre-image of X", remedy))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "regression_")

    def _check_params(self) -> None:
        check_choice("kernel", self.kernel, pairwise_names())
        check_number("degree", self.degree, 0)
        check_number("coef0", self.coef0, -np.inf)
        if isinstance(self.alpha, str):
            check_choice("alpha", self.alpha, ["grid"])
        else:
            check_number("alpha", self.alpha, 0)
        alphas = check_sequence("alphas", self.alphas)
        if not alphas:
            raise ValueError("alphas is empty: pass at least one number, or set alpha")
        for alpha in alphas:
            check_number("each of alphas", alpha, 0)
        check_number(
            "validation_fraction", self.validation_fraction, 0, 1, open_low=True, open_high=True
        )
        check_integer("max_samples", self.max_samples, at_least=2)
        check_choice("approximation", self.approximation, ["nystroem", "subsample"])

    def _check_state(self) -> None:
        self._check_params()
        if hasattr(self, "regression_"):
            check_array("mean_", self.mean_, (None,) * self.mean_.ndim)
            if self.regression_.n_features_in_ != self.n_features_in_:
                raise ValueError("the regression is one of other scores")
            found = self.regression_.predict(np.zeros((1, self.n_features_in_)))
            if found.shape[1:] != self.mean_.shape or not np.isfinite(found).all():
                raise ValueError("the regression does not give what has this mean")

    def _regression(
        self, X: NDArray[Any], y: NDArray[Any], seed: int
    ) -> tuple[Nystroem | None, Any, NDArray[Any], NDArray[Any]]:
        """Return the Nyström features, if they are needed, the regression, and what to fit it on.

        The features are apart, to be computed once and not for each α.
        """
        n, m = len(X), self.max_samples
        params = {
            "kernel": self.kernel,
            "gamma": self.gamma_,
            "degree": self.degree,
            "coef0": self.coef0,
        }
        if n <= m:
            return None, KernelRidge(**params), X, y
        nystroem = self.approximation == "nystroem"
        how = f"by the Nyström features of {m} rows" if nystroem else f"on {m} rows alone"
        warn_caller(
            f"{n} rows are more than max_samples={m}: the pre-image is learnt {how} "
            f"(approximation={self.approximation!r}). Raise max_samples for the exact one, at the "
            "cost of n³ operations and n² numbers."
        )
        if nystroem:
            features = Nystroem(n_components=m, random_state=seed, **params).fit(X)
            return features, Ridge(fit_intercept=False), features.transform(X), y
        rows = np.random.default_rng(seed).choice(n, m, replace=False)
        return None, KernelRidge(**params), X[rows], y[rows]

    def _search(self, model: Any, seed: int) -> GridSearchCV:
        split = ShuffleSplit(1, test_size=self.validation_fraction, random_state=seed)
        grid = {"alpha": list(self.alphas)}
        return GridSearchCV(model, grid, cv=split, scoring="neg_mean_squared_error")
