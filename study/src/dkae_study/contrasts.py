"""The default recipe against the recipe `paper`: the same number of the same seed, in pairs.

The paper's claims are judged for each recipe by itself. What the default recipe changes is another
question, and this is its answer: each number in which it may do better, or worse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dkae_study.approximation import crossing_of
from dkae_study.declaration import Point
from dkae_study.intervals import Estimate, estimate
from dkae_study.results import Run, select
from dkae_study.sweeps import MIDDLE

__all__ = ["CONTRASTS", "Contrast", "Difference", "contrast_recipes"]

#: What is paired: a seed and, in a sweep, a value of the axis.
Key = tuple[int, Point | None]
Change = Literal["better", "no clear difference", "worse", "mixed"]


@dataclass(frozen=True)
class Contrast:
    """A number in which one recipe may do better than the other."""

    experiment: str
    text: str
    #: From the runs of one recipe, the number of each seed and value of the axis.
    numbers: Callable[[Sequence[Run]], Mapping[Key, float]]
    higher_is_better: bool = False
    #: Decimals to print.
    digits: int = 4


@dataclass(frozen=True)
class Difference:
    """What the runs say of a contrast: one estimate for each value of the axis."""

    contrast: Contrast
    paper: list[Estimate]
    default: list[Estimate]
    #: Default minus paper, in pairs.
    difference: list[Estimate]

    @property
    def change(self) -> Change:
        """On which side of 0 intervals lie, or single values: "mixed" is some on either side."""
        n_lower = sum(e.high < 0 for e in self.difference)
        n_higher = sum(e.low > 0 for e in self.difference)
        lower: Change = "worse" if self.contrast.higher_is_better else "better"
        higher: Change = "better" if self.contrast.higher_is_better else "worse"
        if n_lower and n_higher:
            return "mixed"
        return lower if n_lower else higher if n_higher else "no clear difference"

    @property
    def n_seeds(self) -> int:
        """Pairs of seeds behind each estimate; the fewest along an axis."""
        return min(e.n for e in self.difference)


def contrast_recipes(contrast: Contrast, runs: Iterable[Run]) -> Difference | None:
    """Return the difference between the recipes, None if they have no pair of runs."""
    runs = select(runs, contrast.experiment)
    paper, default = (contrast.numbers(select(runs, recipe=r)) for r in ("paper", "default"))
    points: dict[Point | None, list[Key]] = {}
    for key in sorted(paper.keys() & default.keys(), key=_along_the_axis):
        points.setdefault(key[1], []).append(key)
    if not points:
        return None
    pairs = list(points.values())
    return Difference(
        contrast,
        [estimate([paper[key] for key in keys]) for keys in pairs],
        [estimate([default[key] for key in keys]) for keys in pairs],
        [estimate([default[key] - paper[key] for key in keys]) for keys in pairs],
    )


def _along_the_axis(key: Key) -> tuple[float, int]:
    seed, point = key
    return (float(point) if isinstance(point, int | float) else 0.0, seed)


# --- what is compared ----------------------------------------------------------------------------


def _score(*path: str, minus: str | None = None) -> Callable[[Sequence[Run]], dict[Key, float]]:
    """Return the numbers at a path of the scores, less another score beside it."""

    def numbers(runs: Sequence[Run]) -> dict[Key, float]:
        found: dict[Key, float] = {}
        for run in runs:
            scores: Any = run.scores
            for name in path[:-1]:
                scores = scores.get(name, {})
            if scores.get(path[-1]) is not None:
                found[run.seed, run.point] = scores[path[-1]] - (scores[minus] if minus else 0)
        return found

    return numbers


def _in_the_middle(loss: str) -> Callable[[Sequence[Run]], dict[Key, float]]:
    """Return the validation loss for λ from 0.1 to 0.9, the range that the paper speaks of."""

    def numbers(runs: Sequence[Run]) -> dict[Key, float]:
        everywhere = _score("validation", loss)(runs)
        return {key: value for key, value in everywhere.items() if key[1] in MIDDLE}

    return numbers


def _growth(runs: Sequence[Run]) -> dict[Key, float]:
    """Return the largest L_r over the smallest for λ from 0.1 to 0.9, of seeds that have all."""
    seeds: dict[int, list[float]] = {}
    for (seed, _), value in _in_the_middle("reconstruction_mse")(runs).items():
        seeds.setdefault(seed, []).append(value)
    return {
        (seed, None): max(values) / min(values)
        for seed, values in seeds.items()
        if len(values) == len(MIDDLE)
    }


def _crossing(runs: Sequence[Run]) -> dict[Key, float]:
    return {(run.seed, run.point): crossing_of(run, "out_of_sample") for run in runs}


CONTRASTS = (
    Contrast("lambda", "L_r for λ from 0.1 to 0.9", _in_the_middle("reconstruction_mse")),
    Contrast("lambda", "L_c for λ from 0.1 to 0.9", _in_the_middle("alignment_loss")),
    Contrast("lambda", "Largest L_r over the smallest for λ from 0.1 to 0.9", _growth, digits=1),
    Contrast("code-size", "L_r over N_c", _score("validation", "reconstruction_mse")),
    Contrast("code-size", "L_c over N_c", _score("validation", "alignment_loss")),
    Contrast("tradeoff", "Test MSE at λ = 0.1", _score("0.1", "reconstruction_mse")),
    Contrast("ideal-kernel", "L_c(C, K_I) − L_c(P, K_I)", _score("C", minus="P")),
    Contrast("kernel-pca", "L_c(C, P) on test rows", _score("dkae_out_of_sample")),
    Contrast(
        "kernel-pca",
        "m from which kernel PCA is nearer, test rows",
        _crossing,
        higher_is_better=True,
        digits=1,
    ),
    Contrast("denoising", "MSE of dkAE + PCA", _score("5 and 6", "dkAE + PCA", "mse")),
    Contrast(
        "denoising",
        "MSE of dkAE + PCA, noisy images clipped",
        _score("5 and 6", "dkAE + PCA", "mse_clipped"),
    ),
    Contrast(
        "denoising", "MSE of dkAE + PCA, all digits", _score("all digits", "dkAE + PCA", "mse")
    ),
    Contrast("denoising", "MSE of dkAE without PCA", _score("5 and 6", "dkAE without PCA", "mse")),
    Contrast(
        "denoising",
        "MSE of dkAE + PCA that learned to denoise",
        _score("5 and 6", "denoising dkAE + PCA", "mse"),
    ),
    Contrast(
        "denoising",
        "MSE of dkAE that learned to denoise, without PCA",
        _score("5 and 6", "denoising dkAE", "mse"),
    ),
    Contrast(
        "code-space",
        "Accuracy of a linear classifier on codes",
        _score("dkAE", "linear classifier"),
        higher_is_better=True,
        digits=3,
    ),
    Contrast(
        "code-space",
        "NMI of k-means on codes",
        _score("dkAE", "k-means", "nmi"),
        higher_is_better=True,
        digits=3,
    ),
)
