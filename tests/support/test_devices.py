"""Where the network runs, in which precision, and with how many threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info

from dkae._support import devices


def weights(model) -> list[np.ndarray]:
    return [p.detach().numpy() for p in model.network_.parameters()]


def fails(device_type):
    raise RuntimeError("could not create a primitive")


def is_killed(device_type):
    import os
    import signal

    os.kill(os.getpid(), signal.SIGILL)  # as the processor does for an instruction it lacks


def test_auto_finds_one():
    assert devices.choose_device("auto").type in ("cpu", "cuda", "mps")


def test_unknown_device_suggests_the_nearest(digits, tiny):
    with pytest.raises(ValueError, match=r"device='cudda' is not known.*did you mean 'cuda'"):
        tiny(device="cudda").fit(digits)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_missing_gpu_says_what_to_use(digits, tiny):
    with pytest.raises(ValueError, match=r"'cuda' is not available.*'auto' or 'cpu'"):
        tiny(device="cuda").fit(digits)


@pytest.mark.filterwarnings("ignore:precision='bfloat16' does not work:RuntimeWarning")
def test_bfloat16_trains_nearly_as_float32_wherever_it_runs(digits, tiny):
    budget = {"max_iter": 5, "steps_per_epoch": 20, "learning_rate_init": 0.01}
    half = tiny(precision="bfloat16", **budget).fit(digits)
    full = tiny(**budget).fit(digits)
    assert half.history_[-1]["loss"] == pytest.approx(full.history_[-1]["loss"], rel=0.1)
    assert half.transform(digits).dtype == np.float32
    if devices.bfloat16_works("cpu"):
        assert not np.array_equal(half.transform(digits), full.transform(digits))


@pytest.mark.parametrize(
    ("trial", "reason"),
    [(fails, "could not create a primitive"), (is_killed, "killed by signal 4")],
)
def test_broken_bfloat16_falls_back_with_one_warning(digits, tiny, monkeypatch, trial, reason):
    monkeypatch.setattr(devices, "_multiply_in_bfloat16", trial)
    devices.bfloat16_works.cache_clear()
    with pytest.warns(RuntimeWarning, match=f"bfloat16.*{reason}.*float32"):
        half = tiny(precision="bfloat16").fit(digits)
    tiny(precision="bfloat16").fit(digits)  # a second warning would be an error here
    devices.bfloat16_works.cache_clear()
    for a, b in zip(weights(half), weights(tiny().fit(digits)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_blas_gets_its_threads_back_after_trainings_in_threads(digits, tiny):
    def threads():
        return [i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"]

    before = threads()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda seed: tiny(random_state=seed).fit(digits), range(4)))
    assert threads() == before
