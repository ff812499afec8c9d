"""Where the numbers come from: versions, machines, times, and the counts that the paper states."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dkae_study.declaration import Table
from dkae_study.results import Run
from dkae_study.results.numbers import MISSING

#: So many different values of a count are listed.
_N_LISTED = 8


def provenance_of(runs: Sequence[Run]) -> dict[str, str]:
    """Return a summary of all runs."""
    records = [run.provenance for run in runs]
    networks = {model.get("hash"): model for run in runs for model in run.models.values()}
    memory = [float(record.get("peak_memory_mb") or 0) for record in records]
    started = sorted(str(record["started"]) for record in records if record.get("started"))
    facts = {
        "Runs": f"{len(runs)} result files",
        "Training": _training(list(networks.values())),
        "Peak memory": f"{max(memory):,.0f} MB" if any(memory) else "",
        "Started": " to ".join(dict.fromkeys((started[0], started[-1]))) if started else "",
        "Versions": _distinct(record.get("versions") for record in records),
        "Commit": _distinct(r.get("commit") for r in (*records, *networks.values())),
        "Machine": _distinct(record.get("machine") for record in records),
    }
    return {name: text for name, text in facts.items() if text}


def _training(networks: Sequence[Mapping[str, Any]]) -> str:
    """Return how long the networks took; of a resumed one only the last leg."""
    seconds = sum(float(model.get("seconds") or 0) for model in networks)
    n_resumed = sum(bool(model.get("resumed")) for model in networks)
    text = f"{len(networks)} networks, {_format_seconds(seconds)} one after another"
    if any("layer 1" in model.get("history", {}) for model in networks):
        text += " without the layers that they share"
    return text + (f", of {n_resumed} only what came after an interruption" if n_resumed else "")


def _distinct(values: Iterable[Any]) -> str:
    """Return the different values, all runs together: more than one is worth knowing."""
    return "; ".join(dict.fromkeys(_format(value) for value in values if value))


def _format(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_format(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return "–".join(str(item) for item in value)
    # A year or a commit is a text; whole numbers here are counts.
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _format_seconds(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def counts_of(runs: Sequence[Run], recipes: Sequence[str]) -> Table:
    """Return the counts of each recipe; all where runs differ, as in the width of a code."""
    found: dict[str, dict[str, dict[str, None]]] = {}
    for run in runs:
        for name, value in _flatten(run.counts):
            found.setdefault(name, {}).setdefault(run.recipe, {})[_format(value)] = None
    rows = [
        [name, *(_list(by_recipe.get(r, {})) for r in recipes)] for name, by_recipe in found.items()
    ]
    return Table("Counts that the paper states", ["", *(f"{r} recipe" for r in recipes)], rows)


def _flatten(counts: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each count with its name; the layers of several networks all by the same."""
    for name, value in counts.items():
        if not isinstance(value, Mapping):
            # Words are separated; the index of N_c stays one.
            yield prefix + re.sub(r"(?<![A-Z])_", " ", name), value
        elif name == "layers":
            yield from ((name, layers) for layers in value.values())
        else:
            yield from _flatten(value, f"{prefix}{name}, ")


def _list(texts: Iterable[str]) -> str:
    texts = list(texts)
    more = f" and {len(texts) - _N_LISTED} more" if len(texts) > _N_LISTED else ""
    return "; ".join(texts[:_N_LISTED]) + more or MISSING
