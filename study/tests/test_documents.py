"""Tables and figures of README and docs are those of the results that are committed."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from dkae_study.archive import study_of
from dkae_study.report.page import write_figures
from PIL import Image

ROOT = Path(__file__).parents[2]
RESULTS, FIGURES = ROOT / "study" / "results" / "laptop", ROOT / "docs" / "images" / "study"

tables = pytest.importorskip("scripts.tables", reason="only in the repository")


@pytest.mark.parametrize("path", tables.DOCUMENTS, ids=lambda path: path.name)
def test_tables_are_up_to_date(path):
    text = path.read_text(encoding="utf-8")
    assert text == tables.regenerate(text), "run `make tables`"


def test_every_table_stands_in_one_document():
    names = [
        name
        for path in tables.DOCUMENTS
        for name in tables.names_in(path.read_text(encoding="utf-8"))
    ]
    assert len(names) == len(set(names))
    assert set(names) <= set(tables.BLOCKS)
    for name in set(tables.BLOCKS) - set(names):  # a table without results needs no place yet
        with pytest.raises(FileNotFoundError):
            tables.BLOCKS[name]()


def test_an_edited_table_is_noticed():
    text = (ROOT / "docs" / "study.md").read_text(encoding="utf-8")
    edited = text.replace("| kernel PCA, PCK | 0.0427 |", "| kernel PCA, PCK | 0.04 |")
    assert edited != text
    assert tables.regenerate(edited) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<!-- begin: memory (make tables) -->\n", "the block memory does not stand between"),
        (
            "<!-- begin: x (make tables) -->\n<!-- end: x -->\n",
            "there is no block x: choose one of",
        ),
    ],
    ids=["without an end", "unknown"],
)
def test_a_wrong_block_is_an_error(text, message):
    with pytest.raises(ValueError, match=message):
        tables.regenerate(text)


def test_figures_are_drawn_from_the_results(tmp_path):
    drawn = {path.name: path for path in write_figures(study_of(RESULTS), RESULTS, tmp_path)}
    kept = {path.name: path for path in FIGURES.iterdir()}
    assert kept.keys() <= drawn.keys()
    for name, path in kept.items():
        if path.suffix == ".png":
            a, b = (np.asarray(Image.open(p).convert("L"), float) for p in (path, drawn[name]))
            assert a.shape == b.shape, name
            assert np.abs(a - b).mean() < 0.5, name  # fonts may differ by a few pixels
        else:
            assert rounded(path) == rounded(drawn[name]), name


def rounded(path: Path) -> str:
    """Return an SVG with its numbers to a tenth of a point."""
    text = path.read_text(encoding="utf-8")
    return re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.1f}", text)
