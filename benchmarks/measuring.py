"""What benchmarks share: times, peaks of memory, verdicts, and files of results."""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


class Clock:
    """A callback that notes when each step ends."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def on_step_end(self, trainer: Any, phase: Any) -> None:
        self.times.append(time.perf_counter())


def make_parser(name: str, description: str | None) -> ArgumentParser:
    """Return a parser with ``--results``, by default the file of that name."""
    parser = ArgumentParser(description=description, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS / f"{name}.json")
    return parser


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds that some work takes, and its result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def best_time(work: Callable[[], Any], repeats: int) -> float:
    """Return the least of several times."""
    return min(timed(work)[0] for _ in range(repeats))


def start_peak() -> int:
    """Start the peak of this process's memory anew (Linux), and return what it holds."""
    Path("/proc/self/clear_refs").write_text("5")
    return status("VmRSS")


def status(field: str) -> int:
    """Return the bytes of a field of ``/proc/self/status``."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return 1024 * int(line.split()[1])
    raise LookupError(field)


def verdict(claim: str, holds: bool, found: str) -> str:
    """Print whether a claim holds, and return the word."""
    word = "holds" if holds else "FAILS"
    print(f"{claim}: {word} ({found})", flush=True)
    return word


class Saved(dict[str, Any]):
    """Results that are written to their file after each addition."""

    def __init__(self, path: Path, *, resume: bool) -> None:
        super().__init__(json.loads(path.read_text()) if resume and path.exists() else {})
        self.path = path

    def add(self, name: str, found: Any) -> None:
        self[name] = found
        save(self.path, self)


def save(path: Path, results: Any) -> None:
    """Write results as JSON, with five digits that count."""
    text = json.dumps(_rounded(results), indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value
