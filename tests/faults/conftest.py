"""Fits that are broken off, as in the tests of training."""

from tests.training.conftest import always, break_at, rows

__all__ = ["always", "break_at", "rows"]
