"""ReconstructionDisplay against the rows that a model decodes."""

import numpy as np
import pytest

from dkae.plotting import ReconstructionDisplay
from tests.plotting.conftest import Model


def tick_names(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def drawn_images(display, shape):
    """Return the images of the picture, (versions, n, height, width), without their frames."""
    picture = np.ma.filled(display.ax_.images[0].get_array(), np.nan)
    n_versions, n = len(display.rows), len(next(iter(display.rows.values())))
    tiles = [np.split(strip, n, axis=1) for strip in np.split(picture, n_versions)]
    zoom = (len(tiles[0][0]) - 4) // shape[0]
    return np.array([[tile[2:-2:zoom, 1:-1:zoom] for tile in strip] for strip in tiles])


def test_images_are_rows_and_their_reconstructions(model, digits):
    display = ReconstructionDisplay.from_estimator(model, digits)
    original, decoded = drawn_images(display, (8, 8))
    np.testing.assert_allclose(original.reshape(10, 64), digits[:10], atol=1e-6)
    expected = model.inverse_transform(model.transform(digits[:10]))
    np.testing.assert_allclose(decoded.reshape(10, 64), expected, atol=1e-6)
    assert tick_names(display.ax_.yaxis) == ["original", "decoded"]
    assert tick_names(display.ax_.xaxis) == []


def test_one_of_each_class_comes_first(model, digits, labels):
    display = ReconstructionDisplay.from_estimator(model, digits, labels, n_rows=12)
    assert list(display.labels[:10]) == list(range(10))
    firsts = digits[[np.flatnonzero(labels == k)[0] for k in range(10)]]
    np.testing.assert_allclose(display.rows["original"][:10].reshape(10, 64), firsts)
    assert tick_names(display.ax_.xaxis)[:10] == list("0123456789")
    few = ReconstructionDisplay.from_estimator(model, digits, labels, n_rows=3)
    assert len(set(few.labels)) == 3
    assert len(ReconstructionDisplay.from_estimator(model, digits[:4]).rows["original"]) == 4


@pytest.mark.parametrize(
    ("shape", "given", "chosen"),
    [
        ((5, 64), None, (8, 8)),
        ((5, 49), None, (49,)),
        ((5, 64), (4, 16), (4, 16)),
        ((5, 64), (64,), (64,)),
        ((5, 4, 6), None, (4, 6)),
        ((5, 1, 4, 6), None, (1, 4, 6)),
        ((5, 3, 4, 6), None, (3, 4, 6)),
    ],
)
def test_shape_of_a_row(shape, given, chosen):
    rows = np.random.default_rng(0).random(shape)
    display = ReconstructionDisplay.from_estimator(Model().fit(rows), rows, image_shape=given)
    assert display.image_shape == chosen
    assert len(display.ax_.images) == (len(chosen) > 1)
    display.figure_.draw_without_rendering()


def test_colours_and_greys_are_those_of_the_originals():
    image = np.random.default_rng(0).random((1, 3, 30, 40))
    picture = ReconstructionDisplay({"a": image}).plot(vmin=0, vmax=1).ax_.images[0].get_array()
    np.testing.assert_allclose(picture[2:-2, 1:-1], image[0].transpose(1, 2, 0))
    assert (picture[0] == 1).all()
    rows = {"original": np.full((2, 64), 3.0), "decoded": np.zeros((2, 64))}
    rows["original"][0, 0] = -1
    assert ReconstructionDisplay(rows).plot().ax_.images[0].get_clim() == (-1, 3)
    assert ReconstructionDisplay(rows).plot(vmin=0).ax_.images[0].get_clim() == (0, 3)
    rows["original"][1, 3] = np.nan  # a missing value is blank
    assert ReconstructionDisplay(rows).plot().ax_.images[0].get_clim() == (-1, 3)


def test_tables_are_lines_in_lanes(digits, labels):
    X = digits[:, 20:50]
    model = Model().fit(X)
    display = ReconstructionDisplay.from_estimator(model, X, labels, n_rows=3)
    rows = display.rows["original"]
    decoded = model.inverse_transform(model.transform(rows))
    low, high = min(rows.min(), decoded.min()), max(rows.max(), decoded.max())
    lines = [line for line in display.ax_.lines if len(line.get_ydata()) == 30]
    for k, version in enumerate((rows, decoded)):
        for i in range(3):
            expected = 2 - i + 0.85 * (version[i] - low) / (high - low)
            np.testing.assert_allclose(lines[3 * k + i].get_ydata(), expected, atol=1e-5)
    assert tick_names(display.ax_.yaxis) == ["0", "1", "2"]
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == list(display.rows)
    flat = ReconstructionDisplay({"a": np.array([[0, 0, np.nan], [0, 0, 0]])}).plot()
    np.testing.assert_array_equal(flat.ax_.lines[0].get_ydata(), [1, 1, np.nan])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda make, X: make(X, [1, 2]), r"y has shape \(2,\), but there are 300 rows"),
        (lambda make, X: make(X, n_rows=0), "n_rows=0 must be a whole number of at least 1"),
        (
            lambda make, X: make(X, image_shape=(8, 9)),
            r"image_shape=\(8, 9\) does not fit rows of shape \(64,\): pass",
        ),
        (lambda make, X: make(X, image_shape=(2, 4, 8)), "image_shape=.* does not fit rows"),
        (
            lambda make, X: ReconstructionDisplay({}),
            "rows has shapes .*: pass versions of the same",
        ),
        (
            lambda make, X: ReconstructionDisplay({"a": np.ones((2, 4)), "b": np.ones((4, 2))}),
            "rows has shapes .*: pass versions of the same rows",
        ),
    ],
)
def test_errors(call, message, model, digits):
    with pytest.raises(ValueError, match=message):
        call(lambda *a, **k: ReconstructionDisplay.from_estimator(model, *a, **k), digits)
