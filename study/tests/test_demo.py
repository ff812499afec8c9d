"""The demo: its numbers, its files, and its page, which is made from the files alone."""

import json
import re
import shutil

import dkae_study.demo
import numpy as np
import pytest
from dkae_study.demo import FIGURES, run_demo, write_demo_page
from dkae_study.mnist import MNIST
from matplotlib.image import imread
from sklearn.decomposition import PCA

import dkae
from dkae.kernels import ProbabilisticClusterKernel

N_ROWS = 300


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder of a short run, with its page; the folder did not exist before."""
    folder = tmp_path_factory.mktemp("demo") / "new" / "folder"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dkae_study.demo, "N_ROWS", N_ROWS)
        run_demo(folder, n_steps=20, seed=3, verbose=False)
    write_demo_page(folder)
    return folder


@pytest.fixture(scope="module")
def results(folder):
    def refuse(name):
        pytest.fail(f"{name} is not JSON")

    return json.loads((folder / "results.json").read_text("utf-8"), parse_constant=refuse)


@pytest.fixture(scope="module")
def page(folder):
    return (folder / "index.html").read_text(encoding="utf-8")


@pytest.fixture
def copy(folder, tmp_path):
    """Return a folder with the run's two files alone."""
    for name in ("results.json", "arrays.npz"):
        shutil.copy(folder / name, tmp_path)
    return tmp_path


def page_of(folder, **changes):
    path = folder / "results.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | changes), encoding="utf-8")
    return write_demo_page(folder).read_text(encoding="utf-8")


def test_yardsticks_are_those_of_the_test_digits(results):
    X, test = MNIST.load()["train"].X[:N_ROWS], MNIST.load()["test"].X
    *_, pca, constant = results["maps"]
    P = ProbabilisticClusterKernel(random_state=3).fit(X).gram(test).astype(float)
    cosine = P.sum() / (np.linalg.norm(P) * len(P))
    assert constant["alignment_loss"] == pytest.approx(np.sqrt(2 - 2 * cosine), rel=1e-4)
    assert constant["centered_alignment"] == 0
    assert constant["mse"] == pytest.approx(((test - X.mean(axis=0)) ** 2).mean(), rel=1e-4)
    model = PCA(128, svd_solver="full").fit(X)
    back = model.inverse_transform(model.transform(test))
    assert pca["mse"] == pytest.approx(((test - back) ** 2).mean(), rel=1e-2)


def test_every_map_is_measured_and_says_what_it_keeps(results):
    assert [(row["name"], row["note"], row["holds"]) for row in results["maps"]] == [
        ("DeepKernelizedAutoencoder", "the paper", 0),
        ("DeepKernelizedAutoencoder", "defaults", 0),
        ("InvertibleNystroem", "", N_ROWS),  # at most 1,000
        ("KernelPCA", "", N_ROWS),
        ("linear PCA", "", 0),
        ("one code for all digits", "", 0),
    ]
    assert results["versions"]["dkae"] == dkae.__version__
    assert (results["seed"], results["n_steps"]) == (3, 20)
    phases = dict.fromkeys(record["phase"] for record in results["history"])
    assert list(phases) == ["layer 1", "layer 2", "layer 3", "fine-tuning"]


def test_arrays_are_digits_and_matrices_by_class(folder):
    with np.load(folder / "arrays.npz", allow_pickle=False) as archive:
        arrays = dict(archive)
    X, y = MNIST.load()["test"]
    found = [y[(digit == X).all(axis=1)][0] for digit in arrays["digits original"]]
    assert found == list(range(10))
    assert np.array_equal(arrays["classes"], np.repeat(np.arange(10), 20))
    grams = [arrays[name] for name in arrays if name.startswith("gram ")]
    assert len(grams) == 3
    for gram in grams:
        np.testing.assert_allclose(gram, gram.T, atol=1e-4)


def test_page_shows_every_number(page, results):
    for row in results["maps"]:
        numbers = (
            f"{row['alignment_loss']:.3f}",
            f"{row['centered_alignment']:.4f}",
            f"{row['mse']:.4f}",
        )
        cells = "".join(f'<td class="number">{value}</td>' for value in numbers)
        assert re.search(rf"<td>{row['name']}.*{row['note']}.*</td>.*{cells}</tr>", page)


def test_page_has_its_pictures_inside_and_nothing_from_outside(page, folder):
    images = re.findall(r'<img src="data:image/png;base64,iVBOR[^"]*" alt="[^"]+"', page)
    assert len(images) == page.count("<img") == 3
    without_images = re.sub(r"data:image/png;base64,[A-Za-z0-9+/=]+", "", page)
    assert "//" not in without_images
    assert not re.search(r"<(script|link|iframe|object)|@import|url\(", without_images)
    for name in FIGURES:
        assert imread(folder / f"{name}.png")[..., :3].std() > 0.01


def test_page_is_made_from_the_files_alone(copy, page):
    assert page_of(copy) == page
    versions = {"dkae": "<b>1</b> & more"}
    assert "&lt;b&gt;1&lt;/b&gt; &amp; more" in page_of(copy, versions=versions)


def test_page_links_that_of_the_study_if_it_is_there(copy, page):
    assert "href" not in page
    (copy / "study.html").write_text("", encoding="utf-8")
    assert 'href="study.html"' in page_of(copy)


def test_page_without_a_run_names_the_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"results\.json"):
        write_demo_page(tmp_path)
