"""How a network learns: batches with their block of the prior, the loop, and its phases."""

from dkae.training.checkpoint import check_path
from dkae.training.decoding import DECODER
from dkae.training.pretraining import start_from
from dkae.training.progress import Progress, Record, make_progress
from dkae.training.run import FINE_TUNING, run_training
from dkae.training.settings import Settings

__all__ = [
    "DECODER",
    "FINE_TUNING",
    "Progress",
    "Record",
    "Settings",
    "check_path",
    "make_progress",
    "run_training",
    "start_from",
]
