"""GramDisplay against the kernel and the codes of a model."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from dkae.grams import MatrixGram
from dkae.plotting import GramDisplay


def images_of(display):
    return [np.asarray(ax.images[0].get_array()) for ax in display.ax_]


def test_panels_are_the_prior_and_the_codes_on_one_scale(model, digits):
    display = GramDisplay.from_estimator(model, digits)
    prior, codes = images_of(display)
    np.testing.assert_allclose(prior, rbf_kernel(digits, gamma=0.1), rtol=1e-4)
    np.testing.assert_allclose(codes, model.gram(digits), rtol=1e-4)
    assert [ax.get_title(loc="left") for ax in display.ax_] == [
        "prior: rbf kernel",
        "codes: learned kernel",
    ]
    low, high = np.min([prior, codes]), np.max([prior, codes])
    for ax in display.ax_:
        assert ax.images[0].get_clim() == pytest.approx((low, high))


def test_rows_are_sorted_by_class(model, digits, labels):
    display = GramDisplay.from_estimator(model, digits, pd.Series(labels, name="digit"))
    rows = digits[np.argsort(labels, kind="stable")]
    np.testing.assert_allclose(images_of(display)[1], model.gram(rows), rtol=1e-4)
    np.testing.assert_array_equal(display.classes, np.sort(labels))
    assert display.ax_[0].get_ylabel() == "digit"
    for ax in display.ax_:
        assert [label.get_text() for label in ax.get_xticklabels()] == list("0123456789")


def test_many_rows_are_sampled_and_a_gram_is_read_by_blocks(model, digits):
    many, numbers = np.resize(digits, (1000, 64)), np.arange(1000)
    gram = MatrixGram(np.add.outer(numbers, numbers))
    first, second = (images_of(GramDisplay.from_estimator(model, many, gram=gram)) for _ in "ab")
    rows = np.diagonal(first[0]) // 2
    assert len(rows) == 300
    np.testing.assert_array_equal(first[0], np.add.outer(rows, rows))
    np.testing.assert_allclose(first[1], model.gram(many[rows]), rtol=1e-4)
    np.testing.assert_array_equal(first, second)


def test_names_of_classes():
    display = GramDisplay({"a": np.eye(3), "b\nc": np.eye(3)}, list("xyy"), label="value").plot()
    assert [ax.get_title(loc="left") for ax in display.ax_] == ["a", "b\nc"]
    assert [label.get_text() for label in display.ax_[0].get_yticklabels()] == ["x", "y"]
    np.testing.assert_allclose(display.ax_[0].get_yticks(), [0, 1.5])
    # Those of small classes do not cover each other.
    ax = GramDisplay({"a": np.eye(120)}, np.repeat(range(40), 3)).plot().ax_[0]
    assert np.diff(ax.get_xticks()).min() >= 120 / 20


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda make, X: make(X, gram=np.eye(3)), r"gram has .*3.*, but X has 300"),
        (lambda make, X: make(X, [1, 2, 3]), r"y has shape \(3,\), but there are 300 rows: pass"),
        (lambda make, X: GramDisplay({}), "grams has shapes .* square matrices of the same rows"),
        (lambda make, X: GramDisplay({"a": np.eye(2), "b": np.eye(3)}), "grams has shapes"),
    ],
)
def test_errors(call, message, model, digits):
    with pytest.raises(ValueError, match=message):
        call(lambda *a, **k: GramDisplay.from_estimator(model, *a, **k), digits)
