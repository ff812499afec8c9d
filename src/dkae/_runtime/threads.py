"""Independent pieces of work on all cores: one thread each, which wait for nobody.

torch by itself divides every single operation among the cores, and all wait for the slowest at the
end of each. Where the work comes in independent pieces it is faster to give each core its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def in_threads(
    work: Callable[[Piece], Result], pieces: Iterable[Piece], device: torch.device
) -> Iterator[Result]:
    """Yield what `work` returns for each piece, in order, with as many threads as torch has.

    `work` should spend its time in torch, NumPy or SciPy, which let other threads run. All pieces
    are begun at once, and results wait until they are asked for: they should be small. On a GPU,
    which has but one queue, the pieces come one after the other.
    """
    pieces, n_threads = list(pieces), torch.get_num_threads()
    n_workers = min(n_threads, len(pieces))
    if device.type != "cpu" or n_workers < 2:
        yield from map(work, pieces)
        return
    inference = torch.is_inference_mode_enabled()  # known to this thread alone

    def alone(piece: Piece) -> Result:
        with torch.inference_mode(inference):
            return work(piece)

    own = n_threads // n_workers
    try:
        with ThreadPoolExecutor(n_workers, initializer=torch.set_num_threads, initargs=(own,)) as p:
            yield from p.map(alone, pieces)
    finally:
        # A thread keeps the number it has set, but one that is new takes the last number set in
        # any thread.
        torch.set_num_threads(n_threads)
