"""Which columns of a table are features, which one is the label, and which one names the rows.

You give columns by name or by position, from 0; a fitted model gives the names of its features.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from dkae.datasets import DataFileError

#: How many names an error lists.
_N_LISTED = 5


@dataclass(frozen=True)
class Layout:
    """Columns of a table as a user gives them, each by name or by position.

    Parameters
    ----------
    columns, drop : str, optional
        The features, or columns that are no features, separated by commas; a name with a comma
        stands in double quotes.
    label, index : str, optional
        A column that is no feature and is kept with the rows.
    is_partial : bool, default=False
        Whether the table may lack the columns of `drop`, `label` and `index`.
    """

    columns: str | None = None
    drop: str | None = None
    label: str | None = None
    index: str | None = None
    is_partial: bool = False


@dataclass(frozen=True)
class Choice:
    """Positions of columns, and the names of those that are not used."""

    features: list[int]
    label: int | None = None
    index: int | None = None
    unused: tuple[str, ...] = ()


@dataclass(frozen=True)
class Header:
    """The columns of a file.

    Parameters
    ----------
    source : str
        The file, for errors.
    names : sequence of str or None
        Names of all columns, if the file has them.
    n_columns : int
        Number of columns.
    """

    source: str
    names: Sequence[str] | None
    n_columns: int

    def find(self, given: str, option: str) -> int:
        """Return the position of a column; a name counts before a position."""
        for names in (list(self.names or []), [name.strip() for name in self.names or []]):
            if given in names:
                return names.index(given)
        if _is_position(given) and int(given) < self.n_columns:
            return int(given)
        known = f"{self.source} has the columns 0 to {self.n_columns - 1}"
        if self.names is None:
            known += " and no header with names"
        elif not _is_position(given):
            known = f"{self.source} has the columns {listed(self.names)}{_near(given, self.names)}"
        raise ValueError(f"{option} {given!r} is not there: {known}")

    def find_all(self, given: str, option: str, *, is_partial: bool = False) -> list[int]:
        """Return the positions of columns in a list that is separated by commas."""
        try:
            rows = csv.reader([given], skipinitialspace=True)
            fields = [field.strip() for field in next(rows, [])]
        except csv.Error as error:  # a line break
            raise ValueError(
                f"{option} {given!r} is not a list of names: separate them by commas"
            ) from error
        if not any(fields):
            raise ValueError(f"{option} is empty: name columns, such as {option} a,b,c")
        found = [self.find(f, option) for f in fields if not is_partial or self.has(f)]
        for field, position in zip(fields, found, strict=False):
            if found.count(position) > 1:
                raise ValueError(f"{option} has {field!r} twice: name each column once")
        return found

    def has(self, given: str) -> bool:
        """Return whether there is a column of this name, or of this position."""
        return given in (self.names or []) or _is_position(given)

    def check(self) -> None:
        """Raise if two columns have the same name."""
        twice = [name for name, n in Counter(self.names or []).items() if n > 1 and name]
        if twice:
            raise DataFileError(
                f"{self.source} has more than one column with the name {listed(twice)}: rename them"
            )

    def check_named(self, features: Iterable[int]) -> None:
        """Raise if a feature has no name: it is most often the row numbers that pandas writes."""
        for i in features:
            if self.names is not None and not self.names[i].strip():
                raise DataFileError(
                    f"{self.source}: column {i} has no name in the header, like the row numbers "
                    f"that pandas writes: pass --index {i}, --drop {i}, or give it a name"
                )


def choose(
    header: Header,
    layout: Layout,
    wanted: Sequence[str] | int | None = None,
    *,
    by_order: bool = False,
    stored_index: int | None = None,
) -> Choice:
    """Return the columns that the user and the model ask for.

    Parameters
    ----------
    header : Header
        The columns of the file.
    layout : Layout
        Columns as the user gives them.
    wanted : sequence of str or int, optional
        Names of a model's features, or their number. With names, features come in the order of the
        model, and other columns are not used.
    by_order : bool, default=False
        Whether to take columns in their order if none of them has a wanted name.
    stored_index : int, optional
        The index that is stored in the file, unless the user names another one.
    """
    header.check()
    special = {name: _special(header, layout, name) for name in ("label", "index")}
    if None not in special.values() and special["label"] == special["index"]:
        raise ValueError(f"--label and --index are both {layout.label!r}: give one of them")
    names = [] if wanted is None or isinstance(wanted, int) else list(wanted)
    if special["index"] is None and layout.columns is None:
        is_wanted = stored_index is not None and (header.names or [])[stored_index] in names
        special["index"] = None if is_wanted else stored_index
    features = _features(header, layout, special)
    if names and header.names is not None and not (by_order and not {*names} & {*header.names}):
        chosen = _by_name(header, features, names)
        rest = [i for i in features if i not in set(chosen)]
        unused = tuple(header.names[i] or str(i) for i in rest)
        return Choice(chosen, special["label"], special["index"], unused)
    header.check_named(features)
    if wanted is not None:
        _check_number(header, features, wanted if isinstance(wanted, int) else len(wanted))
    return Choice(features, special["label"], special["index"])


def _special(header: Header, layout: Layout, name: str) -> int | None:
    given: str | None = getattr(layout, name)
    if given is None or (layout.is_partial and not header.has(given)):
        return None
    return header.find(given, f"--{name}")


def _features(header: Header, layout: Layout, special: dict[str, int | None]) -> list[int]:
    """Return the columns that may be features, in the user's order."""
    dropped = []
    if layout.drop is not None:
        dropped = header.find_all(layout.drop, "--drop", is_partial=layout.is_partial)
    others = {*dropped, *special.values()}
    if layout.columns is None:
        features = [i for i in range(header.n_columns) if i not in others]
    else:
        features = header.find_all(layout.columns, "--columns")
        for i in features:
            if i in others:
                name = i if header.names is None else header.names[i]
                raise ValueError(
                    f"--columns has {str(name)!r}, and so has --label, --index or --drop: name it "
                    "once"
                )
    if not features:
        raise DataFileError(f"{header.source} has no column left that could be a feature")
    return features


def _by_name(header: Header, features: list[int], wanted: Sequence[str]) -> list[int]:
    """Return the columns with the names of the model's features, in the order of the model."""
    positions = {(header.names or [])[i]: i for i in features}
    missing = [name for name in wanted if name not in positions]
    if missing:
        raise ValueError(
            f"{header.source} lacks {listed(missing)}, which the model was fitted to"
            f"{_near(missing[0], positions)}"
        )
    return [positions[name] for name in wanted]


def _check_number(header: Header, features: list[int], n_wanted: int) -> None:
    if len(features) != n_wanted:
        raise ValueError(
            f"{header.source} has {len(features)} columns of features, and the model expects "
            f"{n_wanted}: choose them with --columns, or name the others with --drop, --label or "
            "--index"
        )


def listed(names: Iterable[str]) -> str:
    """Return names for a message, a few of them."""
    names = list(names)
    more = f" and {len(names) - _N_LISTED} more" if len(names) > _N_LISTED else ""
    return ", ".join(map(repr, names[:_N_LISTED])) + more


def _is_position(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _near(name: str, names: Iterable[str]) -> str:
    nearest = get_close_matches(name, list(names), n=1)
    return f"; did you mean {nearest[0]!r}?" if nearest else ""
