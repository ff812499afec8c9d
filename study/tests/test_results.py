from __future__ import annotations

from dataclasses import replace

import pytest
from dkae_study.results import ResultFileError, read_run, read_runs, select, write_run

from study.tests.helpers import invented

RUN = invented("lambda", {"validation": {"alignment_loss": 0.1}}, point=0.25)


def test_a_run_comes_back_as_it_was(tmp_path):
    write_run(RUN, tmp_path / "a.json")
    assert read_run(tmp_path / "a.json") == RUN


def test_numbers_that_are_none_are_not_written(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_run(replace(RUN, scores={"x": float("nan")}), tmp_path / "a.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"format": "dkae run 0"}',
        '{"format": "dkae run 1"}',
    ],
    ids=["empty", "half", "list", "nothing", "format", "fields"],
)
def test_a_file_that_is_no_result_is_refused(tmp_path, content):
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(ResultFileError, match=r"a.json is not a result .* move it away"):
        read_run(path)


def test_a_file_that_is_being_written_is_not_read(tmp_path):
    write_run(RUN, tmp_path / "a.json")
    (tmp_path / ".a.json.x1y2.json").write_text("{")
    assert read_runs(tmp_path) == [RUN]


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere"):
        read_runs(tmp_path / "nowhere")


def test_select():
    runs = [RUN, replace(RUN, recipe="network"), replace(RUN, experiment="code-size")]
    assert select(runs, "lambda") == runs[:2]
    assert select(runs, "lambda", "paper") == [RUN]
    assert select(runs) == runs
