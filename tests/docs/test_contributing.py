"""CONTRIBUTING.md keeps its word: its examples run, the files and rooms that it names are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
#: The title of each example, and its code.
EXAMPLES = re.findall(r"^\*\*(.+?)\*\* .+?^```python\n(.*?)^```", TEXT, re.M | re.S)


def test_there_is_an_example_of_each_seam():
    assert [title for title, _ in EXAMPLES] == ["A kernel", "A measure", "A network", "A callback"]
    assert TEXT.count("```python") == len(EXAMPLES)


@pytest.mark.parametrize(("title", "code"), EXAMPLES, ids=[title for title, _ in EXAMPLES])
def test_example_runs(title, code):
    exec(compile(code, f"CONTRIBUTING.md, {title}", "exec"), {"__name__": "example"})


def test_files_are_there():
    paths = re.findall(r"`((?:tests|scripts|src|examples)/[\w/.]*)`", TEXT)
    assert len(paths) > 4
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_room_is_named():
    names = {path.name for path in (ROOT / "src/dkae").iterdir() if path.name[0] != "_"}
    names = {name.removesuffix(".py") for name in names}
    rooms = names - {"py.typed"}
    assert [
        room
        for room in sorted(rooms)
        if not {f"`{room}`", f"`{room}.py`"} & set(re.findall("`[^`\n]+`", TEXT))
    ] == []
