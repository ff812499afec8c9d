"""Peak memory of `fit`: it grows with k², the square of the batch, and not with n².

Run ``python benchmarks/memory.py`` for the table, or with ``--rows N --batch K`` for one number:
the bytes by which the peak of `fit` exceeds what the process held before it, data included.
Each measurement is a process of its own. Linux only, because it reads the peak from /proc.
"""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "memory.json"

ROWS = (5_000, 20_000, 60_000)
BATCHES = (200, 1_000, 2_000, 4_000)
N_FEATURES = 64


def peak_of_fit(n_rows: int, batch_size: int, network: str = "stacked") -> int:
    """Return the bytes that `fit` needed at its peak beyond what was there before."""
    import numpy as np

    from dkae import DeepKernelizedAutoencoder

    X = np.random.default_rng(0).random((n_rows, N_FEATURES), dtype=np.float32)
    model = DeepKernelizedAutoencoder(
        16,
        network=network,
        hidden_layer_sizes=(32,),
        batch_size=batch_size,
        max_iter=1,
        steps_per_epoch=3,
        random_state=0,
    )
    model.fit(X[:200])  # first use loads code and starts threads
    Path("/proc/self/clear_refs").write_text("5")  # start the peak anew
    before = _status("VmRSS")
    model.fit(X)
    return _status("VmHWM") - before


def peak_of_transform(n_rows: int) -> int:
    """Return the bytes that `transform` needed at its peak beyond the codes that it returns."""
    import numpy as np

    from dkae import DeepKernelizedAutoencoder

    X = np.random.default_rng(0).random((n_rows, 50), dtype=np.float32)
    model = DeepKernelizedAutoencoder(50, decoder_max_iter=1, steps_per_epoch=3, random_state=0)
    model.fit(X[:2000]).transform(X[:5000])
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    codes = model.transform(X)
    return _status("VmHWM") - before - int(codes.nbytes)


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return 1024 * int(line.split()[1])
    raise LookupError(field)


def _mb(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:>9,.1f} MB"


def measure(n_rows: int, batch_size: int) -> int:
    """Run one measurement in a process of its own."""
    command = [sys.executable, __file__, "--rows", str(n_rows), "--batch", str(batch_size)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Measure all sizes, print them with a verdict, write the results file."""
    by_rows = {n: measure(n, BATCHES[0]) for n in ROWS}
    by_batch = {k: measure(ROWS[0], k) for k in BATCHES}
    for n, peak in by_rows.items():
        print(f"n = {n:>6}, k = {BATCHES[0]}: {_mb(peak)}   (n² floats: {_mb(4 * n * n)})")
    for k, peak in by_batch.items():
        print(f"n = {ROWS[0]}, k = {k:>5}: {_mb(peak)}   (k² floats: {_mb(4 * k * k)})")
    growth = by_rows[ROWS[-1]] - by_rows[ROWS[0]]
    verdict = "holds" if growth < 0.01 * 4 * ROWS[-1] ** 2 else "FAILS"
    print(f"no n² memory: {verdict} (from {ROWS[0]} to {ROWS[-1]} rows {growth / 1e6:+.1f} MB)")
    RESULTS.write_text(json.dumps({"by_rows": by_rows, "by_batch": by_batch}, indent=1) + "\n")


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--network", default="stacked")
    parser.add_argument("--transform", type=int, metavar="ROWS")
    parser.add_argument("--batch", type=int, default=BATCHES[0])
    arguments = parser.parse_args()
    if arguments.rows:
        print(peak_of_fit(arguments.rows, arguments.batch, arguments.network))
    elif arguments.transform:
        print(peak_of_transform(arguments.transform))
    else:
        main()
