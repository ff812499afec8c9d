"""Configurations keep the names of the first results, whatever the library calls a parameter."""

from __future__ import annotations

from dataclasses import replace

import pytest
from dkae_study.declaration.configuration import digest, estimator_config, scale_config
from dkae_study.paper import LAPTOP
from sklearn.base import BaseEstimator


class Former(BaseEstimator):
    """An estimator as it was when the first results were made."""

    def __init__(self, n_components=5, epoch=100, decoder_max_iter=5, verbose=0):
        self.n_components = n_components
        self.epoch = epoch
        self.decoder_max_iter = decoder_max_iter
        self.verbose = verbose


class Present(BaseEstimator):
    """The same with a parameter renamed, whose former name is deprecated, and others added."""

    def __init__(
        self,
        n_components=5,
        steps_per_epoch=100,
        epoch="deprecated",
        decoder_max_iter=5,
        verbose=0,
        network="stacked",
        alignment="frobenius",
        optimizer="adam",
        callbacks=None,
    ):
        self.n_components = n_components
        self.steps_per_epoch = steps_per_epoch
        self.epoch = epoch
        self.decoder_max_iter = decoder_max_iter
        self.verbose = verbose
        self.network = network
        self.alignment = alignment
        self.optimizer = optimizer
        self.callbacks = callbacks


def test_a_renamed_parameter_has_its_former_name():
    expected = {"n_components": 5, "epoch": 20, "decoder_max_iter": 5}
    assert estimator_config(Former(epoch=20)) == expected
    assert estimator_config(Present(steps_per_epoch=20)) == expected


def test_an_added_parameter_counts_when_it_is_not_the_default():
    assert estimator_config(Present(alignment="logdet"))["alignment"] == "logdet"
    assert "alignment" not in estimator_config(Present(alignment="frobenius"))


def test_what_changes_no_result_is_no_part_of_it():
    config = estimator_config(Present(callbacks=[print], verbose=1, decoder_max_iter=0))
    assert set(config) == {"n_components", "epoch"}


def test_schedules_of_a_scale_have_the_former_name_too():
    assert LAPTOP.schedules["paper"] == {"steps_per_epoch": 20}
    assert scale_config(LAPTOP, "paper")["schedule"] == {"epoch": 20}


def test_a_result_depends_on_no_other_recipe_and_no_other_value_of_an_axis():
    schedules = LAPTOP.schedules | {"default": {"steps_per_epoch": 1}}
    other = replace(LAPTOP, schedules=schedules, axes={"N_c": (1, 2)})
    assert scale_config(other, "paper") == scale_config(LAPTOP, "paper")
    assert scale_config(other, "default") != scale_config(LAPTOP, "default")


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
