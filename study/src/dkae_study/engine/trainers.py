"""Trains the networks of a study ahead of the jobs that measure them, several at once.

torch by itself divides every product among all cores, which wait for the slowest at its end. A
study has many networks: with one on each core no core waits, least of all beside other processes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Protocol

import torch

from dkae import DeepKernelizedAutoencoder
from dkae.training import Callback
from dkae_study.engine.trainings import Training
from dkae_study.engine.workshop import Workshop

#: Returns a trained network, when it is ready.
Train = Callable[[Training], DeepKernelizedAutoencoder]


class Observer(Protocol):
    """Wants to know which networks are trained."""

    def training(self, training: Training) -> Callback:
        """Return what follows the training of a network; several may be trained at once."""


def choose_jobs(wanted: int | None) -> int:
    """Return how many networks to train at once: by default one a thread of torch, or on a GPU.

    Not fewer if fewer are left: the last digits of a network depend on the threads that it has,
    and must not depend on when the study was interrupted.
    """
    return wanted or (1 if _has_gpu() else torch.get_num_threads())


def _has_gpu() -> bool:
    return torch.cuda.is_available() or torch.backends.mps.is_available()


@contextmanager
def threads_for(n_jobs: int) -> Iterator[ThreadPoolExecutor]:
    """Give a thread for each of `n_jobs` networks, with an equal share of torch's threads.

    The caller's own work has as many meanwhile. Work that has not begun when the caller leaves is
    cancelled.
    """
    n_threads = torch.get_num_threads()
    share = max(1, n_threads // n_jobs)
    pool = ThreadPoolExecutor(n_jobs, initializer=torch.set_num_threads, initargs=(share,))
    torch.set_num_threads(share)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(n_threads)  # a new thread takes the last number set in any thread


@contextmanager
def trainer(
    workshop: Workshop, ahead: Sequence[Training], observer: Observer, n_jobs: int
) -> Iterator[Train]:
    """Give a function that returns trained networks; those in `ahead` are made ahead of it.

    `n_jobs` of them are trained at once, in their order. If the caller leaves early, training ends.
    """
    if n_jobs == 1:
        yield lambda training: workshop.train(training, [observer.training(training)])
        return
    stop = threading.Event()

    def train(training: Training) -> None:
        workshop.train(training, [_StopWhen(stop), observer.training(training)])

    def wait(training: Training) -> DeepKernelizedAutoencoder:
        if training in futures:
            futures[training].result()
        return workshop.train(training)  # from the cache

    with threads_for(n_jobs) as pool:
        futures = {training: pool.submit(train, training) for training in ahead}
        try:
            yield wait
        finally:
            stop.set()


class StoppedError(Exception):
    """The study was left while this network was being trained."""


class _StopWhen(Callback):
    """Ends a training in another thread: Ctrl-C reaches the main thread alone."""

    def __init__(self, stop: threading.Event) -> None:
        self.stop = stop

    def on_step_end(self, trainer: object, phase: object) -> None:
        if self.stop.is_set():
            raise StoppedError
