"""Optimizers of the user's, on every schedule."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from dkae.training.optimization import LEARNING_RATES
from tests.training.helpers import Killed, assert_same


class Rates:
    """Keeps the settings of each step."""

    def __init__(self):
        self.groups = []

    def on_step_end(self, trainer, phase):
        self.groups.append([dict(group) for group in trainer.optimizer.param_groups])

    def of(self, name):
        return [group[0][name] for group in self.groups]


def two_groups(parameters, lr):
    *others, last = parameters
    return torch.optim.SGD([{"params": others}, {"params": [last], "lr": lr / 10}], lr)


FACTORIES = {
    "SGD": torch.optim.SGD,
    "SGD with momentum": partial(torch.optim.SGD, momentum=0.9),
    "RMSprop": torch.optim.RMSprop,
    "Adagrad": torch.optim.Adagrad,
    "AdamW": partial(torch.optim.AdamW, weight_decay=0.1),
    "two groups": two_groups,
}


@pytest.mark.parametrize("schedule", LEARNING_RATES)
@pytest.mark.parametrize("name", FACTORIES)
class TestEveryScheduleWorksWith:
    def test_every_optimizer(self, name, schedule, rows, tiny):
        params = {"optimizer": FACTORIES[name], "learning_rate": schedule}
        first, same = (tiny(max_iter=4, **params).fit(rows) for _ in range(2))
        assert_same(first, same)
        untrained = tiny(max_iter=1, steps_per_epoch=1, learning_rate_init=1e-12).fit(rows)
        assert not np.allclose(first.transform(rows), untrained.transform(rows), atol=1e-4)

    def test_in_every_phase(self, name, schedule, rows, tiny):
        params = {"optimizer": FACTORIES[name], "learning_rate": schedule}
        model = tiny(**params, pretrain_max_iter=1, decoder_max_iter=1).fit(rows)
        assert len(model.history_) == 5

    def test_after_a_checkpoint(self, name, schedule, rows, tiny, tmp_path, always, break_at):
        params = {"optimizer": FACTORIES[name], "learning_rate": schedule, "max_iter": 3}
        break_at(2)
        with pytest.raises(Killed):
            tiny(**params).fit(rows, checkpoint=tmp_path / "c")
        break_at(None)
        resumed = tiny(**params).fit(rows, checkpoint=tmp_path / "c")
        assert_same(resumed, tiny(**params).fit(rows))


def test_adam_is_the_default(rows, tiny):
    factory = partial(torch.optim.Adam, fused=True)
    params = {"learning_rate": "cosine"}  # "onecycle" moves the momentum of "adam" alone
    assert_same(tiny(optimizer=factory, **params).fit(rows), tiny(**params).fit(rows))


def test_a_factory_gets_the_rate_of_each_phase(rows, tiny):
    rates = []

    def factory(parameters, lr):
        rates.append(lr)
        return torch.optim.SGD(parameters, lr)

    tiny(optimizer=factory, decoder_max_iter=1, learning_rate_init=0.02).fit(rows)
    assert rates == [0.02, 0.01]


@pytest.mark.parametrize("schedule", LEARNING_RATES)
def test_the_rate_that_a_factory_sets_is_the_peak(schedule, rows, tiny):
    rates = Rates()
    factory = lambda parameters, lr: torch.optim.SGD(parameters, 0.07)  # noqa: E731
    model = tiny(optimizer=factory, learning_rate=schedule, callbacks=[rates], max_iter=10)
    model.fit(rows)
    assert 0.068 < max(rates.of("lr")) <= 0.07


def test_each_group_has_a_rate_of_its_own(rows, tiny):
    rates = Rates()
    tiny(optimizer=two_groups, callbacks=[rates], max_iter=5).fit(rows)
    for first, second in rates.groups:
        assert second["lr"] == pytest.approx(first["lr"] / 10)


@pytest.mark.parametrize(
    ("factory", "name", "moves"),
    [
        ("adam", "betas", True),
        (torch.optim.SGD, "momentum", False),
        (partial(torch.optim.SGD, momentum=0.5), "momentum", False),
        (torch.optim.AdamW, "betas", False),
    ],
)
def test_onecycle_moves_the_momentum_of_our_optimizer_alone(factory, name, moves, rows, tiny):
    rates = Rates()
    tiny(optimizer=factory, callbacks=[rates], max_iter=5).fit(rows)
    assert (len(set(rates.of(name))) > 1) == moves


OTHERS = [nn.Parameter(torch.ones(2))]


@pytest.mark.parametrize(
    ("optimizer", "message"),
    [
        ("sgd", r"optimizer='sgd' is not known: expected 'adam', or a function \(parameters, lr\)"),
        (None, "optimizer=<NoneType> is not known: expected 'adam', or a function"),
        (torch.optim.SGD(OTHERS, 0.1), "optimizer=<SGD> is not known: .* such as torch.optim.SGD"),
        (lambda parameters, lr: 3, "optimizer=<lambda> returned a int: expected a torch.optim.Opt"),
        (lambda parameters, lr: None, "optimizer=<lambda> returned a NoneType"),
        (
            lambda parameters, lr: torch.optim.SGD(OTHERS, lr),
            "optimizer=<lambda> returned an optimizer of other parameters: make a new one of those",
        ),
    ],
)
def test_what_is_no_optimizer(optimizer, message, rows, tiny):
    model = tiny().fit(rows)
    network = model.network_
    with pytest.raises(ValueError, match=message):
        model.set_params(optimizer=optimizer).fit(rows)
    assert model.network_ is network


def test_functions_in_a_checkpoint_are_known_by_their_names(rows, tiny, tmp_path, always, break_at):
    """Not by their addresses, which are others in the next process."""

    def model():
        def factory(parameters, lr, momentum):
            return torch.optim.SGD(parameters, lr, momentum)

        return tiny(optimizer=partial(factory, momentum=0.5))

    break_at(1)
    with pytest.raises(Killed):
        model().fit(rows, checkpoint=tmp_path / "c")
    break_at(None)
    assert_same(model().fit(rows, checkpoint=tmp_path / "c"), model().fit(rows))
    with pytest.raises(ValueError, match=r"differs in optimizer \('functools.partial\(<function"):
        tiny().fit(rows, checkpoint=tmp_path / "c")
