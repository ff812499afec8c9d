"""What an experiment is: its networks, what it measures, and how that is shown and judged.

A declaration runs nothing. The engine turns it into jobs, a job leaves one result file, and
figures, tables and verdicts are made from those files alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dkae_study.results import Job, Point

if TYPE_CHECKING:
    from dkae import DeepKernelizedAutoencoder
    from dkae_study.declaration.claims import Claim
    from dkae_study.declaration.contrasts import Contrast
    from dkae_study.declaration.exhibits import Drawing, Findings, Table
    from dkae_study.declaration.study import Scale
    from dkae_study.engine.workshop import Workshop

#: Trained networks, by the names that an experiment gave them.
Models = Mapping[str, "DeepKernelizedAutoencoder"]


@dataclass(frozen=True)
class NetworkSpec:
    """In what a network of a study differs from the others."""

    recipe: str
    seed: int
    alignment_weight: float
    n_components: int
    input_noise: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """What a job has measured."""

    #: Numbers, in nested dictionaries with names as keys.
    scores: dict[str, Any]
    #: Arrays to be drawn, packed by `dkae_study.results.pictures.pack`.
    pictures: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Sweep:
    """The axis of an experiment, and its values at a scale."""

    axis: str
    values: Callable[[Scale], Sequence[Point]]


def _none(findings: Findings) -> list[Any]:
    """Return no figures, or no tables."""
    return []


@dataclass(frozen=True)
class Experiment:
    """A question to the networks of a study, such as one table or figure of the paper."""

    name: str
    title: str
    #: The experiment in a sentence or two.
    summary: str
    #: The networks that a job needs, by the names under which `measure` finds them.
    networks: Callable[[Scale, Job], dict[str, NetworkSpec]]
    measure: Callable[[Workshop, Job, Models], Outcome]
    #: Seconds of a job besides its networks, at the largest scale on two cores.
    seconds: float
    #: Where in the paper it stands.
    reference: str = ""
    #: Which part of the data is used for what.
    data: str = ""
    methods: tuple[str, ...] = ()
    sweep: Sweep | None = None
    #: Seeds at large scales; smaller ones take fewer.
    n_seeds: int = 1
    #: What stands in the scores.
    metrics: Mapping[str, str] = field(default_factory=dict)
    #: Numbers that `measure` uses and no network depends on: a result of others is not this one.
    constants: Mapping[str, Any] = field(default_factory=dict)
    #: Numbers that the paper prints; figures without numbers have none.
    paper_values: Mapping[str, float] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    #: Why our numbers differ from the paper's.
    differences: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    #: Numbers in which one recipe may do better than another.
    contrasts: tuple[Contrast, ...] = ()
    #: Figures and tables; both are called only if there are runs.
    figures: Callable[[Findings], list[Drawing]] = _none
    tables: Callable[[Findings], list[Table]] = _none

    def jobs(self, scale: Scale, recipes: Sequence[str], n_seeds: int | None = None) -> list[Job]:
        """Return the jobs at a scale, the first seed of all recipes and values first."""
        points = [None] if self.sweep is None else list(self.sweep.values(scale))
        n = min(self.n_seeds, scale.n_seeds) if n_seeds is None else n_seeds
        return [
            Job(self.name, recipe, seed, point)
            for seed in range(n)
            for recipe in recipes
            for point in points
        ]
