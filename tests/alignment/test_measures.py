"""Measures by name, and the checks of custom measures and of what any measure gets."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pytest
import torch

from dkae.alignment import MEASURES, alignment, check_width, frobenius, logdet, make_measure

C = torch.tensor([[2.0, 1.0], [1.0, 2.0]], requires_grad=True)
P = torch.eye(2)


class Shifted:
    """A measure that is an object, of shape (1, 1)."""

    def __call__(self, code_gram, prior_gram):
        return frobenius(code_gram, prior_gram).reshape(1, 1) + 1


def test_names_give_the_functions_themselves():
    for name, measure in MEASURES.items():
        assert make_measure(name) is measure
        assert measure.__name__ == name


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("burs", r"alignment='burs' is not known: expected one of 'bures', .*mean 'bures'\?"),
        (None, "alignment=None is not known"),
        (lambda C: C, "alignment=<lambda> cannot be called with two Gram matrices"),
    ],
)
def test_unknown_measures(given, message):
    with pytest.raises(ValueError, match=message):
        make_measure(given)


def test_a_custom_measure_returns_a_scalar_with_its_gradient():
    loss = make_measure(Shifted())(C, P)
    assert loss.shape == ()
    assert loss == frobenius(C, P) + 1
    (slope,) = torch.autograd.grad(loss, C)
    (expected,) = torch.autograd.grad(frobenius(C, P), C)
    assert (slope == expected).all()


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (
            lambda C, P: (C - P).sum(dim=0),
            r"alignment=measure returned a tensor of shape \(2,\), expected one number: sum it",
        ),
        (lambda C, P: 0.5, "alignment=measure returned 0.5, expected a tensor: compute it with t"),
        (lambda C, P: np.float64(1), "returned .*1.0.*, expected a tensor: .* or NumPy"),
        (
            lambda C, P: (C.detach() - P).norm(),
            "alignment=measure has no gradient: compute it with torch operations on code_gram",
        ),
        (
            lambda C, P: (C - C).sum() / (P - P).sum(),
            "alignment=measure returned nan at its first call, expected a finite number: keep div",
        ),
    ],
)
def test_results_that_are_not_a_loss(result, message):
    def measure(code_gram, prior_gram):
        return result(code_gram, prior_gram)

    with pytest.raises(ValueError, match=message):
        make_measure(measure)(C, P)


def test_objects_are_called_by_their_class_in_errors():
    measure = make_measure(functools.partial(torch.sub))
    with pytest.raises(ValueError, match=r"alignment=partial returned a tensor of shape \(2, 2\)"):
        measure(C, P)


def test_without_gradients_and_after_the_first_call_results_are_free():
    measure = make_measure(lambda C, P: frobenius(C.detach(), P))
    with torch.no_grad():
        assert measure(C, P) == frobenius(C, P)
    # The trainer reports losses that are not finite, and codes that are not.
    measure = make_measure(lambda C, P: (C - P).sum().log())
    assert measure(C, P).isfinite()
    assert measure(P - C, P).isnan()
    assert make_measure(lambda C, P: (C - P).norm())(C * torch.nan, P).isnan()


@pytest.mark.parametrize("given", ["logdet", logdet])
def test_codes_too_narrow_for_logdet_are_warned_of(given):
    message = (
        r"alignment='logdet' needs .*n_components=99 .* batch_size=100 .*: set n_components to at "
        r"least batch_size, or choose another measure"
    )
    with pytest.warns(UserWarning, match=message) as caught:
        check_width(given, 99, 100)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_width(given, 100, 100)
        check_width("frobenius", 2, 100)


@pytest.mark.parametrize(
    ("code_gram", "prior_gram", "error", "message"),
    [
        (np.eye(2), P, TypeError, "code_gram is a ndarray: pass a matrix of floats, as a t"),
        (C, None, TypeError, "prior_gram is a NoneType: pass a matrix of floats"),
        (C, torch.eye(2).long(), TypeError, "prior_gram is a Tensor: pass a matrix of floats"),
        (torch.ones(2, 3), P, ValueError, r"code_gram has shape \(2, 3\), and prior_gram"),
        (C, torch.eye(3), ValueError, r".* prior_gram \(3, 3\): pass square matrices of the"),
    ],
)
def test_arguments_that_are_not_gram_matrices(code_gram, prior_gram, error, message):
    for measure in (alignment, *MEASURES.values()):
        with pytest.raises(error, match=f"^{message}"):
            measure(code_gram, prior_gram)
