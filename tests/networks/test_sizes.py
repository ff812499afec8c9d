"""Widths and budgets that follow from the data."""

from __future__ import annotations

import pytest
from dkae.networks.sizes import NARROWEST, WIDEST, hidden_sizes
from hypothesis import given
from hypothesis import strategies as st

from dkae import DeepKernelizedAutoencoder
from dkae.networks import StackedNetwork
from dkae.training.settings import Settings
from dkae.training.sources import batches_per_epoch

sizes = st.integers(1, 100_000)


def n_weights(d, h, n_components):
    return d * h + h * h + h * n_components


@given(sizes, sizes, st.integers(1, 5000))
def test_widths_are_the_largest_that_the_data_allow(n, d, n_components):
    h, again = hidden_sizes("auto", (n, d), n_components)
    assert h == again
    assert NARROWEST <= h <= WIDEST
    budget = n * (d + n_components)
    if h > NARROWEST:
        assert n_weights(d, h, n_components) <= budget
    if h < WIDEST:
        assert n_weights(d, h + 1, n_components) > budget


@given(sizes, sizes, st.integers(1, 5000))
def test_more_rows_never_make_it_narrower(n, d, n_components):
    few, many = (hidden_sizes("auto", (m, d), n_components)[0] for m in (n, 2 * n))
    assert few <= many


@pytest.mark.parametrize(
    ("shape", "n_components", "width"),
    [((14_000, 784), 500, 1000), ((200, 20_000), 500, 198), ((20, 10), 5, 11), ((2, 1), 1, 8)],
)
def test_examples(shape, n_components, width):
    assert hidden_sizes("auto", shape, n_components) == [width, width]


@pytest.mark.parametrize(
    ("shape", "n_components", "at_most"), [((20, 10), 5, 1500), ((200, 20_000), 100, 9_000_000)]
)
def test_few_rows_do_not_get_millions_of_weights_of_their_own(shape, n_components, at_most):
    """At most twice as many as the data and codes have numbers, for both directions."""
    network = StackedNetwork(hidden_sizes("auto", shape, n_components))(shape[1:], n_components)
    assert sum(p.numel() for p in network.parameters()) < at_most


@pytest.mark.parametrize(
    ("given_sizes", "expected"), [((3, 4), [3, 4]), ([], []), (7, [7]), (range(1, 3), [1, 2])]
)
def test_widths_that_are_given(given_sizes, expected):
    assert hidden_sizes(given_sizes, (10, 10), 3) == expected


@pytest.mark.parametrize(
    ("given_sizes", "message"),
    [
        (
            "wide",
            "hidden_layer_sizes='wide' is not known: pass 'auto' or widths, such as "
            r"\(1000, 1000\)",
        ),
        ((3, 0), "each of hidden_layer_sizes=0 must be a whole number of at least 1"),
        (2.5, "each of hidden_layer_sizes=2.5 must be a whole number of at least 1"),
    ],
)
def test_wrong_widths_are_refused(given_sizes, message):
    with pytest.raises(ValueError, match=message):
        hidden_sizes(given_sizes, (10, 10), 3)


@pytest.mark.parametrize(
    ("n_rows", "steps"), [(2, 25), (250, 25), (259, 25), (400, 40), (1000, 100), (10**6, 100)]
)
def test_automatic_steps_are_a_tenth_of_the_rows_within_bounds(n_rows, steps):
    assert batches_per_epoch(n_rows, 200, "auto") == steps


@pytest.mark.parametrize(
    ("network", "expected"), [("stacked", (40, 10)), ("kernel_layer", (0, 10))]
)
def test_automatic_epochs(network, expected, digits):
    model = DeepKernelizedAutoencoder(
        3, network=network, hidden_layer_sizes=(4,), steps_per_epoch=1, random_state=0
    ).fit(digits[:40])
    phases = [record["phase"] for record in model.history_]
    assert (phases.count("fine-tuning"), phases.count("decoder")) == expected


def test_epochs_that_are_given_stay(digits):
    model = DeepKernelizedAutoencoder(3, max_iter=2, decoder_max_iter=0)
    settings = Settings.of(model).budget(StackedNetwork((4,))((5,), 3), 100)
    assert (settings.max_iter, settings.decoder_max_iter) == (2, 0)


@pytest.mark.parametrize("name", ["max_iter", "decoder_max_iter"])
def test_wrong_epochs_are_refused(name):
    with pytest.raises(ValueError, match=f"{name}='some' must be a whole number of at least 0"):
        Settings.of(DeepKernelizedAutoencoder(3, **{name: "some"}))
