"""Trains the networks of a study ahead of the jobs that measure them, several at once.

torch by itself divides every product among all cores, which wait for the slowest at its end. A
study has many networks: with one on each core nobody waits, least of all where other processes
use the cores too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Protocol

import torch
from dkae.training.progress import Progress, Record

from dkae import DeepKernelizedAutoencoder
from dkae_study.engine.trainings import Training
from dkae_study.engine.workshop import Workshop

__all__ = ["Observer", "Trainer", "choose_jobs", "trainer"]

#: Returns a trained network, when it is ready.
Trainer = Callable[[Training], DeepKernelizedAutoencoder]


class Observer(Protocol):
    """Wants to know which networks are trained."""

    def training(self, training: Training) -> Progress:
        """Return what is to be told of a network's steps; several may be trained at once."""


def choose_jobs(wanted: int | None) -> int:
    """Return how many networks to train at once: by default one a thread of torch, or on a GPU.

    Not fewer if fewer are left: the last digits of a network depend on the threads that it has,
    and must not depend on when the study was interrupted.
    """
    if wanted is None:
        return 1 if _has_gpu() else torch.get_num_threads()
    return wanted


def _has_gpu() -> bool:
    return torch.cuda.is_available() or torch.backends.mps.is_available()


@contextmanager
def trainer(
    workshop: Workshop, ahead: Sequence[Training], observer: Observer, n_jobs: int
) -> Iterator[Trainer]:
    """Give a function that returns trained networks; those in `ahead` are made ahead of it.

    `n_jobs` of them are trained at once, in their order, with an equal share of torch's threads
    each; the caller's own work has as many meanwhile. If the caller leaves early, training ends.
    """
    if n_jobs == 1:
        yield lambda training: workshop.train(training, observer.training(training))
        return
    n_threads, stop = torch.get_num_threads(), threading.Event()
    share = max(1, n_threads // n_jobs)

    def train(training: Training) -> None:
        workshop.train(training, _Stoppable(observer.training(training), stop))

    def wait(training: Training) -> DeepKernelizedAutoencoder:
        if training in futures:
            futures[training].result()
        return workshop.train(training)  # from the cache

    pool = ThreadPoolExecutor(n_jobs, initializer=torch.set_num_threads, initargs=(share,))
    try:
        futures = {training: pool.submit(train, training) for training in ahead}
        torch.set_num_threads(share)
        yield wait
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(n_threads)


class _Interrupted(KeyboardInterrupt):
    """The study was left while this network was being trained."""


class _Stoppable:
    """Tells another one of the steps, and ends the training when it is time to stop.

    Ctrl-C reaches the main thread alone.
    """

    def __init__(self, progress: Progress, stop: threading.Event) -> None:
        self.progress = progress
        self.stop = stop

    def __enter__(self) -> _Stoppable:
        self.progress.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.__exit__(*error)  # type: ignore[arg-type]

    def start(self, phase: str, n_steps: int) -> None:
        self.progress.start(phase, n_steps)

    def step(self) -> None:
        if self.stop.is_set():
            raise _Interrupted
        self.progress.step()

    def epoch(self, record: Record) -> None:
        self.progress.epoch(record)
