"""Tests of CodeSpaceDisplay against the codes of a model and kernel PCA of scikit-learn."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.decomposition import KernelPCA
from sklearn.exceptions import NotFittedError

from dkae import DeepKernelizedAutoencoder
from dkae.plotting import CodeSpaceDisplay
from tests.plotting.conftest import ImageModel


def drawn_points(display):
    return np.concatenate([points.get_offsets() for points in display.ax_.collections])


def same_up_to_signs(a, b):
    return np.allclose(a * np.sign((a * b).sum(axis=0)), b, atol=1e-4)


@pytest.mark.parametrize("components", [(0, 1), (2, 0)])
def test_axes_are_those_of_kernel_pca_with_the_learned_kernel(model, digits, components):
    display = CodeSpaceDisplay.from_estimator(model, digits, components=components)
    oracle = KernelPCA(3, kernel="precomputed").fit_transform(model.gram(digits).astype(float))
    assert same_up_to_signs(display.points, oracle[:, components])
    np.testing.assert_array_equal(drawn_points(display), display.points)


def test_variance_at_the_axes(model, digits):
    display = CodeSpaceDisplay.from_estimator(model, digits)
    variances = np.linalg.eigvalsh(np.cov(model.transform(digits).T))[::-1]
    share = variances[0] / variances.sum()
    assert display.ax_.get_xlabel() == f"kernel PCA axis 0 ({share:.0%} of variance)"


def test_components_of_codes(model, digits):
    display = CodeSpaceDisplay.from_estimator(model, digits, components=(4, 1), axes="codes")
    np.testing.assert_array_equal(drawn_points(display), model.transform(digits)[:, [4, 1]])
    assert display.ax_.get_ylabel() == "code component 1"


def test_classes_have_colour_marker_and_entry(model, digits, labels):
    display = CodeSpaceDisplay.from_estimator(model, digits, labels)
    legend = display.ax_.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == list("0123456789")
    for k, points in enumerate(display.ax_.collections):
        np.testing.assert_array_equal(points.get_offsets(), display.points[labels == k])
    assert len({tuple(p.get_facecolor()[0]) for p in display.ax_.collections}) == 10
    assert len({p.get_paths()[0].vertices.tobytes() for p in display.ax_.collections}) == 10


@pytest.mark.parametrize("beside", [True, False])
def test_legend_stands_where_there_is_room(beside):
    ax = Figure(layout="constrained" if beside else None).subplots()
    display = CodeSpaceDisplay(np.eye(2), ["a", "b"]).plot(ax=ax)
    display.figure_.draw_without_rendering()
    box, frame = ax.get_legend().get_window_extent(), ax.get_window_extent()
    assert (box.x0 > frame.x1) == beside
    assert box.x1 < display.figure_.bbox.x1


def test_numbers_are_on_a_colour_bar(model, digits):
    y = digits.sum(axis=1)
    display = CodeSpaceDisplay.from_estimator(model, digits, y)
    np.testing.assert_array_equal(display.ax_.collections[0].get_array(), y)
    assert display.ax_.get_legend() is None
    assert len(display.figure_.axes) == 2


def test_many_names_are_on_a_colour_bar():
    names = np.array([f"class {i:02}" for i in range(12)])
    display = CodeSpaceDisplay(np.eye(12)[:, :2], names).plot()
    bar = display.figure_.axes[1]
    assert [label.get_text() for label in bar.get_yticklabels()] == list(names)


def test_kwargs_go_to_the_points(model, digits, labels):
    display = CodeSpaceDisplay.from_estimator(model, digits, labels, s=3)
    assert display.ax_.collections[0].get_sizes() == [3]


@pytest.mark.parametrize("shape", [(9, 4, 3), (9, 1, 4, 3)])
def test_model_of_images(shape):
    X = np.random.default_rng(0).random(shape, dtype=np.float32)
    display = CodeSpaceDisplay.from_estimator(ImageModel().fit(X), X)
    flat = X.reshape(9, -1)
    assert same_up_to_signs(display.points, KernelPCA(2).fit_transform(flat))


def test_unfitted_model(digits):
    with pytest.raises(NotFittedError, match="not fitted"):
        CodeSpaceDisplay.from_estimator(DeepKernelizedAutoencoder(), digits)


@pytest.mark.parametrize("components", [(0, 5), (-1, 0), (0,), (0, 1, 2), (0.5, 1), 3, "01"])
@pytest.mark.parametrize("axes", ["kernel_pca", "codes"])
def test_components_out_of_range(model, digits, components, axes):
    with pytest.raises(ValueError, match=r"components=.* must be two whole numbers from 0 to 4"):
        CodeSpaceDisplay.from_estimator(model, digits, components=components, axes=axes)


def test_fewer_rows_than_axes(model, digits):
    with pytest.raises(ValueError, match="there are only 1 to choose from"):
        CodeSpaceDisplay.from_estimator(model, digits[:1])


def test_unknown_axes(model, digits):
    with pytest.raises(ValueError, match=r"axes='kernelpca' is not known.* mean 'kernel_pca'"):
        CodeSpaceDisplay.from_estimator(model, digits, axes="kernelpca")


def test_labels_of_other_rows(model, digits):
    with pytest.raises(ValueError, match=r"y has shape \(2,\), but there are 300 rows"):
        CodeSpaceDisplay.from_estimator(model, digits, [1, 2])


def test_points_of_another_shape():
    with pytest.raises(ValueError, match=r"points has shape \(2, 3\): pass two columns"):
        CodeSpaceDisplay(np.ones((2, 3)))
