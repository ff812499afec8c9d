"""The study: every table and figure of the paper, in its order."""

from __future__ import annotations

from dkae.experiments.approximation import KERNEL_PCA
from dkae.experiments.code_space import CODE_SPACE
from dkae.experiments.denoising import DENOISING
from dkae.experiments.ideal_kernel import IDEAL_KERNEL
from dkae.experiments.sweeps import CODE_SIZE, LAMBDA
from dkae.experiments.tradeoff import TRADEOFF

__all__ = ["STUDY"]

#: The experiments by name.
STUDY = {
    experiment.name: experiment
    for experiment in (
        LAMBDA,
        CODE_SIZE,
        TRADEOFF,
        IDEAL_KERNEL,
        KERNEL_PCA,
        DENOISING,
        CODE_SPACE,
    )
}
