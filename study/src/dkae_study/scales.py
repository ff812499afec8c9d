"""How large the study is run: the same experiments on more or less data, network and patience."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from dkae.estimator import DeepKernelizedAutoencoder
from dkae.recipes import RECIPES

__all__ = ["ALIGNMENT_WEIGHTS", "SCALES", "Scale"]

#: λ of Fig. 3a.
ALIGNMENT_WEIGHTS = (0.0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)


@dataclass(frozen=True)
class Scale:
    """The size of everything that costs time."""

    name: str
    summary: str
    #: Rows of MNIST-20k for training, and for validation and test each.
    n_train: int
    n_held_out: int
    #: Parameters of the Probabilistic Cluster Kernel: Q, G and the rows it is fitted on.
    kernel: Mapping[str, Any]
    hidden_layer_sizes: tuple[int, ...]
    #: N_c where it is not swept over, and the values where it is.
    n_components: int
    code_sizes: tuple[int, ...]
    batch_size: int
    #: How long a recipe trains: parameters of the estimator, by the recipe's name.
    schedules: Mapping[str, Mapping[str, Any]]
    #: Largest m of kernel PCA.
    n_curve: int
    #: At most so many seeds.
    n_seeds: int
    #: What a reader of its verdicts must know.
    caution: str = ""

    def estimator(self, recipe: str) -> DeepKernelizedAutoencoder:
        """Return a recipe's estimator at this scale, unfitted."""
        return RECIPES[recipe](
            n_components=self.n_components,
            hidden_layer_sizes=self.hidden_layer_sizes,
            batch_size=self.batch_size,
            **self.schedules[recipe],
        )

    @property
    def data_config(self) -> dict[str, Any]:
        """What the rows of the study depend on."""
        return {"name": "mnist20k", "n_train": self.n_train, "n_held_out": self.n_held_out}

    @property
    def config(self) -> dict[str, Any]:
        """Everything that a result depends on, as JSON can hold it."""
        ignored = ("summary", "n_seeds", "caution")
        config = {name: value for name, value in asdict(self).items() if name not in ignored}
        plain: dict[str, Any] = json.loads(json.dumps(config))
        return plain


_PAPER_KERNEL = {"max_components": 30, "n_initializations": 30, "max_fit_samples": 200}
_PAPER_NETWORK: dict[str, Any] = {
    "hidden_layer_sizes": (500, 500, 2000),
    "n_components": 2000,
    "code_sizes": (10, 50, 100, 500, 1000, 2000),
    "batch_size": 200,
    "n_curve": 128,
    "n_seeds": 5,
}

#: The scales by name.
SCALES = {
    scale.name: scale
    for scale in (
        Scale(
            name="smoke",
            summary="only shows that everything runs: its numbers mean nothing",
            n_train=600,
            n_held_out=200,
            kernel={"max_components": 6, "n_initializations": 4, "max_fit_samples": 100},
            hidden_layer_sizes=(32, 32, 64),
            n_components=48,
            code_sizes=(4, 16, 48),
            batch_size=50,
            schedules={
                "paper": {"epoch": 1, "pretrain_max_iter": 10, "max_iter": 40},
                "default": {"epoch": 10, "max_iter": 4, "decoder_max_iter": 1},
            },
            n_curve=32,
            n_seeds=2,
            caution="At this scale the verdicts show that the page works, and nothing of the paper",
        ),
        Scale(
            name="demo",
            summary="a small network on a quarter of the rows, a few hundred steps a network",
            n_train=3500,
            n_held_out=750,
            kernel=_PAPER_KERNEL,
            hidden_layer_sizes=(128, 128, 256),
            n_components=256,
            code_sizes=(10, 50, 100, 256),
            batch_size=100,
            schedules={
                "paper": {"epoch": 3, "pretrain_max_iter": 30, "max_iter": 100},
                "default": {"epoch": 15, "max_iter": 20},
            },
            n_curve=64,
            n_seeds=2,
            caution="At this scale the verdicts are of small networks, little training and one or "
            "two seeds: they show how the study works, and do not decide for or against the paper",
        ),
        Scale(
            name="laptop",
            summary="the paper's data, kernel and network; 2,000 steps of fine-tuning a network in "
            "place of 490,000",
            n_train=14_000,
            n_held_out=3_000,
            kernel=_PAPER_KERNEL,
            schedules={
                "paper": {"epoch": 20},
                "default": {"epoch": 100, "max_iter": 20},
            },
            **_PAPER_NETWORK,
        ),
        Scale(
            name="paper",
            summary="the paper's schedule too: 490,000 steps of fine-tuning a network, and 147,000 "
            "for each layer before",
            n_train=14_000,
            n_held_out=3_000,
            kernel=_PAPER_KERNEL,
            schedules={
                "paper": {"epoch": "pairs"},
                "default": {"epoch": "pairs", "max_iter": 100, "decoder_max_iter": 25},
            },
            **_PAPER_NETWORK,
        ),
    )
}
