"""Where the network runs, and the settings of the process meanwhile."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch
from threadpoolctl import threadpool_info

from dkae._support.devices import choose_device, float32_math, single_threaded_blas


def test_auto_is_a_device_that_works():
    assert torch.zeros(1, device=choose_device("auto")).item() == 0


def test_devices_by_name():
    assert choose_device("cpu") == choose_device(torch.device("cpu")) == torch.device("cpu")


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("cudda", r"device='cudda' is not known: expected one of .*; did you mean 'cuda'"),
        (3.5, r"device=3.5 is not known: expected one of 'auto', 'cpu', 'cuda', 'mps'"),
        (None, "device=None is not known"),
        ("meta", r"device='meta' is not available on this machine: use device='auto' or 'cpu'"),
        ("xpu", "device='xpu' is not available"),
        ("cuda:99", "device='cuda:99' is not available"),
    ],
)
def test_devices_that_cannot_be_used(device, message):
    with pytest.raises(ValueError, match=message):
        choose_device(device)


@pytest.fixture
def float64_by_default():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def types_of_results():
    return torch.zeros(2).dtype, (torch.ones(2, 2).float() @ torch.ones(2, 2).float()).dtype


@pytest.mark.usefixtures("float64_by_default")
def test_math_is_in_float32_whatever_the_caller_has_set():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with float32_math(), float32_math():
            assert types_of_results() == (torch.float32, torch.float32)
        assert types_of_results() == (torch.float64, torch.bfloat16)


@pytest.mark.usefixtures("float64_by_default")
def test_the_default_type_comes_back_when_the_last_thread_has_ended():
    both = Barrier(2, timeout=30)

    def first(_):
        with float32_math():
            both.wait()
        both.wait()  # the other one still computes
        both.wait()

    def second(_):
        with float32_math():
            both.wait()
            both.wait()
            found = types_of_results()
        both.wait()
        return found

    with ThreadPoolExecutor(2) as pool:
        _, found = pool.map(lambda work: work(None), (first, second))
    assert found == (torch.float32, torch.float32)
    assert torch.get_default_dtype() == torch.float64


def test_settings_come_back_after_an_error():
    with pytest.raises(ZeroDivisionError), torch.autocast("cpu"), float32_math():
        raise ZeroDivisionError
    assert torch.get_default_dtype() == torch.float32


def test_blas_gets_its_threads_back_after_work_in_threads():
    def threads():
        return [i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"]

    def work(_):
        with single_threaded_blas(torch.device("cpu")):
            return threads()

    before = threads()
    with ThreadPoolExecutor(2) as pool:
        assert all(set(seen) == {1} for seen in pool.map(work, range(4)))
    assert threads() == before
