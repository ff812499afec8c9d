"""Equations 1 to 8 of the paper, each against a few naive lines of NumPy in float64."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs
from sklearn.mixture import GaussianMixture

from dkae import DeepKernelizedAutoencoder, metrics
from dkae.alignment import MEASURES, alignment, frobenius
from dkae.kernels import ProbabilisticClusterKernel
from dkae.networks import Autoencoder, Layer
from dkae.training import dkae_loss

ACTIVATIONS = {
    "identity": lambda x: x,
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "gelu": lambda x: x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2,
    "silu": lambda x: x / (1 + np.exp(-x)),
    "softplus": lambda x: np.log1p(np.exp(x)),
}


def random_gram(rng, n):
    codes = rng.normal(size=(n, rng.integers(1, 20))) + rng.normal()
    return codes @ codes.T


def inner(A, B):
    return float(np.sum(A * B))


def distance(C, P):
    """Return L_c of Eq. 6."""
    return float(np.linalg.norm(C / np.linalg.norm(C) - P / np.linalg.norm(P)))


def random_stack(rng, activation, tied=True, **sizes):
    """Return a network with random weights, and the weights by name."""
    widths = [int(n) for n in rng.integers(2, 9, rng.integers(2, 5))]
    widths[0] = sizes.get("n_in", widths[0])
    names = {"activation": activation, "output_activation": activation, "tied": tied}
    network = Autoencoder([Layer(m, n, **names) for m, n in pairwise(widths)]).double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.from_numpy(rng.normal(size=parameter.shape)))
    return network, {name: p.numpy().copy() for name, p in network.state_dict().items()}


def encode(weights, sigma, x):
    """Return h = σ(W_E x + b_E), layer by layer."""
    for i in range(sum(name.endswith(".bias") for name in weights)):
        x = sigma(x @ weights[f"_layers.{i}.weight"].T + weights[f"_layers.{i}.bias"])
    return x


def decode(weights, sigma, h):
    """Return x̃ = σ(W_D h + b_D), from the last layer to the first; W_D = W_Eᵀ if it is tied."""
    for i in reversed(range(sum(name.endswith(".bias") for name in weights))):
        own = weights.get(f"_layers.{i}.decoder_weight", weights[f"_layers.{i}.weight"].T)
        h = sigma(h @ own.T + weights[f"_layers.{i}.decoder_bias"])
    return h


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_stack_is_equations_1_and_2(activation, tied):
    sigma = ACTIVATIONS[activation]
    for seed in range(3):
        rng = np.random.default_rng(seed)
        network, weights = random_stack(rng, activation, tied)
        x = rng.normal(size=(5, weights["_layers.0.weight"].shape[1]))
        with torch.no_grad():
            codes = network.encode(torch.from_numpy(x))
            back = network.decode(codes)
        np.testing.assert_allclose(codes, encode(weights, sigma, x), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(
            back, decode(weights, sigma, codes.numpy()), rtol=1e-9, atol=1e-12
        )


@pytest.mark.parametrize("seed", range(40))
def test_the_loss_is_equation_8(seed):
    rng = np.random.default_rng(seed)
    k, d, width = (int(n) for n in rng.integers(2, 30, 3))
    weight = [0.0, 1.0, rng.random()][min(seed, 2)]
    x, c, y = (rng.normal(size=(k, n)) for n in (d, width, d))
    P = random_gram(rng, k)
    error = sum(np.sum((a - b) ** 2) for a, b in zip(x, y, strict=True)) / (k * d)  # Eq. 3
    losses = dkae_loss(*map(torch.from_numpy, (x, c, y, P)), weight)
    expected = (1 - weight) * error + weight * distance(c @ c.T, P)
    assert losses.total.item() == pytest.approx(expected, rel=1e-10)
    assert losses.reconstruction.item() == pytest.approx(error, rel=1e-12)
    assert losses.alignment.item() == pytest.approx(distance(c @ c.T, P), rel=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_training_starts_from_equation_8_of_its_batch(seed):
    """The first record of one step, with all rows in the batch, is the loss before the step."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 6))
    network, weights = random_stack(rng, "tanh", n_in=6)
    weight, gamma = rng.random(), 0.3
    codes = encode(weights, np.tanh, X)
    model = DeepKernelizedAutoencoder(
        codes.shape[1], network=network.float(), kernel="rbf", gamma=gamma,
        alignment="frobenius", alignment_weight=weight, batch_size=30, max_iter=1,
        steps_per_epoch=1, decoder_max_iter=0, random_state=0,
    ).fit(X)  # fmt: skip
    P = np.exp(-gamma * np.array([[np.sum((a - b) ** 2) for b in X] for a in X]))
    error = np.mean((X - decode(weights, np.tanh, codes)) ** 2)
    expected = (1 - weight) * error + weight * distance(codes @ codes.T, P)
    assert model.history_[0]["loss"] == pytest.approx(expected, rel=1e-4)


# --- Eqs. 6 and 7, and their gradients -----------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_alignment_is_equations_6_and_7(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    C, P = random_gram(rng, n), random_gram(rng, n)
    expected = inner(C, P) / math.sqrt(inner(C, C) * inner(P, P))
    tensors = torch.from_numpy(C), torch.from_numpy(P)
    assert alignment(*tensors).item() == pytest.approx(expected, rel=1e-10)
    assert metrics.kernel_alignment(C, P) == pytest.approx(expected, rel=1e-10)
    assert frobenius(*tensors).item() == pytest.approx(distance(C, P), rel=1e-10)
    assert metrics.alignment_loss(C, P) == pytest.approx(distance(C, P), rel=1e-10)
    assert distance(C, P) == pytest.approx(math.sqrt(2 - 2 * expected), rel=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_centred_alignment_is_cka(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 40))
    C, P = random_gram(rng, n), random_gram(rng, n)
    H = np.eye(n) - np.ones((n, n)) / n
    c, p = H @ C @ H, H @ P @ H
    expected = inner(c, p) / math.sqrt(inner(c, c) * inner(p, p))
    assert metrics.centered_alignment(C, P) == pytest.approx(expected, rel=1e-8)
    ours = MEASURES["centered"](torch.from_numpy(C), torch.from_numpy(P)).item()
    assert ours == pytest.approx(distance(c, p), rel=1e-8)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
def test_gradients_are_central_differences(measure, seed):
    """Of the loss in the codes: along random directions, for narrow codes and wide ones."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(3, 12))
    codes = torch.from_numpy(rng.normal(size=(k, rng.integers(2, 2 * k)))).requires_grad_()
    P = torch.from_numpy(random_gram(rng, k))

    def loss(c):
        return measure(c @ c.T, P)

    (gradient,) = torch.autograd.grad(loss(codes), codes)
    for _ in range(3):
        step = torch.from_numpy(rng.normal(size=codes.shape))
        h = 1e-5
        with torch.no_grad():
            slope = (loss(codes + h * step) - loss(codes - h * step)).item() / (2 * h)
        ours = (gradient * step).sum().item()
        assert ours == pytest.approx(slope, rel=1e-5, abs=1e-7)


# --- Eq. 4: the Probabilistic Cluster Kernel -----------------------------------------------------


def mixtures_of(kernel, X):
    """Yield each fitted mixture (q, g) as an object of scikit-learn."""
    fitted, start = kernel.mixtures_, 0
    for g in fitted.sizes.tolist():
        part, start = slice(start, start + g), start + g
        mixture = GaussianMixture(g, covariance_type="diag")
        mixture.weights_ = fitted.weights[part].numpy()
        mixture.means_ = fitted.means[part].numpy() + X.mean(axis=0)
        mixture.precisions_cholesky_ = 1 / np.sqrt(fitted.covariances[part].numpy())
        yield mixture


@pytest.mark.parametrize("seed", range(20))
def test_the_cluster_kernel_is_equation_4(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 12))
    X, _ = make_blobs(80, d, centers=4, cluster_std=2, random_state=seed)
    kernel = ProbabilisticClusterKernel(int(rng.integers(2, 7)), 2, random_state=seed).fit(X)
    new = np.vstack([X[:20], rng.uniform(-15, 15, size=(30, d))])
    posteriors = [mixture.predict_proba(new) for mixture in mixtures_of(kernel, X)]
    assert len(posteriors) == kernel.n_mixtures_
    np.testing.assert_allclose(kernel.transform(new), np.hstack(posteriors), atol=1e-6)
    # κ(x, y) = 1/Z Σ π(x)ᵀ π(y)
    expected = sum(p @ p.T for p in posteriors) / len(posteriors)
    np.testing.assert_allclose(kernel.gram(new), expected, atol=kernel.tolerance)
    phi = kernel.features(new)
    np.testing.assert_allclose(phi @ phi.T, expected, atol=1e-6)
