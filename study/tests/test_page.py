"""From a real run to the page: every experiment is there and every claim has a verdict."""

from __future__ import annotations

import re

from dkae_study.paper import PAPER
from dkae_study.report.page import write_figures, write_study_page


def test_the_page_of_a_whole_study(smoke, tmp_path):
    text = write_study_page(PAPER, smoke, tmp_path / "page.html").read_text(encoding="utf-8")
    for name in PAPER.experiment_names:
        assert f'id="{name}"' in text
    n_claims = sum(len(experiment.claims) for experiment in PAPER.experiments)
    n_contrasts = sum(len(experiment.contrasts) for experiment in PAPER.experiments)
    badges = re.findall(r'class="badge ([^"]+)"', text)
    # Recipes stand in the summary and in the sections, and all others against the first.
    n_recipes = len(PAPER.recipes)
    assert len(badges) == 2 * n_recipes * n_claims + (n_recipes - 1) * n_contrasts
    assert "not-run-yet" not in badges
    assert "missing" not in text


def test_figures_of_a_whole_study(smoke, tmp_path):
    names = {path.name for path in write_figures(PAPER, smoke, tmp_path)}
    assert {path.suffix for path in tmp_path.iterdir()} == {".svg", ".png"}
    # Of two experiments images, of each recipe two; all others are one plot, denoising has both.
    assert len(names) == len(PAPER.experiments) - 1 + 2 * 2 * len(PAPER.recipes)
