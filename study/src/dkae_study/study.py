"""The study: every table and figure of the paper, in its order."""

from __future__ import annotations

from dkae_study.approximation import KERNEL_PCA
from dkae_study.code_space import CODE_SPACE
from dkae_study.denoising import DENOISING
from dkae_study.ideal_kernel import IDEAL_KERNEL
from dkae_study.sweeps import CODE_SIZE, LAMBDA
from dkae_study.tradeoff import TRADEOFF

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
