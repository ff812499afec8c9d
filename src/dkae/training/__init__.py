"""How a network learns: batches with their block of the prior, the loop, pretraining."""

from dkae.training.progress import Record, make_progress
from dkae.training.run import FINE_TUNING, run_training
from dkae.training.settings import Settings

__all__ = ["FINE_TUNING", "Record", "Settings", "make_progress", "run_training"]
