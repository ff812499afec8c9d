"""Make the MNIST subset that ships with the package from the original training files.

Usage: ``python scripts/make_mnist20k.py SOURCE_DIR [--out PATH]``, where SOURCE_DIR holds
``train-images-idx3-ubyte.gz`` and ``train-labels-idx1-ubyte.gz``.

``np.savez_compressed`` writes no time stamps, so the same zlib gives the same bytes. If the bytes
change, the SHA-256 in ``dkae/datasets/__init__.py`` must change with them.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SEED = 1998
N_SOURCE = 60_000
N_CHOSEN = 20_000
DEFAULT_OUT = Path(__file__).resolve().parents[1] / "src/dkae/datasets/data/mnist20k.npz"


def read_bytes(path: Path, n_header: int) -> NDArray[np.uint8]:
    """Return what follows the header of a gzipped file."""
    with gzip.open(path) as file:
        return np.frombuffer(file.read(), np.uint8, offset=n_header)


def make(source: Path, out: Path) -> str:
    """Write the subset of the training set in `source` to `out` and return its SHA-256."""
    # An IDX file is a header, of 4 bytes and 4 for each dimension, and then the values.
    images = read_bytes(source / "train-images-idx3-ubyte.gz", 4 + 3 * 4).reshape(N_SOURCE, -1)
    labels = read_bytes(source / "train-labels-idx1-ubyte.gz", 4 + 1 * 4)
    rows = np.sort(np.random.default_rng(SEED).choice(N_SOURCE, N_CHOSEN, replace=False))
    with out.open("wb") as file:
        np.savez_compressed(
            file,
            images=images[rows],
            labels=labels[rows],
            source_rows=rows.astype(np.uint16),  # every row number is below 2**16
        )
    return hashlib.sha256(out.read_bytes()).hexdigest()


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Make the MNIST subset of the package.")
    parser.add_argument("source", type=Path, help="folder of the original gzipped IDX files")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="the file to write")
    args = parser.parse_args(argv)
    print(make(args.source, args.out))


if __name__ == "__main__":
    main()
