"""Linear operations on codes, seen in input space: encode, compute, decode (Fig. 2 of the paper).

Each function takes a fitted model with `transform` (f, from inputs to codes) and
`inverse_transform` (f⁻¹, from codes to inputs): a map of this package, or any scikit-learn pipeline
with both. Straight lines and means of codes become curves in input space.
"""

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline

from dkae._support.arrays import as_array, finite_matrix, naming, real_numbers
from dkae._support.checks import check_integer, check_number, check_sequence

__all__ = ["Invertible", "class_means", "code_pca", "combine", "denoise", "interpolate", "traverse"]

#: Principal components that the paper keeps to remove noise.
N_DENOISING = 32


class Invertible(Protocol):
    """A fitted model that maps inputs to codes and codes back to inputs."""

    def transform(self, X: Any, /) -> Any: ...
    def inverse_transform(self, X: Any, /) -> Any: ...


def code_pca(model: Invertible, X_clean: Any, n_components: int | None = None) -> Pipeline:
    r"""Return the fitted pipeline from inputs through codes to principal components, and back.

    .. math::
        x \mapsto W^\top (f(x) - \mu), \qquad s \mapsto f^{-1}(\mu + W s),

    where μ is the mean code of the clean rows, and the columns of W are their first principal
    directions.

    Parameters
    ----------
    model : Invertible
        The maps f and f⁻¹. It becomes the step "model" as it is, neither copied nor fitted.
    X_clean : array-like of shape (n_samples, n_features)
        Rows whose codes the step "pca" is fitted to, at least two.
    n_components : int, optional
        At most the number of clean rows and the width of the code; all components of a code leave
        it as it is. By default 32 as in the paper, or half of the width if that is less.

    Notes
    -----
    The pipeline's own `fit` would train the model anew. To search over ``pca__n_components``, pass
    ``FrozenEstimator(model)`` of `sklearn.frozen`, which stays as it is.
    """
    _check_model(model)
    if n_components is not None:
        n_components = check_integer("n_components", n_components, at_least=1)
    # Not converted: a model may name the columns, and the step must know the names.
    codes = model.transform(X_clean)
    n, width = _check_codes(codes, "X_clean").shape
    m = min(N_DENOISING, n, (width + 1) // 2) if n_components is None else n_components
    pca = _fit_pca(codes, m, rows="X_clean", parameter=f"n_components={m}")
    return Pipeline([("model", model), ("pca", pca)])


def denoise(
    model: Invertible, X_noisy: Any, X_clean: Any, n_components: int | None = None
) -> NDArray[Any]:
    r"""Project noisy codes on the first principal components of clean codes, and decode them.

    .. math::
        \hat x = f^{-1}\big( \mu + W W^\top (f(x) - \mu) \big) .

    Parameters
    ----------
    model : Invertible
        The maps f and f⁻¹.
    X_noisy : array-like of shape (n_samples, n_features)
        Rows to be cleaned.
    X_clean : array-like of shape (n_clean, n_features)
        Rows without noise, such as the training rows.
    n_components : int, optional
        Columns of W. By default 32 as in the paper, or half of the width of the code if that is
        less.

    Notes
    -----
    For several noisy sets, fit the components once: ``pipeline = code_pca(model, X_clean)``, then
    ``pipeline.inverse_transform(pipeline.transform(X_noisy))``.
    """
    pipeline = code_pca(model, X_clean, n_components)
    return np.asarray(pipeline.inverse_transform(pipeline.transform(X_noisy)))


def traverse(
    model: Invertible,
    X: Any,
    direction: int = 0,
    n_steps: int = 9,
    extent: float = 3.0,
    x: Any = None,
) -> NDArray[Any]:
    r"""Return the `n_steps` rows of a walk along a principal direction of the codes of X.

    .. math::
        f^{-1}(c + t \sigma w), \qquad t \in [-e, e],

    where w is the unit vector of the direction, σ the standard deviation of the codes along it, e
    the extent, and c the mean code or the code of x.

    Parameters
    ----------
    model : Invertible
        The maps f and f⁻¹.
    X : array-like of shape (n_samples, n_features)
        Rows whose codes define the principal directions, at least two.
    direction : int, default=0
        Number of the direction; 0 is that of the largest variance.
    n_steps : int, default=9
        Points at equal distances, at least two. With an odd number, c is the one in the middle.
    extent : float, default=3.0
        Length of the walk to each side, in standard deviations.
    x : array-like of shape (n_features,) or (1, n_features), optional
        The row to start from. None is the mean code of X.
    """
    _check_model(model)
    direction = check_integer("direction", direction, at_least=0)
    n_steps = check_integer("n_steps", n_steps, at_least=2)
    extent = check_number("extent", extent, 0, open_low=True)
    codes = _encode(model, X, "X")
    pca = _fit_pca(codes, direction + 1, rows="X", parameter=f"direction={direction}")
    centre = pca.mean_[None] if x is None else _encode(model, x, "x")
    if len(centre) != 1:
        raise ValueError(f"x has {len(centre)} rows: pass the one row to start from")
    step = np.sqrt(pca.explained_variance_[direction]) * pca.components_[direction]
    t = np.linspace(-extent, extent, n_steps, dtype=step.dtype)
    return np.asarray(model.inverse_transform(centre + t[:, None] * step))


def interpolate(model: Invertible, x: Any, y: Any, n_steps: int | ArrayLike = 9) -> NDArray[Any]:
    r"""Return rows on the straight line between two codes.

    .. math::
        f^{-1}\big( (1 - t) f(x) + t f(y) \big), \qquad t \in [0, 1] .

    The first and the last are the reconstructions of x and y.

    Parameters
    ----------
    model : Invertible
        The maps f and f⁻¹.
    x, y : array-like of shape (n_features,), (1, n_features) or (n, n_features)
        The two ends, or as many starts as ends.
    n_steps : int or array-like of shape (n_steps,), default=9
        Number of equidistant points, at least two; or the positions t themselves, which
        extrapolate outside [0, 1].

    Returns
    -------
    array of shape (n_steps, n_features), or (n, n_steps, n_features) for n > 1 pairs
    """
    _check_model(model)
    t = _positions(n_steps)
    x, y = _as_rows(x, "x"), _as_rows(y, "y")
    if np.shape(x) != np.shape(y):
        raise ValueError(
            f"x has shape {np.shape(x)} and y has shape {np.shape(y)}: "
            "expected as many rows and columns in both"
        )
    start, end = _encode(model, x, "x")[:, None], _encode(model, y, "y")[:, None]
    t = t.astype(start.dtype)[:, None]
    # Not start + t (end - start), which rounding may keep from ending at the code of y.
    points = (1 - t) * start + t * end
    n, n_points, width = points.shape
    images = np.asarray(model.inverse_transform(points.reshape(-1, width)))
    return images if n == 1 else images.reshape(n, n_points, *images.shape[1:])


def class_means(model: Invertible, X: Any, y: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    r"""Return the sorted classes and the mean code of each, one row a class.

    .. math::
        \mu_k = \frac{1}{n_k} \sum_{y_i = k} f(x_i)

    Parameters
    ----------
    model : Invertible
        The map f. Its `inverse_transform` shows what the means look like.
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Labels of the rows, numbers or strings.
    """
    _check_model(model)
    codes, labels = _encode(model, X, "X"), as_array(y, "y")
    if labels.shape != codes.shape[:1]:
        raise ValueError(
            f"y has shape {labels.shape}, but X has {len(codes)} rows: pass one label for each row"
        )
    with naming("y", y):  # numbers beside None have no order
        classes, members = np.unique(labels, return_inverse=True)
    return classes, np.stack([_mean(codes[members == k]) for k in range(len(classes))])


def combine(model: Invertible, terms: Iterable[tuple[float, Any]]) -> NDArray[Any]:
    r"""Decode a weighted sum of codes: arithmetic on meanings rather than on pixels.

    Each term is a weight and the rows whose mean code it multiplies:

    .. math::
        f^{-1}\Big( \sum_i w_i \, \frac{1}{n_i} \sum_{x \in X_i} f(x) \Big) .

    Parameters
    ----------
    model : Invertible
        The maps f and f⁻¹.
    terms : sequence of (weight, rows)
        The weights w_i may be negative; the rows X_i are arrays of shape (n_i, n_features), or
        (n_features,) for a single one.

    Examples
    --------
    The mean of the 4s, without the mean of the 9s, with one 7::

        combine(model, [(1, X[y == 4]), (-1, X[y == 9]), (1, seven)])
    """
    _check_model(model)
    pairs = [_check_term(i, term) for i, term in enumerate(check_sequence("terms", terms))]
    if not pairs:
        raise ValueError("terms is empty: pass at least one pair (weight, rows)")
    codes = (_encode(model, rows, f"terms[{i}]") for i, (_, rows) in enumerate(pairs))
    means = (weight * _mean(c) for (weight, _), c in zip(pairs, codes, strict=True))
    total = np.sum(list(means), axis=0)
    row: NDArray[Any] = np.asarray(model.inverse_transform(total[None]))[0]
    return row


def _encode(model: Invertible, x: Any, name: str) -> NDArray[Any]:
    """Return the codes of a matrix or of a single row; integers become floats."""
    codes = _check_codes(model.transform(_as_rows(x, name)), name)
    return codes.astype(np.result_type(codes.dtype, np.float32), copy=False)


def _check_codes(codes: Any, name: str) -> NDArray[Any]:
    """Return codes as a matrix of finite numbers; `name` is the parameter they are the codes of."""
    return finite_matrix(codes, f"the code of {name}", "check the model's transform and these rows")


def _as_rows(x: Any, name: str) -> Any:
    """Return a single row as a matrix; a matrix or data frame stays as it is."""
    with naming(name, x):
        return np.asarray(x).reshape(1, -1) if np.ndim(x) == 1 else x


def _mean(codes: NDArray[Any]) -> NDArray[Any]:
    # NumPy sums in float64 block by block, without a float64 copy of the codes.
    return np.asarray(codes.mean(axis=0, dtype=np.float64), dtype=codes.dtype)


def _fit_pca(codes: Any, n_components: int, *, rows: str, parameter: str) -> PCA:
    n, width = np.shape(codes)
    if n < 2:
        raise ValueError(f"{rows} has only {n} row, principal components need 2: pass more rows")
    if n_components > min(n, width):
        raise ValueError(
            f"{parameter} is too large: the codes of {rows}, {n} rows of width {width}, have only "
            f"{min(n, width)} principal components"
        )
    # A fixed seed, because scikit-learn's solver for wide codes is randomised.
    return PCA(n_components, random_state=0).fit(codes)


def _positions(n_steps: Any) -> NDArray[Any]:
    if as_array(n_steps, "n_steps").ndim == 0:
        return np.linspace(0, 1, check_integer("n_steps", n_steps, at_least=2))
    t = real_numbers(n_steps, "n_steps").astype(np.float64)
    if t.ndim == 1 and t.size > 0 and np.isfinite(t).all():
        return t
    raise ValueError(
        f"n_steps={n_steps!r} must be a whole number of at least 2, or a list of finite positions "
        "such as [0, 0.5, 1]"
    )


def _check_term(i: int, term: Any) -> tuple[float, Any]:
    if not isinstance(term, (tuple, list)) or len(term) != 2:
        raise ValueError(
            f"terms[{i}] is a {type(term).__name__}: expected a pair (weight, rows), such as (1, X)"
        )
    with naming(f"terms[{i}]", term[1]):
        shape = np.shape(term[1])
    if 0 in shape:
        raise ValueError(f"terms[{i}] has no rows, and so no mean: leave it out or pass rows")
    return check_number(f"weight of terms[{i}]", term[0], -np.inf, open_low=True), term[1]


def _check_model(model: Any) -> None:
    """Reject a model without both maps; one that is not fitted raises when it is first used."""
    missing = [name for name in ("transform", "inverse_transform") if not hasattr(model, name)]
    if missing:
        raise TypeError(
            f"model is a {type(model).__name__} without {' and '.join(missing)}: expected a fitted "
            "model that maps to codes and back, such as DeepKernelizedAutoencoder"
        )
