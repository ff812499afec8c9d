"""Commands that show what the library does: the demo, the study, and its page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dkae.cli import Interrupted, check_output, example, force_option, refuse_input

if TYPE_CHECKING:
    from dkae_study.engine.plan import Plan


class _Names(click.Choice):  # type: ignore[type-arg]  # generic since click 8.2
    """Names from the study, which is imported when they are needed: ``dkae --help`` stays fast."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.case_sensitive = True

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names."""
        from dkae_study.paper import PAPER

        return tuple(thing.name for thing in getattr(PAPER, self.what))


@click.command(epilog=example("dkae demo --out demo"))
@click.option(
    "-o",
    "--out",
    default="demo",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results.",
)
@click.option(
    "--steps",
    default=3000,
    show_default=True,
    type=click.IntRange(min=20),
    help="Training steps of each learned map, in 20 epochs.",
)
@click.option("--seed", default=0, show_default=True, type=int)
@click.option("--quiet", is_flag=True, help="No progress bar.")
@force_option
def demo(out: Path, steps: int, seed: int, quiet: bool, force: bool) -> None:
    """Fit the paper's model and the three maps to handwritten digits, and write a page.

    It takes about two minutes on one core. An earlier demo in the folder is replaced; other files
    of the same names are not, without --force. The page links study.html if it is in the folder.
    """
    from dkae_study.demo import FILES, is_demo, run_demo, write_demo_page

    out.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        check_output(out / name, force=force or is_demo(out))
    results = run_demo(out, n_steps=steps, seed=seed, verbose=not quiet)
    page = write_demo_page(out)
    click.echo(f"{'test digits':<38}{'L_c':>8}{'MSE':>8}")
    for row in results["maps"]:
        name = " ".join((row["name"], row["note"]))
        click.echo(f"{name:<38}{row['alignment_loss']:>8.3f}{row['mse']:>8.4f}")
    click.echo(f"\nThe result is in {click.format_filename(page)}")


@click.command(
    epilog=example(
        "dkae reproduce --list",
        "dkae reproduce --dry-run",
        "dkae reproduce lambda ideal-kernel --scale laptop",
        "dkae reproduce --scale smoke --out smoke",
    )
)
@click.argument("names", nargs=-1, metavar="[NAMES]...")
@click.option(
    "--scale",
    default="laptop",
    show_default=True,
    type=_Names("scales"),
    help="How large: from seconds (smoke) to the paper's schedule (weeks on two cores).",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    help="Seeds of each experiment; by default 5 where they are compared, and 1 elsewhere.",
)
@click.option(
    "--recipe",
    "recipes",
    type=_Names("recipes"),
    multiple=True,
    help="This recipe only; may be given several times. All by default.",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results; results/SCALE by default.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Networks that are trained at once; by default one for each core, or one on a GPU. The "
    "last digits of results depend on it.",
)
@click.option("--dry-run", is_flag=True, help="Show the plan and an estimate, and stop.")
@click.option("--list", "only_list", is_flag=True, help="List the experiments, and stop.")
def reproduce(
    names: tuple[str, ...],
    scale: str,
    seeds: int | None,
    recipes: tuple[str, ...],
    out: Path | None,
    jobs: int | None,
    dry_run: bool,
    only_list: bool,
) -> None:
    """Run the experiments of the paper; all of them, or those that are named.

    Writes one JSON file for each run. The same command skips finished runs and resumes an
    interrupted one from its last checkpoint.
    """
    from dkae_study.engine.allocation import keep_freed_memory
    from dkae_study.engine.estimate import describe
    from dkae_study.engine.plan import make_plan
    from dkae_study.engine.trainers import choose_jobs
    from dkae_study.paper import PAPER

    chosen = [PAPER.experiment(name) for name in names] or PAPER.experiments
    if only_list:
        for experiment in chosen:
            click.echo(f"{experiment.name:<14}{experiment.reference:<34}{experiment.title}")
        return
    folder = Path("results") / scale if out is None else out
    keep_freed_memory()  # before the estimate, which is then timed as the study will run
    plan = make_plan(PAPER, PAPER.scale(scale), folder, names, recipes, seeds)
    if plan.todo and not dry_run:  # results are never replaced
        folder.mkdir(parents=True, exist_ok=True)
        check_output(plan.todo[0].path, force=False)
    n_jobs = choose_jobs(jobs)
    click.echo(describe(plan, n_jobs))
    if plan.todo and not dry_run:
        _run(plan, n_jobs)


@click.command(epilog=example("dkae report results/laptop", "dkae report smoke -o page.html"))
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "-o",
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Page to write; index.html in FOLDER by default. An earlier page is replaced.",
)
@click.option(
    "--figures",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the figures as files of their own.",
)
@force_option
def report(folder: Path, out: Path | None, figures: Path | None, force: bool) -> None:
    """Write one page from the results in FOLDER: each claim of the paper, and what we got."""
    from dkae_study.archive import study_of
    from dkae_study.report.page import write_figures, write_study_page
    from dkae_study.report.pages import is_own_page

    study, page = study_of(folder), folder / "index.html" if out is None else out
    if folder.is_dir():  # else reading the results says what to do
        for result in folder.glob("*.json"):
            refuse_input(page, result, f"the result {result.name}")
        check_output(page, force=force or is_own_page(page))
    drawn = [] if figures is None else write_figures(study, folder, figures, replace=force)
    write_study_page(study, folder, page)
    and_figures = f", and {len(drawn)} figures in {figures}" if drawn else ""
    click.echo(f"The page is {click.format_filename(page)}{and_figures}")


def _run(plan: Plan, n_jobs: int) -> None:
    from dkae_study.engine.progress import StudyProgress
    from dkae_study.engine.run import run_plan

    progress = StudyProgress(plan)
    progress.start_bar()
    try:
        failures = run_plan(plan, progress, n_jobs)
    except KeyboardInterrupt:
        raise Interrupted(
            "interrupted; finished work is kept, and the same command goes on from here"
        ) from None
    finally:
        progress.stop_bar()
    for failure in failures:
        click.echo(f"\n{failure.job.name} failed:\n{failure.trace}", err=True)
    if failures:
        raise click.ClickException(
            f"{len(failures)} of {len(plan.todo)} runs failed: "
            + "; ".join(f"{f.job.name} ({f.error})" for f in failures)
        )
    click.echo(f"All {len(plan.todo) + len(plan.done)} results are in {plan.folder}")
