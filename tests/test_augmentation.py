"""Augmentations: views of rows, drawn with a generator, that stay near them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from dkae.augmentation import AUGMENTATIONS, Images, Jitter, Mixup, make_augmentation, views_of

RNG = np.random.default_rng(0)
ROWS = RNG.uniform(0, 1, (60, 12)).astype(np.float32)
IMAGES = RNG.uniform(0, 1, (8, 2, 9, 7)).astype(np.float32)
GAPS = np.where(RNG.random(ROWS.shape) < 0.2, np.float32(np.nan), ROWS)

FORMS = {
    "jitter": (Jitter(), ROWS),
    "mixup": (Mixup(), ROWS),
    "images": (Images(), IMAGES),
    "images as vectors": (Images((3, 4), shift=0.2), ROWS),
}
every_form = pytest.mark.parametrize("form", FORMS)


@every_form
def test_views_are_new_each_time_and_the_same_for_a_seed(form):
    augment, rows = FORMS[form]
    rng = np.random.default_rng(1)
    first, second = views_of(augment, rows, rng), views_of(augment, rows, rng)
    assert first.shape == rows.shape
    assert first.dtype == np.float32
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, views_of(augment, rows, np.random.default_rng(1)))


@every_form
def test_rows_are_not_written_to(form):
    augment, rows = FORMS[form]
    kept = rows.copy()
    views_of(augment, rows, np.random.default_rng(0))
    np.testing.assert_array_equal(rows, kept)


@every_form
def test_a_view_is_nearer_to_its_row_than_to_most(form):
    augment, rows = FORMS[form]
    views = views_of(augment, rows, np.random.default_rng(0)).reshape(len(rows), -1)
    gaps = ((views[:, None] - rows.reshape(len(rows), -1)) ** 2).sum(axis=2)
    assert np.mean(gaps.argmin(axis=1) == np.arange(len(rows))) > 0.7


def test_jitter_is_in_units_of_each_feature():
    rows = ROWS[RNG.integers(60, size=20_000)] * 10.0 ** np.arange(-6, 6, dtype=np.float32)
    noise = views_of(Jitter(0.5), rows, np.random.default_rng(0)) - rows
    np.testing.assert_allclose(noise.std(axis=0), 0.5 * rows.std(axis=0), rtol=0.05)


def test_mixup_lies_between_two_rows():
    views = views_of(Mixup(0.3), np.eye(50, dtype=np.float32), np.random.default_rng(0))
    np.testing.assert_allclose(views.sum(axis=1), 1, rtol=1e-6)
    assert ((views > 0).sum(axis=1) <= 2).all()
    assert (np.diag(views) >= 0.5).all()


def test_images_move_as_scipy_moves_them():
    image = np.zeros((1, 21, 21), np.float32)
    image[0, 6:15, 8:12] = 1
    turned = Images(rotation=0, zoom=0, shear=0, shift=4)(image, np.random.default_rng(3))[0]
    down, right = np.array(ndimage.center_of_mass(turned)) - ndimage.center_of_mass(image[0])
    assert max(abs(down), abs(right)) <= 4
    expected = ndimage.shift(image[0], (down, right), order=1)
    np.testing.assert_allclose(turned, expected, atol=1e-4)


def test_images_that_do_not_move_stay():
    still = Images(rotation=0, zoom=0, shear=0, shift=0)
    np.testing.assert_allclose(still(IMAGES, np.random.default_rng(0)), IMAGES, atol=1e-5)


@pytest.mark.parametrize("augment", [Jitter(), Mixup(), Images((3, 4))])
def test_gaps_stay_gaps(augment):
    views = views_of(augment, GAPS, np.random.default_rng(0))
    assert np.isfinite(views).any()
    if not isinstance(augment, Images):  # where they move with the image
        assert np.isnan(views[np.isnan(GAPS)]).all()
    still = Images((3, 4), rotation=0, zoom=0, shear=0, shift=0)(GAPS, np.random.default_rng(0))
    assert np.isnan(still[np.isnan(GAPS)]).all()


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_names_stand_for_objects(name):
    assert isinstance(make_augmentation(name), AUGMENTATIONS[name])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("blur", r"augment='blur' is not known: expected one of 'images', 'jitter', 'mixup'"),
        (3, "augment.*rows and a numpy Generator"),
        (lambda rows: rows, "augment.*rows and a numpy Generator"),
    ],
)
def test_what_is_no_augmentation(given, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make_augmentation(given)


@pytest.mark.parametrize(
    ("augment", "message"),
    [
        (lambda rows, rng: rows[:3], r"shape \(3, 12\) for rows of shape \(60, 12\): return one"),
        (lambda rows, rng: rows.astype(str), "augment returned <U"),
        (lambda rows, rng: rows / 0, "60 entries|entries that are NaN or infinite"),
        (Images((5, 5)), r"shape=\(5, 5\)\) does not fit rows of shape \(12,\): pass the shape of"),
        (Images(), r"does not fit rows of shape \(12,\)"),
        (Images((3, 4), rotation=-1), "rotation=-1 must be"),
        (Jitter(0), "scale=0 must be"),
        (Mixup("much"), "alpha='much' must be"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_bad_views_and_parameters(augment, message):
    with pytest.raises((ValueError, TypeError), match=message):
        views_of(augment, ROWS, np.random.default_rng(0))
