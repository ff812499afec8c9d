"""The cost of each measure of alignment, what rounding does to them, the bias of Eq. 6 on blocks.

Cost: forward and backward on a block of k rows, all measures in turn, the median of twenty, and how
many times that of Eq. 6. Rounding: how far gradients from float32 matrices of low rank are from
those in float64, for several ε of the divergences. Bias: a prior of soft clusters whose diagonal is
a tenth of ‖P‖² in a block of 200 of its 3,000 rows, as in the study; its best codes of low rank,
moved away from there until L_c of all pairs has a given value; then the cosine of the mean gradient
over blocks with the gradient of Eq. 6 over all pairs. A minute on one core. Writes
``results/alignment_measures.json``, where other processors keep what they have.
"""

from __future__ import annotations

import json
import statistics
from functools import partial
from typing import Any

import torch
from dkae_study.engine.provenance import machine
from measuring import make_parser, save, timed
from torch import Tensor

from dkae.alignment import (
    MEASURES,
    Measure,
    bures,
    divergences,
    frobenius,
    jensen_renyi,
    logdet,
    offdiagonal,
    von_neumann,
)

REPEATS = 20
N_ROWS, N_BLOCK_ROWS = 3000, 200
#: L_c of the best codes of low rank, and those at which the gradients are compared.
LEAST, LOSSES = 0.045, (0.2, 0.1, 0.07, 0.05, 0.046)
#: How often each row is in a block: the mean gradient no longer changes.
N_PASSES = 50


def gradient(measure: Measure, codes: Tensor, prior: Tensor) -> Tensor:
    """Return the gradient of a measure in the codes."""
    codes = codes.clone().requires_grad_()
    return torch.autograd.grad(measure(codes @ codes.T, prior), codes)[0]


def cost(k: int) -> dict[str, Any]:
    """Return the milliseconds of each measure on a block of k rows, and their ratio to Eq. 6."""
    rows = torch.randn(k, 20)
    codes = torch.randn(k, k)
    code_gram = (codes @ codes.T).requires_grad_()
    prior = torch.exp(-(torch.cdist(rows, rows) ** 2) / 40)
    seconds: dict[str, list[float]] = {name: [] for name in MEASURES}
    for _ in range(1 + REPEATS):
        for name, measure in MEASURES.items():
            seconds[name].append(timed(partial(_step, measure, code_gram, prior))[0])
    median = {name: statistics.median(times[1:]) for name, times in seconds.items()}
    return {
        "milliseconds": {name: round(1e3 * s, 2) for name, s in median.items()},
        "times_frobenius": {name: round(s / median["frobenius"], 1) for name, s in median.items()},
    }


def _step(measure: Measure, code_gram: Tensor, prior: Tensor) -> None:
    torch.autograd.grad(measure(code_gram, prior), code_gram)


def rounding(k: int = 500) -> dict[str, dict[str, float]]:
    """Return the relative errors of gradients in float32, for each ε of the divergences."""
    rows = torch.rand(k, 64, dtype=torch.float64)
    codes = rows @ torch.randn(64, k, dtype=torch.float64) / 8
    prior = torch.exp(-(torch.cdist(rows, rows) ** 2) / 16)
    errors: dict[str, dict[str, float]] = {}
    chosen = divergences.EPSILON
    for epsilon in (1e-2, 1e-3, 1e-4, 1e-5):
        divergences.EPSILON = epsilon
        for measure in (logdet, von_neumann, jensen_renyi, bures):
            exact = gradient(measure, codes, prior)
            error = gradient(measure, codes.float(), prior.float()) - exact
            relative = (error.norm() / exact.norm()).item()
            errors.setdefault(measure.__name__, {})[f"{epsilon:g}"] = float(f"{relative:.1e}")
    divergences.EPSILON = chosen
    return errors


def soft_clusters() -> Tensor:
    """Return features of the prior: memberships of ten mixtures, scaled to norm 1."""
    rows = torch.randn(N_ROWS, 16)
    mixtures = [torch.cdist(rows, torch.randn(20, 16)).square() / -2 for _ in range(10)]
    features = torch.cat([mixture.softmax(dim=1) for mixture in mixtures], dim=1)
    return features / features.norm(dim=1, keepdim=True)


def best_codes(features: Tensor) -> Tensor:
    """Return the codes of least rank that reach the loss `LEAST`: the first kernel PCA scores."""
    u, s, _ = torch.linalg.svd(features, full_matrices=False)
    # A² = Σ_{i ≤ m} σ_i⁴ / Σ σ_i⁴
    losses = (2 - 2 * (s.pow(4).cumsum(0) / s.pow(4).sum()).sqrt()).clamp_min(0).sqrt()
    m = int((losses > LEAST).sum()) + 1
    return u[:, :m] * s[:m]


def moved(codes: Tensor, direction: Tensor, prior: Tensor, loss: float) -> Tensor:
    """Return the codes moved along a direction until L_c has that value, by bisection."""
    low, high = 0.0, 2.0
    for _ in range(30):
        middle = (low + high) / 2
        there = codes + middle * direction
        low, high = (middle, high) if frobenius(there @ there.T, prior) < loss else (low, middle)
    return codes + low * direction


def bias(n_passes: int) -> dict[str, Any]:
    """Return the cosines of the mean gradients over blocks with the gradient of all pairs."""
    features = soft_clusters()
    prior, best = features @ features.T, best_codes(features)
    direction = best * torch.randn(best.shape[1])  # each component too long or too short
    results: dict[str, Any] = {
        "n_components": best.shape[1],
        "share_of_the_diagonal": {
            str(k): round((prior[:k, :k].diagonal().norm() / prior[:k, :k].norm()).item() ** 2, 4)
            for k in (N_BLOCK_ROWS, N_ROWS)
        },
    }
    for loss in LOSSES:
        codes = moved(best, direction, prior, loss)
        whole = gradient(frobenius, codes, prior)
        results[f"cosine at L_c = {loss:g}"] = {
            measure.__name__: round(
                cosine(mean_gradient(measure, codes, prior, n_passes), whole), 3
            )
            for measure in (frobenius, offdiagonal)
        }
    return results


def mean_gradient(measure: Measure, codes: Tensor, prior: Tensor, n_passes: int) -> Tensor:
    """Return the gradient averaged over random blocks; every row is in as many of them."""
    total = torch.zeros_like(codes)
    for _ in range(n_passes):
        for rows in torch.randperm(N_ROWS).split(N_BLOCK_ROWS):
            total[rows] += gradient(measure, codes[rows], prior[rows][:, rows])
    return total / n_passes


def cosine(a: Tensor, b: Tensor) -> float:
    return torch.nn.functional.cosine_similarity(a.flatten(), b.flatten(), dim=0).item()


def main() -> None:
    """Measure cost, rounding and bias."""
    parser = make_parser("alignment_measures", __doc__)
    parser.add_argument("--passes", type=int, default=N_PASSES, help="over all rows, for the bias")
    given = parser.parse_args()
    torch.manual_seed(0)
    results: dict[str, Any] = {f"cost, {k} rows": cost(k) for k in (200, 500)}
    results["rounding, 500 rows, by epsilon"] = rounding()
    results["bias of blocks"] = bias(given.passes)
    print(json.dumps(results, indent=1))
    known = json.loads(given.results.read_text()) if given.results.exists() else {}
    here = f"{machine()['processor']}, {torch.get_num_threads()} threads"
    save(given.results, known | {here: results})


if __name__ == "__main__":
    main()
