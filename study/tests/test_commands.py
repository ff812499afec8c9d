"""dkae reproduce, dkae report and dkae demo: what they print, replace, and refuse."""

from __future__ import annotations

import json
import subprocess
import sys

import dkae_study.demo
import pytest
from dkae_study.declaration import Outcome
from dkae_study.demo import FILES, is_demo
from dkae_study.engine import estimate
from dkae_study.paper import PAPER
from dkae_study.results import read_runs

from study.tests.helpers import changed, fail, run, succeed
from study.tests.report.invented import invent_runs, write_runs

ONE = ["--scale", "smoke", "--recipe", "network", "--seeds", "1"]
SMALL = ["reproduce", "tradeoff", *ONE, "--out"]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Return a folder in which one experiment was run with one recipe."""
    folder = tmp_path_factory.mktemp("study")
    succeed(*SMALL, folder)
    return folder


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


# --- reproduce -----------------------------------------------------------------------------------


def test_list_names_every_experiment_with_its_place_in_the_paper():
    lines = succeed("reproduce", "--list").stdout.splitlines()
    for line, experiment in zip(lines, PAPER.experiments, strict=True):
        assert line.split()[0] == experiment.name
        assert experiment.reference in line
    assert "did you mean 'lambda'?" in fail("reproduce", "--list", "lamda")
    (line,) = succeed("reproduce", "--list", "lambda").stdout.splitlines()
    assert line.startswith("lambda ")


def test_dry_run_shows_the_plan_and_writes_nothing(tmp_path, kept, monkeypatch):
    describe, n_before = estimate.describe, []
    monkeypatch.setattr(
        estimate, "describe", lambda *args: n_before.append(len(kept)) or describe(*args)
    )
    kept.clear()
    printed = succeed(*SMALL, tmp_path / "new", "--seeds", 3, "--dry-run").stdout
    assert n_before == [1]  # freed memory is kept before the estimate is timed
    assert "Scale smoke" in printed
    assert "3 runs with 9 networks to train, about" in printed
    assert list(tmp_path.iterdir()) == []


def test_results_and_plan_of_what_is_done(done):
    (run,) = read_runs(done)
    assert (run.experiment, run.recipe, run.scale) == ("tradeoff", "network", "smoke")
    again = succeed(*SMALL, done)
    assert "Everything is done already" in again.stdout
    assert f"Results in {done}" in again.stdout
    assert again.stderr == ""


def test_results_of_two_scales_do_not_get_into_one_folder(done):
    message = fail("reproduce", "lambda", "--scale", "laptop", "--dry-run", "--out", done)
    assert "tradeoff-network-seed0.json is a result of the scale smoke" in message
    assert "pass another --out, or --scale smoke" in message


def test_a_failed_run_is_told_at_the_end(tmp_path, monkeypatch):
    def broken(workshop, job, models):
        raise ValueError("no luck")

    monkeypatch.setattr("dkae_study.paper.PAPER", changed("tradeoff", measure=broken))
    result = run(*SMALL, tmp_path)
    assert result.exit_code == 1
    assert "tradeoff-network-seed0 failed" in result.stderr
    last = result.stderr.splitlines()[-1]
    assert last == "Error: 1 of 1 runs failed: tradeoff-network-seed0 (ValueError: no luck)"


def test_ctrl_c_says_how_to_go_on(tmp_path, monkeypatch):
    def interrupted(workshop, job, models):
        raise KeyboardInterrupt

    monkeypatch.setattr("dkae_study.paper.PAPER", changed("tradeoff", measure=interrupted))
    result = run(*SMALL, tmp_path)
    assert result.exit_code == 130
    assert "the same command goes on from here" in result.stderr
    mended = changed("tradeoff", measure=lambda *_: Outcome({"x": 1.0}))
    monkeypatch.setattr("dkae_study.paper.PAPER", mended)
    assert "1 run with 0 networks" in succeed(*SMALL, tmp_path).stdout


def test_jobs(tmp_path, done):
    assert "2 networks at once" in succeed(*SMALL, tmp_path, "--jobs", 2).stdout
    (ours,), (theirs,) = read_runs(tmp_path), read_runs(done)
    assert ours.scores == theirs.scores


def test_a_result_is_never_replaced(tmp_path):
    mine = tmp_path / "tradeoff-network-seed0.json"
    mine.write_text("mine", encoding="utf-8")
    assert "is not a result of this version" in fail(*SMALL, tmp_path)
    assert contents(tmp_path) == {mine: b"mine"}


def test_help_names_scales_and_recipes():
    printed = succeed("reproduce", "--help").stdout
    assert "[smoke|laptop|paper]" in printed
    assert "[paper|network]" in printed


def test_commands_are_listed_without_torch():
    code = "import sys; from dkae_study import commands; print('torch' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"


# --- report --------------------------------------------------------------------------------------


def test_report_writes_a_page_and_figures_and_replaces_its_own_page(folder, tmp_path):
    page, figures = tmp_path / "page.html", tmp_path / "figures"
    printed = succeed("report", folder, "-o", page, "--figures", figures).stdout
    assert str(page) in printed
    assert "scale: smoke" in page.read_text(encoding="utf-8")
    assert list(figures.iterdir())
    for options in ([], ["-o", page]):
        succeed("report", folder, *options)
        succeed("report", folder, *options)
    assert (folder / "index.html").read_bytes() == page.read_bytes()


@pytest.mark.parametrize("name", ["smoke/index.html", "page.html"])
def test_a_report_does_not_replace_what_is_not_its_page(name, folder, tmp_path):
    page = tmp_path / name
    page.write_text("<html>mine</html>", encoding="utf-8")
    before, command = contents(tmp_path), ["report", folder, "-o", page]
    assert f"{page.name} exists: pass another name, or --force" in refuse(*command)
    assert contents(tmp_path) == before
    succeed(*command, "--force")
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


def test_figures_are_only_replaced_with_force(folder, tmp_path):
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


@pytest.mark.parametrize("content", ["", "[]", "[" * 50_000, "\0", '{"format": "dkae run 1"}'])
def test_report_names_a_file_that_is_no_result(content, tmp_path):
    (tmp_path / "a.json").write_text(content, encoding="utf-8")
    assert "a.json is not a result of this version of dkae" in fail("report", tmp_path)


def rewrite(path, **changes):
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(content | changes), encoding="utf-8")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("experiment", ["lambda"]),
        ("recipe", None),
        ("seed", "0"),
        ("seed", True),
        ("point", [0.1]),
        ("config_hash", 7),
        ("config", None),
        ("pictures", []),
        ("models", {"dkae": "x"}),
    ],
    ids=str,
)
def test_report_names_a_file_with_a_field_of_another_kind(field, value, folder):
    path = min(folder.glob("*.json"))
    rewrite(path, **{field: value})
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
def test_report_refuses_results_of_another_form(field, value, folder):
    for path in folder.glob("*.json"):
        rewrite(path, **{field: value})
    assert "has not the form of all others" in fail("report", folder)


# --- the demo ------------------------------------------------------------------------------------


@pytest.fixture
def demo_calls(monkeypatch):
    """Write the demo's files without a training, and note how it was called."""
    calls = []

    def run_demo(out, **kwargs):
        calls.append((out, kwargs))
        row = {"name": "KernelPCA", "note": "x", "alignment_loss": 0.1234, "mse": 0.05}
        results = {"versions": {"dkae": "0"}, "maps": [row]}
        for name in FILES:
            (out / name).write_text(json.dumps(results), encoding="utf-8")
        return results

    monkeypatch.setattr(dkae_study.demo, "run_demo", run_demo)
    monkeypatch.setattr(dkae_study.demo, "write_demo_page", lambda out: out / "index.html")
    return calls


def test_a_demo_passes_its_options_on_and_replaces_a_demo(demo_calls, tmp_path):
    out = tmp_path / "new" / "demo"
    for _ in range(2):
        printed = succeed("demo", "-o", out, "--steps", 40, "--seed", 3, "--quiet").stdout
    assert is_demo(out)
    assert demo_calls == 2 * [(out, {"n_steps": 40, "seed": 3, "verbose": False})]
    assert "KernelPCA x" + 30 * " " + "0.123  0.0500" in printed
    assert str(out / "index.html") in printed


@pytest.mark.parametrize("name", FILES)
def test_a_demo_does_not_replace_what_is_not_its_own(name, demo_calls, tmp_path):
    (tmp_path / name).write_text("{}", encoding="utf-8")
    assert f"{name} exists: pass another name, or --force" in refuse("demo", "-o", tmp_path)
    assert contents(tmp_path) == {tmp_path / name: b"{}"}
    assert demo_calls == []
    succeed("demo", "-o", tmp_path, "--force")
    assert is_demo(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"versions": 3}', "[" * 50_000, "null"])
def test_what_is_no_demo(content, tmp_path):
    (tmp_path / "results.json").write_text(content, encoding="utf-8")
    assert not is_demo(tmp_path)


@pytest.mark.parametrize(
    ("call", "code", "message"),
    [
        ("demo --steps 19", 2, "not in the range"),
        ("demo --seed x", 2, "not a valid integer"),
        ("demo -o file", 2, "is a file"),
        ("demo -o file/demo", 1, "Not a directory"),
        ("reproduce --seeds 0", 2, "not in the range"),
        ("reproduce --jobs 0", 2, "not in the range"),
        ("reproduce --recipe papre", 2, "'papre' is not one of"),
        ("reproduce --scale huge", 2, "'huge' is not one of 'smoke', 'laptop'"),
        ("reproduce lamda --dry-run", 1, "'lamda' is not known"),
        ("reproduce tradeoff --scale smoke -o file", 2, "is a file"),
        ("reproduce tradeoff --scale smoke -o file/study", 1, "Not a directory"),
        ("report", 2, "Missing argument 'FOLDER'"),
        ("report file", 2, "is a file"),
        ("report empty", 1, "there are no results of the study"),
        ("report empty/no", 1, "there is no folder"),
        ("report empty -o empty", 2, "is a directory"),
        ("report empty -o empty/no/page.html", 1, "does not exist: make it"),
        ("report empty --figures file", 2, "is a file"),
    ],
)
def test_wrong_calls(call, code, message, demo_calls, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    result = run(*call.split())
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code == code
    assert message in " ".join(result.stderr.split())
    assert "this is a bug" not in result.stderr
    assert contents(tmp_path) == {tmp_path / "file": b"mine"}
