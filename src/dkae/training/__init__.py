"""How a network learns: phases as data, a trainer that runs them, and callbacks that follow it."""

from dkae.training.batches import Batch, BatchSource, Source, batches_per_epoch
from dkae.training.callbacks import Callback, EarlyStopping, History, Record, losses_of
from dkae.training.checkpoint import has_checkpoint, remove_checkpoint
from dkae.training.loss import Losses, dkae_loss
from dkae.training.optimization import Optimization
from dkae.training.phases import DECODER, FINE_TUNING, Phase
from dkae.training.progress import LogProgress, ProgressBar
from dkae.training.trainer import Trainer

__all__ = [
    "DECODER",
    "FINE_TUNING",
    "Batch",
    "BatchSource",
    "Callback",
    "EarlyStopping",
    "History",
    "LogProgress",
    "Losses",
    "Optimization",
    "Phase",
    "ProgressBar",
    "Record",
    "Source",
    "Trainer",
    "batches_per_epoch",
    "dkae_loss",
    "has_checkpoint",
    "losses_of",
    "remove_checkpoint",
]
