"""Fig. 3b: both losses over the width N_c of the code, on the validation part."""

from __future__ import annotations

from collections.abc import Sequence
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

__all__ = ["CODE_SIZE"]

#: λ of all experiments that do not sweep over it.
ALIGNMENT_WEIGHT = 0.1


def _networks(scale: Scale, job: Job) -> dict[str, NetworkSpec]:
    return {"dkae": NetworkSpec(job.recipe, job.seed, ALIGNMENT_WEIGHT, int(job.point or 0))}


def _judge(runs: Sequence[Run]) -> Judgement | None:
    sizes = runs[0].config["scale"]["code_sizes"] if runs else ()
    l_r, l_c = (curve_of(runs, loss, sizes) for loss in ("reconstruction_mse", "alignment_loss"))
    if l_r is None or l_c is None:
        return None
    trends = [trend(l_r), trend(l_c)]
    return Judgement(
        f"L_r {from_to(l_r)}, L_c {from_to(l_c)}",
        verdict(max(trends) <= -TREND),
        n_seeds(runs),
        f"From N_c = {min(l_r):g} to {max(l_r):g}. Way over all movement up and down: "
        f"{signed(trends[0])} (L_r) and {signed(trends[1])} (L_c); both must be at most "
        f"−{TREND}.",
    )


CODE_SIZE = Experiment(
    name="code-size",
    title="The width of the code",
    reference="Fig. 3b, Section 4.2",
    summary="Networks with codes of several widths at λ = 0.1; both losses on the validation part.",
    data="networks from the training part, losses on the validation part",
    methods=("dkAE",),
    sweep=Sweep("N_c", lambda scale: tuple(scale.settings["code_sizes"])),
    n_seeds=1,
    metrics=SCORES,
    assumptions=ASSUMPTIONS,
    differences=DIFFERENCES,
    claims=(Claim("Both losses fall as N_c grows", "Fig. 3b", _judge),),
    contrasts=(
        Contrast("L_r over N_c", score("validation", "reconstruction_mse")),
        Contrast("L_c over N_c", score("validation", "alignment_loss")),
    ),
    networks=_networks,
    measure=measure_parts,
    seconds=8,
    figures=partial(sweep_figures, axis="N_c, width of the code"),
    tables=sweep_tables,
)
