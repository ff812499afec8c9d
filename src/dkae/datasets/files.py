"""Arrays by name or by file, as the command line takes them: .npy, .npz, .csv, IDX, data sets."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.utils import Bunch

from dkae.checks import check_choice
from dkae.datasets.idx import DataFileError, read_idx
from dkae.datasets.mnist import fetch_mnist, load_mnist20k

__all__ = ["DATASETS", "load_dataset", "read_array", "write_array"]


def _digits() -> Bunch:
    data, target = load_digits(return_X_y=True)
    return Bunch(data=(data / 16).astype(np.float32), target=target)


#: Built-in data sets by name, scaled to [0, 1].
DATASETS: dict[str, Callable[[], Bunch]] = {
    "digits": _digits,
    "mnist": lambda: fetch_mnist(scaled=True),
    "mnist20k": lambda: load_mnist20k(scaled=True),
}


def load_dataset(name: str) -> NDArray[Any]:
    """Return the rows of a data set, or of one part of it: ``mnist20k`` or ``mnist20k:test``."""
    name, _, part = name.partition(":")
    bunch = DATASETS[check_choice("data set", name, DATASETS)]()
    if not part:
        return np.asarray(bunch.data)
    parts = [p for p in ("train", "validation", "test") if p in bunch]
    if not parts:
        raise ValueError(f"data set {name!r} has no parts, got {part!r}: use {name!r} alone")
    return np.asarray(bunch.data[bunch[check_choice(f"part of {name}", part, parts)]])


def read_array(source: str) -> NDArray[Any]:
    """Return the array that `source` names.

    A built-in data set; a file ``.npy`` (not read whole: a memmap), ``.csv`` with or without a
    header, IDX plain or gzipped; ``.npz`` with one array, or ``file.npz:name``.
    """
    if source.partition(":")[0] in DATASETS:
        return load_dataset(source)
    path, _, key = source.partition(".npz:")
    if key:
        return _read_npz(Path(f"{path}.npz"), key)
    file = Path(source)
    if not file.is_file():
        known = ", ".join(sorted(DATASETS))
        raise FileNotFoundError(f"{source} is neither a file nor a data set ({known})")
    if "ubyte" in file.name or ".idx" in file.name:
        images = read_idx(file)
        return images.reshape(len(images), -1)
    readers = {".npy": _read_npy, ".npz": _read_npz, ".csv": _read_csv}
    if file.suffix not in readers:
        raise DataFileError(f"{file} has the ending {file.suffix!r}: expected .npy, .npz or .csv")
    return readers[file.suffix](file)


def write_array(path: Path, array: NDArray[Any], columns: Sequence[str]) -> None:
    """Write an array as .npy, .npz or .csv (with the header `columns`), by the path's ending."""
    if path.suffix == ".npy":
        np.save(path, array)
    elif path.suffix == ".npz":
        np.savez_compressed(path, data=array)
    else:
        np.savetxt(path, array, delimiter=",", header=",".join(columns), comments="", fmt="%.9g")


def _read_npy(path: Path) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise DataFileError(f"{path} is not a NumPy file of numbers ({error})") from error
    return array


def _read_npz(path: Path, key: str | None = None) -> NDArray[Any]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            names = list(archive)
            if key is None and len(names) != 1:
                raise DataFileError(
                    f"{path} holds {len(names)} arrays ({', '.join(names)}): say which one, for "
                    f"example {path}:{names[0] if names else 'name'}"
                )
            name = names[0] if key is None else check_choice(f"array in {path}", key, names)
            return np.asarray(archive[name])
    except DataFileError:
        raise
    except (OSError, EOFError, ValueError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise DataFileError(f"{path}: {error}") from error


def _read_csv(path: Path) -> NDArray[Any]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        first = next(csv.reader(file), [])
    try:
        array: NDArray[Any] = np.loadtxt(
            path,
            delimiter=",",
            dtype=np.float32,
            ndmin=2,
            skiprows=0 if _all_numbers(first) else 1,
            encoding="utf-8-sig",
        )
    except ValueError as error:
        raise DataFileError(f"{path} is not a table of numbers: {error}") from error
    return array


def _all_numbers(fields: Sequence[str]) -> bool:
    try:
        [float(field) for field in fields]
    except ValueError:
        return False
    return True
