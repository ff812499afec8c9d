"""Ways to remove noise by a projection: in kernel space, or in code space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dkae.decoders import KernelRidgeDecoder
from dkae.grams import Gram
from dkae.spectral import KernelPCA
from dkae_study.engine.workshop import Workshop

#: The digits of Table 2, the same with components of all digits, and all digits.
PAIR, PAIR_OF_ALL, ALL_DIGITS = "5 and 6", "5 and 6, components of all digits", "all digits"
_TEN = tuple(range(10))
#: The digits that are denoised, and those whose components are used.
DIGITS = {PAIR: ((5, 6), (5, 6)), PAIR_OF_ALL: ((5, 6), _TEN), ALL_DIGITS: (_TEN, _TEN)}
NOISE = 0.25
N_COMPONENTS = 32
#: Strength of the pre-image's regularisation that the paper found, and candidates for a search.
ALPHA, ALPHAS = 0.5, (1e-4, 1e-3, 1e-2, 0.1, 0.5, 1.0, 5.0)
#: Landmarks of the pre-image; it is exact up to so many rows.
N_LANDMARKS = 3000

Denoiser = Callable[[NDArray[Any]], NDArray[Any]]


class Task(NamedTuple):
    """Clean rows to learn from, and test rows without and with noise."""

    train: NDArray[Any]
    clean: NDArray[Any]
    noisy: NDArray[Any]


def make_task(workshop: Workshop, digits: str, seed: int) -> Task:
    """Return training rows for components, and test rows without and with the noise of a seed."""
    denoised, learned = DIGITS[digits]
    train, test = (
        part.X[np.isin(part.y, classes)]
        for part, classes in (
            (workshop.parts["train"], learned),
            (workshop.parts["test"], denoised),
        )
    )
    noise = np.random.default_rng(seed).standard_normal(test.shape, dtype=np.float32)
    return Task(train, test, test + np.float32(NOISE) * noise)


def there_and_back(model: Any) -> Denoiser:
    """Return what maps rows to codes or scores and back."""
    return lambda x: np.asarray(model.inverse_transform(model.transform(x)))


def kernel_pca(
    train: NDArray[Any], prior: Gram | None, seed: int, alphas: Sequence[float]
) -> Denoiser:
    """Fit kernel PCA and its pre-image: of the prior uncentred as in Fig. 5, else RBF, centred."""
    preimage = KernelRidgeDecoder(alphas=alphas, n_landmarks=N_LANDMARKS)
    model = KernelPCA(N_COMPONENTS, center=prior is None, decoder=preimage, random_state=seed)
    return there_and_back(model.fit(train, gram=prior))
