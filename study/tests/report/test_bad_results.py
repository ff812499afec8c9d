"""Results that do not belong on one page, or are damaged, are refused with the remedy."""

import dataclasses

import pytest
from dkae_study.paper import PAPER
from dkae_study.report.page import write_study_page
from dkae_study.results import ResultFileError

from study.tests.report.invented import write_runs


def test_a_scale_that_is_not_known(runs, tmp_path):
    write_runs([dataclasses.replace(runs[0], scale="huge")], tmp_path)
    with pytest.raises(ValueError, match="scale 'huge', which this version does not have"):
        write_study_page(PAPER, tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scale": "laptop"}, r"several scales \(laptop, smoke\).*a folder of its own"),
        ({"config": {"scale": {"n_train": 7}}}, "several versions of the scale 'smoke'"),
        ({"config": {"version": 9}}, "several versions of the study"),
        ({"config": {"constants": {"noise": 1}}}, "several versions of the experiment 'lambda'"),
    ],
    ids=str,
)
def test_one_result_of_another_kind(runs, tmp_path, change, message):
    first = runs[0]
    other = {"config": first.config | change["config"]} if "config" in change else change
    folder = write_runs([dataclasses.replace(first, **other), *runs[1:]], tmp_path)
    with pytest.raises(ValueError, match=message):
        write_study_page(PAPER, folder)


def test_copies_are_refused(runs, tmp_path):
    folder = write_runs(runs, tmp_path / "smoke")
    name = "lambda-paper-0.0-seed0"
    (folder / "copy.json").write_bytes((folder / f"{name}.json").read_bytes())
    with pytest.raises(ValueError, match=f"several results of {name} .* count as several seeds"):
        write_study_page(PAPER, folder)


def test_results_of_another_version_of_a_recipe_are_refused(runs, tmp_path):
    """Networks of a recipe differ in λ, N_c and noise, and in nothing else."""

    def with_params(run, **params):
        return dataclasses.replace(run, models={"dkae": {"config": {"params": params}}})

    folder = tmp_path / "smoke"
    first, second, *rest = (run for run in runs if run.recipe == "network")
    write_runs([with_params(first, max_iter=2, alignment_weight=0.1), second, *rest], folder)
    with pytest.raises(ValueError, match=f"versions of the recipe 'network'.*{first.experiment}-"):
        write_study_page(PAPER, folder)
    same = [with_params(run, max_iter=2, alignment_weight=i) for i, run in enumerate(runs)]
    write_study_page(PAPER, write_runs(same, tmp_path / "same"))


def test_a_number_that_a_result_lacks_is_named(runs, tmp_path):
    first = next(run for run in runs if run.experiment == "ideal-kernel")
    folder = write_runs([dataclasses.replace(first, scores={"P": 1.0})], tmp_path / "smoke")
    with pytest.raises(ResultFileError, match=r"a result of ideal-kernel in .* has no 'K_AE'"):
        write_study_page(PAPER, folder)


@pytest.mark.parametrize("change", [{"data": "AAAA"}, {"data": "x"}, {"shape": [3]}, {"low": None}])
def test_a_broken_picture_is_named_with_the_file(runs, tmp_path, change):
    run = next(run for run in runs if run.experiment == "tradeoff")
    pictures = run.pictures | {"original": run.pictures["original"] | change}
    folder = write_runs([dataclasses.replace(run, pictures=pictures)], tmp_path)
    match = rf"{run.job.name}\.json is damaged, its picture 'original' cannot .*move it away"
    with pytest.raises(ResultFileError, match=match):
        write_study_page(PAPER, folder)


def test_results_one_folder_below_are_found(runs, tmp_path):
    write_runs(runs[:1], tmp_path / "laptop")
    with pytest.raises(ValueError, match=r"no results of the study in .*did you mean .*/laptop\?"):
        write_study_page(PAPER, tmp_path)


def test_what_is_no_result_one_folder_below_is_not_offered(tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "network-0.json").write_text('{"seconds": 1}', encoding="utf-8")
    with pytest.raises(ValueError, match="dkae reproduce --out"):
        write_study_page(PAPER, tmp_path)
