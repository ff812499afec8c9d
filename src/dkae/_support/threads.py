"""Threads: how they wait, and how independent pieces of work share them.

torch by itself divides every operation among the cores, which all wait for the slowest at its end.
If the work comes in independent pieces, it is faster to give each core its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import torch

Piece = TypeVar("Piece")
Result = TypeVar("Result")

#: Variables with which a user decides how the threads of GNU OpenMP wait, or how many there are.
_WAITING = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "OMP_NUM_THREADS")


def calm_spinning() -> None:
    """Let the waiting threads of GNU OpenMP and of OpenBLAS sleep after a short spin.

    By default they spin for milliseconds, on cores that other programs may need, and torch's
    threads those of NumPy's products: on a busy machine a fit takes several times its CPU time.
    The variables are read once, when torch and NumPy are loaded, so call this before. Variables
    that are set in the environment win.
    """
    if not any(name in os.environ for name in _WAITING):
        os.environ["GOMP_SPINCOUNT"] = "1000"
        os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")  # the least: 2⁴ cycles


def in_threads(
    work: Callable[[Piece], Result], pieces: Iterable[Piece], device: torch.device
) -> Iterator[Result]:
    """Yield the result of `work` for each piece, in order, with as many threads as torch has.

    `work` should spend its time in torch, NumPy or SciPy, which release the GIL. All pieces are
    submitted at once and results are kept until they are read, so they should be small. On a GPU,
    which has one queue, the pieces run one after another.
    """
    import torch  # here, because `calm_spinning` comes first

    pieces, n_threads = list(pieces), torch.get_num_threads()
    n_workers = min(n_threads, len(pieces))
    if device.type != "cpu" or n_workers < 2:
        yield from map(work, pieces)
        return
    inference = torch.is_inference_mode_enabled()  # a setting of this thread alone

    def alone(piece: Piece) -> Result:
        with torch.inference_mode(inference):
            return work(piece)

    own = n_threads // n_workers
    try:
        with ThreadPoolExecutor(n_workers, initializer=torch.set_num_threads, initargs=(own,)) as p:
            yield from p.map(alone, pieces)
    finally:
        # A thread keeps its own number, but a new thread takes the last one set in any thread.
        torch.set_num_threads(n_threads)
