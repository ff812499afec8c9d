"""Target codes beside the prior: those of Nyström features, from blocks of a Gram matrix."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from dkae.training.teacher import Teacher, distillation_loss
from sklearn.metrics.pairwise import rbf_kernel

from dkae import DeepKernelizedAutoencoder
from dkae.grams import MatrixGram
from dkae.training import teacher as teachers

X = np.random.default_rng(0).normal(size=(70, 4))
GRAM = rbf_kernel(X, gamma=0.5)


def test_target_codes_are_the_landmarks_values_times_the_weight_of_nystroem(monkeypatch):
    monkeypatch.setattr(teachers, "N_LANDMARKS", 20)
    teacher = Teacher.of(MatrixGram(GRAM), 6, seed=0)
    assert len(teacher.landmarks) == 20
    # W = K^{-1/2} V, with the leading eigenvectors V of ΦᵀΦ, by NumPy alone.
    values = GRAM[:, teacher.landmarks]
    eigenvalues, vectors = np.linalg.eigh(GRAM[np.ix_(teacher.landmarks, teacher.landmarks)])
    features = values @ (vectors / np.sqrt(eigenvalues)) @ vectors.T
    _, _, directions = np.linalg.svd(features)
    expected = features @ directions[:6].T
    rows = np.array([3, 60, 0, 41])
    targets = teacher.codes(rows).numpy()
    np.testing.assert_allclose(targets @ targets.T, expected[rows] @ expected[rows].T, atol=1e-4)
    np.testing.assert_allclose(np.abs(targets), np.abs(expected[rows]), atol=1e-3)


def test_with_all_rows_and_dimensions_they_are_the_kernel():
    teacher = Teacher.of(MatrixGram(GRAM), 70, seed=0)
    targets = teacher.codes(np.arange(70)).numpy()
    np.testing.assert_allclose(targets @ targets.T, GRAM, atol=1e-4)


def test_codes_that_the_kernel_has_no_use_for_are_zero():
    rows = X[:, :2]
    targets = Teacher.of(MatrixGram(rows @ rows.T), 5, seed=0).codes(np.arange(70))
    assert targets.shape == (70, 5)
    assert not targets[:, 2:].any()
    np.testing.assert_allclose((targets @ targets.T).numpy(), rows @ rows.T, atol=1e-4)


def test_the_loss_is_the_part_of_the_targets_that_is_missed():
    targets = torch.rand(8, 3)
    assert distillation_loss(targets, targets) == 0
    assert distillation_loss(0 * targets, targets) == pytest.approx(1)
    assert distillation_loss(1.5 * targets, targets) == pytest.approx(0.25, rel=1e-5)


def fit(distillation, gram=None, **params):
    defaults = {
        "network": "stacked", "hidden_layer_sizes": (16,), "max_iter": 10, "decoder_max_iter": 0,
        "steps_per_epoch": 10, "random_state": 0, "gamma": 0.5, "alignment_weight": 0.5,
    }  # fmt: skip
    model = DeepKernelizedAutoencoder(4, distillation=distillation, **(defaults | params))
    return model.fit(X, gram=gram)


def targets_of(gram):
    """Return the targets of all rows in `fit`; signs depend on the last digits of the matrix."""
    seed = np.random.RandomState(0).randint(np.iinfo(np.int32).max)
    return Teacher.of(gram, 4, seed).codes(np.arange(70))


@pytest.mark.parametrize("gram", [None, GRAM], ids=["kernel", "Gram matrix"])
def test_distillation_brings_codes_nearer_to_their_targets(gram):
    models = [fit(weight, gram) for weight in (0.0, 3.0)]
    targets = targets_of(models[0].prior_gram(X) if gram is None else MatrixGram(GRAM))
    missed = [
        float(distillation_loss(torch.from_numpy(model.transform(X)), targets)) for model in models
    ]
    assert missed[1] < 0.5 * missed[0]


def test_the_first_loss_has_it_beside_the_two_terms():
    params = {"max_iter": 1, "steps_per_epoch": 1, "learning_rate_init": 1e-12}
    plain, taught = (fit(weight, **params) for weight in (0.0, 3.0))
    targets = targets_of(plain.prior_gram(X))
    distance = float(distillation_loss(torch.from_numpy(plain.transform(X)), targets))
    difference = taught.history_[0]["loss"] - plain.history_[0]["loss"]
    assert difference == pytest.approx(0.5 * 3 * distance, rel=1e-3)
    for name in ("reconstruction_loss", "alignment_loss"):
        assert taught.history_[0][name] == pytest.approx(plain.history_[0][name], rel=1e-6)


def test_without_an_alignment_there_is_no_teacher():
    a, b = (fit(weight, alignment_weight=0.0) for weight in (0.0, 3.0))
    assert a.history_ == b.history_


@pytest.mark.parametrize("bad", [-1, "much"])
def test_a_wrong_weight_is_refused(bad):
    with pytest.raises(ValueError, match=r"distillation=.* must be a number in \[0, inf\)"):
        fit(bad)
