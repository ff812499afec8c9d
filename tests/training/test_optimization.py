"""Optimizers by name and of the user, on every schedule."""

from __future__ import annotations

from functools import partial
from itertools import cycle

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
    "adam": "adam",
    "SGD with momentum": partial(torch.optim.SGD, momentum=0.9),
    "RMSprop": torch.optim.RMSprop,
    "AdamW": partial(torch.optim.AdamW, weight_decay=0.1),
    "two groups": two_groups,
}


@pytest.fixture
def fit(rows, tiny):
    """Return a function that fits a model with some optimization."""

    def run(checkpoint=None, optimizer="adam", learning_rate="onecycle", **params):
        model = tiny().set_params(
            optimization__optimizer=optimizer, optimization__learning_rate=learning_rate, **params
        )
        return model.fit(rows, checkpoint=checkpoint)

    return run


@pytest.mark.parametrize(
    ("name", "schedule"), list(zip(FACTORIES, cycle(LEARNING_RATES), strict=False))
)
def test_every_optimizer_on_every_schedule_resumes_from_a_checkpoint(
    name, schedule, fit, tmp_path, always, break_at
):
    params = {"optimizer": FACTORIES[name], "learning_rate": schedule, "max_iter": 2}
    params |= {"pretrain_max_iter": 1, "decoder_max_iter": 1}
    unbroken = fit(**params)
    assert len(unbroken.history_) == 5
    assert len({record["loss"] for record in unbroken.history_}) == 5
    break_at(3)
    with pytest.raises(Killed):
        fit(tmp_path / "c", **params)
    break_at(None)
    assert_same(fit(tmp_path / "c", **params), unbroken)


def test_adam_is_the_default(fit):
    factory = partial(torch.optim.Adam, fused=True)
    # "onecycle" moves the momentum of "adam" alone.
    assert_same(fit(optimizer=factory, learning_rate="cosine"), fit(learning_rate="cosine"))


def test_a_factory_gets_the_rate_of_each_phase(fit):
    rates = []

    def factory(parameters, lr):
        rates.append(lr)
        return torch.optim.SGD(parameters, lr)

    fit(optimizer=factory, decoder_max_iter=1, optimization__learning_rate_init=0.02)
    assert rates == [0.02, 0.01]


@pytest.mark.parametrize("schedule", LEARNING_RATES)
def test_the_rate_that_a_factory_sets_is_the_peak(schedule, fit):
    rates = Rates()
    factory = lambda parameters, lr: torch.optim.SGD(parameters, 0.07)  # noqa: E731
    fit(optimizer=factory, learning_rate=schedule, callbacks=[rates], max_iter=10)
    assert 0.068 < max(rates.of("lr")) <= 0.07


def test_each_group_has_a_rate_of_its_own(fit):
    rates = Rates()
    fit(optimizer=two_groups, callbacks=[rates])
    for first, second in rates.groups:
        assert second["lr"] == pytest.approx(first["lr"] / 10)


@pytest.mark.parametrize(
    ("factory", "name", "moves"),
    [
        ("adam", "betas", True),
        (partial(torch.optim.SGD, momentum=0.5), "momentum", False),
        (torch.optim.AdamW, "betas", False),
    ],
)
def test_onecycle_moves_the_momentum_of_our_optimizer_alone(factory, name, moves, fit):
    rates = Rates()
    fit(optimizer=factory, callbacks=[rates], max_iter=5)
    assert (len(set(rates.of(name))) > 1) == moves


@pytest.mark.parametrize("name", LEARNING_RATES)
@pytest.mark.parametrize("n_steps", [1, 3, 57])
def test_schedules_never_exceed_the_peak_and_work_for_any_budget(name, n_steps):
    optimizer = torch.optim.Adam([nn.Parameter(torch.ones(1))], 0.1)
    schedule = LEARNING_RATES[name](optimizer, n_steps, True)
    rates = []
    for _ in range(n_steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    assert 0 < max(rates) <= 0.1 + 1e-12
    if name == "constant":
        assert rates == [0.1] * n_steps
    elif n_steps == 57 and name != "endless":  # which knows no end to come to
        assert rates[-1] < 0.001


def test_clipping_bounds_the_gradient(fit):
    class Norms:
        seen = ()

        def on_step_end(self, trainer, phase):
            gradients = [p.grad for p in trainer.parameters if p.grad is not None]
            self.seen += (float(torch.cat([g.ravel() for g in gradients]).norm()),)

    plain, clipped = Norms(), Norms()
    fit(callbacks=[plain])
    fit(callbacks=[clipped], optimization__max_grad_norm=1e-3)
    assert min(plain.seen) > 1e-3
    assert max(clipped.seen) <= 1e-3 * 1.001


OTHERS = [nn.Parameter(torch.ones(2))]


@pytest.mark.parametrize(
    ("optimizer", "message"),
    [
        ("sgd", r"optimizer='sgd' is not known: expected 'adam', or a function \(parameters, lr\)"),
        (None, "optimizer=<NoneType> is not known: expected 'adam', or a function"),
        (torch.optim.SGD(OTHERS, 0.1), "optimizer=<SGD> is not known: .* such as torch.optim.SGD"),
        (lambda parameters, lr: 3, "optimizer=<lambda> returned a int: expected a torch.optim.Opt"),
        (
            lambda parameters, lr: torch.optim.SGD(OTHERS, lr),
            "optimizer=<lambda> returned an optimizer of other parameters: make a new one of those",
        ),
    ],
)
def test_what_is_no_optimizer(optimizer, message, fit):
    with pytest.raises(ValueError, match=message):
        fit(optimizer=optimizer)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("learning_rate", "cyclic", "learning_rate='cyclic' is not known: expected one of"),
        ("learning_rate_init", 0, r"learning_rate_init=0 must be a number in \(0, inf\)"),
        ("max_grad_norm", -1, r"max_grad_norm=-1 must be a number in \(0, inf\)"),
    ],
)
def test_other_bad_parameters(name, value, message, tiny, rows):
    with pytest.raises(ValueError, match=message):
        tiny(**{f"optimization__{name}": value}).fit(rows)
