"""Measures by name, and measures that a user wrote."""

from __future__ import annotations

import functools
import time
import warnings

import numpy as np
import pytest
import torch

from dkae.alignment import MEASURES, check_width, frobenius, logdet, make_measure

C = torch.tensor([[2.0, 1.0], [1.0, 2.0]], requires_grad=True)
P = torch.eye(2)


class Shifted:
    """A measure that is an object, of shape (1, 1)."""

    def __call__(self, code_gram, prior_gram):
        return frobenius(code_gram, prior_gram).reshape(1, 1) + 1


@pytest.mark.parametrize("name", MEASURES)
def test_names_give_the_functions_themselves(name):
    assert make_measure(name) is MEASURES[name]
    assert make_measure(name).__name__ == name


@pytest.mark.parametrize(
    ("alignment", "message"),
    [
        ("burs", r"alignment='burs' is not known: expected one of 'bures', .*mean 'bures'\?"),
        ("", "alignment='' is not known"),
        (None, "alignment=None is not known"),
        (3, "alignment=3 is not known"),
    ],
)
def test_other_names_are_refused(alignment, message):
    with pytest.raises(ValueError, match=message):
        make_measure(alignment)


def test_a_users_measure_gives_what_it_returns_as_a_scalar_with_its_gradient():
    loss = make_measure(Shifted())(C, P)
    assert loss.shape == ()
    assert loss == frobenius(C, P) + 1
    (slope,) = torch.autograd.grad(loss, C)
    (expected,) = torch.autograd.grad(frobenius(C, P), C)
    assert (slope == expected).all()


def mine(result):
    def measure(code_gram, prior_gram):
        return result(code_gram, prior_gram)

    return measure


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (
            lambda C, P: (C - P).sum(dim=0),
            r"alignment=measure returned a tensor of shape \(2,\), expected one number: sum it",
        ),
        (lambda C, P: 0.5, "alignment=measure returned 0.5, expected a tensor: compute it with t"),
        (lambda C, P: None, "alignment=measure returned None, expected a tensor"),
        (lambda C, P: np.float64(1), "returned .*1.0.*, expected a tensor: .* or NumPy"),
        (
            lambda C, P: (C.detach() - P).norm(),
            "alignment=measure has no gradient: compute it with torch operations on code_gram",
        ),
        (
            lambda C, P: (C - C).sum() / (P - P).sum(),
            "alignment=measure returned nan at its first call, expected a finite number: keep div",
        ),
        (lambda C, P: C.sum() / (P - P).sum(), "alignment=measure returned inf at its first call"),
    ],
)
def test_what_is_no_loss_is_refused(result, message):
    with pytest.raises(ValueError, match=message):
        make_measure(mine(result))(C, P)


def test_objects_are_called_by_their_class_in_errors():
    measure = make_measure(functools.partial(torch.sub))
    with pytest.raises(ValueError, match=r"alignment=partial returned a tensor of shape \(2, 2\)"):
        measure(C, P)


def test_without_a_gradient_to_come_none_is_missed():
    measure = make_measure(lambda C, P: frobenius(C.detach(), P))
    assert measure(C.detach(), P) == frobenius(C, P)
    with torch.no_grad():
        assert measure(C, P) == frobenius(C, P)


def test_after_the_first_call_it_is_the_trainer_who_tells_what_is_not_finite():
    measure = make_measure(lambda C, P: (C - P).sum().log())
    assert measure(C, P).isfinite()
    assert measure(P - C, P).isnan()


def test_codes_that_are_not_finite_are_not_the_fault_of_the_measure():
    assert make_measure(lambda C, P: (C - P).norm())(C * torch.nan, P).isnan()


def test_the_check_costs_microseconds():
    loss = frobenius(C, P)

    def seconds(measure):
        start = time.perf_counter()
        for _ in range(1000):
            measure(C, P)
        return (time.perf_counter() - start) / 1000

    plain, checked = (lambda C, P: loss), make_measure(lambda C, P: loss)
    assert min(seconds(checked) - seconds(plain) for _ in range(5)) < 50e-6


@pytest.mark.parametrize("alignment", ["logdet", logdet])
def test_codes_too_narrow_for_logdet_are_warned_of(alignment):
    message = (
        r"alignment='logdet' needs .*n_components=99 .* batch_size=100 .*: set n_components to at "
        r"least batch_size, or choose another measure"
    )
    with pytest.warns(UserWarning, match=message) as caught:
        check_width(alignment, 99, 100)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("alignment", "n_components"), [("logdet", 100), ("frobenius", 2), (Shifted(), 2)]
)
def test_others_are_not(alignment, n_components):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_width(alignment, n_components, 100)
