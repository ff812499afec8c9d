r"""Rivals of a map, measured as it is: the floor, PCA, kernel PCA and pipelines of scikit-learn.

All have codes of the width N_c of the map, and reconstruct rows from them:

============================  ===========================================  =========================
Row                           code of x                                    row of a code z
============================  ===========================================  =========================
constant kernel               1, for every row                             the mean training row
Nystroem + ridge              Nyström features of N_c landmarks            ridge regression
Nystroem + PCA + KernelRidge  PCA of Nyström features of 1,000 landmarks   kernel ridge regression
PCA                           scores, :math:`W^\top (x - \mu)`             :math:`W z + \mu`
kernel PCA                    uncentred scores                             kernel ridge regression
============================  ===========================================  =========================

Scores of PCA are centred: compare their *centred* alignment.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, ShuffleSplit
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from dkae._support.checks import check_integer
from dkae.grams import Gram, sample_ids
from dkae.kernels import Kernel, NystroemFeatures, PairwiseKernel, gram_of
from dkae.metrics import code_gram, compare_grams, reconstruction_error, reconstruction_r2
from dkae.rows import as_rows, map_rows
from dkae.spectral import KernelPCA

__all__ = ["Yardstick", "compare_with_baselines"]

Array = NDArray[Any]
Map = Callable[[Array], Array]

#: Landmarks of the pipeline with PCA.
N_LANDMARKS = 1000
#: Candidates for the strength of the regressions.
ALPHAS = (1e-6, 1e-4, 1e-2, 1.0)

MODEL = "dkae"
FLATTERED = "fitted to the rows that it is scored on, which flatters it"
NO_KERNEL = "needs a kernel that can be evaluated at new rows"


class Yardstick(NamedTuple):
    """One row of the comparison; without numbers if the method cannot be fitted (see `note`)."""

    name: str
    #: Width of the codes; less than that of the map if a method has no more.
    n_components: int | None = None
    #: A(C, P) of Eq. 7, in [0, 1]; its floor is the row "constant kernel".
    alignment: float | None = None
    #: L_c of Eq. 6.
    alignment_loss: float | None = None
    #: A(HCH, HPH), known as CKA, in [0, 1]: what `score` of the map returns. Its floor is 0.
    centered_alignment: float | None = None
    reconstruction_mse: float | None = None
    #: Share of the variance of the rows that reconstructions keep.
    r2: float | None = None
    note: str = ""


def compare_with_baselines(
    model: Any, X: Any, train: Any = None, *, gram: Any = None, max_rows: int = 5000
) -> list[Yardstick]:
    """Measure a map on X, and its rivals on the same rows.

    Parameters
    ----------
    model : map or Pipeline
        Fitted; the last step of a pipeline is the map. Rivals see the rows that its kernel sees:
        after the other steps, without gaps, standardised if the map does so. Errors are in the
        units of X.
    X : array-like of shape (n_samples, n_features)
        Rows to measure on, best those that nothing was fitted to. Time is O(n²), memory is not.
    train : array-like of shape (n_train, n_features), optional
        Rows that the rivals are fitted to, such as those of the map. Without them it is X itself,
        which flatters the rivals; their notes say so.
    gram : array of shape (n_samples, n_samples) or Gram, optional
        Gram matrix of the rows of X; needed if the map was fitted with a matrix. Rivals that need
        a kernel are then listed without numbers, unless the Gram brings its kernel.
    max_rows : int, default=5000
        Rivals with a kernel learn from a sample of at most so many rows, as their notes say:
        kernel ridge regression takes O(n³) time and O(n²) memory.

    Returns
    -------
    list of Yardstick
        The map first. ``row._asdict()`` is ready for JSON.
    """
    max_rows = check_integer("max_rows", max_rows, at_least=2)
    head, last = _split(model)
    seen, learnt = (
        rows if head is None or rows is None else head.transform(rows) for rows in (X, train)
    )
    # First, because it raises if the kernel is missing.
    prior = last.prior_gram(seen) if gram is None else gram_of(gram, seen)
    kernel = last.kernel_ if gram is None else prior.kernel
    codes = np.asarray(model.transform(X))
    decoded = np.asarray(model.inverse_transform(codes))
    X, seen = (np.asarray(as_rows(rows)) for rows in (X, seen))
    rows = seen if learnt is None else np.asarray(as_rows(learnt, "train"))
    _check_train(rows, seen, "X" if train is None else "train")
    view = _View(head, last, is_given=gram is not None)
    scored, rows = view.of(seen), view.of(rows)
    sample = rows[sample_ids(len(rows), max_rows)]
    lesson = _Lesson(rows, sample, _evaluable(kernel, scored, sample), last.n_components_)
    found = [_measured(MODEL, codes, decoded, X, prior)]
    for name, fit in RIVALS.items():
        if name in OF_KERNELS and lesson.kernel is None:
            found.append(Yardstick(name, note=NO_KERNEL))
            continue
        encode, decode = fit(lesson)
        codes = np.asarray(encode(scored))
        decoded = view.back(np.asarray(decode(codes)).reshape(seen.shape))
        note = lesson.note(name, codes.shape[1], is_flattered=train is None)
        found.append(_measured(name, codes, decoded, X, prior, note))
    return found


def _measured(
    name: str, codes: Array, decoded: Array, X: Array, prior: Gram, note: str = ""
) -> Yardstick:
    comparison = compare_grams(code_gram(codes), prior, ("codes", "prior"))
    return Yardstick(
        name,
        codes.shape[1],
        max(0.0, comparison.alignment),
        comparison.alignment_loss,
        max(0.0, comparison.centered_alignment),
        reconstruction_error(X, decoded.reshape(X.shape)),
        reconstruction_r2(X, decoded.reshape(X.shape)),
        note,
    )


class _View:
    """Rows as the kernel of a map sees them, and the way back to the units of X."""

    def __init__(self, head: Any, last: Any, *, is_given: bool) -> None:
        self.head = head
        is_scaled = getattr(last, "scale_", None) is not None
        self.center: Any = last.center_ if is_scaled else 0
        self.scale: Any = last.scale_ if is_scaled else 1
        #: What fills gaps of rows that are standardised.
        self.fill: Any = getattr(last, "fill_", None)
        if is_given:  # the kernel of a Gram that is given sees rows as they are
            self.fill = None if self.fill is None else self.fill * self.scale + self.center
            self.center, self.scale = 0, 1

    def of(self, rows: Array) -> Array:
        dtype = np.result_type(rows, np.float32)
        rows = ((rows - self.center) / self.scale).astype(dtype, copy=False)
        return rows if self.fill is None else np.where(np.isnan(rows), self.fill, rows)

    def back(self, rows: Array) -> Array:
        rows = rows * self.scale + self.center
        return rows if self.head is None else np.asarray(self.head.inverse_transform(rows))


class _Lesson(NamedTuple):
    """The rows and the kernel that rivals learn from."""

    rows: Array
    #: The rows for those with a kernel.
    sample: Array
    #: None if it cannot be evaluated at new rows.
    kernel: Any
    n_components: int

    def note(self, name: str, width: int, *, is_flattered: bool) -> str:
        notes, n, n_rows = [], len(self.sample), len(self.rows)
        if 1 < width < self.n_components:
            notes.append(f"has no more than {width} components")
        if name in OF_KERNELS and n < n_rows:
            notes.append(f"learns from {n:,} of {n_rows:,} rows")
        return "; ".join([*notes, FLATTERED] if is_flattered else notes)


# --- the rivals ----------------------------------------------------------------------------------


def _constant(lesson: _Lesson) -> tuple[Map, Map]:
    mean = lesson.rows.mean(axis=0, dtype=np.float64)
    return (
        lambda X: np.ones((len(X), 1), np.float32),
        lambda codes: np.broadcast_to(mean, (len(codes), *mean.shape)),
    )


def _nystroem(lesson: _Lesson) -> tuple[Map, Map]:
    sample = lesson.sample
    landmarks = sample[sample_ids(len(sample), lesson.n_components)]
    encode = NystroemFeatures(lesson.kernel, landmarks)
    return encode, RidgeCV(ALPHAS).fit(encode(sample), _flat(sample)).predict


def _nystroem_pca(lesson: _Lesson) -> tuple[Map, Map]:
    sample = lesson.sample
    features = NystroemFeatures(lesson.kernel, sample[sample_ids(len(sample), N_LANDMARKS)])
    Z = features(sample)
    pca = PCA(min(lesson.n_components, *Z.shape), random_state=0).fit(Z)
    regression = _kernel_ridge(pca.transform(Z), _flat(sample))
    # A few codes at a time: their kernel values with all codes of the sample are large.
    decode = partial(map_rows, regression.predict, dtype=np.float64)
    return lambda X: pca.transform(features(X)), decode


def _kernel_ridge(codes: Array, rows: Array) -> Any:
    """Return the kernel ridge regression from codes to rows, with α by held-out rows."""
    gamma = PairwiseKernel("rbf", gamma="median").fit(codes).gamma_
    search = GridSearchCV(
        KernelRidge(kernel="rbf", gamma=gamma),
        {"alpha": ALPHAS},
        cv=ShuffleSplit(1, test_size=0.2, random_state=0),
        scoring="neg_mean_squared_error",
    )
    mean = StandardScaler(with_std=False)
    regression = TransformedTargetRegressor(search, transformer=mean, check_inverse=False)
    return regression.fit(codes, rows)


def _pca(lesson: _Lesson) -> tuple[Map, Map]:
    rows = _flat(lesson.rows)
    pca = PCA(min(lesson.n_components, *rows.shape), random_state=0).fit(rows)
    return lambda X: pca.transform(_flat(X)), pca.inverse_transform


def _kernel_pca(lesson: _Lesson) -> tuple[Map, Map]:
    rows, kernel = lesson.sample, lesson.kernel
    n_components = min(lesson.n_components, len(rows))
    pca = KernelPCA(n_components, center=False, decoder="kernel_ridge", random_state=0)
    with warnings.catch_warnings():
        # A note says if there are fewer components; the fit of the map has warned of the rest.
        warnings.simplefilter("ignore", UserWarning)
        pca.fit(_flat(rows), gram=kernel.values(rows))

    def encode(X: Array) -> Array:
        scores: Array = pca.transform(_flat(X), gram=kernel.values(X, rows))
        return scores

    return partial(map_rows, encode), pca.inverse_transform


#: What rivals learn: the map from rows to codes, and back.
RIVALS: dict[str, Callable[[_Lesson], tuple[Map, Map]]] = {
    "constant kernel": _constant,
    "Nystroem + ridge": _nystroem,
    "Nystroem + PCA + KernelRidge": _nystroem_pca,
    "PCA": _pca,
    "kernel PCA": _kernel_pca,
}
OF_KERNELS = ("Nystroem + ridge", "Nystroem + PCA + KernelRidge", "kernel PCA")


def _split(model: Any) -> tuple[Any, Any]:
    """Return the steps before the last, or None, and the last, which is the map."""
    head, last = None, model
    if isinstance(model, Pipeline):
        head, last = model[:-1] if len(model) > 1 else None, model[-1]
    if not hasattr(last, "prior_gram"):
        raise ValueError(
            f"model={type(last).__name__} has no kernel to compare codes with: pass a map such as "
            "DeepKernelizedAutoencoder, or a Pipeline whose last step is one"
        )
    return head, last


def _check_train(rows: Array, seen: Array, name: str) -> None:
    if rows.shape[1:] != seen.shape[1:]:
        raise ValueError(
            f"train has rows of shape {rows.shape[1:]}, but X of {seen.shape[1:]}: pass rows of "
            "the same features"
        )
    if len(rows) < 2:
        raise ValueError(f"{name} has one row: the rivals learn from at least two, pass more rows")


def _evaluable(kernel: Kernel | None, X: Array, train: Array) -> Kernel | None:
    """Return the kernel, or None if it is one for known rows only, and these are not among them."""
    if kernel is None:
        return None
    try:
        kernel.values(X[:1], train[:1])
    except ValueError:
        return None
    return kernel


def _flat(X: Array) -> Array:
    return X.reshape(len(X), -1)
