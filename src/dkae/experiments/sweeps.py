"""Fig. 3: both losses over λ, and over the width N_c of the code, on the validation part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scipy.stats import spearmanr

from dkae.estimator import DeepKernelizedAutoencoder
from dkae.experiments.declaration import Claim, Experiment, Job, Judgement, Outcome, Sweep, verdict
from dkae.experiments.results import Run
from dkae.experiments.scales import ALIGNMENT_WEIGHTS, Scale
from dkae.experiments.scoring import SCORES, part_scores
from dkae.experiments.workshop import Network, Workshop

__all__ = ["CODE_SIZE", "LAMBDA"]

#: λ of all experiments that do not sweep over it.
ALIGNMENT_WEIGHT = 0.1
#: A trend counts as such if the ranks of the values correlate as strongly as this.
TREND = 0.8
#: The middle is flat if it has less than this share of the whole range.
FLAT = 0.25


def _measure(
    workshop: Workshop, job: Job, models: Mapping[str, DeepKernelizedAutoencoder]
) -> Outcome:
    kernel = workshop.kernel(job.seed)
    return Outcome(
        {
            name: part_scores(models["dkae"], kernel, workshop.parts[name].X)
            for name in ("validation", "test")
        }
    )


def _lambda_network(scale: Scale, job: Job) -> dict[str, Network]:
    return {"dkae": Network(job.recipe, job.seed, float(job.point or 0), scale.n_components)}


def _code_size_network(scale: Scale, job: Job) -> dict[str, Network]:
    return {"dkae": Network(job.recipe, job.seed, ALIGNMENT_WEIGHT, int(job.point or 0))}


# --- claims --------------------------------------------------------------------------------------


def _curve(runs: Sequence[Run], loss: str) -> dict[float, float]:
    """Return the validation loss of the first seed by value of the axis, in its order."""
    losses = {
        float(run.point): float(run.scores["validation"][loss])
        for run in runs
        if run.seed == 0 and isinstance(run.point, (int, float))
    }
    return dict(sorted(losses.items()))


def _trend(curve: Mapping[float, float]) -> float:
    return float(spearmanr(list(curve), list(curve.values())).statistic)


def _from_to(curve: Mapping[float, float]) -> str:
    values = list(curve.values())
    return f"{values[0]:.4g} → {values[-1]:.4g}"


def _judge_tradeoff(runs: Sequence[Run]) -> Judgement | None:
    l_r, l_c = _curve(runs, "reconstruction_mse"), _curve(runs, "alignment_loss")
    if len(l_r) < len(ALIGNMENT_WEIGHTS):
        return None
    up, down = _trend(l_r), _trend(l_c)
    return Judgement(
        f"L_r {_from_to(l_r)}, L_c {_from_to(l_c)}",
        verdict(up >= TREND and down <= -TREND),
        f"Rank correlation with λ: {up:.2f} (L_r) and {down:.2f} (L_c); it must be at least "
        f"{TREND} and at most -{TREND}.",
    )


def _judge_flat_middle(runs: Sequence[Run]) -> Judgement | None:
    shares = []
    for loss in ("reconstruction_mse", "alignment_loss"):
        curve = _curve(runs, loss)
        if len(curve) < len(ALIGNMENT_WEIGHTS):
            return None
        middle = [value for weight, value in curve.items() if 0.1 <= weight <= 0.9]
        whole = list(curve.values())
        shares.append((max(middle) - min(middle)) / max(max(whole) - min(whole), 1e-12))
    return Judgement(
        f"{100 * shares[0]:.0f} % of the range of L_r, {100 * shares[1]:.0f} % of that of L_c",
        verdict(max(shares) <= FLAT),
        f"How much of the range over all λ lies between λ = 0.1 and 0.9; at most {FLAT:.0%} of it "
        "counts as nearly constant.",
    )


def _judge_code_size(runs: Sequence[Run]) -> Judgement | None:
    l_r, l_c = _curve(runs, "reconstruction_mse"), _curve(runs, "alignment_loss")
    if len(l_r) < 3:
        return None
    trends = [_trend(l_r), _trend(l_c)]
    return Judgement(
        f"L_r {_from_to(l_r)}, L_c {_from_to(l_c)}",
        verdict(max(trends) <= -TREND),
        f"From N_c = {min(l_r):g} to {max(l_r):g}. Rank correlation with N_c: {trends[0]:.2f} "
        f"(L_r) and {trends[1]:.2f} (L_c); both must be at most -{TREND}.",
    )


# --- declarations --------------------------------------------------------------------------------

_DIFFERENCES = (
    "The figure in the paper has no numbers, so that only its shape can be compared.",
    "A network takes 490,000 steps of fine-tuning in the paper, and as many here only at the scale "
    "paper.",
    "The variances of the prior's mixtures are regularised by 1e-3; the paper does not say by how "
    "much.",
)
_ASSUMPTIONS = (
    "L_r is the mean squared error of a pixel, L_c is Eq. 6 on all pairs of the validation rows.",
    "One seed: the trend over the axis is large against the spread of seeds.",
)

LAMBDA = Experiment(
    name="lambda",
    title="The trade-off between reconstruction and alignment",
    reference="Fig. 3a, Section 4.2",
    summary="Networks for nine values of λ, from a plain autoencoder (λ = 0) to alignment alone "
    "(λ = 1); both losses on the validation part.",
    data="MNIST-20k: networks from the training part, losses on the validation part",
    methods=("dkAE",),
    sweep=Sweep("λ", lambda scale: ALIGNMENT_WEIGHTS),
    n_seeds=1,
    metrics=SCORES,
    paper_values={},
    assumptions=_ASSUMPTIONS,
    differences=(
        *_DIFFERENCES,
        "At λ = 1 nothing trains the decoder's biases towards the images, so that L_r is what the "
        "transposed weights happen to give.",
    ),
    claims=(
        Claim(
            "A larger λ gives a lower L_c and a higher L_r",
            "Fig. 3a",
            _judge_tradeoff,
        ),
        Claim(
            "Both losses are nearly constant for λ from 0.1 to 0.9",
            "Fig. 3a",
            _judge_flat_middle,
        ),
    ),
    networks=_lambda_network,
    measure=_measure,
)

CODE_SIZE = Experiment(
    name="code-size",
    title="The width of the code",
    reference="Fig. 3b, Section 4.2",
    summary="Networks with codes from 10 to 2,000 wide at λ = 0.1; both losses on the validation "
    "part.",
    data=LAMBDA.data,
    methods=("dkAE",),
    sweep=Sweep("N_c", lambda scale: scale.code_sizes),
    n_seeds=1,
    metrics=SCORES,
    paper_values={},
    assumptions=_ASSUMPTIONS,
    differences=_DIFFERENCES,
    claims=(Claim("Both losses fall as N_c grows", "Fig. 3b", _judge_code_size),),
    networks=_code_size_network,
    measure=_measure,
)
