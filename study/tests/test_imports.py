"""The study uses the public names of the library, as any other user of it would."""

from __future__ import annotations

import ast
import importlib
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import dkae_study
import pytest

import dkae

SOURCE = Path(dkae_study.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
ROOMS = {*dkae.__all__, "cli", "files", "plotting"}


def imports_of(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the module and the name of each import from the library."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.split(".")[0] == "dkae"]
            yield from ((name, "") for name in names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dkae":
            yield from ((str(node.module), alias.name) for alias in node.names)


def is_public(module: str, name: str) -> bool:
    if module == "dkae":
        return name in dkae.__all__
    room = module.removeprefix("dkae.")
    return room in ROOMS and name in importlib.import_module(module).__all__


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_from_the_library_are_public(path):
    private = {found for found in imports_of(path) if not is_public(*found)}
    assert private == set()


def packages() -> set[str]:
    """Return the names of all packages that the study imports."""
    nodes = [n for path in FILES for n in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name.split(".")[0] for name in names}


def test_dependencies_are_what_is_imported():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    declared = {re.split(r"[\[>=]", text)[0] for text in project["dependencies"]}
    imported = packages() - set(sys.stdlib_module_names) - {"dkae_study"}
    assert declared == {"scikit-learn" if name == "sklearn" else name for name in imported}


def test_nothing_is_unpickled():
    assert not packages() & {"joblib", "pickle"}
