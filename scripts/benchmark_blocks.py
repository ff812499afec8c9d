"""Tables of the library's benchmarks, one function for each."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from scripts.markdown import ROOT, table

__all__ = [
    "alignment_bias",
    "alignment_cost",
    "baselines_curve",
    "baselines_denoising",
    "benchmark",
    "busy",
    "choose_gamma",
    "cluster_kernel",
    "fit_trace",
    "learned_map",
    "maps",
    "memory",
    "mnist_recipes",
    "nystroem_quality",
    "nystroem_speed",
    "quickstart",
    "recipe_variants",
    "recipes",
    "spectral",
    "step_memory",
    "torture",
    "training_step",
    "when_cost",
    "when_quality",
    "whole_steps",
]


def benchmark(name: str) -> Any:
    """Return what a benchmark has written."""
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text("utf-8"))


def _seconds(found: dict[str, float]) -> list[str]:
    ours, theirs = found["ours"], found["theirs"]
    return [f"{ours:.{1 if ours >= 2 else 2}f} s", f"{theirs:.1f} s", _ratio(found)]


def _ratio(found: dict[str, float]) -> str:
    return f"{found['ratio']:.{0 if found['ratio'] > 20 else 1}f} ×"


def quickstart() -> str:
    """Return the maps and their rivals on MNIST."""
    found = benchmark("quickstart")
    seconds = found["InvertibleNystroem"]["seconds"]
    rows = [
        [
            f"{name} ({row['note']})" if row["note"] else name,
            f"{row['alignment']:.5f}",
            *_three_numbers(row),
            f"{row['seconds'] / seconds:.2g}" if "seconds" in row else "–",
        ]
        for name, row in found.items()
    ]
    return table(
        ["128 components", "alignment", *_THREE, "time to fit, InvertibleNystroem = 1"], rows
    )


def maps() -> str:
    """Return the three maps and the pipeline of scikit-learn, whose codes are centred."""
    found = benchmark("quickstart")
    rows = [[f"`{name}`", *_three_numbers(found[name])] for name in _MAPS]
    _, *rest = _three_numbers(found[_PIPELINE])
    return table(["128 components", *_THREE], [*rows, [_PIPELINE, "centred", *rest]])


_PIPELINE = "Nystroem(1000) + PCA + KernelRidge"
_MAPS = ("KernelPCA", "InvertibleNystroem", "DeepKernelizedAutoencoder")
_THREE = ("L_c", "1 − CKA", "error (MSE)")


def _three_numbers(row: dict[str, float]) -> list[str]:
    distance = 1 - row["centered_alignment"]
    return [f"{value:.4f}" for value in (row["alignment_loss"], distance, row["mse"])]


def nystroem_speed() -> str:
    """Return the times of InvertibleNystroem as multiples of those of its rivals."""
    rows = []
    for name, found in benchmark("nystroem").items():
        for side in _DECODERS:
            ratios = [
                f"{found['sides'][side][work] / found['sides'][rival][work]:.2g} ×"
                for rival in _PIPELINES
                for work in ("fit", "transform", "inverse_transform")
            ]
            rows.append([f"{name}, `{side}`", *ratios])
    works = ("fit", "transform", "inverse")
    return table(["time /", *(f"{rival}: {work}" for rival in _PIPELINES for work in works)], rows)


def nystroem_quality() -> str:
    """Return what InvertibleNystroem and its rivals reach on held-out rows."""
    found = benchmark("nystroem")
    sides = [side for side in next(iter(found.values()))["sides"] if "given" not in side]
    rows = [
        [name, *(" / ".join(f"{of['sides'][s][score]:.4f}" for score in _SCORES) for s in sides)]
        for name, of in found.items()
    ]
    names = [f"`{side}`" if side in _DECODERS else side for side in sides]
    return table([" / ".join(_SCORES.values()), *names], rows)


_DECODERS = ("ridge", "kernel_ridge", "mlp")
_PIPELINES = ("Nystroem(1000) + Ridge", "Nystroem(1000) + PCA + KernelRidge")


def cluster_kernel() -> str:
    """Return the Probabilistic Cluster Kernel against loops over scikit-learn's mixtures."""
    found = benchmark("cluster_kernel")
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
    found = benchmark("spectral")
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
    found = benchmark("memory")
    rows = [[f"{int(n):,}", "200", peak] for n, peak in found["by_rows"].items()]
    rows += [["5,000", f"{int(k):,}", p] for k, p in found["by_batch"].items() if k != "200"]
    return table(["n", "k", "peak"], [[n, k, f"{peak / 1e6:.0f} MB"] for n, k, peak in rows])


#: Scores of `benchmarks/recipes.py`, as they are called in the tables.
_SCORES = {"alignment_loss": "L_c", "one_minus_cka": "1 − CKA", "one_minus_r2": "1 − R²"}


def _of_recipes() -> dict[tuple[str, str, str], list[dict[str, Any]]]:
    """Return the records of each data set, kernel and method, a dictionary a seed."""
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for name, record in benchmark("recipes").items():
        data, kernel, method, _ = name.split(" / ")
        found.setdefault((data, kernel, method), []).append(record)
    return found


def _values(records: list[dict[str, Any]], part: str, score: str) -> list[float]:
    return [record[part][score] for record in records]


def recipes() -> str:
    """Return maps and rivals on all data sets: geometric means, validation parts."""
    found = _of_recipes()
    return _recipe_table(found, [m for m in _methods(found) if not m.startswith(_VARIANTS)])


def recipe_variants() -> str:
    """Return the variants of the maps, one seed of each."""
    found = _of_recipes()
    names = [m for m in _methods(found) if f"{m}, ".startswith(_VARIANTS)]
    return _recipe_table({key: records[:1] for key, records in found.items()}, names)


_VARIANTS = ("InvertibleNystroem, ", "DeepKernelizedAutoencoder, ")


def _methods(found: dict[tuple[str, str, str], Any]) -> list[str]:
    return sorted({method for _, _, method in found})


def _recipe_table(
    found: dict[tuple[str, str, str], list[dict[str, Any]]], methods: list[str]
) -> str:
    kernels, rows = sorted({kernel for _, kernel, _ in found}), []
    for method in methods:
        cells = []
        for kernel in kernels:
            of_all = [records for key, records in found.items() if key[1:] == (kernel, method)]
            for score in _SCORES:
                means = [float(np.mean(_values(r, "validation", score))) for r in of_all]
                cells.append(f"{np.exp(np.mean(np.log(means))):.3f}")
        rows.append([method, *cells])
    return table(["method", *(f"{k}: {s}" for k in kernels for s in _SCORES.values())], rows)


def mnist_recipes() -> str:
    """Return the maps on MNIST, means of seeds."""
    found, rows = benchmark("mnist_recipes"), []
    names = (name.split(" / ") for name in found if " / " in name)
    for kernel, method in dict.fromkeys((kernel, method) for kernel, method, _ in names):
        records = [r for name, r in found.items() if name.startswith(f"{kernel} / {method} / ")]
        means = [
            f"{np.mean([r[score] for r in records]):.4f}"
            for score in ("alignment_loss", "one_minus_cka", "mse")
        ]
        pca = found[f"PCA {records[0]['n_components']}"]["mse"]
        rows.append([f"{kernel}, {method}", str(len(records)), *means, f"{pca:.4f}"])
    return table(["", "seeds", *_THREE, "MSE of PCA"], rows)


def learned_map() -> str:
    """Return the learned map on MNIST with several budgets, with views and without."""
    rows = [
        [
            *name.split(" / ")[:2],
            f"{r['validation']['alignment_loss']:.4f} / {r['train']['alignment_loss']:.4f}",
            f"{r['validation']['one_minus_cka']:.4f}",
            f"{r['validation']['mse']:.4f}",
            f"{r['validation']['accuracy']:.3f}",
            f"{r['seconds']:.0f} s",
        ]
        for name, r in benchmark("learned_map").items()
        if name.endswith(" / 0")
    ]
    head = ["kernel", "", "L_c, validation / train", "1 − CKA", "error (MSE)", "classifier", "fit"]
    return table(head, rows)


#: What the page "When to use it" compares.
_COMPARED = (
    "InvertibleNystroem",
    "DeepKernelizedAutoencoder",
    "KernelPCA",
    "Nystroem(1000) + PCA + KernelRidge",
    "Nystroem + ridge",
    "PCA",
    "autoencoder (λ = 0)",
)


def when_quality() -> str:
    """Return the quality of map and way back on the test parts, L_c / 1 − CKA / 1 − R²."""
    found = _of_recipes()
    rows = []
    for data, kernel in sorted({key[:2] for key in found}):
        cells = []
        for method in _COMPARED:
            records = found[data, kernel, method]
            means = (float(np.mean(_values(records, "test", score))) for score in _SCORES)
            cells.append(" / ".join(f"{mean:.3f}" for mean in means))
        rows.append([f"{data}, {kernel}", *cells])
    return table(["test part", *_COMPARED], rows)


def when_cost() -> str:
    """Return costs as multiples of those of the first, and the accuracy of a linear classifier."""
    found = _of_recipes()
    costs = ("fit_seconds", "map_microseconds", "invert_microseconds", "numbers")
    rows = []
    for method in _COMPARED:
        cells = []
        for cost in costs:
            ratios = [
                np.median([r[cost] for r in records])
                / np.median([r[cost] for r in found[data, kernel, _COMPARED[0]]])
                for (data, kernel, m), records in found.items()
                if m == method
            ]
            cells.append(f"{np.exp(np.mean(np.log(ratios))):.2g} ×")
        accuracies = [
            np.mean([r["accuracy"] for r in records])
            for (_, _, m), records in found.items()
            if m == method and records[0]["accuracy"] is not None
        ]
        rows.append([method, *cells, f"{np.mean(accuracies):.3f}"])
    head = ["", "fit", "map a row", "invert a row", "numbers held", "linear classifier"]
    return table(head, rows)


def fit_trace() -> str:
    """Return how much of the library a fit goes through, before and now."""
    rows = [[name, *map(str, counts.values())] for name, counts in benchmark("fit_trace").items()]
    return table(["`fit` of 60 rows", "functions", "modules", "depth"], rows)


def busy() -> str:
    """Return CPU and wall time as multiples of those of one quiet thread."""
    found = benchmark("busy")
    cases = list(next(iter(found.values()))["ratios"])
    rows = [
        [
            work,
            *(
                f"{of['ratios'][case]['cpu']:.2f}, {of['ratios'][case]['wall']:.2f}"
                for case in cases
            ),
        ]
        for work, of in found.items()
    ]
    return table(["CPU, wall time", *cases], rows)


def training_step() -> str:
    """Return what a step of the study costs on each processor."""
    rows = []
    for machine, found in benchmark("training_step").items():
        for name, step in found.items():
            if isinstance(step, dict) and "milliseconds" in step:
                cells = [
                    f"{step['milliseconds']['paper']:.0f} ms",
                    f"{100 * step['share_of_products_in_a_step']:.0f} %",
                    f"{100 * step['share_of_the_block_beside_a_step']:.0f} %",
                    str(step["gigaflops_of_products"]),
                ]
                rows.append([_processor(machine), name, *cells])
    parts = ["a step", "products", "block of the prior", "Gflop/s"]
    return table(["2 cores", "networks, batch", *parts], rows)


def whole_steps() -> str:
    """Return whole steps, batch and block included, as multiples of their matrix products."""
    found = {
        m: f["with_batches"] for m, f in benchmark("training_step").items() if "with_batches" in f
    }
    names = ["fetched in time", "fetched ahead"]
    rows = [[_processor(m), *(f"{f[name]:.2f}" for name in names)] for m, f in found.items()]
    return table(["whole step / products", *names], rows)


def _processor(machine: str) -> str:
    return machine.replace("(R)", "").split(" P")[0].split(",")[0]


def step_memory() -> str:
    """Return what it saves to keep freed memory."""
    rows = [
        [name, *(f"{value:,.0f}" for value in found.values())]
        for name, found in benchmark("step_memory").items()
    ]
    return table(["gradients of tied weights", "ms of a core", "ms", "page faults"], rows)


def alignment_cost() -> str:
    """Return the milliseconds of each measure of alignment, with its gradient."""
    (found,) = benchmark("alignment_measures").values()
    costs = [found[f"cost, {k} rows"]["milliseconds"] for k in (200, 500)]
    rows = [[f"`{name}`", *(f"{cost[name]:.1f} ms" for cost in costs)] for name in costs[0]]
    return table(["measure", "k = 200", "k = 500"], rows)


def alignment_bias() -> str:
    """Return how far the gradients of blocks point away from that of all pairs."""
    (found,) = benchmark("alignment_measures").values()
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
    curves = benchmark("baselines")["curve"]
    sizes = list(curves["reg 1e-06, test"])
    rows = []
    for reg, name in (("1e-06", "1e-6"), ("0.001", "1e-3")):
        test, train = (curves[f"reg {reg}, {part}"] for part in ("test", "train"))
        rows.append([f"`reg_covar={name}`", *(f"{test[m]:.3f} ({train[m]:.3f})" for m in sizes)])
    return table(["m", *sizes], rows)


def baselines_denoising() -> str:
    """Return the errors of kernel PCA and learned pre-images on digits with noise."""
    rows = []
    for name, found in benchmark("baselines")["denoising"].items():
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
    found, rows = benchmark("choose_gamma"), []
    scores = ["alignment", "score", "label_alignment", "r2", "classifier"]
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
    head = ["loss", "γ / median", "A of constant codes", "A", "`score` (CKA)"]
    return table([*head, "alignment with labels", "R²", "classifier"], rows)


_FAULTS = {
    "kills": "SIGKILL at random moments of fits with a checkpoint, resumed: the model of an "
    "unbroken fit, to the bit",
    "saves": "SIGKILL at random moments of saves: the file is the old or the new one, and whole",
    "files": "model files and checkpoints, damaged: refused",
    "states": "model files and checkpoints with random edits and a right checksum, loaded and "
    "used: an error that says why or a finite result, within 10 s and 300 MB + 20 × the file",
}


def torture() -> str:
    """Return how many faults were injected, and how many were borne."""
    found = benchmark("torture")
    rows = [
        [text, f"{found[name]['tried']:,}", f"{found[name]['held']:,}"]
        for name, text in _FAULTS.items()
        if name in found
    ]
    return table(["fault", "tried", "held"], rows)
