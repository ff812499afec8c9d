"""Tests of the figures as files of their own, and of their parts."""

import xml.etree.ElementTree as ElementTree
from itertools import combinations

import numpy as np
import pytest
from dkae_study.paper import PAPER
from dkae_study.report import svg
from dkae_study.report.charts import LOOKS, looks_of
from dkae_study.report.images import draw_image_rows
from dkae_study.report.page import write_figures
from dkae_study.report.pages import set_prose
from dkae_study.report.svg import inline_svg, standalone_svg


@pytest.fixture(scope="module")
def files(folder, tmp_path_factory):
    return write_figures(PAPER, folder, tmp_path_factory.mktemp("figures") / "new")


def test_plots_are_svg_and_images_png(files):
    assert sorted(path.name for path in files) == sorted(
        [
            "lambda-losses.svg",
            "code-size-losses.svg",
            "ideal-kernel-seeds.svg",
            "kernel-pca-curves.svg",
            "denoising-errors.svg",
            "code-space-accuracy.svg",
            *(f"tradeoff-{r}-{k}.png" for r in PAPER.recipe_names for k in ("digits", "grams")),
            *(f"denoising-{r}-{p}.png" for r in PAPER.recipe_names for p in ("clean", "noisy")),
        ]
    )


def test_svg_files_are_whole_and_say_the_scale(files):
    for path in files:
        if path.suffix == ".svg":
            text = path.read_text(encoding="utf-8")
            assert ElementTree.fromstring(text).tag.endswith("svg")
            assert "scale: smoke" in text
            assert "DOCTYPE" not in text
            assert "currentColor" not in text


def test_figures_are_the_same_each_time(files, folder, tmp_path):
    for first, second in zip(files, write_figures(PAPER, folder, tmp_path), strict=True):
        assert first.read_bytes() == second.read_bytes()


def test_names_become_indices():
    assert str(set_prose("L_c < K_AE")) == "<i>L</i><sub>c</sub> &lt; <i>K</i><sub>AE</sub>"
    assert str(set_prose("`dkae report`")) == "<code>dkae report</code>"


def test_axis_labels_have_indices():
    figure = draw_image_rows({"L_c": np.zeros((2, 4))}, (2, 2))
    for text in (standalone_svg(figure, "a"), inline_svg(figure, "a", "zeros")):
        assert "L_c" not in text
        assert ">c</tspan>" in text


def test_recipes_differ_in_more_than_colour():
    for first, second in combinations(looks_of(PAPER.recipe_names).values(), 2):
        assert first.color != second.color
        assert first.marker != second.marker
        assert first.dash != second.dash
    assert len({look.marker for look in LOOKS}) == len(LOOKS)


def test_words_are_in_the_font_of_the_page():
    figure = draw_image_rows({"prior": np.eye(4)}, (2, 2))
    for text in (standalone_svg(figure, "a"), inline_svg(figure, "a", "eye")):
        assert text.count("system-ui, ") == text.count("<text") > 0
        assert "DejaVu" not in text


@pytest.mark.parametrize(
    "font",
    ["font: 9px 'DejaVu Sans', sans-serif", "font-size: 9px; font-family: 'DejaVu Sans', serif"],
    ids=["matplotlib 3.9", "matplotlib 3.10"],
)
def test_fonts_are_replaced_however_they_are_written(font):
    text = svg._clean(f'<text style="{font}; text-anchor: middle">a</text>')
    assert text.endswith(f'{svg.FONTS}; text-anchor: middle">a</text>')
    assert "9px" in text
