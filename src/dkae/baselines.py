r"""What a model must beat, measured as the model is: floor, Nyström features, PCA, kernel PCA.

All have codes of the model's width N_c, and a way back:

================  =============================================  ==============================
Row               code of x                                      way back from a code z
================  =============================================  ==============================
constant kernel   1, for every row                               the mean of the training rows
Nystroem + ridge  K_LL^(-1/2) κ(L, x) with N_c landmarks L       ridge regression
PCA               scores, W^T (x - μ)                            W z + μ
kernel PCA        uncentred scores, Λ^(-1/2) E^T κ(X_train, x)   a learned pre-image
================  =============================================  ==============================
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.linear_model import RidgeCV

from dkae._support.checks import check_integer
from dkae.grams import Gram, sample_rows
from dkae.kernels import Kernel, gram_of
from dkae.metrics import code_gram, reconstruction_error, reconstruction_r2
from dkae.metrics.comparison import compare
from dkae.metrics.scorers import check_has_kernel, split_pipeline
from dkae.rows import as_rows
from dkae.spectral import KernelPCA, PreImage

__all__ = ["Yardstick", "compare_with_baselines"]

Array = NDArray[Any]
Map = Callable[[Array], Array]

#: Candidates for the strength of the ridge regression.
ALPHAS = (1e-6, 1e-4, 1e-2, 1.0)
#: Rows whose kernel with training rows is computed together.
N_CHUNK_ROWS = 1024

MODEL = "dkae"
FLATTERED = "fitted to the rows that it is scored on, which flatters it"
NO_KERNEL = "needs a kernel that can be evaluated at new rows"


class Yardstick(NamedTuple):
    """One row of the comparison; its numbers are None where `note` says why there are none."""

    name: str
    #: Width of the codes; less than the model's where a method has no more.
    n_components: int | None
    #: A(C, P) of Eq. 7, in [0, 1]: what `score` of the model returns.
    alignment: float | None
    #: L_c of Eq. 6.
    alignment_loss: float | None
    #: A(HCH, HPH), known as CKA, in [0, 1]: the alignment beyond what constant codes have.
    centered_alignment: float | None
    reconstruction_mse: float | None
    #: Share of the variance of the rows that comes back.
    r2: float | None
    note: str


def compare_with_baselines(
    model: Any, X: Any, train: Any = None, *, gram: Any = None, max_rows: int = 5000
) -> list[Yardstick]:
    """Measure a model on X beside a constant kernel, Nyström features, PCA and kernel PCA.

    Parameters
    ----------
    model : DeepKernelizedAutoencoder or Pipeline
        Fitted; a pipeline's last step is the model. Rivals see what its other steps give, and go
        back through them: errors are in the units of X.
    X : array-like of shape (n_samples, n_features)
        Rows to measure on, best those that nothing was fitted to. Time is O(n²), memory is not.
    train : array-like of shape (n_train, n_features), optional
        Rows that the rivals are fitted to, such as those of the model. Without them it is X itself,
        which flatters the rivals; their notes say so.
    gram : array of shape (n_samples, n_samples) or Gram, optional
        Gram matrix of the rows of X; needed if the model was fitted with a matrix. Rivals that need
        a kernel are then listed without numbers, unless the Gram brings its kernel.
    max_rows : int, default=5000
        Rivals with a kernel learn from a sample of at most so many rows, as their notes say: the
        pre-image of kernel PCA takes O(n³) time and O(n²) memory.

    Returns
    -------
    list of Yardstick
        The model first. ``row._asdict()`` is ready for JSON.
    """
    max_rows = check_integer("max_rows", max_rows, at_least=2)
    head, last = split_pipeline(model)
    check_has_kernel(last, "model")
    seen, learnt = (
        rows if head is None or rows is None else head.transform(rows) for rows in (X, train)
    )
    # First, because it raises if the kernel is missing.
    prior = last.prior_gram(seen) if gram is None else gram_of(gram, seen)
    kernel = last.kernel_ if gram is None else prior.kernel
    X, seen = (np.asarray(as_rows(rows)) for rows in (X, seen))
    scored = _Scored(X, seen, prior, head, last.n_components_)
    rows = seen if learnt is None else np.asarray(as_rows(learnt, "train"))
    if rows.shape[1:] != seen.shape[1:]:
        raise ValueError(
            f"train has rows of shape {rows.shape[1:]}, but X of {seen.shape[1:]}: pass rows of "
            "the same features"
        )
    if len(rows) < 2:
        name = "X" if train is None else "train"
        raise ValueError(f"{name} has one row: the rivals learn from at least two, pass more rows")
    sample = rows[sample_rows(len(rows), max_rows)]
    lesson = _Lesson(rows, sample, _evaluable(kernel, scored.seen, sample), last.n_components_)
    flattered = FLATTERED if train is None else ""
    found = [scored.measure(MODEL, _Rival(last.transform, last.inverse_transform))]
    for name, fit in RIVALS.items():
        found.append(scored.measure(name, fit(lesson), flattered))
    return found


class _Rival(NamedTuple):
    """A fitted method: the way there, the way back, and what must be said of it."""

    encode: Map
    decode: Map
    note: str = ""


class _Lesson(NamedTuple):
    """What rivals learn from."""

    rows: Array
    #: The rows for those with a kernel.
    sample: Array
    kernel: Kernel | None
    n_components: int

    @property
    def note(self) -> str:
        n, n_rows = len(self.sample), len(self.rows)
        return f"learns from {n:,} of {n_rows:,} rows" if n < n_rows else ""


class _Scored(NamedTuple):
    """The rows that all are measured on."""

    X: Array
    #: X as the model and its rivals see it, after the earlier steps of a pipeline.
    seen: Array
    prior: Gram
    #: These steps, or None.
    head: Any
    n_components: int

    def measure(self, name: str, rival: _Rival | None, note: str = "") -> Yardstick:
        if rival is None:
            return Yardstick(name, None, None, None, None, None, None, NO_KERNEL)
        codes = np.asarray(rival.encode(self.seen))
        back = np.asarray(rival.decode(codes)).reshape(self.seen.shape)
        back = back if self.head is None else np.asarray(self.head.inverse_transform(back))
        comparison = compare(code_gram(codes), self.prior, ("codes", "prior"))
        width = codes.shape[1]
        narrow = f"has no more than {width} components" if 1 < width < self.n_components else ""
        return Yardstick(
            name,
            width,
            max(0.0, comparison.alignment),
            comparison.alignment_loss,
            max(0.0, comparison.centered_alignment),
            reconstruction_error(self.X, back),
            reconstruction_r2(self.X, back),
            "; ".join(filter(None, [narrow, rival.note, note])),
        )


# --- the rivals ----------------------------------------------------------------------------------


def _constant(lesson: _Lesson) -> _Rival:
    mean = lesson.rows.mean(axis=0, dtype=np.float64)
    return _Rival(
        lambda X: np.ones((len(X), 1), np.float32),
        lambda codes: np.broadcast_to(mean, (len(codes), *mean.shape)),
    )


def _nystroem(lesson: _Lesson) -> _Rival | None:
    if lesson.kernel is None:
        return None
    sample = lesson.sample
    landmarks = sample[sample_rows(len(sample), lesson.n_components)]
    encode = nystroem_map(lesson.kernel, landmarks)
    ridge = RidgeCV(ALPHAS).fit(encode(sample), _flat(sample))
    return _Rival(encode, ridge.predict, lesson.note)


def nystroem_map(kernel: Kernel, landmarks: Array) -> Map:
    """Return the map from rows to Nyström features, for any kernel."""
    # z(x) = Λ^(-1/2) Eᵀ κ(L, x), with K_LL = E Λ Eᵀ: then z(x)ᵀ z(y) = κ(x, L) K_LL⁻¹ κ(L, y).
    gram = kernel.values(landmarks)
    precision = np.finfo(np.result_type(gram, np.float32)).eps
    eigenvalues, E = np.linalg.eigh(gram.astype(np.float64))
    # Round-off ε in κ adds some ε²/λ to z(x)ᵀ z(y): nothing to speak of where λ is above ε/100 of
    # the largest. A cut at ε itself would lose some of a smooth kernel, none would add noise.
    kept = eigenvalues > precision / 100 * np.abs(eigenvalues).max()
    W = E[:, kept] / np.sqrt(eigenvalues[kept])
    return lambda X: np.concatenate([block @ W for block in _cross_grams(kernel, X, landmarks)])


def _pca(lesson: _Lesson) -> _Rival:
    rows = _flat(lesson.rows)
    pca = PCA(min(lesson.n_components, *rows.shape), random_state=0).fit(rows)
    return _Rival(lambda X: pca.transform(_flat(X)), pca.inverse_transform)


def _kernel_pca(lesson: _Lesson) -> _Rival | None:
    kernel, sample = lesson.kernel, lesson.sample
    if kernel is None:
        return None
    preimage = PreImage(max_samples=len(sample), random_state=0)
    n_components = min(lesson.n_components, len(sample))
    # Without a kernel if that takes rows of another shape than KernelPCA, such as images.
    gram = gram_of(kernel.on(sample), _flat(sample))
    pca = KernelPCA(n_components, center=False, preimage=preimage, random_state=0)
    with warnings.catch_warnings():
        # It warns of what the notes say, and of what the fit of the model has warned of.
        warnings.simplefilter("ignore", UserWarning)
        pca.fit(_flat(sample), gram=gram)

    def encode(X: Array) -> Array:
        if gram.kernel is not None:
            return pca.transform(_flat(X))
        blocks = _cross_grams(kernel, X, sample)
        starts = range(0, len(X), N_CHUNK_ROWS)
        parts = (_flat(X[i : i + N_CHUNK_ROWS]) for i in starts)
        scores = [pca.transform(x, gram=block) for x, block in zip(parts, blocks, strict=True)]
        return np.concatenate(scores)

    return _Rival(encode, pca.inverse_transform, lesson.note)


CONSTANT, NYSTROEM, LINEAR, KERNEL_PCA = "constant kernel", "Nystroem + ridge", "PCA", "kernel PCA"
RIVALS: dict[str, Callable[[_Lesson], _Rival | None]] = {
    CONSTANT: _constant,
    NYSTROEM: _nystroem,
    LINEAR: _pca,
    KERNEL_PCA: _kernel_pca,
}


def _cross_grams(kernel: Kernel, X: Array, Y: Array) -> Iterator[Array]:
    """Yield κ(X, Y) by chunks of the rows of X."""
    return (kernel.values(X[i : i + N_CHUNK_ROWS], Y) for i in range(0, len(X), N_CHUNK_ROWS))


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
