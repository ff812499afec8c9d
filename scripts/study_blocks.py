"""Tables of the study's results, one function for each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from dkae_study.archive import ARCHIVE, NYSTROEM
from dkae_study.report.reading import read_study
from dkae_study.results import Run, estimate, select
from dkae_study.results.numbers import estimate_of

from scripts.markdown import ROOT, number, table

__all__ = [
    "clipped_noise",
    "code_space",
    "flat_middle",
    "sensitivity",
    "study_claims",
    "study_clipped",
    "study_components",
    "study_denoising",
]

RECIPES = ARCHIVE.recipe_names
#: The digits of Table 2, and the same with components of all digits.
PAIR, PAIR_OF_ALL = "5 and 6", "5 and 6, components of all digits"
MSE, L_C = "reconstruction_mse", "alignment_loss"
#: The middle of the axis of λ is flat if its largest loss is at most so many times its smallest.
FLAT = 1.5
AGREEMENTS = ("accuracy", "nmi", "ari")


# --- numbers out of runs -------------------------------------------------------------------------


@cache
def _all_runs() -> list[Run]:
    runs, _ = read_study(ARCHIVE, ROOT / "study" / "results" / "laptop")
    return runs


def _runs(experiment: str, recipe: str, point: str | None = None) -> list[Run]:
    """Return the runs of an experiment, all seeds; of one value of its axis if that is given."""
    runs = select(_all_runs(), experiment, recipe)
    return [run for run in runs if point in (None, run.point)]


def _benchmark(name: str) -> Any:
    """Return what a benchmark of the study wrote."""
    folder = ROOT / "study" / "benchmarks" / "results"
    return json.loads((folder / f"{name}.json").read_text("utf-8"))


def _mean(runs: Iterable[Run], path: Sequence[str], digits: int) -> str:
    """Return the mean of a score over seeds, with its interval if there are several."""
    found = estimate_of(runs, *path)
    return "" if found is None else found.format(digits)


def _all(experiment: str, path: Sequence[str], digits: int, point: str | None = None) -> list[str]:
    """Return the cells of the recipes."""
    return [_mean(_runs(experiment, recipe, point), path, digits) for recipe in RECIPES]


def _denoising(
    method: str, point: str = "clean", score: str = "mse", digits: str = PAIR
) -> list[str]:
    return _all("denoising", (digits, method, score), 4, point)


def _gaps() -> list[str]:
    """Return L_c(C, K_I) − L_c(P, K_I), in pairs of seeds."""
    pairs = [[run.scores for run in _runs("ideal-kernel", recipe)] for recipe in RECIPES]
    return [estimate([scores["C"] - scores["P"] for scores in seeds]).format(4) for seeds in pairs]


def _sweep(experiment: str, recipe: str, loss: str) -> dict[Any, float]:
    """Return a validation loss over the axis of an experiment, the mean over seeds."""
    runs = _runs(experiment, recipe)
    values = {run.point: [] for run in runs}
    for run in runs:
        values[run.point].append(run.scores["validation"][loss])
    return {point: estimate(losses).mean for point, losses in values.items()}


def _ends(experiment: str, loss: str, first: float, last: float, digits: int) -> list[str]:
    sweeps = [_sweep(experiment, recipe, loss) for recipe in RECIPES]
    return [f"{s[first]:.{digits}f} → {s[last]:.{digits}f}" for s in sweeps]


def _middle() -> list[str]:
    """Return how much both losses vary for λ from 0.1 to 0.9."""
    cells = []
    for recipe in RECIPES:
        middle = [
            [
                value
                for point, value in _sweep("lambda", recipe, loss).items()
                if 0.1 <= point <= 0.9
            ]
            for loss in (MSE, L_C)
        ]
        grows, varies = (max(values) / min(values) for values in middle)
        text = f"L_r grows {grows:.1f} ×; L_c varies by {100 * (varies - 1):.0f} %"
        cells.append(text if max(grows, varies) <= FLAT else f"**no**: {text}")
    return cells


def _tradeoff(weights: Sequence[str], loss: str, digits: int) -> list[str]:
    cells = [_all("tradeoff", [weight, loss], digits) for weight in weights]
    return [", ".join(of_a_recipe) for of_a_recipe in zip(*cells, strict=True)]


# --- the tables ----------------------------------------------------------------------------------


def study_claims() -> str:
    """Return each claim of the paper beside what came out here; Table 2 has a table of its own."""
    ideal, kernel_pca = "ideal-kernel", "kernel-pca"
    at_500 = [f"{_sweep('code-size', recipe, L_C)[500]:.3f}" for recipe in RECIPES]
    rows = [
        ["Fig. 3a: L_r rises with λ from 0 to 1", "", *_ends("lambda", MSE, 0, 1, 4)],
        ["Fig. 3a: L_c falls", "", *_ends("lambda", L_C, 0, 1, 3)],
        ["Fig. 3a: both nearly constant for λ from 0.1 to 0.9", "", *_middle()],
        ["Fig. 3b: L_r falls with N_c from 10 to 2,000", "", *_ends("code-size", MSE, 10, 2000, 4)],
        ["Fig. 3b: so does L_c", "", *_ends("code-size", L_C, 10, 2000, 3)],
        ["… at N_c = 500", "", *at_500],
        ["Fig. 4: MSE at λ = 0.1 and 0.75", "", *_tradeoff(["0.1", "0.75"], MSE, 4)],
        ["Fig. 4: L_c(C, P) at λ = 0.1 and 0", "", *_tradeoff(["0.1", "0"], L_C, 3)],
        ["Table 1: L_c(P, K_I)", "1.0132", *_all(ideal, ["P"], 3)],
        ["… with `reg_covar=1e-6`", "", *_all(ideal, ["P, reg 1e-06"], 3)],
        ["Table 1: L_c(K_AE, K_I), a plain autoencoder", "1.1417", *_all(ideal, ["K_AE"], 3)],
        ["Table 1: L_c(C, K_I), dkAE", "1.0115", *_all(ideal, ["C"], 3)],
        ["Table 1: L_c(C, K_I) − L_c(P, K_I), paired", "−0.0017", *_gaps()],
        ["L_c(C, P)", "", *_all(ideal, [L_C], 3)],
        [
            "Fig. 5: dkAE is nearer to P than kernel PCA for m below",
            "16",
            *_all(kernel_pca, ["crossing_out_of_sample"], 1),
        ],
        ["… on training rows", "", *_all(kernel_pca, ["crossing_in_sample"], 1)],
    ]
    recipes = [f"recipe `{recipe}`" for recipe in RECIPES]
    return table(["claim of the paper", "paper", *recipes], rows)


def study_denoising() -> str:
    """Return Table 2 with every method."""
    return _denoising_table("mse", PAIR, {"kernel PCA, PCK": "0.0427", "dkAE + PCA": "0.0358"})


def study_clipped() -> str:
    """Return the same with noisy images that are clipped."""
    return _denoising_table("mse_clipped", PAIR, {})


def study_components() -> str:
    """Return the same with components of all digits."""
    return _denoising_table("mse", PAIR_OF_ALL, {})


def _denoising_table(score: str, digits: str, paper: Mapping[str, str]) -> str:
    """Return an error of every method, with each recipe."""
    methods = {
        method: point
        for point in ("noisy", "clean")
        for method in _runs("denoising", NYSTROEM, point)[0].scores[digits]
    }
    rows = [
        [method, paper.get(method, ""), *_denoising(method, point, score, digits)]
        for method, point in sorted(methods.items(), key=lambda item: item[1])
    ]
    return table(["MSE", "paper", *(f"`{recipe}`" for recipe in RECIPES)], rows)


def clipped_noise() -> str:
    """Return what of clipped noise hurts."""
    scores = _benchmark("clipped_noise")
    columns = list(scores["linear PCA"])
    # The input has no method behind it: its interval would be that of the noise alone.
    scores["noisy input"] = {c: v.split(" ")[0] for c, v in scores["noisy input"].items()}
    rows = [[method, *(errors[c] for c in columns)] for method, errors in scores.items()]
    return table(["MSE", *columns], rows)


def flat_middle() -> str:
    """Return what makes L_r grow with λ."""
    rows = []
    for variant, found in _benchmark("flat_middle").items():
        a, b = (found["losses"][weight]["validation"] for weight in ("0.1", "0.9"))
        cells = [
            f"{a[MSE]:.4f} → {b[MSE]:.4f}",
            f"{found['growth_of_L_r']:.1f} ×",
            f"{a[L_C]:.3f} → {b[L_C]:.3f}",
            str(found["crossing_at_0.1"]),
            f"{found['denoising_at_0.1']:.4f}",
        ]
        rows.append([variant, *cells])
    head = ["variant", "L_r", "grows", "L_c", "crosses at m", "denoising"]
    return table(head, rows)


def sensitivity() -> str:
    """Return what the crossing depends on."""
    digits = {"crossing": 0, "L_c(C, P)": 4, "C - P": 4, "L_r": 4}
    rows = [
        [variant, *(number(scores[n], d) for n, d in digits.items())]
        for variant, scores in _benchmark("sensitivity").items()
    ]
    head = ["variant", "crosses at m", "L_c(C, P)", "L_c(C, K_I) − L_c(P, K_I)", "L_r"]
    return table(head, rows)


def code_space() -> str:
    """Return how well codes classify and cluster."""
    networks = ("plain autoencoder", "dkAE")
    rows = []
    for recipe in (NYSTROEM, "network", "paper"):
        runs = _runs("code-space", recipe)
        for name in runs[0].scores:
            # Rows that recipes share appear once.
            is_known = name not in networks or (recipe, name) == ("network", networks[0])
            if recipe == NYSTROEM or not is_known:
                clusterings = (
                    ", ".join(_mean(runs, (name, method, s), 3) for s in AGREEMENTS)
                    for method in ("k-means", "spectral")
                )
                name_here = f"{name}, `{recipe}`" if name in networks else name
                classifier = _mean(runs, (name, "linear classifier"), 3)
                rows.append([name_here, classifier, *clusterings])
    measures = [f"{method}: accuracy, NMI, ARI" for method in ("k-means", "spectral clustering")]
    return table(["codes", "linear classifier", *measures], rows)
