"""Which columns of a table are features, which one is the label, and which one names the rows.

A user gives columns by name or by position, from 0; a model gives the names of those it was fitted
to.
"""

import csv
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from dkae.datasets.errors import DataFileError

__all__ = ["Choice", "Layout", "choose"]

#: How many names an error lists.
_N_LISTED = 5


@dataclass(frozen=True)
class Layout:
    """What a user says of the columns of a table, each by name or by position.

    Parameters
    ----------
    columns : str, optional
        The features, separated by commas; a name with a comma in it stands in double quotes. By
        default, all but the label and the index.
    label : str, optional
        A column that is no feature, and is kept beside the rows.
    index : str, optional
        A column that identifies the rows, and is kept beside them.
    is_partial : bool, default=False
        Whether a label or an index that the table lacks is no error.
    """

    columns: str | None = None
    label: str | None = None
    index: str | None = None
    is_partial: bool = False


@dataclass(frozen=True)
class Choice:
    """Positions of columns in a table."""

    features: list[int]
    label: int | None = None
    index: int | None = None


def choose(
    where: str,
    header: Sequence[str] | None,
    n_columns: int,
    layout: Layout,
    wanted: Sequence[str] | int | None = None,
    *,
    or_by_order: bool = False,
) -> Choice:
    """Return the columns that the user and the model ask for.

    Parameters
    ----------
    where : str
        The file, for errors.
    header : sequence of str or None
        Names of all columns, if the file has them.
    n_columns : int
        Number of columns.
    layout : Layout
        What the user says.
    wanted : sequence of str or int, optional
        Names of a model's features, or their number if they have no names. By names, they come in
        the order of the model.
    or_by_order : bool, default=False
        Whether columns of which none has a wanted name are taken in their order.
    """
    _check_names(where, header)
    label = _find_special(where, header, n_columns, layout, "label")
    index = _find_special(where, header, n_columns, layout, "index")
    if label is not None and label == index:
        raise ValueError(f"--label and --index are both {layout.label!r}: give one of them")
    special = {"label": label, "index": index}
    if layout.columns is None:
        features = [i for i in range(n_columns) if i not in special.values()]
        _check_all_named(where, header, features)
    else:
        features = _find_columns(where, header, n_columns, layout.columns, special)
    if not features:
        raise DataFileError(f"{where} has no column left that could be a feature")
    if or_by_order and not isinstance(wanted, int) and not {*(wanted or [])} & {*(header or [])}:
        wanted = None if wanted is None else len(wanted)
    return Choice(_match(where, header, features, wanted), label, index)


def _find_special(
    where: str, header: Sequence[str] | None, n_columns: int, layout: Layout, option: str
) -> int | None:
    given = getattr(layout, option)
    if given is None or (layout.is_partial and given not in (header or []) and not _digits(given)):
        return None
    return _find(where, header, n_columns, given, f"--{option}")


def _find_columns(
    where: str,
    header: Sequence[str] | None,
    n_columns: int,
    given: str,
    special: dict[str, int | None],
) -> list[int]:
    try:
        fields = [field.strip() for field in next(csv.reader([given], skipinitialspace=True), [])]
    except csv.Error as error:  # a line break
        raise ValueError(
            f"--columns {given!r} is not a list of names: separate them by commas"
        ) from error
    if not any(fields):
        raise ValueError("--columns is empty: name the features, such as --columns a,b,c")
    positions = [_find(where, header, n_columns, field, "--columns") for field in fields]
    for field, position in zip(fields, positions, strict=True):
        if positions.count(position) > 1:
            raise ValueError(f"--columns has {field!r} twice: name each column once")
        for option, other in special.items():
            if position == other:
                raise ValueError(f"--columns has {field!r}, which is the {option}: leave it out")
    return positions


def _find(where: str, header: Sequence[str] | None, n_columns: int, given: str, option: str) -> int:
    """Return the position of a column; a name goes before a position."""
    for names in (list(header or []), [name.strip() for name in header or []]):
        if given in names:
            return names.index(given)
    if _digits(given) and int(given) < n_columns:
        return int(given)
    if given.startswith("-") and _digits(given[1:]):
        raise ValueError(f"{option} {given}: positions count from 0, and are not negative")
    if header is None or _digits(given):
        known = f"{where} has the columns 0 to {n_columns - 1}"
        known += " and no header with names" if header is None else ""
        raise ValueError(f"{option} {given!r} is not there: {known}")
    raise ValueError(
        f"{option} {given!r} is not there: {where} has the columns {_listed(header)}"
        f"{_nearest(given, header)}"
    )


def _match(
    where: str,
    header: Sequence[str] | None,
    features: list[int],
    wanted: Sequence[str] | int | None,
) -> list[int]:
    """Return the features in the order of the model, and refuse what it was not fitted to."""
    if wanted is None:
        return features
    if isinstance(wanted, int) or header is None:
        n_wanted = wanted if isinstance(wanted, int) else len(wanted)
        if len(features) != n_wanted:
            raise ValueError(
                f"{where} has {len(features)} columns of features, and the model expects "
                f"{n_wanted}: choose them with --columns, or say which one is the --label or the "
                "--index"
            )
        return features
    positions = {header[i]: i for i in features}
    missing = [name for name in wanted if name not in positions]
    if missing:
        raise ValueError(
            f"{where} lacks {_listed(missing)}, which the model was fitted to"
            f"{_nearest(missing[0], positions)}"
        )
    extra = [name for name in positions if name not in set(wanted)]
    if extra:
        raise ValueError(
            f"{where} has {_listed(extra)}, which the model was not fitted to: name it with "
            "--label or --index, or choose the features with --columns"
        )
    return [positions[name] for name in wanted]


def _check_names(where: str, header: Sequence[str] | None) -> None:
    twice = [name for name, n in Counter(header or []).items() if n > 1 and name]
    if twice:
        raise DataFileError(
            f"{where} has more than one column with the name {_listed(twice)}: rename them"
        )


def _check_all_named(where: str, header: Sequence[str] | None, features: list[int]) -> None:
    """Refuse a column without a name: it is most often the row numbers that pandas writes."""
    for i in features:
        if header is not None and not header[i].strip():
            raise DataFileError(
                f"{where}: column {i} has no name in the header, as the row numbers that pandas "
                f"writes: pass --index {i}, choose the features with --columns, or name it"
            )


def _digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    more = f" and {len(names) - _N_LISTED} more" if len(names) > _N_LISTED else ""
    return ", ".join(map(repr, names[:_N_LISTED])) + more


def _nearest(name: str, names: Iterable[str]) -> str:
    nearest = get_close_matches(name, list(names), n=1)
    return f"; did you mean {nearest[0]!r}?" if nearest else ""
