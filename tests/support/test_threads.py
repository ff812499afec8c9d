"""Pieces of work in threads: the same results, the same errors, and nothing left behind."""

from __future__ import annotations

import threading

import pytest
import torch

from dkae._support.threads import in_threads

CPU = torch.device("cpu")


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

    def test_a_single_piece_has_all_threads(self):
        assert list(in_threads(lambda _: torch.get_num_threads(), range(1), CPU)) == [3]

    def test_few_pieces_share_the_threads(self):
        torch.set_num_threads(6)
        assert set(in_threads(lambda _: torch.get_num_threads(), range(2), CPU)) == {3}

    def test_an_error_reaches_the_caller(self):
        with pytest.raises(ZeroDivisionError):
            list(in_threads(lambda i: 1 / (i - 2), range(5), CPU))

    def test_inference_mode_goes_along(self):
        with torch.inference_mode():
            row = torch.zeros(6)
            list(in_threads(lambda i: row[i].fill_(i), range(6), CPU))
        assert row.tolist() == [0, 1, 2, 3, 4, 5]

    @pytest.mark.parametrize("device", ["cuda", "mps"])
    def test_one_queue_one_thread(self, device):
        threads = set(in_threads(lambda _: threading.get_ident(), range(6), torch.device(device)))
        assert threads == {threading.get_ident()}
