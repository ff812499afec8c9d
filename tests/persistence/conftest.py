"""A fitted model, and its file."""

import pytest

from dkae import save
from tests.persistence.helpers import (
    X,
    make,
)


@pytest.fixture(scope="module")
def model():
    return make().fit(X)


@pytest.fixture
def path(model, tmp_path):
    """Return the path of a saved model, alone in its folder."""
    save(model, tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"
