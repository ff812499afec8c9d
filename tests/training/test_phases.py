"""Phases: layers one after the other, then everything, then the decoder; the rest stands still."""

from __future__ import annotations

import copy
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import nn

from dkae.networks import Autoencoder, encode_rows
from dkae.training import DECODER, FINE_TUNING, Callback, EarlyStopping
from tests.nets import Noisy, Staged
from tests.training.helpers import Killed, assert_same

CONSTANT = {"optimization__learning_rate": "constant"}


class Watch(Callback):
    """Keeps the codes and the state at the beginning and the end of each phase."""

    def __init__(self, X):
        self.X = X
        self.codes, self.states, self.phases = {}, {}, []

    def on_phase_begin(self, trainer, phase):
        self.phases.append(phase)
        self._note(trainer.network, f"before {phase.name}")

    def on_phase_end(self, trainer, phase):
        self._note(trainer.network, f"after {phase.name}")

    def on_step_end(self, trainer, phase):
        encode_rows(trainer.network, self.X)  # to look does not change anything

    def _note(self, network, when):
        self.codes[when] = encode_rows(network, self.X)
        self.states[when] = copy.deepcopy(network.state_dict())

    def moved_in(self, name):
        """Return the names of the tensors that a phase has changed."""
        before, after = self.states[f"before {name}"], self.states[f"after {name}"]
        return {name for name in before if not torch.equal(before[name], after[name])}


@pytest.fixture
def watched(rows, tiny):
    def fit(**params):
        watch = Watch(rows)
        params = {"batch_size": 20, "optimization__learning_rate_init": 0.01} | params
        model = tiny().set_params(**params)
        model.callbacks = [watch, *(model.callbacks or [])]
        return model.fit(rows), watch

    return fit


def phases_of(model):
    return [record["phase"] for record in model.history_]


class TestPretraining:
    SIZES: ClassVar = {"network__hidden_layer_sizes": (12, 10), "pretrain_max_iter": 2}

    def test_every_layer_is_trained_in_turn_and_then_the_whole(self, rows, watched):
        model, watch = watched(**self.SIZES, alignment_weight=0.5)
        layers = ["layer 1", "layer 2", "layer 3"]
        assert phases_of(model) == [name for name in layers for _ in range(2)] + [FINE_TUNING] * 2
        *lower, last = watch.phases
        # Each learns on the activations of those below, and leaves them alone.
        x = torch.from_numpy(rows)
        assert [phase.lift(x).shape[1] for phase in lower] == [64, 12, 10]
        assert all(len(phase.network.layers) == 1 for phase in lower)
        assert last.lift is None
        for number, name in enumerate(layers):
            moved = watch.moved_in(name)
            assert moved
            assert all(tensor.startswith(f"_layers.{number}.") for tensor in moved)
        # The code layer sees the alignment, and the whole; no layer before.
        with_alignment = {r["phase"] for r in model.history_ if "alignment_loss" in r}
        assert with_alignment == {"layer 3", FINE_TUNING}

    def test_lower_layers_depend_on_neither_the_weight_nor_the_code_size(self, rows, tiny):
        first, *others = (
            [
                r["reconstruction_loss"]
                for r in tiny(**self.SIZES, max_iter=0, **other).fit(rows).history_
                if r["phase"] != "layer 3"
            ]
            for other in ({}, {"alignment_weight": 0.9}, {"n_components": 2})
        )
        assert len(first) == 4
        assert all(other == first for other in others)

    @pytest.mark.parametrize("n_pretrained", [1, 2])
    def test_trained_layers_are_left_out(self, n_pretrained, rows, tiny):
        layers = tiny(random_state=3).fit(rows).network_.layers
        network = Autoencoder(layers, n_pretrained=n_pretrained)
        model = tiny(network=network, pretrain_max_iter=2, max_iter=0, decoder_max_iter=1)
        model.fit(rows)
        assert phases_of(model) == ["layer 2"] * 2 * (n_pretrained == 1) + [DECODER]
        for mine, layer in zip(model.network_.layers, layers[:n_pretrained], strict=False):
            assert torch.equal(mine.weight, layer.weight)
            assert mine.weight.data_ptr() != layer.weight.data_ptr()

    def test_a_layer_that_is_not_given_is_not_left_as_it_was_drawn(self, rows, tiny):
        model = tiny(max_iter=0, decoder_max_iter=1)
        with pytest.raises(ValueError, match="leave the encoder, or layers of it, untrained"):
            model.fit(rows)


class TestStages:
    def test_a_stage_of_a_custom_network_leaves_the_others_alone(self, watched):
        model, watch = watched(network=Staged, pretrain_max_iter=2)
        assert phases_of(model) == ["lower"] * 2 + ["upper"] * 2 + [FINE_TUNING] * 2
        for stage in ("lower", "upper"):
            assert watch.moved_in(stage)
            assert all(name.startswith(stage) for name in watch.moved_in(stage))
        with_alignment = {r["phase"] for r in model.history_ if "alignment_loss" in r}
        assert with_alignment == {"upper", FINE_TUNING}

    @pytest.mark.parametrize("name", ["upper", FINE_TUNING])
    def test_two_of_one_name_are_refused(self, name, rows, tiny):
        class Twice(Staged):
            def stages(self):
                lower, upper = super().stages()
                return [lower._replace(name=name), upper]

        with pytest.raises(ValueError, match=rf"have the name '{name}' twice: give each of the"):
            tiny(network=Twice, pretrain_max_iter=1).fit(rows)

    def test_a_network_without_them_is_refused(self, rows, tiny):
        message = r"network=Noisy has no stages\(\), which pretrain_max_iter=1 needs: add that meth"
        with pytest.raises(ValueError, match=message):
            tiny(network=Noisy, pretrain_max_iter=1).fit(rows)

    def test_what_may_not_learn_leaves_nothing_to_train(self, rows, tiny):
        frozen = Noisy().requires_grad_(False)
        message = "network=Noisy has no parameter that could learn in the phase 'fine-tuning'"
        with pytest.raises(ValueError, match=message):
            tiny(network=frozen).fit(rows)


class TestDecoderAlone:
    @pytest.mark.parametrize("tied", [True, False])
    @pytest.mark.parametrize("weight", [0, 1])
    def test_codes_stay_and_reconstructions_get_better(self, digits, tiny, tied, weight):
        params = {"network__tied_weights": tied, "alignment_weight": weight, "steps_per_epoch": 20}
        without = tiny(**params).fit(digits)
        model = tiny(**params, decoder_max_iter=3).fit(digits)
        np.testing.assert_array_equal(model.transform(digits), without.transform(digits))
        assert model.kernel_scale_ == without.kernel_scale_
        error, before = (
            np.mean((m.inverse_transform(m.transform(digits)) - digits) ** 2)
            for m in (model, without)
        )
        assert error < 0.95 * before
        for layer, former in zip(model.network_.layers, without.network_.layers, strict=True):
            assert (former.decoder_weight is None) == tied  # unless the decoder learns alone
            assert layer.decoder_weight is not None
        assert all(p.requires_grad for p in model.network_.parameters())

    def test_it_is_a_phase_of_the_history_that_only_reconstructs(self, digits, tiny):
        params = {"alignment_weight": 0.5, "validation_fraction": 0.2}
        without = tiny(**params).fit(digits)
        model = tiny(**params, decoder_max_iter=3).fit(digits)
        assert phases_of(model) == [FINE_TUNING] * 2 + [DECODER] * 3
        assert model.history_[:2] == without.history_
        assert model.n_iter_ == 2
        for record in model.history_[2:]:
            assert record["loss"] == record["reconstruction_loss"]
            assert "validation_loss" in record
            assert not any("alignment_loss" in name for name in record)

    def test_one_step_is_one_step_of_adam_at_half_the_rate(self, digits, tiny):
        """An independent step, with the decoder written out."""
        params = {"batch_size": 300, "steps_per_epoch": 1, "max_iter": 1} | CONSTANT
        without = tiny(**params).fit(digits)
        model = tiny(**params, decoder_max_iter=1).fit(digits)
        x, codes = torch.from_numpy(digits), torch.from_numpy(without.transform(digits))
        first, second = without.network_.layers
        start = [first.weight.T, first.decoder_bias, second.weight.T, second.decoder_bias]
        w1, b1, w2, b2 = weights = [t.detach().clone().requires_grad_() for t in start]
        hidden = torch.nn.functional.gelu(codes @ w2.T + b2)
        ((torch.sigmoid(hidden @ w1.T + b1) - x) ** 2).mean().backward()
        torch.optim.Adam(weights, lr=1e-3, foreach=False, fused=False).step()
        ours = [
            t for layer in model.network_.layers for t in (layer.decoder_weight, layer.decoder_bias)
        ]
        for mine, theirs in zip(ours, weights, strict=True):
            torch.testing.assert_close(mine, theirs, atol=2e-5, rtol=0)

    def test_an_inverse_is_learned_for_an_encoder_that_is_given(self, digits, tiny):
        given = tiny(alignment_weight=1).fit(digits).network_
        model = tiny(max_iter=0, decoder_max_iter=4, steps_per_epoch=20, network=given)
        model.set_params(optimization__learning_rate_init=0.02).fit(digits)
        for mine, layer in zip(model.network_.layers, given.layers, strict=True):
            assert torch.equal(mine.weight, layer.weight)
            assert torch.equal(mine.bias, layer.bias)
            assert layer.decoder_weight is None  # the given network stays tied
        assert phases_of(model) == [DECODER] * 4
        assert model.history_[-1]["loss"] < 0.7 * model.history_[0]["loss"]

    @pytest.mark.parametrize("stopping", [[], [EarlyStopping(1)]], ids=["plain", "early stopping"])
    def test_of_a_network_with_dropout_all_of_the_decoder_learns(self, stopping, rows, watched):
        params = {"callbacks": stopping, "validation_fraction": 0.1 if stopping else 0.0}
        model, watch = watched(network=Noisy, decoder_max_iter=3, **params)
        np.testing.assert_array_equal(model.transform(rows), watch.codes["before decoder"])
        names = set(watch.states["before decoder"])
        moved = watch.moved_in("decoder")
        assert all(name.startswith("decoder") for name in moved)
        if not stopping:
            assert moved == {name for name in names if name.startswith("decoder")}
            assert "decoder.1.running_mean" in moved

    def test_a_decoder_that_is_a_module_needs_no_method(self, rows, tiny):
        class Pair(nn.Module):
            def __init__(self):
                super().__init__()
                self.encode = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 5))
                self.decode = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 64))

        model = tiny(network=Pair(), decoder_max_iter=2).fit(rows)
        assert phases_of(model) == [FINE_TUNING] * 2 + [DECODER] * 2


def test_callbacks_may_look_at_codes(rows, tiny, watched):
    params = {"network": Staged, "pretrain_max_iter": 1}
    plain = tiny(batch_size=20, optimization__learning_rate_init=0.01, **params).fit(rows)
    assert_same(watched(**params)[0], plain)


@pytest.mark.parametrize(
    ("network", "stopping"),
    [(Noisy, False), (Noisy(), True), (Staged, True)],
    ids=["factory", "module, early stopping", "stages, early stopping"],
)
def test_with_dropout_a_broken_fit_goes_on_to_the_same_end(
    network, stopping, rows, tiny, tmp_path, always, break_at
):
    params = {"pretrain_max_iter": 2} if network is Staged else {"decoder_max_iter": 2}

    def model():
        callbacks = [EarlyStopping()] if stopping else []
        share = 0.1 if stopping else 0.0
        return tiny(
            network=network, batch_size=20, callbacks=callbacks, validation_fraction=share, **params
        )

    unbroken = model().fit(rows)
    for i in range(1, len(unbroken.history_)):
        break_at(i)
        with pytest.raises(Killed):
            model().fit(rows, checkpoint=tmp_path / str(i))
        break_at(None)
        torch.rand(3)
        assert_same(model().fit(rows, checkpoint=tmp_path / str(i)), unbroken)
