"""Ways to remove noise by a projection: in kernel space, or in code space."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dkae.grams import Gram
from dkae.spectral import KernelPCA, PreImage
from dkae_study.engine.workshop import Workshop

#: The digits of Table 2, the same with components of all digits, and all digits.
PAIR, PAIR_OF_ALL, ALL_DIGITS = "5 and 6", "5 and 6, components of all digits", "all digits"
_TEN = tuple(range(10))
#: The digits that are denoised, and those whose components are used.
DIGITS = {PAIR: ((5, 6), (5, 6)), PAIR_OF_ALL: ((5, 6), _TEN), ALL_DIGITS: (_TEN, _TEN)}
NOISE = 0.25
N_COMPONENTS = 32
#: Strength of the pre-image's regularisation that the paper found.
ALPHA = 0.5
#: The exact pre-image takes the cube of the number of rows; with more rows than this it is
#: approximated by so many Nyström features.
N_EXACT_ROWS, N_FEATURES = 3000, 1000

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


def kernel_pca(train: NDArray[Any], prior: Gram | None, seed: int, alpha: float | str) -> Denoiser:
    """Fit kernel PCA and its pre-image: of the prior uncentred as in Fig. 5, else RBF, centred."""
    n = N_EXACT_ROWS if len(train) <= N_EXACT_ROWS else N_FEATURES
    preimage = PreImage(alpha=alpha, max_samples=n, random_state=seed)
    model = KernelPCA(N_COMPONENTS, center=prior is None, preimage=preimage, random_state=seed)
    with warnings.catch_warnings():
        # That the pre-image is approximated for all digits stands among the assumptions.
        warnings.filterwarnings("ignore", message=".*max_samples", category=UserWarning)
        return there_and_back(model.fit(train, gram=prior))
