"""Phases on networks with dropout and batch statistics: what does not learn stands still."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from dkae.networks import encode_rows
from dkae.training import DECODER, Callback
from tests.nets import Noisy, Staged
from tests.training.helpers import Killed, assert_same


class Watch(Callback):
    """Keeps the codes and the state at the beginning and the end of each phase."""

    def __init__(self, X):
        self.X = X
        self.codes, self.states = {}, {}

    def on_phase_begin(self, trainer, phase):
        self._note(trainer.network, f"before {phase.name}")

    def on_phase_end(self, trainer, phase):
        self._note(trainer.network, f"after {phase.name}")

    def on_step_end(self, trainer, phase):
        encode_rows(trainer.network, self.X)  # to look does not change anything

    def _note(self, network, when):
        self.codes[when] = encode_rows(network, self.X)
        self.states[when] = copy.deepcopy(network.state_dict())


def changed(before, after):
    return {name for name in before if not torch.equal(before[name], after[name])}


@pytest.fixture
def watched(rows, tiny):
    def fit(**params):
        watch = Watch(rows)
        model = tiny(callbacks=[watch], batch_size=20, learning_rate_init=0.01, **params)
        return model.fit(rows), watch

    return fit


class TestDecoderAlone:
    def test_codes_do_not_move(self, rows, watched):
        model, watch = watched(network=Noisy, decoder_max_iter=2)
        np.testing.assert_array_equal(watch.codes["before decoder"], watch.codes["after decoder"])
        np.testing.assert_array_equal(model.transform(rows), watch.codes["before decoder"])

    def test_all_of_the_decoder_learns_and_nothing_else(self, watched):
        _, watch = watched(network=Noisy, decoder_max_iter=2)
        moved = changed(watch.states["before decoder"], watch.states["after decoder"])
        names = set(watch.states["before decoder"])
        assert moved == {name for name in names if name.startswith("decoder")}
        assert "decoder.1.running_mean" in moved

    def test_with_early_stopping(self, rows, watched):
        params = {"early_stopping": True, "n_iter_no_change": 1, "decoder_max_iter": 5}
        model, watch = watched(network=Noisy, **params)
        np.testing.assert_array_equal(model.transform(rows), watch.codes["before decoder"])

    def test_a_user_s_module_that_is_trained_gets_another_inverse(self, rows, tiny):
        given = tiny(network=Noisy).fit(rows)
        model = tiny(network=given.network_, max_iter=0, decoder_max_iter=3, steps_per_epoch=30)
        model.fit(rows)
        np.testing.assert_array_equal(model.transform(rows), given.transform(rows))
        assert {record["phase"] for record in model.history_} == {DECODER}
        assert model.history_[-1]["loss"] < model.history_[0]["loss"]


class TestStages:
    def test_a_stage_leaves_the_others_alone(self, watched):
        model, watch = watched(network=Staged, pretrain_max_iter=2)
        assert [r["phase"] for r in model.history_] == ["lower"] * 2 + ["upper"] * 2 + [
            "fine-tuning"
        ] * 2
        for stage in ("lower", "upper"):
            moved = changed(watch.states[f"before {stage}"], watch.states[f"after {stage}"])
            assert moved
            assert all(name.startswith(stage) for name in moved)

    @pytest.mark.parametrize("name", ["upper", "fine-tuning"])
    def test_two_of_one_name_are_refused(self, name, rows, tiny):
        class Twice(Staged):
            def stages(self):
                lower, upper = super().stages()
                return [lower._replace(name=name), upper]

        with pytest.raises(ValueError, match=rf"have the name '{name}' twice: give each of the"):
            tiny(network=Twice, pretrain_max_iter=1).fit(rows)

    def test_only_the_code_is_aligned(self, watched):
        model, _ = watched(network=Staged, pretrain_max_iter=1)
        with_alignment = {r["phase"] for r in model.history_ if "alignment_loss" in r}
        assert with_alignment == {"upper", "fine-tuning"}


def test_callbacks_may_look_at_codes(rows, tiny, watched):
    params = {"network": Staged, "pretrain_max_iter": 1}
    plain = tiny(batch_size=20, learning_rate_init=0.01, **params).fit(rows)
    assert_same(watched(**params)[0], plain)


def test_codes_are_those_of_a_network_at_rest(rows, tiny):
    model = tiny(network=Noisy).fit(rows)
    codes = model.transform(rows)
    model.network_.train()
    np.testing.assert_array_equal(model.transform(rows), codes)
    assert model.network_.training


@pytest.mark.parametrize("network", [Noisy, Noisy(), Staged], ids=["factory", "module", "stages"])
@pytest.mark.parametrize("early_stopping", [False, True])
def test_with_dropout_a_broken_fit_goes_on_to_the_same_end(
    network, early_stopping, rows, tiny, tmp_path, always, break_at
):
    params = {"decoder_max_iter": 2, "pretrain_max_iter": 0}
    if network is Staged:
        params = {"pretrain_max_iter": 2}

    def model():
        return tiny(network=network, batch_size=20, early_stopping=early_stopping, **params)

    unbroken = model().fit(rows)
    for i in range(1, len(unbroken.history_)):
        break_at(i)
        with pytest.raises(Killed):
            model().fit(rows, checkpoint=tmp_path / str(i))
        break_at(None)
        torch.rand(3)
        assert_same(model().fit(rows, checkpoint=tmp_path / str(i)), unbroken)
