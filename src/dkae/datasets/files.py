"""Arrays by name or by file, as the command line takes them: .npy, .npz, .csv, IDX, data sets."""

import csv
import warnings
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.utils import Bunch

from dkae._support.checks import check_choice
from dkae._support.files import replacing
from dkae.datasets.errors import DataFileError
from dkae.datasets.idx import read_idx
from dkae.datasets.mnist import fetch_mnist, load_mnist20k
from dkae.datasets.npy import NpyWriter, read_npy, read_npz


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
    stem, _, key = source.partition(".npz:")
    path = Path(f"{stem}.npz" if key else source)
    if not path.is_file():
        raise FileNotFoundError(_missing(source))
    if key:
        return read_npz(path, key)
    if path.suffix in _READERS:
        return _READERS[path.suffix](path)
    if "ubyte" in path.name or ".idx" in path.name:
        return _read_images(path)
    raise DataFileError(
        f"{path} has the ending {path.suffix!r}: expected .npy, .npz, .csv, .tsv or .parquet"
    )


def write_array(path: Path, array: NDArray[Any], columns: Sequence[str]) -> None:
    """Write an array as .npy, .npz or .csv (with the header `columns`), by the path's ending."""
    with replacing(path) as temporary:
        if path.suffix == ".npy":
            with NpyWriter(temporary) as writer:
                writer.append(array)
        elif path.suffix == ".npz":
            np.savez_compressed(temporary, data=array)
        else:
            _write_csv(temporary, array, columns)


def _missing(source: str) -> str:
    nearest = get_close_matches(source.partition(":")[0], DATASETS, n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    return f"{source} is neither a file nor a data set ({', '.join(sorted(DATASETS))}){hint}"


def _read_csv(path: Path) -> NDArray[Any]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            n_headers = int(is_header(next(csv.reader(file), [])))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*input contained no data")
            rows: NDArray[Any] = np.loadtxt(
                path,
                delimiter=",",
                dtype=np.float32,
                ndmin=2,
                skiprows=n_headers,
                comments=None,
                encoding="utf-8-sig",
            )
    except (ValueError, csv.Error) as error:
        raise DataFileError(f"{path} is not a table of numbers: {error}") from error
    if rows.size == 0:
        raise DataFileError(f"{path} has no rows: expected numbers, separated by commas")
    return rows


def _write_csv(path: Path, array: NDArray[Any], columns: Sequence[str]) -> None:
    # A header with numbers would be read as a row.
    header = ",".join(columns) if is_header(columns) else ""
    np.savetxt(path, array, delimiter=",", header=header, comments="", fmt="%.9g", encoding="utf-8")


def is_header(fields: Sequence[str]) -> bool:
    """Say whether a first line is a header: not blank, and without a number."""
    return any(field.strip() for field in fields) and not any(map(_is_number, fields))


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _read_images(path: Path) -> NDArray[Any]:
    images = read_idx(path)
    if images.size == 0 or images.ndim == 0:
        raise DataFileError(f"{path} holds an array of shape {images.shape}: expected rows")
    return images.reshape(len(images), -1)


_READERS: dict[str, Callable[[Path], NDArray[Any]]] = {
    ".npy": read_npy,
    ".npz": read_npz,
    ".csv": _read_csv,
}
