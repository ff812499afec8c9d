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
    """Columns of a table as you give them, each by name or by position.

    Parameters
    ----------
    columns, drop : str, optional
        The features, or columns that are no features, separated by commas; a name with a comma
        stands in double quotes.
    label, index : str, optional
        A column that is no feature and is kept with the rows.
    """

    columns: str | None = None
    drop: str | None = None
    label: str | None = None
    index: str | None = None


@dataclass(frozen=True)
class Choice:
    """Positions of columns, and the names of those that are not used.

    Without positions of features an array is taken as it is.
    """

    features: list[int] | None = None
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
    index : int or None
        The index that is stored in the file.
    """

    source: str
    names: Sequence[str] | None
    n_columns: int
    index: int | None = None

    def find(self, given: str, option: str) -> int:
        """Return the position of a column; a name counts before a position."""
        names = list(self.names or [])
        for known in (names, [name.strip() for name in names]):
            if given in known:
                return known.index(given)
        is_position = given.isascii() and given.isdigit()
        if is_position and int(given) < self.n_columns:
            return int(given)
        columns = f"the columns 0 to {self.n_columns - 1}"
        if self.names is None:
            columns += " and no header with names"
        elif not is_position:
            columns = f"the columns {listed(names)}{_near(given, names)}"
        raise ValueError(f"{option} {given!r} is not there: {self.source} has {columns}")

    def find_all(self, given: str, option: str) -> list[int]:
        """Return the positions of columns in a list that is separated by commas."""
        try:
            fields = [f.strip() for f in next(csv.reader([given], skipinitialspace=True), [])]
        except csv.Error as error:  # a line break
            raise ValueError(
                f"{option} {given!r} is not a list of names: separate them by commas"
            ) from error
        if not any(fields):
            raise ValueError(f"{option} is empty: name columns, such as {option} a,b,c")
        found = [self.find(field, option) for field in fields]
        if len(set(found)) < len(found):
            raise ValueError(f"{option} {given!r} has a column twice: name each column once")
        return found

    def check(self) -> None:
        """Raise if two columns have the same name."""
        twice = [name for name, n in Counter(self.names or []).items() if n > 1 and name]
        if twice:
            raise DataFileError(
                f"{self.source} has more than one column with the name {listed(twice)}: rename them"
            )

    def check_features(self, features: Sequence[int], n_wanted: int | None) -> None:
        """Raise if a feature has no name, or if there are more or less than a model expects."""
        for i in features:
            if self.names is not None and not self.names[i].strip():
                raise DataFileError(
                    f"{self.source}: column {i} has no name in the header, like the row numbers "
                    f"that pandas writes: pass --index {i}, --drop {i}, or give it a name"
                )
        if n_wanted is not None and len(features) != n_wanted:
            raise ValueError(
                f"{self.source} has {len(features)} columns of features, and the model expects "
                f"{n_wanted}: choose them with --columns, or name the others with --drop, --label "
                "or --index"
            )


def choose(
    header: Header,
    layout: Layout,
    wanted: Sequence[str] | int | None = None,
    *,
    by_order: bool = False,
) -> Choice:
    """Return the columns that the user and the model ask for.

    Parameters
    ----------
    header : Header
        The columns of the file.
    layout : Layout
        Columns as you give them.
    wanted : sequence of str or int, optional
        Names of a model's features, or their number. With names, features come in the order of the
        model, and other columns are not used.
    by_order : bool, default=False
        Whether to take columns in their order if none of them has a wanted name.
    """
    header.check()
    label = None if layout.label is None else header.find(layout.label, "--label")
    index = None if layout.index is None else header.find(layout.index, "--index")
    if label is not None and label == index:
        raise ValueError(f"--label and --index are both {layout.label!r}: give one of them")
    names = [] if wanted is None or isinstance(wanted, int) else list(wanted)
    known = header.names or []
    if index is None and layout.columns is None and header.index is not None:
        index = None if known[header.index] in names else header.index
    features = _features(header, layout, (label, index))
    if names and known and not (by_order and not {*names} & {*known}):
        chosen = _by_name(header.source, {known[i]: i for i in features}, names)
        unused = tuple(known[i] or str(i) for i in features if i not in set(chosen))
        return Choice(chosen, label, index, unused)
    header.check_features(features, wanted if isinstance(wanted, int) else len(names) or None)
    return Choice(features, label, index)


def _features(header: Header, layout: Layout, special: tuple[int | None, ...]) -> list[int]:
    """Return the columns that may be features, in your order."""
    others = {*special}
    if layout.drop is not None:
        others |= {*header.find_all(layout.drop, "--drop")}
    if layout.columns is None:
        features = [i for i in range(header.n_columns) if i not in others]
    else:
        features = header.find_all(layout.columns, "--columns")
    for i in (i for i in features if i in others):
        name = i if header.names is None else header.names[i]
        raise ValueError(
            f"--columns has {str(name)!r}, and so has --label, --index or --drop: name it once"
        )
    if not features:
        raise DataFileError(f"{header.source} has no column left that could be a feature")
    return features


def _by_name(source: str, positions: dict[str, int], wanted: Sequence[str]) -> list[int]:
    """Return the columns with the names of the model's features, in the order of the model."""
    missing = [name for name in wanted if name not in positions]
    if missing:
        raise ValueError(
            f"{source} lacks {listed(missing)}, which the model was fitted to"
            f"{_near(missing[0], positions)}"
        )
    return [positions[name] for name in wanted]


def listed(names: Iterable[str]) -> str:
    """Return names for a message, a few of them."""
    names = list(names)
    more = f" and {len(names) - _N_LISTED} more" if len(names) > _N_LISTED else ""
    return ", ".join(map(repr, names[:_N_LISTED])) + more


def _near(name: str, names: Iterable[str]) -> str:
    nearest = get_close_matches(name, list(names), n=1)
    return f"; did you mean {nearest[0]!r}?" if nearest else ""
