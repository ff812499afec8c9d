"""With a linear kernel and a linear network of one layer, PCA falls out."""

from __future__ import annotations

import numpy as np
import pytest

from dkae import DeepKernelizedAutoencoder
from dkae.metrics import code_gram, kernel_alignment
from dkae.networks import Stack
from dkae.training import Optimization


@pytest.mark.parametrize("n_components", [1, 2, 4])
def test_codes_reach_the_best_approximation_of_the_gram(n_components):
    rng = np.random.default_rng(0)
    scales = np.array([3, 2, 1.5, 1, 0.5, 0.25])
    X = (rng.standard_normal((120, 6)) * scales).astype(np.float32)
    X -= X.mean(axis=0)
    model = DeepKernelizedAutoencoder(
        n_components,
        kernel="linear",
        network=Stack((), output_activation="identity"),
        alignment="frobenius",
        alignment_weight=1,
        batch_size=len(X),
        max_iter=5,
        decoder_max_iter=0,
        steps_per_epoch=200,
        optimization=Optimization(learning_rate_init=0.05),
        random_state=0,
    ).fit(X)
    # Eckart and Young: of all matrices of rank m, the truncated eigendecomposition aligns best
    # with XXᵀ, and its alignment is √(Σ_{i≤m} λᵢ² / Σ λᵢ²).
    eigenvalues, vectors = np.linalg.eigh(X.T.astype(np.float64) @ X)
    best = np.sqrt((eigenvalues[-n_components:] ** 2).sum() / (eigenvalues**2).sum())
    reached = kernel_alignment(code_gram(model.transform(X)), X @ X.T)
    assert best - 1e-4 <= reached <= best + 1e-6
    # The codes span the principal subspace.
    weight = model.network_.layers[0].weight.detach().numpy()
    principal = vectors[:, -n_components:]
    row_space = np.linalg.svd(weight, full_matrices=False)[2]
    cosines = np.linalg.svd(row_space @ principal, compute_uv=False)
    assert cosines.min() > 0.999
