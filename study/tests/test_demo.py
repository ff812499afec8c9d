"""Tests of the demo: its numbers, its files, and its page, which is made from the files alone."""

import json
import re
import shutil

import numpy as np
import pytest
from dkae_study.demo import run_demo, write_demo_page
from dkae_study.report.pages import set_prose
from matplotlib.image import imread

import dkae
from dkae.datasets import load_mnist20k

FIGURES = ["reconstructions", "gram", "losses"]
ALIGNMENT, ALIGNMENT_LOSS, MSE, MEAN_MSE = (
    "test alignment A(C, P)",
    "test alignment loss L_c",
    "test reconstruction MSE",
    "MSE of the mean image",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder of a short run, with its page; the folder did not exist before."""
    folder = tmp_path_factory.mktemp("demo") / "new" / "folder"
    run_demo(folder, n_steps=20, seed=3, verbose=False)
    write_demo_page(folder)
    return folder


@pytest.fixture(scope="module")
def results(folder):
    return json.loads((folder / "results.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def page(folder):
    return (folder / "index.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def arrays(folder):
    with np.load(folder / "arrays.npz", allow_pickle=False) as archive:
        return dict(archive)


@pytest.fixture
def copied_results(folder, tmp_path):
    """Return the results as they stand in a copy of the run's two files alone."""
    for name in ("results.json", "arrays.npz"):
        shutil.copy(folder / name, tmp_path)
    return json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))


def write_page_of(results, folder):
    (folder / "results.json").write_text(json.dumps(results), encoding="utf-8")
    return write_demo_page(folder).read_text(encoding="utf-8")


# --- the numbers ---------------------------------------------------------------------------------


def test_all_scores_are_there_and_finite(results):
    assert set(results["scores"]) == {ALIGNMENT, ALIGNMENT_LOSS, MSE, MEAN_MSE}
    assert np.isfinite(list(results["scores"].values())).all()


def test_alignment_and_its_loss_agree(results):
    scores = results["scores"]
    assert scores[ALIGNMENT_LOSS] == pytest.approx(np.sqrt(2 - 2 * scores[ALIGNMENT]), abs=1e-7)


def test_alignment_is_between_0_and_1(results):
    assert 0 < results["scores"][ALIGNMENT] < 1


def test_yardsticks_are_those_of_the_test_rows(results):
    model, floor, *rivals = results["yardsticks"]
    assert model["alignment"] == pytest.approx(results["scores"][ALIGNMENT], abs=1e-6)
    assert model["reconstruction_mse"] == pytest.approx(results["scores"][MSE], rel=1e-4)
    assert (floor["name"], floor["centered_alignment"]) == ("constant kernel", 0)
    assert [row["name"] for row in rivals] == ["Nystroem + ridge", "PCA", "kernel PCA"]
    assert {row["n_components"] for row in (model, *rivals)} == {256}
    # A kernel layer has its codes from the start, whatever the decoder has learnt.
    assert all(row["alignment_loss"] > model["alignment_loss"] for row in (floor, *rivals[:2]))


def test_mean_image_is_the_one_of_the_test_rows(results):
    mnist = load_mnist20k(scaled=True)
    rows = mnist.data[mnist.test].astype(np.float64)
    expected = ((rows - rows.mean(axis=0)) ** 2).mean()
    assert results["scores"][MEAN_MSE] == pytest.approx(expected, rel=1e-4)


def test_layers_are_those_of_the_default(results):
    assert results["config"]["n_components"] == 256
    assert results["layers"] == ["784", "1,000 landmarks", "256", "1,000", "1,000", "784"]


def test_history_has_a_record_for_each_epoch(results):
    epochs = [(record["phase"], record["epoch"]) for record in results["history"]]
    assert epochs == [("decoder", i) for i in range(1, 21)]


def test_steps_are_those_that_were_asked_for(results):
    assert results["config"]["steps_per_epoch"] == 1
    assert results["n_steps"] == 20


def test_loss_falls(results):
    first, last = results["history"][0], results["history"][-1]
    assert last["validation_loss"] < first["validation_loss"]


def test_seed_is_noted(results):
    assert results["config"]["random_state"] == 3


def test_gamma_is_a_number(results):
    assert 0 < results["gamma"] < 1


def test_versions_are_noted(results):
    assert results["versions"]["dkae"] == dkae.__version__
    assert set(results["versions"]) == {"dkae", "python", "torch", "scikit-learn", "numpy", "scipy"}


def test_results_are_strict_json(folder):
    def refuse(name):
        pytest.fail(f"{name} is not JSON")

    json.loads((folder / "results.json").read_text(encoding="utf-8"), parse_constant=refuse)


def test_originals_are_one_test_digit_of_each_class(arrays):
    mnist = load_mnist20k(scaled=True)
    labels = [
        int(mnist.target[mnist.test][(mnist.data[mnist.test] == image).all(axis=1)][0])
        for image in arrays["originals"]
    ]
    assert labels == list(range(10))


def test_reconstructions_are_images(arrays):
    assert arrays["reconstructions"].shape == (10, 784)
    assert 0 <= arrays["reconstructions"].min() < arrays["reconstructions"].max() <= 1


@pytest.mark.parametrize("name", ["prior_gram", "code_gram"])
def test_gram_is_symmetric(name, arrays):
    assert arrays[name].shape == (500, 500)
    np.testing.assert_allclose(arrays[name], arrays[name].T, atol=1e-4)


def test_gram_is_sorted_by_class(arrays):
    np.testing.assert_array_equal(arrays["gram_classes"], np.repeat(np.arange(10), 50))


def test_prior_is_an_rbf_kernel(arrays):
    np.testing.assert_allclose(np.diag(arrays["prior_gram"]), 1, atol=1e-6)


# --- the page ------------------------------------------------------------------------------------


def test_page_shows_every_score_with_four_digits(page, results):
    for name, value in results["scores"].items():
        assert re.search(rf"{re.escape(str(set_prose(name)))}</td><td[^>]*>{value:.4f}</td>", page)


def test_page_shows_every_yardstick(page, results):
    for row in results["yardsticks"]:
        numbers = (
            row["alignment_loss"],
            row["centered_alignment"],
            row["reconstruction_mse"],
            row["r2"],
        )
        cells = "".join(f'<td class="number">{value:.4f}</td>' for value in numbers)
        width = f'<td class="number">{row["n_components"]}</td>'
        assert re.search(rf"<td>{re.escape(row['name'])}.*?</td>{width}{cells}</tr>", page)
        assert row["note"] in page


def test_page_says_what_the_model_is(page):
    assert "the library&#39;s defaults, with a narrower code" in page


def test_page_states_layers_and_steps(page):
    assert "784 – 1,000 landmarks – 256 – 1,000 – 1,000 – 784" in page
    assert "20 steps" in page


def test_page_has_nothing_from_outside(page):
    without_images = re.sub(r"data:image/png;base64,[A-Za-z0-9+/=]+", "", page)
    assert "//" not in without_images
    assert not re.search(r"<(script|link|iframe|object)|@import|url\(", without_images)


def test_page_has_its_pictures_inside(page):
    sources = re.findall(r'src="([^"]*)"', page)
    assert len(sources) == len(FIGURES)
    assert all(source.startswith("data:image/png;base64,iVBOR") for source in sources)


def test_every_picture_has_a_text(page):
    assert len(re.findall(r'<img [^>]*alt="[^"]+"', page)) == len(FIGURES)


@pytest.mark.parametrize("name", FIGURES)
def test_figure_is_not_blank(name, folder):
    assert imread(folder / f"{name}.png")[..., :3].std() > 0.01


def test_page_is_made_from_the_files_alone(copied_results, tmp_path, page):
    assert write_page_of(copied_results, tmp_path) == page


def test_changed_score_changes_the_page(copied_results, tmp_path, page):
    copied_results["scores"][ALIGNMENT] = 0.98765
    assert "0.9877" not in page
    assert "0.9877" in write_page_of(copied_results, tmp_path)


def test_changed_history_changes_the_picture(copied_results, tmp_path, page):
    copied_results["history"][-1]["reconstruction_loss"] = 7.0
    changed = re.findall(r'src="([^"]*)"', write_page_of(copied_results, tmp_path))
    same = [a == b for a, b in zip(changed, re.findall(r'src="([^"]*)"', page), strict=True)]
    assert same == [True, True, False]


def test_page_escapes_what_it_shows(copied_results, tmp_path):
    copied_results["title"] = "<b>title</b> & more"
    assert "&lt;b&gt;title&lt;/b&gt; &amp; more" in write_page_of(copied_results, tmp_path)


def test_page_without_a_run_names_the_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"results\.json"):
        write_demo_page(tmp_path)
