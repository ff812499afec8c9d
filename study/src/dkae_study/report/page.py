"""The page of the study, from the files that its runs wrote and from nothing else."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import matplotlib as mpl
from markupsafe import Markup

from dkae.files import replacing
from dkae.plotting import STYLE
from dkae_study.declaration import (
    Claim,
    Drawing,
    Experiment,
    Findings,
    Judgement,
    Scale,
    Study,
    Table,
    Verdict,
)
from dkae_study.report.contrasts import contrast_rows
from dkae_study.report.pages import render
from dkae_study.report.provenance import counts_of, provenance_of
from dkae_study.report.reading import damaged, read_study
from dkae_study.report.svg import inline_svg, standalone_svg
from dkae_study.results import Job, Run, select
from dkae_study.results.numbers import format_point


@dataclass(frozen=True)
class Decision:
    """A claim and its verdict for each recipe; None where runs are missing."""

    claim: Claim
    judgements: dict[str, Judgement | None]


@dataclass(frozen=True)
class Section:
    """What the page says of one experiment."""

    experiment: Experiment
    #: Those of which there are runs.
    recipes: set[str]
    n_runs: int
    n_jobs: int
    missing: list[Job]
    figures: list[tuple[Drawing, Markup]]
    tables: list[Table]
    decisions: list[Decision]
    command: str

    def is_partial(self, recipe: str) -> bool:
        """Return whether runs of the recipe are missing: verdicts may change with them."""
        return any(job.recipe == recipe for job in self.missing)

    def verdict(self, decision: Decision, recipe: str) -> str:
        """Return the verdict on a claim, or what it waits for."""
        judgement = decision.judgements[recipe]
        if judgement is not None:
            return judgement.verdict
        return "not all run yet" if recipe in self.recipes else "not run yet"

    @property
    def missing_text(self) -> list[str]:
        """The missing runs, with the values of the axis of each recipe and seed in one line."""
        lines: dict[tuple[str, int], list[str]] = {}
        for job in self.missing:
            lines.setdefault((job.recipe, job.seed), []).append(format_point(job.point))
        sweep = self.experiment.sweep
        return [
            f"{recipe} recipe, seed {seed}"
            + (f": {sweep.axis} = {', '.join(points)}" if sweep else "")
            for (recipe, seed), points in lines.items()
        ]


def write_study_page(study: Study, folder: Path, page: Path | None = None) -> Path:
    """Write the page of all results in a folder; return its path.

    Parameters
    ----------
    study : Study
        The study of the results.
    folder : Path
        Where its runs left their files. They may be a part of the study: the page names missing
        runs.
    page : Path, optional
        The page to write, by default ``index.html`` in the folder.
    """
    runs, scale = read_study(study, folder)
    sections = [
        _make_section(findings, folder) for findings in _findings_of_all(study, scale, runs)
    ]
    with damaged("the study", folder):
        numbers = {
            "contrasts": contrast_rows(study, runs),
            "provenance": provenance_of(runs),
            "counts": counts_of(runs, study.recipe_names),
        }
    text = render(
        "study.html",
        study=study,
        scale=scale,
        recipes=study.recipe_names,
        sections=sections,
        verdicts=_count_verdicts(sections, study.recipe_names),
        command=_command(study, "", scale, folder),
        **numbers,
    )
    page = folder / "index.html" if page is None else page
    with replacing(page) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return page


def write_figures(study: Study, folder: Path, out: Path, *, replace: bool = True) -> list[Path]:
    """Write each figure as a file of its own, plots as SVG and images as PNG; return the paths.

    Unless they may `replace` files, nothing is written if one of that name is there.
    """
    runs, scale = read_study(study, folder)
    drawings: dict[Path, Drawing] = {}
    for findings in _findings_of_all(study, scale, runs):
        with damaged(findings.experiment.name, folder):
            for drawing in findings.experiment.figures(findings) if findings.runs else []:
                ending = "png" if drawing.is_image else "svg"
                drawings[out / f"{drawing.name}.{ending}"] = drawing
    for path in drawings:
        if path.exists() and not replace:
            raise FileExistsError(f"{path} exists: pass another folder, or --force to replace it")
    out.mkdir(parents=True, exist_ok=True)
    for path, drawing in drawings.items():
        if drawing.is_image:
            with mpl.rc_context(STYLE):
                drawing.figure.savefig(path, dpi=200, metadata={"Software": None})
        else:
            path.write_text(standalone_svg(drawing.figure, drawing.name), encoding="utf-8")
    return list(drawings)


def _findings_of_all(study: Study, scale: Scale, runs: Sequence[Run]) -> list[Findings]:
    return [
        Findings(study, scale, experiment, select(runs, experiment.name))
        for experiment in study.experiments
    ]


def _make_section(findings: Findings, folder: Path) -> Section:
    experiment, runs = findings.experiment, findings.runs
    jobs = experiment.jobs(findings.scale, findings.recipes)
    there = {run.job for run in runs}
    with damaged(experiment.name, folder):
        drawings = experiment.figures(findings) if runs else []
        tables = experiment.tables(findings) if runs else []
        decisions = [
            Decision(claim, {r: claim.judge(findings.of(r)) for r in findings.recipes})
            for claim in experiment.claims
        ]
        figures = [(d, Markup(inline_svg(d.figure, d.name, d.alt))) for d in drawings]
    return Section(
        experiment=experiment,
        recipes={run.recipe for run in runs},
        n_runs=len(runs),
        n_jobs=len(jobs),
        missing=[job for job in jobs if job not in there],
        figures=figures,
        tables=tables,
        decisions=decisions,
        command=_command(findings.study, experiment.name, findings.scale, folder),
    )


def _count_verdicts(
    sections: Sequence[Section], recipes: Sequence[str]
) -> dict[str, dict[str, int]]:
    """Return how often each verdict was given, by recipe."""
    verdicts, counts = (*get_args(Verdict), "not all run yet", "not run yet"), {}
    for recipe in recipes:
        found = Counter(s.verdict(d, recipe) for s in sections for d in s.decisions)
        counts[recipe] = {verdict: found[verdict] for verdict in verdicts}
    return counts


def _command(study: Study, experiment: str, scale: Scale, folder: Path) -> str:
    """Return what to type here; a folder elsewhere by its name, as others may read the page."""
    command = f"{study.command} {experiment}".rstrip() + f" --scale {scale.name}"
    if folder.parts[-2:] == ("results", scale.name):
        return command
    whole = folder.resolve()
    named = whole.relative_to(Path.cwd()) if whole.is_relative_to(Path.cwd()) else Path(whole.name)
    return f"{command} --out {shlex.quote(named.as_posix())}"
