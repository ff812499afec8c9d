"""Tests of GramDisplay against the kernel and the codes of a model."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

from dkae import DeepKernelizedAutoencoder
from dkae.plotting import GramDisplay
from tests.plotting.conftest import Blocks, ImageModel


def images_of(display):
    return [np.asarray(ax.images[0].get_array()) for ax in display.ax_]


def test_panels_are_the_prior_and_the_codes(model, digits):
    prior, codes = images_of(GramDisplay.from_estimator(model, digits))
    gamma = model.kernel_.gamma_
    np.testing.assert_allclose(prior, rbf_kernel(digits, gamma=gamma), rtol=1e-4)
    expected = model.kernel_scale_ * model.transform(digits) @ model.transform(digits).T
    np.testing.assert_allclose(codes, expected, rtol=1e-4, atol=1e-6)


def test_rows_are_sorted_by_class(model, digits, labels):
    display = GramDisplay.from_estimator(model, digits, labels)
    rows = digits[np.argsort(labels, kind="stable")]
    np.testing.assert_allclose(images_of(display)[1], model.gram(rows), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(display.classes, np.sort(labels))
    for ax in display.ax_:
        assert [label.get_text() for label in ax.get_xticklabels()] == list("0123456789")


def test_one_colour_scale_for_all(model, digits):
    display = GramDisplay.from_estimator(model, digits)
    low, high = np.min(images_of(display)), np.max(images_of(display))
    for ax in display.ax_:
        assert ax.images[0].get_clim() == pytest.approx((low, high))


def test_many_rows_are_sampled(model, digits, labels):
    many, classes = np.tile(digits, (2, 1)), np.tile(labels, 2)
    first, second = (GramDisplay.from_estimator(model, many, classes) for _ in range(2))
    assert images_of(first)[0].shape == (300, 300)
    np.testing.assert_array_equal(images_of(first), images_of(second))


def test_gram_of_the_user(tiny, digits):
    gram = (digits @ digits.T).astype(np.float32)
    model = tiny().fit(digits, gram=gram)
    prior, _ = images_of(GramDisplay.from_estimator(model, digits, gram=gram))
    np.testing.assert_array_equal(prior, gram)


def test_gram_that_is_read_by_blocks(model, digits):
    many = np.resize(digits, (1000, 64))
    numbers = np.arange(1000)
    display = GramDisplay.from_estimator(model, many, gram=Blocks(np.add.outer(numbers, numbers)))
    prior, codes = images_of(display)
    rows = np.diagonal(prior) // 2
    np.testing.assert_array_equal(prior, np.add.outer(rows, rows))
    np.testing.assert_allclose(codes, model.gram(many[rows]), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("shape", [(5, 4, 3), (5, 1, 4, 3), (5, 3, 4, 3)])
def test_model_of_images(shape):
    X = np.random.default_rng(0).random(shape, dtype=np.float32)
    prior, codes = images_of(GramDisplay.from_estimator(ImageModel().fit(X), X))
    np.testing.assert_allclose(prior, codes, rtol=1e-5)


def test_data_frame_keeps_its_names(tiny, digits, labels):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(digits, columns=[f"pixel {i}" for i in range(64)])
    y = pandas.Series(labels, name="digit")
    display = GramDisplay.from_estimator(tiny().fit(frame), frame, y)
    assert display.ax_[0].get_ylabel() == "digit"


def test_titles_and_words():
    display = GramDisplay({"a": np.eye(3), "b\nc": np.eye(3)}, list("xyy"), label="value").plot()
    assert [ax.get_title(loc="left") for ax in display.ax_] == ["a", "b\nc"]
    assert [label.get_text() for label in display.ax_[0].get_yticklabels()] == ["x", "y"]
    np.testing.assert_allclose(display.ax_[0].get_yticks(), [0, 1.5])


def test_names_of_small_classes_do_not_cover_each_other():
    classes = np.repeat(range(40), 3)
    ax = GramDisplay({"a": np.eye(120)}, classes).plot().ax_[0]
    assert np.diff(ax.get_xticks()).min() >= 120 / 20


def test_model_without_kernel(tiny, digits):
    model = tiny().fit(digits, gram=digits @ digits.T)
    with pytest.raises(ValueError, match=r"the model has no kernel .* pass gram="):
        GramDisplay.from_estimator(model, digits)


def test_unfitted_model(digits):
    with pytest.raises(NotFittedError, match="not fitted"):
        GramDisplay.from_estimator(DeepKernelizedAutoencoder(), digits)


@pytest.mark.parametrize("gram", [np.eye(3), Blocks(np.eye(3))])
def test_gram_of_other_rows(model, digits, gram):
    with pytest.raises(ValueError, match=r"gram has .*3.*, but X has 300"):
        GramDisplay.from_estimator(model, digits, gram=gram)


def test_labels_of_other_rows(model, digits):
    with pytest.raises(ValueError, match=r"y has shape \(3,\), but there are 300 rows: pass one"):
        GramDisplay.from_estimator(model, digits, [1, 2, 3])


@pytest.mark.parametrize("grams", [{}, {"a": np.ones((2, 3))}, {"a": np.eye(2), "b": np.eye(3)}])
def test_matrices_of_other_shapes(grams):
    with pytest.raises(ValueError, match=r"grams has shapes .* square matrices of the same rows"):
        GramDisplay(grams)
