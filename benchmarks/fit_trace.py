"""How much of the library one `fit` goes through: functions, modules, and the greatest depth.

Each map is fitted to 60 rows under ``sys.setprofile``, which sees every call of a Python function.
Counted are the distinct functions of ``dkae`` and their modules; the depth is the number of frames
of ``dkae`` on the stack. Version 0.2 had 318 functions in 41 modules, 20 deep; the aim is half.
Writes ``results/fit_trace.json``. Seconds. ``--list`` names the functions.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
from measuring import make_parser, save, verdict

from dkae import DeepKernelizedAutoencoder, InvertibleNystroem, KernelPCA

#: Of version 0.2.
BEFORE = {"functions": 318, "modules": 41, "depth": 20}
SHORT = {"max_iter": 1, "decoder_max_iter": 1, "steps_per_epoch": 1}
MAPS: dict[str, Callable[[], Any]] = {
    "DeepKernelizedAutoencoder": lambda: DeepKernelizedAutoencoder(4, random_state=0, **SHORT),
    "InvertibleNystroem": lambda: InvertibleNystroem(4, random_state=0),
    "InvertibleNystroem, mlp": lambda: InvertibleNystroem(4, decoder="mlp", random_state=0),
    "KernelPCA": lambda: KernelPCA(4, random_state=0),
}


class Trace:
    """Counts the functions of dkae that are called, and how deep they are."""

    def __init__(self) -> None:
        self.functions: set[tuple[str, str]] = set()
        self.depth = self.deepest = 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if event not in ("call", "return") or not module.startswith("dkae."):
            return
        if event == "return":
            self.depth -= 1
            return
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        self.functions.add((module, frame.f_code.co_qualname))

    def of(self, work: Callable[[], Any]) -> dict[str, int]:
        """Return the counts of some work; this thread alone counts."""
        sys.setprofile(self)
        try:
            work()
        finally:
            sys.setprofile(None)
        modules = {module for module, _ in self.functions}
        return {"functions": len(self.functions), "modules": len(modules), "depth": self.deepest}


def main() -> None:
    """Trace a fit of each map."""
    parser = make_parser("fit_trace", __doc__)
    parser.add_argument("--list", action="store_true", help="name the functions of each map")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = np.random.default_rng(0).random((60, 6), dtype=np.float32)
    found = {}
    for name, make in MAPS.items():
        make().fit(rows)  # the first call loads modules
        trace = Trace()
        found[name] = trace.of(lambda make=make: make().fit(rows))
        if given.list:
            print(name, *sorted(map(".".join, trace.functions)), sep="\n  ")
        for what, n in found[name].items():
            verdict(f"{name}: half of {BEFORE[what]} {what}", 2 * n <= BEFORE[what], str(n))
    save(given.results, {"0.2": BEFORE} | found)


if __name__ == "__main__":
    main()
