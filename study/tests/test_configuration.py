"""A configuration has everything that a result depends on, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from dkae_study.declaration.configuration import digest, estimator_config, scale_config
from dkae_study.paper import LAPTOP, PAPER


def test_parameters_of_the_network_are_part_of_it():
    config = estimator_config(PAPER.estimator(LAPTOP, "paper"))
    assert config["network"]["hidden_layer_sizes"] == LAPTOP.hidden_layer_sizes
    assert config["steps_per_epoch"] == 20
    digest(config)  # JSON can hold it


def test_what_changes_no_result_is_no_part_of_it():
    estimator = PAPER.estimator(LAPTOP, "paper")
    config = estimator_config(estimator)
    estimator.set_params(callbacks=[print], verbose=1, random_state=3, device="cpu")
    assert estimator_config(estimator) == config
    assert config.keys().isdisjoint({"callbacks", "verbose", "kernel", "decoder_max_iter"})


def test_a_result_depends_on_no_other_recipe_and_no_other_value_of_an_axis():
    schedules = LAPTOP.schedules | {"network": {"steps_per_epoch": 1}}
    other = replace(LAPTOP, schedules=schedules, axes={"N_c": (1, 2)})
    assert scale_config(other, "paper") == scale_config(LAPTOP, "paper")
    assert scale_config(other, "network") != scale_config(LAPTOP, "network")


@pytest.mark.parametrize("field", ["summary", "caution"])
def test_words_of_a_scale_change_no_hash(field):
    other = replace(LAPTOP, **{field: "other"})
    assert scale_config(other, "paper") == scale_config(LAPTOP, "paper")


def test_settings_of_a_scale_stand_beside_its_fields():
    config = scale_config(LAPTOP, "paper")
    assert config["n_curve"] == 128
    assert "settings" not in config
    changed = scale_config(replace(LAPTOP, settings=LAPTOP.settings | {"n_curve": 64}), "paper")
    assert digest(changed) != digest(config)


def test_a_hash_does_not_depend_on_the_order_of_keys():
    assert digest({"a": 1, "b": (2, 3)}) == digest({"b": [2, 3], "a": 1})
