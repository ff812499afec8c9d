"""Tables of docs/large-data.md, one function for each."""

from __future__ import annotations

from typing import Any

from scripts.benchmark_blocks import benchmark
from scripts.markdown import table

__all__ = ["chunks", "kills", "million_rows", "out_of_sample", "partial_fit", "processes"]


def million_rows() -> str:
    """Return memory and steps at a tenth of the rows and at all of them."""
    found = benchmark("million_rows")
    few, many = (f"{n:,} rows" for n in found["rows"])
    rows = [
        [f"{case}: {what}", *cells]
        for case, of_case in found["cases"].items()
        for what, cells in _sizes(of_case).items()
    ]
    batch = found["batch_of_200"]
    rows += [
        [
            f'200 rows, `shuffle="{shuffle}"`: cold, warm',
            "",
            f"{1e3 * times['cold']:.0f} ms, {1e3 * times['warm']:.1f} ms",
            "",
        ]
        for shuffle, times in batch.items()
    ]
    return table(["", few, many, "ratio"], rows)


def _sizes(found: dict[str, Any]) -> dict[str, list[str]]:
    numbers = {
        "peak of `fit`": (found["fit"], "peak", 1e-6, "MB", 0),
        "a step": (found["fit"], "step", 1e3, "ms", 1),
        "peak of `transform` to a file": (found["transform"], "peak", 1e-6, "MB", 0),
    }
    return {
        what: [
            *(f"{factor * run[name]:.{digits}f} {unit}" for run in runs),
            f"{runs[1][name] / runs[0][name]:.3f}",
        ]
        for what, (runs, name, factor, unit, digits) in numbers.items()
    }


def chunks() -> str:
    """Return what runs of neighbours do to the losses."""
    rows = [
        [
            f"`{row['map']}`",
            {"random": "in random order", "sorted": "sorted by digit"}[row["order"]],
            *(f"{row[name]['ratio']:.2f}" for name in ("alignment_loss", "mse")),
        ]
        for row in benchmark("chunks")["rows"]
    ]
    head = [
        "`python benchmarks/chunks.py`",
        "rows lie",
        "L_c, chunks / rows",
        "error, chunks / rows",
    ]
    return table(head, rows)


def partial_fit() -> str:
    """Return the losses of passes as multiples of those of `fit`."""
    rows = [
        [
            f"`{row['map']}`",
            f"{row['steps']:,}",
            *(_of_fit(row[name]) for name in ("alignment_loss", "mse")),
        ]
        for row in benchmark("partial_fit")["rows"]
    ]
    return table(["map", "steps", "L_c (`fit`), ratio", "error (`fit`), ratio"], rows)


def _of_fit(found: dict[str, float]) -> str:
    return f"{found['partial_fit']:.4f} ({found['fit']:.4f}), {found['ratio']:.2f}"


def processes() -> str:
    """Return what a step takes in one process and in two."""
    steps = benchmark("processes")["steps"]
    rows = [[name, f"{value} ms"] for name, value in steps["milliseconds"].items()]
    rows += [
        [text, f"{steps[name]:.2f}"]
        for name, text in (
            ("steps_of_two_processes_by_one", "steps a second, two processes / one"),
            ("share_of_talk", "share of a step that two processes talk and wait"),
            ("estimate_for_two_machines", "the same on two such machines, estimated"),
        )
    ]
    return table(["the stack 784-1000-1000-128, batches of 200", "a step"], rows)


def kills() -> str:
    """Return how many killed processes were borne."""
    found = benchmark("processes")["kills"]
    what = "SIGKILL to one of two processes, at a random moment: the weights of an unbroken run"
    return table(["fault", "tried", "held"], [[what, str(found["tried"]), str(found["held"])]])


def out_of_sample() -> str:
    """Return the times of new rows, and how they grow with the training rows."""
    found = benchmark("out_of_sample")
    sizes = list(found["times"])
    rows = [
        [
            side,
            *(f"{ratios[way]:.1f} ×" if way in ratios else "" for way in _WAYS),
            f"{found['growth'][side]:.1f} ×",
        ]
        for side, ratios in found["ratios"].items()
    ]
    head = [
        f"time, the first = 1, at n = {int(sizes[-1]):,}",
        "`transform`",
        "`inverse_transform`",
        f"growth of both from n = {int(sizes[0]):,}",
    ]
    return table(head, rows)


_WAYS = ("transform", "inverse_transform")
