"""Tests of the package as a whole: its names, its version, and what ships with it."""

import importlib.metadata
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.resources import files
from pathlib import Path

import pytest

import dkae

ROOT = Path(__file__).parents[1]
SHIPPED = [
    "py.typed",
    "datasets/data/mnist20k.npz",
    "datasets/data/README.md",
]


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def run_python(code):
    return subprocess.check_output([sys.executable, "-c", code], text=True)


@pytest.fixture(scope="module")
def pins():
    """Return the lines of constraints.txt that are not comments."""
    lines = read("constraints.txt").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


# --- names ---------------------------------------------------------------------------------------


def test_public_names():
    namespace = {}
    exec("from dkae import *", namespace)  # each of them can be loaded
    assert set(dkae.__all__) <= namespace.keys()
    assert dir(dkae) == sorted([*dkae.__all__, "plotting"])
    assert dkae.InvertibleNystroem is dkae.recipes.InvertibleNystroem
    with pytest.raises(AttributeError, match="module 'dkae' has no attribute 'nonsense'"):
        dkae.nonsense  # noqa: B018
    with pytest.raises(ImportError, match="nonsense"):
        from dkae import nonsense  # noqa: F401


def test_what_is_costly_is_loaded_when_it_is_used():
    code = """
import sys, dkae
dir(dkae)
print({"torch", "sklearn", "numpy", "scipy"} & set(sys.modules))
print(dkae.plotting.__name__)
"""
    assert run_python(code) == "set()\ndkae.plotting\n"


# --- version -------------------------------------------------------------------------------------


def test_version_is_the_installed_one():
    assert dkae.__version__ == importlib.metadata.version("dkae")


def test_version_in_the_citation_file():
    assert re.findall(r"^version: (.+)$", read("CITATION.cff"), re.MULTILINE) == [dkae.__version__]


@pytest.mark.skipif(not (ROOT / "CHANGELOG.md").exists(), reason="there is no CHANGELOG.md")
def test_version_is_the_newest_release_of_the_changelog():
    releases = re.findall(r"^## \[?v?(\d[^\] ]*)", read("CHANGELOG.md"), re.MULTILINE)
    assert releases[0] == dkae.__version__


# --- what ships ----------------------------------------------------------------------------------


def test_shipped_files_are_in_the_package():
    assert all((files("dkae") / name).is_file() for name in SHIPPED)


@pytest.fixture(scope="module")
def wheel_names(tmp_path_factory):
    """Return the names of the files in a wheel that is built from the sources."""
    pytest.importorskip("hatchling")
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = out.iterdir()
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_the_wheel_has_the_package_and_nothing_beside_it(wheel_names):
    modules = {path.relative_to(ROOT / "src").as_posix() for path in ROOT.glob("src/**/*.py")}
    assert modules | {f"dkae/{name}" for name in SHIPPED} <= set(wheel_names)
    tops = {name.split("/")[0] for name in wheel_names}
    assert tops == {"dkae", f"dkae-{dkae.__version__}.dist-info"}


# --- constraints ---------------------------------------------------------------------------------


def test_every_constraint_is_an_exact_pin_and_stands_once(pins):
    loose = [line for line in pins if not re.fullmatch(r"[\w.-]+==\d[\w.+]*", line)]
    assert (pins != [], loose) == (True, [])
    assert "torch==2.13.0" in pins
    names = [normalise(line) for line in pins]
    assert len(names) == len(set(names))


def test_every_direct_dependency_is_pinned(pins):
    project = tomllib.loads(read("pyproject.toml"))["project"]
    extras = project["optional-dependencies"].values()
    wanted = [line for group in (project["dependencies"], *extras) for line in group]
    names = {normalise(line) for line in wanted} - {"dkae"}
    assert names <= {normalise(line) for line in pins}


def normalise(requirement):
    """Return the name of a requirement as indexes spell it."""
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()
