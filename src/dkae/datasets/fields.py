"""Fields of a table: numbers, gaps, and what is neither, which an error names."""

import numpy as np

from dkae.datasets.errors import DataFileError

#: Fields that are gaps, by the rules of pandas.
GAPS = frozenset(
    {
        "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
        "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
    }
)  # fmt: skip
BOOLEANS = frozenset({"True", "TRUE", "true", "False", "FALSE", "false"})


class GapError(DataFileError):
    """A field has no number where there must be one."""


def fault_error(
    where: str, text: str | None, *, kind: str = "not a number", hint: str = ""
) -> DataFileError:
    """Return an error that says what is wrong with a field, and what to do about it."""
    if text is None or text in GAPS:
        gap = "the line ends before it" if text is None else f"a gap ({text or 'an empty field'})"
        return GapError(
            f"{where}: {gap}; fill it, leave out its row, or its column with --columns{hint}"
        )
    if _is_number(text):
        return DataFileError(
            f"{where}: {text} is not finite in float32; correct it, or leave out its row, or its "
            "column with --columns"
        )
    return DataFileError(
        f"{where}: {text!r} is {kind}; encode the column as numbers, leave it out with --columns, "
        f"or name it with --label or --index{hint}"
    )


def is_fine(text: str | None, gaps: bool) -> bool:
    """Say whether a field is a finite number, or a gap where there may be one."""
    if text is None or text in GAPS:
        return gaps
    return _is_number(text) and bool(np.isfinite(_as_float32(text)))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # which Python would allow


def _as_float32(text: str) -> np.float32:
    with np.errstate(over="ignore"):
        return np.float32(float(text))


def number_or_nan(text: str) -> float:
    """Return the number that a field stands for."""
    return float("nan") if text in GAPS else float(text)
