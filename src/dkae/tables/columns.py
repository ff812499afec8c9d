"""Which columns of a table are features, which one is the label, and which one names the rows.

You give columns by name or by position, from 0; a fitted model gives the names of its features.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import NamedTuple

#: How many names a message lists.
_N_LISTED = 5


class Choice(NamedTuple):
    """Positions of columns, and the names of those that are not used."""

    features: list[int]
    #: Those that are kept with the rows: "index" and "label", in this order.
    special: dict[str, int]
    unused: list[str]


class Header(NamedTuple):
    """The columns of a file, for errors by its name; without a header there are no names."""

    source: str
    names: Sequence[str] | None
    n_columns: int

    def find(self, given: str, option: str) -> int:
        """Return the position of a column; a name counts before a position."""
        names = [name.strip() for name in self.names or []]
        if given.strip() in names:
            return names.index(given.strip())
        is_position = given.strip().isdecimal()
        if is_position and int(given) < self.n_columns:
            return int(given)
        columns = f"the columns 0 to {self.n_columns - 1}"
        if self.names is None:
            columns += " and no header with names"
        elif not is_position:
            columns = f"the columns {listed(names)}{_near(given, names)}"
        raise ValueError(f"{option} {given!r} is not there: {self.source} has {columns}")

    def find_all(self, given: str | None, option: str) -> list[int]:
        """Return the positions of columns in a list that is separated by commas."""
        return [] if given is None else [self.find(name, option) for name in given.split(",")]

    def word(self, i: int) -> str:
        """Return the name of a column, or its position if it has none."""
        return str(i) if self.names is None else self.names[i] or str(i)


def choose(
    header: Header,
    wanted: Sequence[str] | int | None = None,
    *,
    columns: str | None = None,
    drop: str | None = None,
    label: str | None = None,
    index: str | None = None,
) -> Choice:
    """Return the columns that the user and the model ask for.

    Parameters
    ----------
    header : Header
        The columns of the file.
    wanted : sequence of str or int, optional
        Names of a model's features, or their number. If both sides have names, features come in
        the order of the model, and other columns are not used.
    columns, drop : str, optional
        The features, or columns that are no features, separated by commas. Give a column whose
        name has a comma by its position.
    label, index : str, optional
        A column that is no feature and is kept with the rows.
    """
    twice = [name for name, n in Counter(header.names or []).items() if n > 1 and name]
    if twice:
        raise ValueError(
            f"{header.source} has more than one column with the name {listed(twice)}: rename them"
        )
    chosen = header.find_all(columns, "--columns")
    kept = {"index": index, "label": label}
    special = {
        name: header.find(given, f"--{name}") for name, given in kept.items() if given is not None
    }
    others = [*header.find_all(drop, "--drop"), *special.values()]
    twice = [header.word(i) for i, n in Counter([*chosen, *others]).items() if n > 1]
    if twice:
        raise ValueError(
            f"--columns, --drop, --label and --index name {listed(twice)} more than once: give "
            "each column once"
        )
    features = chosen or [i for i in range(header.n_columns) if i not in {*others}]
    if not features:
        raise ValueError(f"{header.source} has no column left that could be a feature")
    if header.names is not None and wanted is not None and not isinstance(wanted, int):
        found = _by_name(header, features, wanted)
        unused = [header.word(i) for i in features if i not in {*found}]
        return Choice(found, special, unused)
    _check_names(header, features)
    n_wanted = wanted if wanted is None or isinstance(wanted, int) else len(wanted)
    if n_wanted not in (None, len(features)):
        raise ValueError(
            f"{header.source} has {len(features)} columns of features, and the model expects "
            f"{n_wanted}: choose them with --columns, or name the others with --drop, --label or "
            "--index"
        )
    return Choice(features, special, [])


def _by_name(header: Header, features: Sequence[int], wanted: Sequence[str]) -> list[int]:
    """Return the columns with the names of the model's features, in the order of the model."""
    positions = {header.word(i): i for i in features}
    missing = [name for name in wanted if name not in positions]
    if missing:
        raise ValueError(
            f"{header.source} lacks {listed(missing)}, which the model expects"
            f"{_near(missing[0], positions)}"
        )
    return [positions[name] for name in wanted]


def _check_names(header: Header, features: Sequence[int]) -> None:
    """Raise if a feature has no name, like the row numbers that pandas writes beside a table."""
    for i in features:
        name = "a name" if header.names is None else header.names[i].strip()
        if not name or name.startswith("__index_level_"):
            raise ValueError(
                f"{header.source}: column {i} has no name in the header, like the row numbers that "
                f"pandas writes: pass --index {i}, --drop {i}, or give it a name"
            )


def listed(names: Iterable[str]) -> str:
    """Return names for a message, a few of them."""
    names = list(names)
    more = f" and {len(names) - _N_LISTED} more" if len(names) > _N_LISTED else ""
    return ", ".join(map(repr, names[:_N_LISTED])) + more


def _near(name: str, names: Iterable[str]) -> str:
    nearest = get_close_matches(name, list(names), n=1)
    return f"; did you mean {nearest[0]!r}?" if nearest else ""
