"""Tests of the study's page: complete, from the files alone, in one piece, and honest of gaps."""

import dataclasses
import re
import shutil

import pytest
from dkae_study.declaration.contrasts import contrast_recipes
from dkae_study.paper import PAPER
from dkae_study.report.page import write_study_page
from dkae_study.report.pages import set_prose
from dkae_study.results import select

from study.tests.helpers import EXPERIMENTS, SMOKE
from study.tests.report.helpers import Page
from study.tests.report.invented import invent_runs, write_runs

NAMES = list(PAPER.experiment_names)
CONTRASTS = [(e.name, contrast) for e in PAPER.experiments for contrast in e.contrasts]


def page_of(runs, folder):
    return write_study_page(PAPER, write_runs(runs, folder)).read_text(encoding="utf-8")


def section_of(page, name):
    """Return the section of an experiment as text."""
    return re.search(rf'<section aria-labelledby="{name}">.*?</section>', page, re.DOTALL)[0]


# --- what stands on it ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_section_has_all_its_parts_in_order(page, name):
    section = section_of(page, name)
    parts = ["<figure", "Our numbers", "The paper’s numbers", "Why they differ", "Assumptions"]
    places = [section.index(part) for part in [*parts, f"dkae reproduce {name} --scale smoke"]]
    assert places == sorted(places)


@pytest.mark.parametrize("name", NAMES)
def test_summary_has_each_claim_with_a_verdict_for_each_recipe(page, runs, name):
    summary = page[page.index('<h2 id="summary">') : page.index("<section")]
    for claim in EXPERIMENTS[name].claims:
        rows = summary[summary.index(str(set_prose(claim.text))) :]
        for recipe in ("paper", "network"):
            judgement = claim.judge(select(runs, name, recipe))
            seeds = {1: "one seed", 2: "2 seeds"}[judgement.n_seeds]
            cell = f'<td>{recipe} <span class="soft seeds">{seeds}</span></td>'
            rows = rows[rows.index(f"{cell}<td>{set_prose(judgement.ours)}</td>") :]
            assert re.search(r'<span class="badge[^>]*>[^<]*', rows)[0].endswith(judgement.verdict)


def test_verdicts_of_small_scales_come_with_a_warning(page, tmp_path):
    assert page.index('id="caution"') < page.index('<table class="summary">')
    assert SMOKE.caution in Page(page).text
    study = page_of(invent_runs("laptop")[:1], tmp_path / "laptop")
    assert 'id="caution"' not in study


def test_each_number_stands_with_all_recipes_and_what_they_change(page, runs):
    table = page[page.index('<h2 id="recipes">') : page.index("<section")]
    rows = re.findall(r"<tr><td>.*?</tr>", table)
    first, *others = PAPER.recipe_names
    expected = [(name, contrast, other) for name, contrast in CONTRASTS for other in others]
    for row, (name, contrast, other) in zip(rows, expected, strict=True):
        found = contrast_recipes(contrast, select(runs, name), (first, other))
        assert str(set_prose(contrast.text)) in row
        assert f"<td>{other}</td>" in row
        for numbers in (found.first, found.second):
            assert numbers[0].format(contrast.digits) in row
            assert numbers[-1].format(contrast.digits) in row
        assert f"{found.change}</span>" in row
        assert row.endswith(
            f'seeds">{"one seed" if found.n_seeds == 1 else "2 seeds"}</span></td></tr>'
        )


def test_one_recipe_alone_is_not_compared(runs, tmp_path):
    page = page_of(select(runs, recipe="network"), tmp_path)
    assert "What other recipes change" not in page


@pytest.mark.parametrize("name", NAMES)
def test_texts_of_the_declaration_are_there(page, name):
    section, experiment = section_of(page, name), EXPERIMENTS[name]
    for text in [*experiment.assumptions, *experiment.differences, experiment.summary]:
        assert str(set_prose(text)) in section


def test_complete_study_lacks_nothing(page):
    assert "missing" not in Page(page).text
    assert "not run yet" not in Page(page).text


def test_improvement_is_that_of_the_paper(tmp_path, runs):
    (run, *_) = select(runs, "ideal-kernel", "paper")
    scores = run.scores | {"P": 1.0132, "K_AE": 1.1417, "C": 1.0115}
    page = page_of([dataclasses.replace(run, scores=scores)], tmp_path / "one")
    rows = re.findall(r'<td class="number">([^<]*)</td>', section_of(page, "ideal-kernel"))
    assert rows[:8] == ["1.0132", "–", "12.68", "−0.17", "1.0132", "–", "12.7", "−0.2"]


def test_scale_stands_on_head_sections_and_figures(page):
    parsed = Page(page)
    assert parsed.words.count("scale: smoke") == 1 + len(NAMES) + parsed.count("svg")
    assert SMOKE.summary in parsed.text


def test_provenance_and_counts_are_there(page, runs):
    text = Page(page).text
    assert f"{len(runs)} result files" in text
    assert "dkae 0.1, numpy 2.0" in text
    assert "0123abcd" in text
    assert "784–32–48" in text
    assert "n columns 14,355 14,355" in text


# --- one piece -----------------------------------------------------------------------------------


def test_page_refers_to_nothing_outside(page):
    parsed = Page(page)
    addresses = parsed.values("src", "href", "xlink:href", "srcset", "poster", "data", "action")
    assert all(address.startswith(("#", "data:image/png;base64,")) for address in addresses)
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", page))
    assert not {tag for tag, _ in parsed.tags} & {"script", "link", "iframe", "object", "base"}
    assert not re.search(r"https?:|@import", page)


def test_ids_are_unique_and_links_lead_to_them(page):
    parsed = Page(page)
    assert len(parsed.ids) == len(set(parsed.ids))
    targets = [a[1:] for a in parsed.values("href", "xlink:href") if a.startswith("#")]
    targets += re.findall(r"url\(#([^)]*)\)", page)
    assert targets
    assert set(targets) <= set(parsed.ids)


def test_figures_have_a_text_and_the_colours_of_the_page(page):
    figures = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(figures) == 6 + 4 * len(PAPER.recipes)
    for figure in figures:
        assert re.match(r'<svg role="img" aria-label="[^"]{20,}"', figure)
        assert "currentColor" in figure
        assert "#1d1d1e" not in figure


def test_pixels_stay_crisp(page):
    images = [attrs for tag, attrs in Page(page).tags if tag == "image"]
    # A picture of digits and three matrices in Fig. 4, two pictures in Fig. 6, for each recipe.
    assert len([i for i in images if "pixelated" in (i.get("style") or "")]) == (1 + 3 + 2) * len(
        PAPER.recipes
    )


def test_same_files_give_the_same_page(folder, page, tmp_path):
    copy = tmp_path / folder.name
    shutil.copytree(folder, copy)
    assert write_study_page(PAPER, copy).read_text(encoding="utf-8") == page


# --- a part of the study -------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_one_experiment_is_missing(runs, name, tmp_path):
    page = page_of([run for run in runs if run.experiment != name], tmp_path / "part")
    n = len(EXPERIMENTS[name].jobs(SMOKE, PAPER.recipe_names))
    assert f"{name} : {n} of {n} runs" in Page(page).text
    assert "Not run yet." in section_of(page, name)
    assert "<figure" not in section_of(page, name)
    assert page.count("Not run yet.") == 1


@pytest.mark.parametrize("name", NAMES)
def test_one_run_alone_is_enough(runs, name, tmp_path):
    page = page_of(select(runs, name, "network")[-1:], tmp_path / "part")
    assert "<figure" in section_of(page, name)
    assert "runs are missing" in section_of(page, name)


def test_verdicts_are_provisional_while_runs_of_their_recipe_are_missing(page, runs, tmp_path):
    assert "so far</span>" not in page
    rest = [r for r in runs if (r.experiment, r.recipe, r.seed) != ("ideal-kernel", "paper", 1)]
    partial = page_of(rest, tmp_path / "part")
    summary = partial[partial.index('<h2 id="summary">') : partial.index("<section")]
    assert len(re.findall(r"so far</span>", summary)) == len(EXPERIMENTS["ideal-kernel"].claims)
    assert re.search(r"paper <span[^>]*>one seed</span></td><td>[^<]*%", summary)


def test_missing_runs_are_named(runs, tmp_path):
    rest = [r for r in runs if not (r.experiment == "lambda" and r.point in (0.75, 0.9))]
    section = section_of(page_of(rest, tmp_path / "part"), "lambda")
    assert "8 of 20 runs are missing" in section
    assert "network recipe, seed 0: λ = 0.75, 0.9" in section


def test_curve_that_never_crosses_is_drawn(runs, tmp_path):
    chosen = [
        dataclasses.replace(r, scores=r.scores | {"crossing_out_of_sample": None})
        for r in select(runs, "kernel-pca")
    ]
    page = page_of(chosen, tmp_path / "part")
    assert "above 32 in 2 of 2 seeds" in section_of(page, "kernel-pca")


def test_a_sweep_that_is_not_whole_waits_for_its_other_runs(runs, tmp_path):
    some = [run for run in select(runs, "lambda", "paper") if run.point != 0.75]
    summary = page_of(some, tmp_path / "some").split("<section", 1)[0]
    assert summary.count("… not all run yet</span>") == 2  # both claims of this sweep
    assert "With the paper recipe: not all run yet: 2, not run yet: " in " ".join(summary.split())


def test_the_command_is_for_where_the_page_is_made(runs, tmp_path, monkeypatch):
    folder = write_runs(runs, tmp_path / "some" / "where")
    monkeypatch.chdir(tmp_path)
    assert "--scale smoke --out some/where" in write_study_page(PAPER, folder).read_text()
    monkeypatch.chdir(folder)
    assert "--scale smoke --out .<" in write_study_page(PAPER, folder).read_text()
    (tmp_path / "else").mkdir()
    monkeypatch.chdir(tmp_path / "else")  # the page may be read by others: no path of this machine
    assert "--scale smoke --out where<" in write_study_page(PAPER, folder).read_text()
