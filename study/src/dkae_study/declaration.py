"""What an experiment of the study is: a typed declaration, its jobs, and the claims it decides.

A declaration says what is done and how it is judged; it runs nothing. The runner turns it into
jobs, a job leaves one result file, and the claims are judged from those files alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from dkae.estimator import DeepKernelizedAutoencoder
    from dkae_study.results import Run
    from dkae_study.scales import Scale
    from dkae_study.workshop import Network, Workshop

__all__ = [
    "Claim",
    "Experiment",
    "Job",
    "Judgement",
    "Outcome",
    "Point",
    "Sweep",
    "Verdict",
    "own_verdict",
    "verdict",
]

#: A value of the axis that an experiment sweeps over, such as λ or N_c.
Point = float | int | str
Verdict = Literal["better", "reproduced", "not reproduced", "holds", "does not hold"]


@dataclass(frozen=True)
class Job:
    """One run: an experiment with one recipe, one seed and one value of its axis."""

    experiment: str
    recipe: str
    seed: int
    point: Point | None = None

    @property
    def name(self) -> str:
        """The name of the result file, without its ending."""
        point = "" if self.point is None else f"-{self.point}"
        return f"{self.experiment}-{self.recipe}{point}-seed{self.seed}"


@dataclass(frozen=True)
class Outcome:
    """What a job has measured."""

    #: Numbers, in nested dictionaries with names as keys.
    scores: dict[str, Any]
    #: Arrays to be drawn, packed by `dkae_study.pictures.pack`.
    pictures: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Judgement:
    """What the results say of a claim."""

    #: Our numbers, with an interval where there are several seeds.
    ours: str
    verdict: Verdict
    n_seeds: int
    #: The rule by which it was decided, and what else a reader must know.
    note: str = ""


def verdict(holds: bool, better: bool = False) -> Verdict:
    """Return the verdict on a claim of the paper: it holds or not, by more than there or not."""
    if not holds:
        return "not reproduced"
    return "better" if better else "reproduced"


def own_verdict(holds: bool) -> Verdict:
    """Return the verdict on a claim of ours."""
    return "holds" if holds else "does not hold"


@dataclass(frozen=True)
class Claim:
    """A sentence that the results bear out or not."""

    text: str
    #: What the paper has for it; empty where the claim is ours.
    paper: str
    #: From all runs of the experiment with one recipe; None if runs that it needs are missing.
    judge: Callable[[Sequence[Run]], Judgement | None]


@dataclass(frozen=True)
class Sweep:
    """The axis of an experiment, and its values at a scale."""

    axis: str
    values: Callable[[Scale], Sequence[Point]]
    #: Values that are run with the first seed only, because each needs networks of its own.
    first_seed_only: frozenset[Point] = frozenset()


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper."""

    name: str
    title: str
    #: Where in the paper it stands.
    reference: str
    #: What is done, in a sentence or two.
    summary: str
    data: str
    methods: tuple[str, ...]
    sweep: Sweep | None
    #: Seeds at the scales `laptop` and `paper`; smaller scales take fewer.
    n_seeds: int
    #: What stands in the scores.
    metrics: Mapping[str, str]
    #: Numbers that `measure` uses and no network depends on: a result of others is not this one.
    constants: Mapping[str, Any]
    #: Numbers that the paper prints; figures without numbers have none.
    paper_values: Mapping[str, float]
    assumptions: tuple[str, ...]
    #: Why our numbers differ from the paper's.
    differences: tuple[str, ...]
    claims: tuple[Claim, ...]
    #: The networks that a job needs, by the names under which `measure` finds them.
    networks: Callable[[Scale, Job], dict[str, Network]]
    measure: Callable[[Workshop, Job, Mapping[str, DeepKernelizedAutoencoder]], Outcome]

    def jobs(self, scale: Scale, recipes: Sequence[str], n_seeds: int | None = None) -> list[Job]:
        """Return the jobs at a scale, the first seed of all recipes and values first."""
        points = [None] if self.sweep is None else list(self.sweep.values(scale))
        once = frozenset() if self.sweep is None else self.sweep.first_seed_only
        n = min(self.n_seeds, scale.n_seeds) if n_seeds is None else n_seeds
        return [
            Job(self.name, recipe, seed, point)
            for seed in range(n)
            for recipe in recipes
            for point in points
            if seed == 0 or point not in once
        ]
