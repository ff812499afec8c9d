"""Fig. 3a: both losses over λ, on the validation part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from dkae_study.declaration import (
    Claim,
    Contrast,
    Experiment,
    Judgement,
    NetworkSpec,
    Scale,
    Sweep,
    score,
    verdict,
)
from dkae_study.declaration.contrasts import Key
from dkae_study.experiments.losses import SCORES, measure_parts, sweep_figures, sweep_tables
from dkae_study.experiments.trends import (
    ASSUMPTIONS,
    DIFFERENCES,
    TREND,
    curve_of,
    from_to,
    n_seeds,
    signed,
    trend,
)
from dkae_study.results import Job, Run

__all__ = ["ALIGNMENT_WEIGHTS", "LAMBDA"]

ALIGNMENT_WEIGHTS = (0.0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
#: The middle, of which the paper says that both losses are nearly constant there.
MIDDLE = tuple(weight for weight in ALIGNMENT_WEIGHTS if 0.1 <= weight <= 0.9)
#: The middle is flat if its largest value is at most so many times its smallest.
FLAT = 1.5


def _networks(scale: Scale, job: Job) -> dict[str, NetworkSpec]:
    return {"dkae": NetworkSpec(job.recipe, job.seed, float(job.point or 0), scale.n_components)}


# --- claims --------------------------------------------------------------------------------------


def _curves(runs: Sequence[Run]) -> list[dict[float, float]] | None:
    """Return L_r and L_c over λ; None if one of them is not whole."""
    losses = ("reconstruction_mse", "alignment_loss")
    curves = [curve_of(runs, loss, ALIGNMENT_WEIGHTS) for loss in losses]
    whole = [curve for curve in curves if curve is not None]
    return whole if len(whole) == len(losses) else None


def _judge_tradeoff(runs: Sequence[Run]) -> Judgement | None:
    curves = _curves(runs)
    if curves is None:
        return None
    l_r, l_c = curves
    up, down = trend(l_r), trend(l_c)
    return Judgement(
        f"L_r {from_to(l_r)}, L_c {from_to(l_c)}",
        verdict(up >= TREND and down <= -TREND),
        n_seeds(runs),
        f"Way from λ = 0 to 1 over all movement up and down: {signed(up)} (L_r) and "
        f"{signed(down)} (L_c); "
        f"it must be at least {TREND} and at most −{TREND}.",
    )


def _judge_flat_middle(runs: Sequence[Run]) -> Judgement | None:
    curves = _curves(runs)
    if curves is None:
        return None
    factors, shares = [], []
    for curve in curves:
        middle, whole = [curve[weight] for weight in MIDDLE], list(curve.values())
        factors.append(max(middle) / min(middle))
        shares.append((max(middle) - min(middle)) / max(max(whole) - min(whole), 1e-12))
    return Judgement(
        f"L_r within a factor of {factors[0]:.2f}, L_c of {factors[1]:.2f}",
        verdict(max(factors) <= FLAT),
        n_seeds(runs),
        f"Largest over smallest for λ from 0.1 to 0.9; a factor of {FLAT} counts as nearly "
        f"constant. That is {100 * shares[0]:.0f} % of the range of L_r over all λ, and "
        f"{100 * shares[1]:.0f} % of that of L_c.",
    )


# --- contrasts -----------------------------------------------------------------------------------


def _in_the_middle(loss: str) -> Callable[[Sequence[Run]], dict[Key, float]]:
    """Return the validation loss for λ from 0.1 to 0.9, the range that the paper speaks of."""

    def numbers(runs: Sequence[Run]) -> dict[Key, float]:
        everywhere = score("validation", loss)(runs)
        return {key: value for key, value in everywhere.items() if key[1] in MIDDLE}

    return numbers


def _growth(runs: Sequence[Run]) -> dict[Key, float]:
    """Return the largest L_r over the smallest for λ from 0.1 to 0.9, of seeds that have all."""
    seeds: dict[int, list[float]] = {}
    for (seed, _), value in _in_the_middle("reconstruction_mse")(runs).items():
        seeds.setdefault(seed, []).append(value)
    return {
        (seed, None): max(values) / min(values)
        for seed, values in seeds.items()
        if len(values) == len(MIDDLE)
    }


LAMBDA = Experiment(
    name="lambda",
    title="The trade-off between reconstruction and alignment",
    reference="Fig. 3a, Section 4.2",
    summary="Networks for nine values of λ, from a plain autoencoder (λ = 0) to alignment alone "
    "(λ = 1); both losses on the validation part.",
    data="networks from the training part, losses on the validation part",
    methods=("dkAE",),
    sweep=Sweep("λ", lambda scale: ALIGNMENT_WEIGHTS),
    n_seeds=1,
    metrics=SCORES,
    assumptions=ASSUMPTIONS,
    differences=(
        *DIFFERENCES,
        "With the paper's recipe nothing trains the decoder at λ = 1: L_r is what the transposed "
        "weights of the encoder happen to give. On an axis that reaches so far up, L_r looks flat "
        "for λ from 0.1 to 0.9; as a factor it is not.",
        "The default recipe trains the decoder alone in the end, on codes that stand still, "
        "whatever λ is, so that L_r grows less; study/benchmarks/flat_middle.py has it without "
        "that.",
    ),
    claims=(
        Claim("A larger λ gives a lower L_c and a higher L_r", "Fig. 3a", _judge_tradeoff),
        Claim(
            "Both losses are nearly constant for λ from 0.1 to 0.9", "Fig. 3a", _judge_flat_middle
        ),
    ),
    contrasts=(
        Contrast("L_r for λ from 0.1 to 0.9", _in_the_middle("reconstruction_mse")),
        Contrast("L_c for λ from 0.1 to 0.9", _in_the_middle("alignment_loss")),
        Contrast("Largest L_r over the smallest for λ from 0.1 to 0.9", _growth, digits=1),
    ),
    networks=_networks,
    measure=measure_parts,
    seconds=8,
    figures=partial(sweep_figures, axis="λ, weight of the alignment loss"),
    tables=sweep_tables,
)
