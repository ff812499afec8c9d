"""How a fit ends from outside, and what it means that two fits are the same."""

from __future__ import annotations

import torch
from sklearn.base import clone


class Killed(Exception):  # noqa: N818 - nothing went wrong in the fit
    """Ends a fit from outside, as a machine that goes down would."""


def assert_same(a, b):
    """The two models are the same, bit for bit."""
    assert a.history_ == b.history_
    assert (a.n_iter_, a.kernel_scale_) == (b.n_iter_, b.kernel_scale_)
    mine, others = a.network_.state_dict(), b.network_.state_dict()
    assert list(mine) == list(others)
    assert all(torch.equal(mine[name], others[name]) for name in mine)


def initial(model, X):
    """Return the network that a fit of the model starts from."""
    still = clone(model).set_params(
        optimization__learning_rate_init=1e-30, max_iter=1, steps_per_epoch=1
    )
    return still.fit(X).network_
