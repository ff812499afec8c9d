"""Fits that are broken off, and the rows for them."""

from __future__ import annotations

from itertools import count

import pytest

from dkae.training import Trainer, checkpoint
from tests.faults.helpers import Killed


@pytest.fixture
def always(monkeypatch):
    """Write the state after every step."""
    monkeypatch.setattr(checkpoint, "EVERY_SECONDS", 0.0)


@pytest.fixture
def break_at(monkeypatch):
    """Return a function that makes the i-th call of a trainer's method fail, counted from 0."""
    originals = {name: getattr(Trainer, name) for name in ("run_epoch", "train_step")}

    def set_up(i, name="run_epoch", error=Killed):
        calls = count()

        def wrapped(*args):
            if next(calls) == i:
                raise error
            return originals[name](*args)

        monkeypatch.setattr(Trainer, name, wrapped)

    return set_up


@pytest.fixture
def rows(digits):
    return digits[:80]
