"""The last phase: the decoder learns alone, and the codes stay what they are."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning

from dkae.training import DECODER, FINE_TUNING, Trainer


@pytest.fixture
def both(digits, tiny):
    """Return a function that fits a model without the phase, and the same with it."""

    def fit(**params):
        without = tiny(**params).fit(digits)
        return without, tiny(**{"decoder_max_iter": 3} | params).fit(digits)

    return fit


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("weight", [0, 0.1, 1])
def test_codes_stay_and_reconstructions_get_better(both, digits, tied, weight):
    without, model = both(tied_weights=tied, alignment_weight=weight, steps_per_epoch=20)
    np.testing.assert_array_equal(model.transform(digits), without.transform(digits))
    assert model.kernel_scale_ == without.kernel_scale_
    error, before = (
        np.mean((m.inverse_transform(m.transform(digits)) - digits) ** 2) for m in (model, without)
    )
    assert error < 0.95 * before


def test_it_is_a_phase_of_the_history_that_only_reconstructs(both):
    without, model = both(alignment_weight=0.5, validation_fraction=0.2)
    assert [r["phase"] for r in model.history_] == [FINE_TUNING] * 2 + [DECODER] * 3
    assert model.history_[:2] == without.history_
    assert model.n_iter_ == 2
    last = model.history_[2:]
    assert all(r["loss"] == pytest.approx(r["reconstruction_loss"]) for r in last)
    # The rows that are held out are the same, and so are their codes.
    l_c = [r["validation_alignment_loss"] for r in model.history_]
    assert l_c[1:] == [l_c[1]] * 4


def test_tied_weights_stay_tied_without_it(both):
    without, model = both()
    assert all(layer.decoder_weight is None for layer in without.network_.layers)
    assert all(layer.decoder_weight is not None for layer in model.network_.layers)
    assert all(p.requires_grad for p in model.network_.parameters())


def test_one_step_is_one_step_of_adam_at_half_the_rate(digits, tiny):
    """An independent step, with the decoder written out."""
    params = {"batch_size": 300, "steps_per_epoch": 1, "max_iter": 1, "learning_rate": "constant"}
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


def test_early_stopping_never_leaves_a_worse_decoder_than_it_found(digits, tiny):
    """The rate is so high that every epoch is worse than none."""
    given = tiny(steps_per_epoch=50, learning_rate_init=0.01, decoder_max_iter=1).fit(digits)
    model = tiny(max_iter=0, decoder_max_iter=3, early_stopping=True, n_iter_no_change=2)
    model.set_params(learning_rate="constant", learning_rate_init=3.0)
    model.set_params(network=given.network_).fit(digits)
    codes = given.transform(digits)
    np.testing.assert_array_equal(model.inverse_transform(codes), given.inverse_transform(codes))
    assert [r["phase"] for r in model.history_] == [DECODER] * 2


def test_an_inverse_is_learnt_for_an_encoder_that_is_given(digits, tiny):
    given = tiny(alignment_weight=1).fit(digits).network_
    model = tiny(max_iter=0, decoder_max_iter=4, steps_per_epoch=20, learning_rate_init=0.02)
    model.set_params(network=given).fit(digits)
    for mine, layer in zip(model.network_.layers, given.layers, strict=True):
        assert torch.equal(mine.weight, layer.weight)
        assert torch.equal(mine.bias, layer.bias)
        assert layer.decoder_weight is None  # what was given is as it was
    assert {r["phase"] for r in model.history_} == {DECODER}
    assert model.history_[-1]["loss"] < 0.7 * model.history_[0]["loss"]


def test_noise_on_the_input_is_for_this_phase_too(digits, tiny, monkeypatch):
    seen = []
    original = Trainer.batch_losses

    def spy(trainer, phase, batch):
        seen.append(not torch.equal(batch.inputs, batch.targets))
        return original(trainer, phase, batch)

    monkeypatch.setattr(Trainer, "batch_losses", spy)
    tiny(max_iter=1, decoder_max_iter=1, input_noise=0.3).fit(digits)
    assert seen == [True] * 10


def test_interrupted_it_leaves_a_whole_model(digits, tiny, break_at):
    break_at(13, "train_step", KeyboardInterrupt)  # ten are those of the training end to end
    model = tiny(decoder_max_iter=2)
    with (
        pytest.warns(ConvergenceWarning, match="interrupted after 2 finished epochs"),
        pytest.raises(KeyboardInterrupt),
    ):
        model.fit(digits)
    assert model.inverse_transform(model.transform(digits)).shape == digits.shape
    assert all(p.requires_grad for p in model.network_.parameters())
