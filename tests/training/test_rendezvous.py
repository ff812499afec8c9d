"""What one process makes of the variables of torchrun, and of its own messages."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dkae._support import processes, rendezvous
from dkae._support.processes import ALONE, joined, present, speaks
from dkae.training.fingerprint import described

CPU = torch.device("cpu")


@pytest.fixture
def of_two(monkeypatch):
    """Return a function that sets the variables of rank 1 of two, and others over them."""

    def set_up(**variables):
        given = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}
        for name, value in (given | variables).items():
            monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name, raising=False)

    return set_up


def test_the_variables_of_torchrun(of_two):
    of_two()
    assert not speaks()
    of_two(WORLD_SIZE="1", RANK="0", MASTER_PORT="")
    assert speaks()
    of_two(WORLD_SIZE="", RANK="")  # an address alone says nothing
    assert speaks()
    with joined(CPU) as found:
        assert found is ALONE


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"WORLD_SIZE": "abc"}, r"WORLD_SIZE='abc' in the environment must be a whole number"),
        ({"RANK": "2"}, r"RANK='2' in the environment must be a whole number from 0 to 1: start"),
        ({"MASTER_PORT": "65536"}, r"MASTER_PORT='65536' .* from 1 to 65535"),
        ({"MASTER_PORT": ""}, r"MASTER_PORT is not set in the environment, but .* with torchrun"),
        ({"RANK": ""}, r"RANK is not set"),
        ({"WORLD_SIZE": ""}, r"WORLD_SIZE is not set"),
    ],
)
def test_variables_that_are_not_those_of_torchrun(of_two, variables, message):
    of_two(**variables)
    with pytest.raises(ValueError, match=message), joined(CPU):
        pass


@pytest.mark.parametrize("address", ["192.0.2.1", "no.such.host.invalid"])
def test_an_address_of_another_machine(of_two, address):
    of_two(RANK="0", MASTER_ADDR=address, MASTER_PORT="29555")
    message = f"MASTER_ADDR={address}, MASTER_PORT=.* cannot be listened on .*: pass an address"
    with pytest.raises(ValueError, match=message), joined(CPU):
        pass


@pytest.mark.parametrize("text", ["soon", "0", "nan"])
def test_a_limit_must_be_a_number_of_seconds(text, monkeypatch):
    monkeypatch.setenv("DKAE_TIMEOUT", text)
    with pytest.raises(ValueError, match=f"DKAE_TIMEOUT={text} must be a number of seconds"):
        rendezvous.timeout_of_environment()


def test_what_one_process_sends_comes_back():
    assert present() is ALONE
    arrays = {"a": np.arange(3)}
    assert ALONE.gather(3) == [3]
    assert ALONE.first("a") == "a"
    assert ALONE.gather_arrays(arrays) == [arrays]
    assert ALONE.first_arrays(arrays) is arrays
    assert ALONE.highest(2) == 2
    assert speaks()


@pytest.mark.parametrize(("n", "size"), [(1, 2), (40, 3), (5, 7)])
def test_parts_are_everything_once(n, size):
    found = []
    for rank in range(size):
        someone = processes.Processes()
        someone.rank, someone.size = rank, size
        found += range(n)[someone.part(n)]
    assert found == list(range(n))


def test_values_as_text():
    def scaled_by(factor):
        return lambda x: x * factor if x in {"a", "b", "c"} else 1

    assert described(scaled_by(2)) == described(scaled_by(2))
    assert described(scaled_by(2)) != described(scaled_by(3))
    assert described(np.arange(3)) != described(np.arange(3.0))
    assert described(np.array(["a", None], object)) != described(np.array(["b", None], object))
    assert " at 0x" not in described(object())
