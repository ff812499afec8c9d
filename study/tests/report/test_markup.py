"""Words in a result stay words on the page, whatever they look like."""

import dataclasses
import json

import numpy as np
import pytest
from dkae_study.paper import PAPER
from dkae_study.report.page import write_study_page
from dkae_study.report.pages import is_own_page, set_prose
from dkae_study.results import ResultFileError
from dkae_study.results.pictures import pack
from dkae_study.results.runs import FORMAT

from study.tests.report.helpers import Page

SCRIPT = "<script>alert(1)</script>"
NASTY = {
    "script": SCRIPT,
    "end of a title": f"</title></style></svg>{SCRIPT}",
    "end of an attribute": '"><img src=x onerror=alert(1)>',
    "template": "{{ 7 * 7 }}{% include 'page.css' %}",
    "prose": f"`{SCRIPT}` <L_c onload=x>",
    "comment": f"-->{SCRIPT}<!--",
    "control": "\0\x1b[31m<i>\ud7ff",
}
PICTURE = pack(np.zeros((2, 2)))


def poisoned(value, word):
    """Return a copy with the word in place of each text, and one more entry in each table."""
    if isinstance(value, str):
        return word
    if isinstance(value, list):
        return [poisoned(item, word) for item in value]
    if not isinstance(value, dict):
        return value
    if {"shape", "data"} <= value.keys():  # a picture
        return value
    table = {name: poisoned(item, word) for name, item in value.items()}
    return table | {word: next(iter(table.values()), word)}


def write(folder, runs):
    folder.mkdir(exist_ok=True)
    for run in runs:
        text = json.dumps({"format": FORMAT, **dataclasses.asdict(run)})
        (folder / f"{run.job.name}.json").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def few(runs):
    """Return the runs of one recipe and one seed: all experiments, and a page in a second."""
    return [run for run in runs if (run.recipe, run.seed) == ("paper", 0)]


@pytest.fixture(scope="module")
def tags(few, tmp_path_factory):
    """Return the tags of the page without any such words."""
    text = write_study_page(PAPER, write(tmp_path_factory.mktemp("plain"), few)).read_text("utf-8")
    return {tag for tag, _ in Page(text).tags}


@pytest.mark.parametrize("word", NASTY.values(), ids=NASTY)
def test_words_of_a_result_stay_words(word, few, tags, tmp_path):
    fields = ("provenance", "counts", "models", "config")
    changed = [
        dataclasses.replace(run, **{name: poisoned(getattr(run, name), word) for name in fields})
        for run in few
        if run.experiment == "ideal-kernel"
    ]
    page = Page(write_study_page(PAPER, write(tmp_path, changed)).read_text("utf-8"))
    assert " ".join(word.split()) in page.text
    assert {tag for tag, _ in page.tags} <= tags
    assert not [name for _, attrs in page.tags for name in attrs if name.startswith("on")]
    assert "alert(1)" not in " ".join(page.values("href", "src", "style"))


@pytest.mark.filterwarnings("ignore:constrained_layout not applied")  # for so long names
@pytest.mark.parametrize("experiment", [n for n in PAPER.experiment_names if n != "tradeoff"])
def test_names_of_scores_and_pictures_stay_words(experiment, few, tags, tmp_path):
    """They are names of rows and of curves, in tables and in figures."""
    changed = []
    for run in few:
        if run.experiment == experiment:
            scores, pictures = run.scores, run.pictures
            picture = next(iter(pictures.values()), PICTURE)
            for word in (SCRIPT, NASTY["end of a title"], NASTY["comment"]):
                scores, pictures = poisoned(scores, word), pictures | {word: picture}
            changed.append(dataclasses.replace(run, scores=scores, pictures=pictures))
    text = write_study_page(PAPER, write(tmp_path, changed)).read_text("utf-8")
    assert {tag for tag, _ in Page(text).tags} <= tags
    assert "<script" not in text


def test_a_name_that_must_be_a_number_is_refused(few, tmp_path):
    (run,) = (run for run in few if run.experiment == "tradeoff")
    changed = dataclasses.replace(run, scores=run.scores | {SCRIPT: {}})
    with pytest.raises(ResultFileError, match=r"a result of tradeoff in .*to float: '<script>"):
        write_study_page(PAPER, write(tmp_path, [changed]))


@pytest.mark.parametrize("word", NASTY.values(), ids=NASTY)
def test_prose_has_no_markup_of_its_own(word):
    assert {tag for tag, _ in Page(str(set_prose(word))).tags} <= {"code", "i", "sub"}


# --- pages that are ours -------------------------------------------------------------------------


def test_pages_of_a_study_are_known(few, tmp_path):
    assert is_own_page(write_study_page(PAPER, write(tmp_path, few[:1])))


@pytest.mark.parametrize(
    "content",
    [
        "",
        "<html></html>",
        "Made from the result files alone",
        "Made from the result files alone" + " " * 2000 + "</html>",
        "\xff\xfe",
    ],
    ids=["empty", "html", "words", "elsewhere", "binary"],
)
def test_other_files_are_not(content, tmp_path):
    (tmp_path / "page.html").write_text(content, encoding="latin1")
    assert not is_own_page(tmp_path / "page.html")
    assert not is_own_page(tmp_path)
