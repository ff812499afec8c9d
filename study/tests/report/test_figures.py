"""Tests of the figures as files of their own, and of their parts."""

import xml.etree.ElementTree as ElementTree
from itertools import combinations

import numpy as np
import pytest
from dkae_study.demo import draw_losses
from dkae_study.paper import PAPER
from dkae_study.report import svg
from dkae_study.report.charts import LOOKS, looks_of
from dkae_study.report.images import draw_gram_matrices, draw_image_rows
from dkae_study.report.page import write_figures
from dkae_study.report.pages import set_prose
from dkae_study.report.svg import inline_svg, standalone_svg
from dkae_study.results import Estimate
from dkae_study.results.numbers import collect, estimate_of, format_column, format_point
from matplotlib.image import imread

from dkae.plotting import STYLE


@pytest.fixture(scope="module")
def files(folder, tmp_path_factory):
    return write_figures(PAPER, folder, tmp_path_factory.mktemp("figures") / "new")


def test_both_losses_of_the_demo_are_drawn_over_steps():
    history = [
        {"phase": "decoder", "reconstruction_loss": 0.1 / n, "validation_reconstruction_loss": 0.2}
        for n in (1, 2, 4)
    ]
    (ax,) = draw_losses(history, 10).axes
    training, validation = ax.lines
    assert [list(line.get_xdata()) for line in (training, validation)] == [[10, 20, 30]] * 2
    assert list(training.get_ydata()) == [0.1, 0.05, 0.025]
    assert list(validation.get_ydata()) == [0.2] * 3


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


def test_png_files_are_not_blank(files):
    for path in files:
        if path.suffix == ".png":
            assert imread(path)[..., :3].std() > 0.05


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


def test_words_stay_words():
    assert STYLE["svg.fonttype"] == "none"
    assert ">prior</text>" in standalone_svg(draw_image_rows({"prior": np.eye(4)}, (2, 2)), "a")


def test_gram_matrices_name_their_classes():
    classes = np.array([3, 3, 5, 8])
    figure = draw_gram_matrices({"a": np.eye(4)}, classes)
    ax = figure.axes[0]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["3", "5", "8"]
    np.testing.assert_allclose(ax.get_xticks(), [0.5, 2, 3])


def test_column_has_one_number_of_decimals():
    cells = [Estimate(0.00431, 0.0001, 3), Estimate(0.0131, None, 1), None, "text"]
    assert format_column(cells) == ["0.00431 ± 0.00010", "0.01310", "–", "text"]


def test_negative_numbers_have_a_minus():
    assert format_column([Estimate(-12.34, None, 1)]) == ["−12.3"]


@pytest.mark.parametrize(
    ("point", "text"), [(0.25, "0.25"), (2000, "2,000"), ("clean", "clean"), (None, "–")]
)
def test_points_are_written_out(point, text):
    assert format_point(point) == text


def test_scores_that_are_not_there_are_left_out(runs):
    assert collect(runs[:2], "validation", "nothing") == []
    assert estimate_of(runs[:2], "validation", "reconstruction_mse").n == 2
    assert estimate_of(runs[:2], "nothing") is None
