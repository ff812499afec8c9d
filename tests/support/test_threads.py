"""Threads: how they wait, and independent pieces of work in them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest
import torch

from dkae._support.threads import calm_spinning, in_threads

CPU = torch.device("cpu")
DECISIONS = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "OMP_NUM_THREADS")


@pytest.fixture
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("three_threads")
class TestInThreads:
    def test_results_come_in_order(self):
        assert list(in_threads(lambda i: i**2, range(50), CPU)) == [i**2 for i in range(50)]

    def test_as_many_at_once_as_torch_has_threads(self):
        together = threading.Barrier(3, timeout=30)  # breaks if fewer than three arrive
        assert len(list(in_threads(lambda _: together.wait(), range(3), CPU))) == 3

    def test_each_thread_computes_alone_and_the_caller_keeps_its_own(self):
        assert set(in_threads(lambda _: torch.get_num_threads(), range(6), CPU)) == {1}
        assert torch.get_num_threads() == 3

    def test_threads_that_start_later_are_as_before(self):
        list(in_threads(abs, range(6), CPU))
        seen = []
        later = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
        later.start()
        later.join()
        assert seen == [3]

    @pytest.mark.parametrize(("n_threads", "n_pieces", "own"), [(3, 1, 3), (6, 2, 3)])
    def test_few_pieces_share_the_threads(self, n_threads, n_pieces, own):
        torch.set_num_threads(n_threads)
        seen = in_threads(lambda _: torch.get_num_threads(), range(n_pieces), CPU)
        assert set(seen) == {own}

    def test_an_error_reaches_the_caller(self):
        with pytest.raises(ZeroDivisionError):
            list(in_threads(lambda i: 1 / (i - 2), range(5), CPU))

    def test_inference_mode_goes_along(self):
        with torch.inference_mode():
            row = torch.zeros(6)
            list(in_threads(lambda i: row[i].fill_(i), range(6), CPU))
        assert row.tolist() == [0, 1, 2, 3, 4, 5]

    def test_one_queue_one_thread(self):
        threads = set(in_threads(lambda _: threading.get_ident(), range(6), torch.device("cuda")))
        assert threads == {threading.get_ident()}


# --- how they wait --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DECISIONS)
def test_a_variable_of_the_environment_wins(monkeypatch, name):
    for other in DECISIONS:
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, "3")
    calm_spinning()
    assert {other: os.environ.get(other) for other in DECISIONS if other in os.environ} == {
        name: "3"
    }


@pytest.mark.slow
def test_importing_dkae_sets_the_count_that_openmp_reads():
    code = "import os, sys, dkae; assert not {'torch', 'numpy'} & {*sys.modules}; import torch; "
    code += "assert os.environ['OPENBLAS_THREAD_TIMEOUT'] == '4'"
    ours = (*DECISIONS, "OPENBLAS_THREAD_TIMEOUT")
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    environment |= {"OMP_DISPLAY_ENV": "verbose", "PYTHONPATH": os.pathsep.join(sys.path)}
    said = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stderr
    if "GOMP_SPINCOUNT" not in said:
        pytest.skip("torch has another OpenMP here")
    assert "GOMP_SPINCOUNT = '1000'" in said
