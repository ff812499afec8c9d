"""Layers that are already trained, and training that ends before fine-tuning."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from dkae import fitting
from dkae.networks import Autoencoder
from tests.training.helpers import Killed, assert_same


@pytest.mark.filterwarnings("ignore:fit.pretrained:FutureWarning")
class TestPretrainedLayers:
    @pytest.fixture
    def deep(self, tiny):
        def make(**params):
            return tiny(hidden_layer_sizes=(12, 10, 8), **{"pretrain_max_iter": 2} | params)

        return make

    @pytest.fixture
    def lower(self, deep, rows):
        """Three pretrained layers of four."""
        return Autoencoder(deep(max_iter=0, random_state=3).fit(rows).network_.layers[:3])

    def test_it_is_a_copy_of_weights_and_three_layers_less_to_pretrain(self, rows, deep, lower):
        before = copy.deepcopy(lower.state_dict())
        model = deep(max_iter=0).fit(rows, pretrained=lower)
        assert [r["phase"] for r in model.history_] == ["layer 4"] * 2
        for mine, given in zip(model.network_.layers, lower.layers, strict=False):
            for name, tensor in given.state_dict().items():
                assert torch.equal(mine.state_dict()[name], tensor)
                assert mine.state_dict()[name].data_ptr() != tensor.data_ptr()
        model = deep().fit(rows, pretrained=lower)
        assert [r["phase"] for r in model.history_] == ["layer 4"] * 2 + ["fine-tuning"] * 2
        assert not torch.equal(model.network_.layers[0].weight, lower.layers[0].weight)
        assert all(torch.equal(before[name], t) for name, t in lower.state_dict().items())

    def test_it_equals_a_network_that_starts_with_these_weights(
        self, rows, deep, lower, monkeypatch
    ):
        model = deep(pretrain_max_iter=0).fit(rows, pretrained=lower)
        other = deep(pretrain_max_iter=0)
        build = fitting.build

        def with_weights(*args):
            built = build(*args)
            with torch.no_grad():
                for mine, given in zip(built.network.layers, lower.layers, strict=False):
                    for p, q in zip(mine.parameters(), given.parameters(), strict=True):
                        p.copy_(q)
            return built

        monkeypatch.setattr(fitting, "build", with_weights)
        assert_same(model, other.fit(rows))
        monkeypatch.undo()
        assert model.history_ != deep(pretrain_max_iter=0).fit(rows).history_

    def test_models_of_several_code_sizes_share_them(self, rows, deep, lower):
        for n_components in (2, 9):
            model = deep(n_components=n_components, max_iter=0).fit(rows, pretrained=lower)
            assert model.transform(rows).shape == (80, n_components)
            assert torch.equal(model.network_.layers[2].weight, lower.layers[2].weight)

    def test_all_layers_are_a_warm_start(self, rows, deep):
        first = deep().fit(rows)
        codes = first.transform(rows)
        second = deep(pretrain_max_iter=0).fit(rows, pretrained=first.network_)
        cold = deep(pretrain_max_iter=0).fit(rows)
        assert second.history_[0]["loss"] < cold.history_[0]["loss"]
        np.testing.assert_array_equal(first.transform(rows), codes)

    def test_with_a_checkpoint(self, rows, deep, lower, tmp_path, always, break_at):
        unbroken = deep().fit(rows, pretrained=lower)
        for i in range(1, len(unbroken.history_)):
            break_at(i)
            with pytest.raises(Killed):
                deep().fit(rows, pretrained=lower, checkpoint=tmp_path / str(i))
            break_at(None)
            resumed = deep().fit(rows, pretrained=lower, checkpoint=tmp_path / str(i))
            assert_same(resumed, unbroken)

    @pytest.mark.parametrize("given_tied", [True, False])
    @pytest.mark.parametrize("tied", [True, False])
    def test_no_decoder_is_lost(self, given_tied, tied, rows, deep):
        """Its own weights are copied; where there are none, they are the transposed ones."""
        given = deep(tied_weights=given_tied, steps_per_epoch=20).fit(rows).network_
        model = deep(tied_weights=tied, pretrain_max_iter=0, max_iter=0, decoder_max_iter=1)
        model.set_params(learning_rate_init=1e-30).fit(rows, pretrained=given)
        for mine, layer in zip(model.network_.layers, given.layers, strict=True):
            assert torch.equal(mine.weight, layer.weight)
            decoder = layer.weight.T if given_tied else layer.decoder_weight
            assert torch.equal(mine.decoder_weight, decoder)
            assert torch.equal(layer.weight.T, decoder) == given_tied

    def test_a_layer_that_is_not_given_is_not_left_as_it_was_drawn(self, rows, deep, lower):
        model = deep(pretrain_max_iter=0, max_iter=0, decoder_max_iter=1)
        with pytest.raises(ValueError, match="leave the encoder, or layers of it, untrained"):
            model.fit(rows, pretrained=lower)

    def test_an_estimator_is_not_a_network(self, rows, tiny):
        model = tiny().fit(rows)
        message = "must be an Autoencoder, got DeepKernelizedAutoencoder: pass the network_ of a"
        with pytest.raises(ValueError, match=message):
            tiny().fit(rows, pretrained=model)

    def test_too_many_layers(self, rows, tiny, lower):
        with pytest.raises(ValueError, match=r"has 3 layers, but the network has 2.*layers\[:2\]"):
            tiny().fit(rows, pretrained=lower)

    @pytest.mark.parametrize(
        ("params", "message"),
        [
            ({"hidden_layer_sizes": (12, 11, 8)}, "layer 2 .* n_out=10, but .* n_out=11: pass"),
            ({"activation": "relu"}, "layer 1 .* activation='gelu', but .* activation='relu'"),
            ({"output_activation": "identity"}, "layer 1 .* output_activation='sigmoid', but"),
        ],
        ids=lambda value: str(value) if isinstance(value, dict) else "",
    )
    def test_other_layers(self, params, message, rows, tiny, lower):
        with pytest.raises(ValueError, match=message):
            tiny(**{"hidden_layer_sizes": (12, 10, 8)} | params).fit(rows, pretrained=lower)


def test_without_training_end_to_end_the_model_is_complete(rows, tiny):
    model = tiny(max_iter=0, pretrain_max_iter=2).fit(rows)
    assert [r["phase"] for r in model.history_] == ["layer 1"] * 2 + ["layer 2"] * 2
    assert model.n_iter_ == 0
    assert model.kernel_scale_ > 0
    assert model.inverse_transform(model.transform(rows)).shape == rows.shape
