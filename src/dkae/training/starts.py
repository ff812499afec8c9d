r"""Weights that are computed, not drawn: Nyström features, ridge regression, principal directions.

With the kernel values :math:`S = \kappa(X, L)` of rows with landmarks, :math:`K = \kappa(L, L)`,
and the leading eigenvectors V of :math:`\Phi^\top \Phi`, the Nyström features and the weight of the
kernel layer are

.. math:: \Phi = S K^{-1/2}, \qquad W = K^{-1/2} V ,

so that codes S W have the largest inner products that so many directions of the features can have.
What ridge regression cannot give back from them is left to the linear path: the leading principal
directions of the residual. How many of the N_c coordinates it gets is for the loss of Eq. 8 to say,
on rows that are held out.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import MiniBatchKMeans
from sklearn.utils.extmath import randomized_svd
from torch import Tensor, nn

from dkae._support.arrays import finite_numbers
from dkae._support.units import exponent_of, in_unit, largest_entry
from dkae.alignment import offdiagonal
from dkae.grams import Floats, Rows, sample_rows
from dkae.networks.kernel_layer import KernelLayer, KernelLayerNetwork, RidgeDecoder
from dkae.networks.scaling import VARIANCE, Scaling
from dkae.networks.stacked import LinearPath

Doubles = NDArray[np.float64]

#: Numbers that a start is computed from, at most (256 MB), and rows.
N_START_NUMBERS, N_START_ROWS = 2**26, 20_000
#: Rows that the width of the linear path is chosen on.
N_CHOICE_ROWS = 4000
#: Rows whose kernel values are held together.
N_CHUNK_ROWS = 2048
#: Eigenvalues of κ(L, L) below this part of the largest are round-off.
RANK_TOLERANCE = 1e-7
#: Candidates for the strength of the ridge, as part of the mean variance of a code.
ALPHAS = 10.0 ** np.arange(-8, 2)
#: Every so many rows one is held out to choose among candidates.
HOLD_OUT_EVERY = 8
#: Candidates for the width of the linear path, as parts of that of the code.
SHARES = (0.0, 0.125, 0.25, 0.5, 0.75)
#: So much of what a linear path gains for ridge regression is left when the decoder has learnt
#: from many rows, if the kernel is smooth: with RBF on MNIST, N_c = 128, half of the code as a path
#: takes the decoder's error only from 0.0021 to 0.0017. Up to so many rows, a decoder learns little
#: beyond ridge regression.
LEFT_BY_THE_DECODER, N_FEW_ROWS = 0.1, 1000
#: The inner products of the linear path are this part of the kernel's, as Frobenius norms: L_c is
#: no smaller than that, and its best is ten times as large.
FAINT = 3e-4


class Ridge(NamedTuple):
    """Linear regression from standardised codes: ((c − mean) / scale) weight + center."""

    mean: Doubles
    scale: Doubles
    weight: Doubles
    center: Doubles

    def predict(self, codes: Doubles) -> Doubles:
        predicted: Doubles = (codes - self.mean) / self.scale @ self.weight + self.center
        return predicted


class Path(NamedTuple):
    """The linear path: directions U in standardised rows, and the kernel coordinates beside it."""

    n_kernel: int
    directions: Doubles


def start_kernel_layer(
    spec: KernelLayerNetwork,
    similarity_of: Callable[[Floats], nn.Module],
    X: Floats,
    scaling: Scaling,
    decoder: RidgeDecoder,
    alignment_weight: float,
    seed: int,
    n_rows: int,
) -> tuple[KernelLayer, Rows | None]:
    """Return a kernel layer with the codes of Nyström and the decoder of ridge regression.

    Also the landmarks as row numbers of X, if they are rows whose kernel values are better read
    from a Gram matrix than computed anew.

    Parameters
    ----------
    spec : KernelLayerNetwork
        What is wanted.
    similarity_of : callable
        Returns κ(·, rows) as a torch module.
    X : array of shape (n_samples, n_features)
        Training rows.
    scaling : Scaling
        What makes the features of rows comparable.
    decoder : RidgeDecoder
        Gets the regression.
    alignment_weight : float
        λ.
    seed : int
        Of the landmarks.
    n_rows : int
        How many rows the decoder will learn from.
    """
    n_components = len(decoder.code_mean)
    if spec.n_linear is not None and spec.n_linear > n_components:
        raise ValueError(
            f"n_linear={spec.n_linear} is wider than the code, n_components={n_components}, that "
            "it is a part of: lower it, or raise n_components"
        )
    at_most = min(N_START_ROWS, max(2, N_START_NUMBERS // X.shape[1]))
    ids = sample_rows(len(X), at_most)
    rows = np.ascontiguousarray(X[ids])
    n_landmarks = min(len(rows), spec.count(len(X), n_components))
    if spec.landmarks == "k-means":
        known = scaling.filled(torch.from_numpy(rows)).numpy()
        chosen, landmarks = None, cluster_centers(known, n_landmarks, seed)
    else:
        chosen = np.sort(np.random.default_rng(seed).choice(len(rows), n_landmarks, replace=False))
        landmarks = rows[chosen]
    similarity = similarity_of(landmarks)
    weight = nystroem_weight(similarity, landmarks, rows, n_components)
    codes = np.concatenate([kernel_values(similarity, part) @ weight for part in chunks(rows)])
    seen = scaling(torch.from_numpy(rows)).numpy()
    sample = sample_rows(len(rows), N_CHOICE_ROWS)
    n_linear = spec.n_linear
    if n_linear is None:
        prior = _prior_of(similarity_of, rows[sample])
        left = min(1.0, max(LEFT_BY_THE_DECODER, N_FEW_ROWS / n_rows))
        left = left if similarity.is_smooth else 1.0
        n_linear = choose_width(
            codes[sample], seen[sample], prior, n_components, alignment_weight, left
        )
    path = make_path(codes, seen, n_components, n_linear)
    # A missing value lies at the centre of the path, also where rows are not standardised.
    center = scaling.mean if scaling.fill is None else scaling.fill
    path_codes = (seen - scaling(center).numpy()) @ path.directions
    codes = np.hstack([codes[:, : path.n_kernel], path_codes])
    set_ridge(decoder, fit_ridge(codes, seen))
    scale = np.broadcast_to(scaling.scale.numpy(), rows.shape[1:])
    layer = KernelLayer(
        similarity,
        _tensor(weight[:, : path.n_kernel]),
        _tensor(path.directions / scale[:, None]),
        center.clone(),
        decoder,
    )
    return layer, None if chosen is None or similarity.is_smooth else ids[chosen]


def cluster_centers(rows: Floats, n: int, seed: int) -> Floats:
    """Return the centres of `n` clusters of the rows."""
    clusters = MiniBatchKMeans(n, n_init=1, batch_size=4096, max_iter=20, random_state=seed)
    return np.asarray(clusters.fit(rows).cluster_centers_, dtype=np.float32)


def nystroem_weight(
    similarity: nn.Module, landmarks: Floats, rows: Floats, n_components: int
) -> Doubles:
    """Return W of rows, (m, n) with at most `n_components` columns."""
    values = (kernel_values(similarity, part) for part in chunks(rows))
    return weight_of(kernel_values(similarity, landmarks), values, n_components)


def root_of(gram: Doubles) -> tuple[Doubles, Doubles]:
    """Return R with RRᵀ = K⁻¹, without directions that are round-off, and its inverse."""
    eigenvalues, vectors = np.linalg.eigh((gram + gram.T) / 2)
    kept = eigenvalues > RANK_TOLERANCE * max(eigenvalues[-1], np.finfo(np.float64).tiny)
    roots = np.sqrt(eigenvalues[kept])
    return vectors[:, kept] / roots, (vectors[:, kept] * roots).T


def weight_of(gram: Doubles, values: Iterable[Doubles], n_components: int) -> Doubles:
    """Return W from κ(L, L) and parts of κ(X, L): the leading directions, as many as there are."""
    root, _ = root_of(gram)
    moment = sum((phi := part @ root).T @ phi for part in values)
    _, directions = np.linalg.eigh(moment)
    weight: Doubles = root @ directions[:, ::-1][:, :n_components]
    return weight


def choose_width(
    codes: Doubles,
    seen: Floats,
    prior: Callable[..., Tensor],
    n_components: int,
    weight: float,
    left: float = 1.0,
) -> int:
    """Return the width of the linear path that has the least loss of Eq. 8 on held-out rows.

    `prior` returns the Gram matrix of some of the rows, `weight` is λ, and `left` the part of the
    error of ridge regression that counts.
    """
    held_out = np.arange(len(codes)) % HOLD_OUT_EVERY == 0
    if held_out.sum() < 2 or len(codes) < 2 * HOLD_OUT_EVERY:
        return n_components // 4
    gram = prior(held_out)
    losses = {}
    for n_linear in sorted({int(share * n_components) for share in SHARES}):
        path = make_path(codes[~held_out], seen[~held_out], n_components, n_linear)
        c = np.hstack([codes[:, : path.n_kernel], seen @ path.directions])
        error = seen[held_out] - fit_ridge(c[~held_out], seen[~held_out]).predict(c[held_out])
        unexplained = left * VARIANCE * np.square(error).mean()
        mine = _tensor(c[held_out])
        losses[n_linear] = (1 - weight) * unexplained + weight * float(
            offdiagonal(mine @ mine.T, gram)
        )
    return min(losses, key=losses.__getitem__)


def make_path(codes: Doubles, seen: Floats, n_components: int, n_linear: int) -> Path:
    """Return the leading principal directions of what kernel coordinates do not give back."""
    n_kernel = min(n_components - n_linear, codes.shape[1])
    # Coordinates that the kernel has no use for are free.
    width = min(n_components - n_kernel, *seen.shape)
    directions = np.zeros((seen.shape[1], n_components - n_kernel))
    if width:
        own = codes[:, :n_kernel]
        residual = (seen - fit_ridge(own, seen).predict(own)).astype(np.float32)
        leading = _leading(residual, width)
        path = seen @ leading.T
        size, norm = _norm_of_gram(path), _norm_of_gram(own)
        # Without kernel coordinates, the path is all that a code has.
        faint = np.sqrt(FAINT * norm / size) if size > 0 and norm > 0 else 1.0
        directions[:, :width] = faint * leading.T
    return Path(n_kernel, directions)


def _norm_of_gram(a: NDArray[Any]) -> float:
    """Return ‖a aᵀ‖ = ‖aᵀ a‖, from the small product, in a unit in which squares exist."""
    if not a.size:
        return 0.0
    exponent = exponent_of(largest_entry(a), a.dtype)
    a = in_unit(a, exponent)
    return math.ldexp(float(np.linalg.norm(a.T @ a)), 2 * exponent)


def fit_ridge(codes: Doubles, targets: NDArray[Any]) -> Ridge:
    """Return the ridge regression whose strength is best on held-out rows."""
    mean, scale = codes.mean(axis=0), codes.std(axis=0)
    scale[scale <= 1e-7 * max(scale.max(initial=0.0), 1e-300)] = 1.0
    center = targets.mean(axis=0, dtype=np.float64)
    z, y = (codes - mean) / scale, targets - center
    held_out = np.arange(len(z)) % HOLD_OUT_EVERY == 0
    errors = {}
    if (~held_out).any():
        for alpha, weight in _ridges(z[~held_out], y[~held_out]):
            errors[alpha] = np.square(z[held_out] @ weight - y[held_out]).mean()
    best = min(errors, key=errors.__getitem__, default=ALPHAS[-1])
    ((_, weight),) = _ridges(z, y, [best])
    return Ridge(mean, scale, weight, center)


def _ridges(a: Doubles, b: Doubles, alphas: Any = ALPHAS) -> Iterator[tuple[float, Doubles]]:
    """Yield (aᵀa / n + α I)⁻¹ aᵀb / n for each α, from one decomposition."""
    eigenvalues, vectors = np.linalg.eigh(a.T @ a / len(a))
    projected = vectors.T @ (a.T @ b / len(a))
    for alpha in alphas:
        yield alpha, vectors @ (projected / (eigenvalues.clip(min=0) + alpha)[:, None])


def set_ridge(decoder: RidgeDecoder, ridge: Ridge) -> None:
    """Put a regression into the linear part of a decoder."""
    with torch.no_grad():
        for tensor, value in (
            (decoder.code_mean, ridge.mean),
            (decoder.code_scale, ridge.scale),
            (decoder.linear.weight, ridge.weight.T),
            (decoder.linear.bias, ridge.center),
        ):
            tensor.copy_(_tensor(value))


def start_linear_path(network: nn.Module, X: Floats, scaling: Scaling | None) -> None:
    """Put the principal directions of the rows into the linear path of a stack, if it has one."""
    path = getattr(network, "linear_path", None)
    if not isinstance(path, LinearPath):
        return
    n_components, n_features = path.up.shape
    rows = torch.from_numpy(np.ascontiguousarray(X[sample_rows(len(X), N_START_ROWS)]))
    seen = (rows if scaling is None else scaling(rows)).numpy()
    mean = seen.mean(axis=0, dtype=np.float64)
    width = min(n_components, *seen.shape)
    leading = _leading(seen - mean.astype(np.float32), width)
    directions = torch.zeros(n_components, n_features)
    directions[:width] = torch.from_numpy(leading)
    network.linear_path = LinearPath(directions, _tensor(mean), path.weight)


def _leading(rows: Floats, width: int) -> Floats:
    """Return the leading right singular vectors, (width, n_features)."""
    _, _, directions = randomized_svd(rows, width, power_iteration_normalizer="QR", random_state=0)
    return np.asarray(directions)


def _prior_of(similarity_of: Callable[[Floats], nn.Module], rows: Floats) -> Callable[..., Tensor]:
    def prior(chosen: NDArray[Any]) -> Tensor:
        part = rows[chosen]
        gram: Tensor = similarity_of(part)(torch.from_numpy(part))
        return gram.detach()

    return prior


def kernel_values(similarity: nn.Module, rows: Floats) -> Doubles:
    """Return κ(rows, L) in float64, and refuse what is not finite."""
    device = next((buffer.device for buffer in similarity.buffers()), torch.device("cpu"))
    with torch.no_grad():
        values: Tensor = similarity(torch.from_numpy(rows).to(device)).cpu()
    remedy = "scale X, for example to [0, 1], or check the kernel's parameters"
    kernel_values: Doubles = finite_numbers(values.numpy(), "the kernel of X (in float32)", remedy)
    return kernel_values.astype(np.float64)


def chunks(rows: Any) -> Iterator[Any]:
    """Yield rows, or numbers of rows, a few at a time."""
    return (rows[i : i + N_CHUNK_ROWS] for i in range(0, len(rows), N_CHUNK_ROWS))


def _tensor(value: NDArray[Any]) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(value, dtype=np.float32))
