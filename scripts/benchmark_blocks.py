"""Tables of the library's benchmarks, one function for each."""

from __future__ import annotations

import json
from typing import Any

from scripts.markdown import ROOT, table

__all__ = [
    "alignment_bias",
    "alignment_cost",
    "baselines_curve",
    "baselines_denoising",
    "choose_gamma",
    "cluster_kernel",
    "memory",
    "nystroem",
    "quickstart",
    "recipes",
    "spectral",
    "step_memory",
    "training_step",
]


def _benchmark(name: str) -> Any:
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text("utf-8"))


def _seconds(found: dict[str, float]) -> list[str]:
    ours, theirs = found["ours"], found["theirs"]
    return [f"{ours:.{1 if ours >= 2 else 2}f} s", f"{theirs:.1f} s", _ratio(found)]


def _ratio(found: dict[str, float]) -> str:
    return f"{found['ratio']:.{0 if found['ratio'] > 20 else 1}f} ×"


def quickstart() -> str:
    """Return the ten lines of the README beside their rivals."""
    found = _benchmark("quickstart")
    seconds = found["dkae"]["seconds"]
    rows = [
        [
            f"{name} ({row['note']})" if row["note"] else name,
            f"{row['alignment']:.5f}",
            *_three_numbers(row),
            "–" if name == "constant kernel" else f"{row['seconds'] / seconds:.2g}",
        ]
        for name, row in found.items()
    ]
    return table(["128 components", "alignment", *_THREE, "time to fit, dkae = 1"], rows)


def nystroem() -> str:
    """Return the same in short."""
    found = _benchmark("quickstart")
    rows = [[name, *_three_numbers(row)] for name, row in found.items()]
    return table(["128 components, test rows", *_THREE], rows)


_THREE = ("L_c", "1 − centred alignment", "error (MSE)")


def _three_numbers(row: dict[str, float]) -> list[str]:
    distance = 1 - row["centered_alignment"]
    return [f"{value:.4f}" for value in (row["alignment_loss"], distance, row["mse"])]


def cluster_kernel() -> str:
    """Return the Probabilistic Cluster Kernel against loops over scikit-learn's mixtures."""
    found = _benchmark("cluster_kernel")
    works = {"fit": "fit 870 mixtures on 200 rows", "posteriors": "posteriors of 20,000 rows"}
    loops = {
        "loop": "a loop with the same first means",
        "loop_in_float32": "that loop in float32",
        "lean_loop": "the leanest loop, all first parameters given",
    }
    rows = [
        [f"{work}: {loop}", *_seconds(found[f"{a}_{b}"])]
        for a, work in works.items()
        for b, loop in loops.items()
    ]
    block = found["gram_block"]
    ours, theirs = (f"{1000 * block[side]:.1f} ms" for side in ("ours", "theirs"))
    rows.append(["block of 200 × 200: the dense float32 product", ours, theirs, _ratio(block)])
    return table(["work: against", "ours", "theirs", "ratio"], rows)


def spectral() -> str:
    """Return kernel PCA of the cluster kernel against scikit-learn's."""
    found = _benchmark("spectral")
    peak, large = found["memory"], found["rows_60000"]
    peaks = [f"{peak[side]:,.0f} MB" for side in ("ours", "theirs")]
    ours = f"{large['fit']:.1f} s, {large['peak'] / 1e6:,.0f} MB"
    rows = [
        ["128 components of 14,000 rows", *_seconds(found["fit"])],
        ["peak memory of it", *peaks, _ratio(peak)],
        ["project 3,000 new rows", *_seconds(found["project"])],
        ["128 components of 60,000 rows", ours, "the Gram matrix alone would be 29 GB", ""],
    ]
    return table(["work", "ours", "scikit-learn", "ratio"], rows)


def memory() -> str:
    """Return the peak memory of `fit` over n, and over k."""
    found = _benchmark("memory")
    rows = [[f"{int(n):,}", "200", peak] for n, peak in found["by_rows"].items()]
    rows += [["5,000", f"{int(k):,}", p] for k, p in found["by_batch"].items() if k != "200"]
    return table(["n", "k", "peak"], [[n, k, f"{peak / 1e6:.0f} MB"] for n, k, peak in rows])


def recipes() -> str:
    """Return the variations behind the default recipe."""
    rows = [
        [
            name.replace(" x ", " × "),
            f"{found['test']['alignment_loss']:.4f}",
            f"{found['test']['reconstruction_mse']:.5f}",
            f"{found['train']['alignment_loss']:.4f}",
        ]
        for name, found in _benchmark("recipes").items()
    ]
    return table(["variant", "test L_c", "test MSE", "train L_c"], rows)


def training_step() -> str:
    """Return what a step of the study costs on each processor."""
    rows = []
    for machine, found in _benchmark("training_step").items():
        for name, step in found.items():
            if isinstance(step, dict):
                cells = [
                    *(f"{step['milliseconds'][recipe]:.0f} ms" for recipe in ("paper", "default")),
                    f"{100 * step['share_of_products_in_a_step']:.0f} %",
                    f"{100 * step['share_of_the_block_beside_a_step']:.0f} %",
                    str(step["gigaflops_of_products"]),
                    f"{step['hours_of_the_laptop_scale']:.1f} h",
                ]
                rows.append([machine.replace("(R)", "").split(" P")[0].split(",")[0], name, *cells])
    steps = ["`paper`", "`default`", "products", "block of the prior"]
    return table(["2 cores", "networks, batch", *steps, "Gflop/s", "whole study"], rows)


def step_memory() -> str:
    """Return what it saves to keep freed memory."""
    rows = [
        [name, *(f"{value:,.0f}" for value in found.values())]
        for name, found in _benchmark("step_memory").items()
    ]
    return table(["gradients of tied weights", "ms of a core", "ms", "page faults"], rows)


def alignment_cost() -> str:
    """Return the milliseconds of each measure of alignment, with its gradient."""
    (found,) = _benchmark("alignment_measures").values()
    costs = [found[f"cost, {k} rows"]["milliseconds"] for k in (200, 500)]
    rows = [[f"`{name}`", *(f"{cost[name]:.1f} ms" for cost in costs)] for name in costs[0]]
    return table(["measure", "k = 200", "k = 500"], rows)


def alignment_bias() -> str:
    """Return how far the gradients of blocks point away from that of all pairs."""
    (found,) = _benchmark("alignment_measures").values()
    cosines = {
        name.split(" = ")[1]: cosine
        for name, cosine in found["bias of blocks"].items()
        if name.startswith("cosine")
    }
    rows = [
        [f"`{measure}`", *(f"{cosine[measure]:.2f}" for cosine in cosines.values())]
        for measure in ("frobenius", "offdiagonal")
    ]
    return table(["cosine at L_c =", *cosines], rows)


def baselines_curve() -> str:
    """Return L_c of kernel PCA over m; on training rows in brackets."""
    curves = _benchmark("baselines")["curve"]
    sizes = list(curves["reg 1e-06, test"])
    rows = []
    for reg, name in (("1e-06", "1e-6"), ("0.001", "1e-3")):
        test, train = (curves[f"reg {reg}, {part}"] for part in ("test", "train"))
        rows.append([f"`reg_covar={name}`", *(f"{test[m]:.3f} ({train[m]:.3f})" for m in sizes)])
    return table(["m", *sizes], rows)


def baselines_denoising() -> str:
    """Return the errors of kernel PCA and learned pre-images on digits with noise."""
    rows = []
    for name, found in _benchmark("baselines")["denoising"].items():
        if isinstance(found, float):
            rows.append([name, f"{found:.4f}", "", ""])
            continue
        cells = [
            f"{error:.4f}" + ("" if how == "alpha 0.5" else f" (α = {how.split()[-1]})")
            for how, error in found.items()
        ]
        rows.append([name, *cells])
    return table(
        ["MSE", "α by grid on clean rows", "α = 0.5", "best α on noisy validation rows"], rows
    )


def choose_gamma() -> str:
    """Return what each score gives models of an RBF kernel with another γ; the best is bold."""
    found, rows = _benchmark("choose_gamma"), []
    scores = ["score", "centered_alignment", "label_alignment", "r2", "classifier"]
    for loss, title in (("frobenius", "L_c"), ("centered", "centred")):
        best = {name: max(by[name] for by in found[loss].values()) for name in scores}
        for factor, by in found[loss].items():
            cells = [f"{by[name]:.4f}" for name in scores]
            cells = [
                f"**{cell}**" if by[name] == best[name] else cell
                for name, cell in zip(scores, cells, strict=True)
            ]
            gamma = factor.replace("0.3333", "1/3").replace("0.0001", "1e-4")
            rows.append([title, gamma, f"{by['constant']:.4f}", *cells])
    head = ["loss", "γ / median", "constant kernel", "`score`", "centred alignment"]
    return table([*head, "alignment with labels", "R²", "classifier"], rows)
