"""A custom measure of alignment in five lines, and a callback that logs and stops early."""

import torch
from sklearn.datasets import load_digits

from dkae import DeepKernelizedAutoencoder
from dkae.networks import Stack
from dkae.training import Optimization, losses_of


def angle(code_gram, prior_gram):
    """Return the angle between two Gram matrices: torch operations, one number, a gradient."""
    cosine = (code_gram * prior_gram).sum() / (code_gram.norm() * prior_gram.norm())
    return torch.acos(cosine.clamp(max=1 - 1e-6))  # away from 1, where its slope is infinite


class Log:
    """A callback is any object with one of the methods of `dkae.training.Callback`."""

    def on_phase_begin(self, trainer, phase):
        self.best = float("inf")

    def on_epoch_end(self, trainer, phase, record):
        print(f"{phase.name} {trainer.epoch}/{phase.n_epochs}: {losses_of(record)}")
        trainer.stop = record["loss"] > 0.95 * self.best  # the phase ends, the next one begins
        self.best = min(self.best, record["loss"])


X = load_digits().data / 16
model = DeepKernelizedAutoencoder(
    32,
    network=Stack((64,)),
    alignment=angle,
    max_iter=30,
    steps_per_epoch=10,
    optimization=Optimization(learning_rate="constant"),
    callbacks=[Log()],
    random_state=0,
).fit(X[:1400])
print(f"stopped after {model.n_iter_} epochs of {model.max_iter}")
print(f"alignment with the kernel on new rows {model.score(X[1400:]):.4f}")
