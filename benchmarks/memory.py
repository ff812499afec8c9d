"""Peak memory of `fit`: it grows with k², the square of the batch, and not with n².

Run ``python benchmarks/memory.py`` for the table, or with ``--fit N`` or ``--transform N`` for one
number: the bytes by which the peak exceeds what the process held before it, data included. Each
measurement is a process of its own. Linux only, because it reads the peak from /proc. One minute.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

from measuring import make_parser, save, start_peak, status, verdict

ROWS = (5_000, 20_000, 60_000)
BATCHES = (200, 1_000, 2_000, 4_000)
N_FEATURES = 64
MAPS = ("autoencoder", "nystroem")


def make_model(name: str, n_components: int, batch_size: int) -> Any:
    from dkae import DeepKernelizedAutoencoder, InvertibleNystroem
    from dkae.decoders import MLPDecoder
    from dkae.networks import Stack

    budget: dict[str, Any] = {"batch_size": batch_size, "max_iter": 1, "steps_per_epoch": 3}
    if name == "nystroem":
        decoder = MLPDecoder((32,), **budget)
        return InvertibleNystroem(n_components, decoder=decoder, random_state=0)
    network = Stack((32,))
    return DeepKernelizedAutoencoder(
        n_components, network=network, decoder_max_iter=1, random_state=0, **budget
    )


def make_rows(n_rows: int, n_features: int) -> Any:
    import numpy as np

    return np.random.default_rng(0).random((n_rows, n_features), dtype=np.float32)


def peak_of_fit(name: str, n_rows: int, batch_size: int) -> int:
    """Return the peak of `fit`, in bytes beyond those that the process held before it."""
    warnings.simplefilter("ignore")  # after three steps, models are no good
    X = make_rows(n_rows, N_FEATURES)
    model = make_model(name, 16, batch_size)
    model.fit(X[:200])  # first use loads code and starts threads
    before = start_peak()
    model.fit(X)
    return status("VmHWM") - before


def peak_of_transform(name: str, n_rows: int) -> int:
    """Return the bytes that `transform` needed at its peak beyond the codes that it returns."""
    X = make_rows(n_rows, 50)
    model = make_model(name, 50, BATCHES[0])
    model.fit(X[:2000]).transform(X[:5000])
    before = start_peak()
    codes = model.transform(X)
    return status("VmHWM") - before - int(codes.nbytes)


def _mb(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:>9,.1f} MB"


def measure(n_rows: int, batch_size: int) -> int:
    """Run one measurement in a process of its own."""
    command = [sys.executable, __file__, "--fit", str(n_rows), "--batch", str(batch_size)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Measure all sizes, print them with a verdict, write the results file."""
    parser = make_parser("memory", __doc__)
    parser.add_argument("--fit", type=int, metavar="ROWS")
    parser.add_argument("--transform", type=int, metavar="ROWS")
    parser.add_argument("--map", choices=MAPS, default=MAPS[0])
    parser.add_argument("--batch", type=int, default=BATCHES[0])
    parser.add_argument("--share", type=float, default=1.0, help="of the rows, for a trial")
    given = parser.parse_args()
    if given.fit:
        print(peak_of_fit(given.map, given.fit, given.batch))
        return
    if given.transform:
        print(peak_of_transform(given.map, given.transform))
        return
    rows = [int(given.share * n) for n in ROWS]
    by_rows = {n: measure(n, BATCHES[0]) for n in rows}
    by_batch = {k: measure(rows[0], k) for k in BATCHES}
    for n, peak in by_rows.items():
        print(f"n = {n:>6}, k = {BATCHES[0]}: {_mb(peak)}   (n² floats: {_mb(4 * n * n)})")
    for k, peak in by_batch.items():
        print(f"n = {rows[0]}, k = {k:>5}: {_mb(peak)}   (k² floats: {_mb(4 * k * k)})")
    growth = by_rows[rows[-1]] - by_rows[rows[0]]
    found = f"from {rows[0]} to {rows[-1]} rows {growth / 1e6:+.1f} MB"
    verdict("no n² memory", growth < 0.01 * 4 * rows[-1] ** 2, found)
    save(given.results, {"by_rows": by_rows, "by_batch": by_batch})


if __name__ == "__main__":
    main()
