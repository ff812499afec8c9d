"""CodeSpaceDisplay against the codes of a model and kernel PCA of scikit-learn."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.decomposition import KernelPCA

from dkae.plotting import CodeSpaceDisplay


def drawn_points(display):
    return np.concatenate([points.get_offsets() for points in display.ax_.collections])


@pytest.mark.parametrize("components", [(0, 1), (2, 0)])
def test_axes_are_those_of_kernel_pca_with_the_learned_kernel(model, digits, components):
    display = CodeSpaceDisplay.from_estimator(model, digits, components=components)
    oracle = KernelPCA(3, kernel="precomputed").fit_transform(model.gram(digits))[:, components]
    signs = np.sign((display.points * oracle).sum(axis=0))
    np.testing.assert_allclose(display.points * signs, oracle, atol=1e-4)
    np.testing.assert_array_equal(drawn_points(display), display.points)
    variances = np.linalg.eigvalsh(np.cov(model.transform(digits).T))[::-1]
    share = variances[components[0]] / variances.sum()
    expected = f"kernel PCA axis {components[0]} ({share:.0%} of variance)"
    assert display.ax_.get_xlabel() == expected


def test_components_of_codes(model, digits):
    display = CodeSpaceDisplay.from_estimator(model, digits, components=(4, 1), axes="codes")
    np.testing.assert_array_equal(drawn_points(display), model.transform(digits)[:, [4, 1]])
    assert display.ax_.get_ylabel() == "code component 1"


def test_classes_have_colour_marker_and_entry(model, digits, labels):
    display = CodeSpaceDisplay.from_estimator(model, digits, labels, s=3)
    legend = display.ax_.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == list("0123456789")
    for k, points in enumerate(display.ax_.collections):
        np.testing.assert_array_equal(points.get_offsets(), display.points[labels == k])
        assert points.get_sizes() == [3]
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


def test_numbers_and_many_names_are_on_a_colour_bar(model, digits):
    y = digits.sum(axis=1)
    display = CodeSpaceDisplay.from_estimator(model, digits, y)
    np.testing.assert_array_equal(display.ax_.collections[0].get_array(), y)
    assert display.ax_.get_legend() is None
    names = [f"class {i:02}" for i in range(12)]
    bar = CodeSpaceDisplay(np.eye(12)[:, :2], names).plot().figure_.axes[1]
    assert [label.get_text() for label in bar.get_yticklabels()] == names


@pytest.mark.parametrize("components", [(0, 5), (-1, 0), (0,), (0.5, 1), 3])
def test_components_out_of_range(model, digits, components):
    with pytest.raises(ValueError, match=r"components=.* must be two whole numbers from 0 to 4"):
        CodeSpaceDisplay.from_estimator(model, digits, components=components)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda make, X: make(X[:1]), "there are only 1 to choose from"),
        (lambda make, X: make(X, axes="kernelpca"), "axes='kernelpca' is not .*mean 'kernel_pca'"),
        (lambda make, X: make(X, [1, 2]), r"y has shape \(2,\), but there are 300 rows"),
        (lambda make, X: CodeSpaceDisplay(X), r"points has shape \(300, 64\): pass two columns"),
    ],
)
def test_errors(call, message, model, digits):
    with pytest.raises(ValueError, match=message):
        call(lambda *a, **k: CodeSpaceDisplay.from_estimator(model, *a, **k), digits)
