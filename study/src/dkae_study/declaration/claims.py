"""Claims, and the verdicts that results give on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from dkae_study.results import Run

Verdict = Literal["better", "reproduced", "not reproduced", "holds", "does not hold"]


@dataclass(frozen=True)
class Judgement:
    """The verdict of the results on a claim."""

    #: Our numbers, with an interval where there are several seeds.
    ours: str
    verdict: Verdict
    n_seeds: int
    #: The rule by which it was decided, and other notes for the reader.
    note: str = ""


@dataclass(frozen=True)
class Claim:
    """A sentence that the results bear out or not."""

    text: str
    #: What the paper has for it; empty where the claim is ours.
    paper: str
    #: From all runs of the experiment with one recipe; None if runs that it needs are missing.
    judge: Callable[[Sequence[Run]], Judgement | None]


def verdict(holds: bool, better: bool = False) -> Verdict:
    """Return the verdict on a claim of the paper: it holds or not, by more than there or not."""
    if not holds:
        return "not reproduced"
    return "better" if better else "reproduced"


def own_verdict(holds: bool) -> Verdict:
    """Return the verdict on one of our own claims."""
    return "holds" if holds else "does not hold"
