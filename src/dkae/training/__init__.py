"""How a network learns: batches with their block of the prior, the loop, pretraining."""

from dkae.training.checkpoint import check_path
from dkae.training.pretraining import start_from
from dkae.training.progress import Progress, Record
from dkae.training.run import FINE_TUNING, run_training
from dkae.training.settings import Settings

__all__ = [
    "FINE_TUNING",
    "Progress",
    "Record",
    "Settings",
    "check_path",
    "run_training",
    "start_from",
]
