"""The study's commands replace what they made themselves, and nothing else without --force."""

from __future__ import annotations

import json

import dkae_study.demo
import pytest
from dkae_study.demo import FILES, is_demo

from study.tests.helpers import fail, run, succeed
from study.tests.report.invented import invent_runs, write_runs


@pytest.fixture
def folder(tmp_path):
    """Return a folder with results of one experiment, whose page is made in no time."""
    runs = [run for run in invent_runs() if run.experiment == "ideal-kernel" and run.seed == 0]
    return write_runs(runs, tmp_path / "smoke")


def refuse(*args):
    """Run a command that must be refused as wrong usage; return what it says."""
    result = run(*args)
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code == 2
    return " ".join(result.stderr.split())


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# --- report --------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [[], ["-o", "page.html"]], ids=["by default", "-o"])
def test_a_report_replaces_its_own_page(options, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = succeed("report", folder, *options).stdout
    assert succeed("report", folder, *options).stdout == first


@pytest.mark.parametrize("name", ["smoke/index.html", "page.html", "notes.txt"])
def test_a_report_does_not_replace_what_is_not_its_page(name, folder, tmp_path):
    page = tmp_path / name
    page.write_text("<html>mine</html>", encoding="utf-8")
    options = [] if page.parent == folder else ["-o", page]
    before = contents(tmp_path)
    assert f"{page.name} exists: pass another name, or --force" in refuse(
        "report", folder, *options
    )
    assert contents(tmp_path) == before
    succeed("report", folder, *options, "--force")
    assert "scale: smoke" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("link", [False, True], ids=["itself", "a link to it"])
def test_a_report_never_replaces_a_result(link, folder, tmp_path):
    page = result = min(folder.glob("*.json"))
    if link:
        page = tmp_path / "page.html"
        page.hardlink_to(result)
    before = contents(tmp_path)
    message = refuse("report", folder, "-o", page, "--force")
    assert f"is the file of the result {result.name} too" in message
    assert contents(tmp_path) == before


def test_figures_are_replaced_by_force_alone(folder, tmp_path):
    figures = tmp_path / "figures"
    figures.mkdir()
    mine = figures / "ideal-kernel-seeds.svg"
    mine.write_text("mine", encoding="utf-8")
    line = fail("report", folder, "--figures", figures)
    assert f"{mine} exists: pass another folder, or --force to replace it" in line
    assert contents(figures) == {mine: b"mine"}
    assert not (folder / "index.html").exists()
    succeed("report", folder, "--figures", figures, "--force")
    assert mine.read_text(encoding="utf-8").startswith("<?xml")


# --- the demo ------------------------------------------------------------------------------------


@pytest.fixture
def short_demo(monkeypatch):
    """Write the demo's files without a training, and note how often."""
    calls = []

    def run_demo(out, **kwargs):
        calls.append(out)
        results = {"versions": {"dkae": "0"}, "scores": {"A": 1.0}}
        for name in FILES:
            (out / name).write_text(json.dumps(results), encoding="utf-8")
        return results

    monkeypatch.setattr(dkae_study.demo, "run_demo", run_demo)
    monkeypatch.setattr(dkae_study.demo, "write_demo_page", lambda out: out / "index.html")
    return calls


def test_a_demo_replaces_a_demo(short_demo, tmp_path):
    out = tmp_path / "new" / "demo"
    succeed("demo", "-o", out)
    assert is_demo(out)
    succeed("demo", "-o", out)
    assert short_demo == [out, out]


@pytest.mark.parametrize("name", FILES)
def test_a_demo_does_not_replace_what_is_not_its_own(name, short_demo, tmp_path):
    (tmp_path / name).write_text("{}", encoding="utf-8")
    assert f"{name} exists: pass another name, or --force" in refuse("demo", "-o", tmp_path)
    assert contents(tmp_path) == {tmp_path / name: b"{}"}
    assert short_demo == []
    succeed("demo", "-o", tmp_path, "--force")
    assert is_demo(tmp_path)


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{", '{"versions": 3}', '{"versions": {}}', "[" * 50_000, "null"],
    ids=repr,
)
def test_what_is_no_demo(content, tmp_path):
    (tmp_path / "results.json").write_text(content, encoding="utf-8")
    assert not is_demo(tmp_path)


# --- the study -----------------------------------------------------------------------------------


def test_a_result_is_never_replaced(tmp_path):
    mine = tmp_path / "tradeoff-network-seed0.json"
    mine.write_text("mine", encoding="utf-8")
    options = ["--scale", "smoke", "--recipe", "network", "--seeds", 1, "--out", tmp_path]
    assert "is not a result of this version" in fail("reproduce", "tradeoff", *options)
    assert contents(tmp_path) == {mine: b"mine"}


@pytest.mark.parametrize(
    ("call", "code", "message"),
    [
        ("demo --steps 0", 2, "not in the range"),
        ("demo --steps x", 2, "not a valid integer"),
        ("demo --seed x", 2, "not a valid integer"),
        ("demo -o file", 2, "is a file"),
        ("demo -o file/demo", 1, "Not a directory"),
        ("reproduce --seeds 0", 2, "not in the range"),
        ("reproduce --jobs x", 2, "not a valid integer"),
        ("reproduce --recipe papre", 2, "'papre' is not one of"),
        ("reproduce --scale ''", 2, "is not one of"),
        ("reproduce nothing --dry-run", 1, "experiment='nothing' is not known"),
        ("reproduce tradeoff --scale smoke -o file", 2, "is a file"),
        ("reproduce tradeoff --scale smoke -o file/study", 1, "Not a directory"),
        ("report", 2, "Missing argument 'FOLDER'"),
        ("report file", 2, "is a file"),
        ("report empty", 1, "there are no results of the study"),
        ("report empty/no", 1, "there is no folder"),
        ("report empty -o empty", 2, "is a directory"),
        ("report empty -o empty/no/page.html", 2, "does not exist: make it"),
        ("report empty --figures file", 2, "is a file"),
    ],
)
def test_wrong_calls(call, code, message, short_demo, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    result = run(*call.split())
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    assert (result.exit_code, message in " ".join(result.stderr.split())) == (code, True)
    assert "this is a bug" not in result.stderr
    assert contents(tmp_path) == {tmp_path / "file": b"mine"}


@pytest.mark.parametrize("content", ["", "[]", "[" * 50_000, "\0", '{"format": "dkae run 1"}'])
def test_a_file_that_is_no_result_is_told_by_report(content, tmp_path):
    (tmp_path / "a.json").write_text(content, encoding="utf-8")
    assert "a.json is not a result of this version of dkae" in fail("report", tmp_path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("experiment", ["lambda"]),
        ("experiment", {}),
        ("scale", ["smoke"]),
        ("recipe", None),
        ("seed", "0"),
        ("seed", True),
        ("point", [0.1]),
        ("config_hash", 7),
        ("models", {"dkae": "x"}),
    ],
    ids=str,
)
def test_a_field_of_another_kind_is_told_by_report(field, value, folder):
    path = min(folder.glob("*.json"))
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(content | {field: value}), encoding="utf-8")
    assert f"{path.name} is not a result" in fail("report", folder)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("config", {"kernel": "x"}),
        ("models", {"dkae": {"config": "x"}}),
        ("models", {"dkae": {"hash": {}}}),
        ("provenance", {"peak_memory_mb": "much"}),
        ("scores", {"P": [], "K_AE": {}, "C": "x"}),
    ],
    ids=str,
)
def test_a_result_of_another_form_is_told_by_report(field, value, folder):
    for path in folder.glob("*.json"):
        content = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(content | {field: value}), encoding="utf-8")
    assert "has not the form of all others" in fail("report", folder)
