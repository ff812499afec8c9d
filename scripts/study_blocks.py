"""Tables of the study's results, one function for each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from dkae_study.results import Run, estimate, read_runs, select

from scripts.markdown import ROOT, number, quoted, table

__all__ = [
    "clipped_noise",
    "code_space",
    "flat_middle",
    "sensitivity",
    "study_claims",
    "study_components",
    "study_denoising",
    "study_table",
]

RECIPES = ("paper", "default")
#: The digits of Table 2.
PAIR = "5 and 6"
MSE, L_C = "reconstruction_mse", "alignment_loss"


# --- numbers out of runs -------------------------------------------------------------------------


@cache
def _all_runs() -> list[Run]:
    return read_runs(ROOT / "study" / "results" / "laptop")


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
    values = []
    for run in runs:
        value: Any = run.scores
        for name in path:
            value = value[name]
        values.append(value)
    return estimate(values).format(digits)


def _both(experiment: str, path: Sequence[str], digits: int, point: str | None = None) -> list[str]:
    """Return the cells of the two recipes."""
    return [_mean(_runs(experiment, recipe, point), path, digits) for recipe in RECIPES]


def _denoising(method: str, point: str = "clean", score: str = "mse") -> list[str]:
    return _both("denoising", (PAIR, method, score), 4, point)


def _gaps() -> list[str]:
    """Return L_c(C, K_I) − L_c(P, K_I), in pairs of seeds."""
    pairs = [[run.scores for run in _runs("ideal-kernel", recipe)] for recipe in RECIPES]
    return [estimate([scores["C"] - scores["P"] for scores in seeds]).format(4) for seeds in pairs]


def _sweep(experiment: str, recipe: str, loss: str) -> dict[Any, float]:
    """Return a validation loss over the axis of an experiment."""
    return {run.point: run.scores["validation"][loss] for run in _runs(experiment, recipe)}


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
        cells.append(f"**no**: L_r grows {grows:.1f} ×; L_c varies by {100 * (varies - 1):.0f} %")
    return cells


def _tradeoff(weights: Sequence[str], loss: str, digits: int) -> list[str]:
    runs = [_runs("tradeoff", recipe)[0].scores for recipe in RECIPES]
    return [", ".join(f"{scores[w][loss]:.{digits}f}" for w in weights) for scores in runs]


# --- the tables ----------------------------------------------------------------------------------


def study_table() -> str:
    """Return the results in short."""
    rows = [
        ["L_c of dkAE to the prior", "", *_both("ideal-kernel", [L_C], 3)],
        ["reconstruction error of dkAE (MSE, one seed)", "", *_tradeoff(["0.1"], MSE, 4)],
        ["L_c to the ideal kernel: dkAE less prior", "−0.0017", *_gaps()],
        [
            "nearer to the prior than kernel PCA for m below",
            "16",
            *_both("kernel-pca", ["crossing_out_of_sample"], 1),
        ],
        ["denoising: dkAE + PCA (MSE)", "0.0358", *_denoising("dkAE + PCA")],
        ["denoising: kernel PCA (MSE)", "0.0427", *_denoising("kernel PCA, PCK")],
        ["denoising: linear PCA (MSE)", "", *_denoising("linear PCA")],
    ]
    return table(["test part", "paper", "its recipe here", "default recipe"], rows)


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
        ["Table 1: L_c(P, K_I)", "1.0132", *_both(ideal, ["P"], 3)],
        ["… with `reg_covar=1e-6`", "", *_both(ideal, ["P, reg 1e-06"], 3)],
        ["Table 1: L_c(K_AE, K_I), a plain autoencoder", "1.1417", *_both(ideal, ["K_AE"], 3)],
        ["Table 1: L_c(C, K_I), dkAE", "1.0115", *_both(ideal, ["C"], 3)],
        ["Table 1: L_c(C, K_I) − L_c(P, K_I), paired", "−0.0017", *_gaps()],
        ["L_c(C, P)", "", *_both(ideal, [L_C], 3)],
        [
            "Fig. 5: dkAE is nearer to P than kernel PCA for m below",
            "16",
            *_both(kernel_pca, ["crossing_out_of_sample"], 1),
        ],
        ["… on training rows", "", *_both(kernel_pca, ["crossing_in_sample"], 1)],
    ]
    return table(["claim of the paper", "paper", "recipe `paper`", "recipe `default`"], rows)


def study_denoising() -> str:
    """Return Table 2 with every method, and with noisy images that are clipped."""
    paper = {"kernel PCA, PCK": "0.0427", "dkAE + PCA": "0.0358"}
    rows = []
    for point in ("clean", "noisy"):
        for method in _runs("denoising", "paper", point)[0].scores[PAIR]:
            if point == "clean" or method != "noisy input":
                errors = (_denoising(method, point, score) for score in ("mse", "mse_clipped"))
                rows.append([method, paper.get(method, ""), *(cell for e in errors for cell in e)])
    head = ["MSE", "paper", "`paper`", "`default`", "`paper`, clipped", "`default`, clipped"]
    return table(head, rows)


def study_components() -> str:
    """Return Table 2 with components of two digits, and of all of them."""
    errors = _benchmark("rows_of_components")
    rows = [
        [quoted(method), *(estimate(errors[digits][method]).format(4) for digits in errors)]
        for method in errors["of all digits"]
    ]
    return table(["MSE", *(f"components {digits}" for digits in errors)], rows)


def clipped_noise() -> str:
    """Return what of clipped noise hurts."""
    scores = _benchmark("clipped_noise")
    columns = list(scores["linear PCA"])
    # The input has no method behind it: its interval would be that of the noise alone.
    scores["noisy input"] = {c: v.split(" ")[0] for c, v in scores["noisy input"].items()}
    rows = [[quoted(method), *(errors[c] for c in columns)] for method, errors in scores.items()]
    return table(["MSE", *columns], rows)


def flat_middle() -> str:
    """Return what makes L_r grow with λ."""
    rows = []
    for recipe, variants in _benchmark("flat_middle").items():
        for variant, found in variants.items():
            # The recipe of the paper never has the decoder alone.
            name = variant.removeprefix("decoder not alone, ") if recipe == "paper" else variant
            a, b = (found["losses"][weight]["validation"] for weight in ("0.1", "0.9"))
            cells = [
                f"{a[MSE]:.4f} → {b[MSE]:.4f}",
                f"{found['growth_of_L_r']:.1f} ×",
                f"{a[L_C]:.3f} → {b[L_C]:.3f}",
                str(found["crossing_at_0.1"]),
                f"{found['denoising_at_0.1']:.4f}",
            ]
            rows.append([f"`{recipe}`, {name}", *cells])
    head = ["recipe, variant", "L_r", "grows", "L_c", "crosses at m", "denoising"]
    return table(head, rows)


def sensitivity() -> str:
    """Return what the crossing depends on."""
    digits = {"crossing": 0, "L_c(C, P)": 4, "C - P": 4, "L_r": 4}
    rows = [
        [f"`{recipe}`, {variant}", *(number(scores[recipe][n], d) for n, d in digits.items())]
        for recipe in RECIPES
        for variant, scores in _benchmark("sensitivity").items()
    ]
    head = ["recipe, variant", "crosses at m", "L_c(C, P)", "L_c(C, K_I) − L_c(P, K_I)", "L_r"]
    return table(head, rows)


def code_space() -> str:
    """Return how well codes classify and cluster."""
    networks = ("plain autoencoder", "dkAE")
    rows = []
    for recipe in RECIPES:
        for name, scores in _runs("code-space", recipe)[0].scores.items():
            if recipe == "paper" or name in networks:  # the others are the same for both
                clusterings = (
                    ", ".join(f"{scores[method][s]:.3f}" for s in ("accuracy", "nmi", "ari"))
                    for method in ("k-means", "spectral")
                )
                name = f"{name}, `{recipe}`" if name in networks else name
                rows.append([name, f"{scores['linear classifier']:.3f}", *clusterings])
    measures = [f"{method}: accuracy, NMI, ARI" for method in ("k-means", "spectral clustering")]
    return table(["codes", "linear classifier", *measures], rows)
