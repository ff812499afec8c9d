"""A block of the prior may cost more than a step: it is computed for those that learn from it."""

from __future__ import annotations

from collections import Counter

import pytest

from dkae.kernels import PairwiseKernel
from dkae.training import Callback


@pytest.fixture
def phase_of_blocks(digits, tiny, monkeypatch):
    """Fit a model and return the phase of each block of the prior, and the model."""

    def fit(**params):
        phases, current = [], ["before"]

        class Watching(Callback):
            def on_phase_begin(self, trainer, phase):
                current.append(phase.name)

        def evaluate(kernel, X, Y):
            phases.append(current[-1])
            return original(kernel, X, Y)

        model = tiny(hidden_layer_sizes=(12,), pretrain_max_iter=1, steps_per_epoch=5)
        model.set_params(max_iter=2, decoder_max_iter=3, callbacks=[Watching()], **params)
        original = PairwiseKernel.evaluate
        with monkeypatch.context() as patch:
            patch.setattr(PairwiseKernel, "evaluate", evaluate)
            model.fit(digits)
        # One block is looked at before training: a kernel that fails should fail at once.
        assert phases.pop(0) == "before"
        return Counter(phases), model

    return fit


def test_for_the_steps_of_the_code_layer_and_of_the_whole(phase_of_blocks):
    blocks, model = phase_of_blocks(alignment_weight=0.1)
    assert blocks == {"layer 2": 5, "fine-tuning": 10}
    for record in model.history_:
        assert ("alignment_loss" in record) == (record["phase"] in blocks)


def test_for_no_step_of_a_plain_autoencoder(phase_of_blocks):
    blocks, model = phase_of_blocks(alignment_weight=0)
    assert blocks == {}
    assert not any("alignment_loss" in record for record in model.history_)


def test_for_the_validation_part_in_every_epoch(phase_of_blocks):
    blocks, model = phase_of_blocks(alignment_weight=0, validation_fraction=0.2)
    # 60 rows are two blocks of 30.
    assert blocks == {"layer 1": 2, "layer 2": 2, "fine-tuning": 4, "decoder": 6}
    assert all(0 < record["validation_alignment_loss"] < 2 for record in model.history_)
