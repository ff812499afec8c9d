r"""Hundreds of Gaussian mixtures with diagonal covariance at once: their densities, and their fit.

The components of all mixtures form one stack, so that a few large matrix products serve all of
them; only the soft-max is taken within each mixture. With

.. math::
    \log w_k \mathcal N(x; \mu_k, \sigma_k^2)
    = \Bigl\langle (x^2, x),\; \bigl(-\tfrac{1}{2 \sigma_k^2}, \tfrac{\mu_k}{\sigma_k^2}\bigr)
      \Bigr\rangle + c_k , \qquad
    c_k = \log w_k - \tfrac12 \sum_d \Bigl( \frac{\mu_{kd}^2}{\sigma_{kd}^2}
      + \log 2 \pi \sigma_{kd}^2 \Bigr) ,

the E-step for all mixtures is one product of the moments :math:`(x^2, x)`, (n × 2d), with (2d × all
components), and the M-step one of (all components × n) with (n × 2d). The steps are those of
scikit-learn's ``GaussianMixture``, which is the oracle in the tests.

Everything here is float64. Where all members of a component agree in a feature, its variance is
``reg_covar``: with 1e-6 the terms above reach 1e8, and float32 leaves errors of up to about 10 in
an exponent. Variances are differences of moments, so rows should be centred: far from the origin
variances lose their digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from dkae._support.processes import present
from dkae._support.threads import in_threads

#: Parameters of a batch of components take about this many bytes: batches that fit into the caches
#: are faster than one of everything.
MAX_BATCH_BYTES = 2**22
#: exp is 0 below this exponent: below -708, where float64 ends, it takes ten times as long.
LOWEST = -600.0
ZERO = math.exp(LOWEST)
#: Posteriors that change by no more than this, the round-off of float64, count as unmoved.
UNMOVED = 2.0**-52
#: A smaller share of a row in a component vanishes in the round-off of the component's moments,
#: unless the row is very much larger than the others; its share is then 0 after the next step.
NEGLIGIBLE = 2.0**-60
#: A sparse product is faster than a dense one if at most this part of the shares matters.
MAX_DENSITY = 0.15
#: Rows whose standard deviation is this times a number from √0.1 to √10 have the unit 1: pixels in
#: [0, 1] (about 0.3) and standardised rows (1).
TYPICAL = 0.45

#: Weights, means and variances of some components.
Components = tuple[Tensor, Tensor, Tensor]


@dataclass(frozen=True)
class Mixtures:
    """Parameters of many mixtures; component k of the stack belongs to one of them.

    Attributes
    ----------
    sizes : Tensor of shape (n_mixtures,)
        Components of each mixture, in ascending order.
    weights : Tensor of shape (n_components,)
        Summing to 1 within each mixture.
    means, covariances : Tensor of shape (n_components, n_features)
        Means, and variances: the diagonals of the covariances.
    """

    sizes: Tensor
    weights: Tensor
    means: Tensor
    covariances: Tensor

    @property
    def components(self) -> Components:
        """The parameters of all components."""
        return self.weights, self.means, self.covariances

    def part(self, mixtures: slice | Tensor, components: slice | Tensor) -> Mixtures:
        """Return some of the mixtures; `components` selects those that belong to them."""
        return Mixtures(self.sizes[mixtures], *(t[components] for t in self.components))


# --- densities -----------------------------------------------------------------------------------


def posteriors(X: Tensor, mixtures: Mixtures) -> Tensor:
    r"""Return :math:`\pi(x)` under every mixture, side by side: (n_samples, n_components)."""
    shares, _ = soft_max(log_joint(moments_of(X), *mixtures.components), mixtures.sizes)
    result = shares.T.contiguous()
    if not result.isfinite().all():
        raise ValueError(
            "posteriors are not finite: rows are too far from those that the mixtures were fitted "
            "on, or too large for float64 squares"
        )
    return result


def moments_of(X: Tensor) -> Tensor:
    """Return the moments (x², x) of each row, in which log-densities are linear."""
    return torch.cat([X.square(), X], dim=1)


def log_joint(moments: Tensor, weights: Tensor, means: Tensor, variances: Tensor) -> Tensor:
    """Return log w N(x) as (components, n), the order in which the rest of a step reads it."""
    slopes, constants = linear_form(weights, means, variances)
    # A tenth faster than the product the other way round.
    return torch.addmm(constants, moments, slopes.T).T.contiguous()


def linear_form(weights: Tensor, means: Tensor, variances: Tensor) -> tuple[Tensor, Tensor]:
    """Return slopes and constants of log w N(x), linear in the moments of x.

    If a component has one variance for all features, the moments are (‖x‖², x).
    """
    d, n_squares = means.shape[1], variances.shape[1]
    slopes = means.new_empty(len(means), n_squares + d)
    torch.div(-0.5, variances, out=slopes[:, :n_squares])
    torch.div(means, variances, out=slopes[:, n_squares:])
    log_determinant = variances.log().sum(dim=1) * (d / max(1, n_squares))
    squares = (means * slopes[:, n_squares:]).sum(dim=1)
    constants = weights.log() - 0.5 * (squares + log_determinant + d * math.log(2 * math.pi))
    return slopes, constants


def soft_max(joint: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
    """Return the soft-max of log w N(x) within each mixture, and the log-sum-exp."""
    result, likelihoods = torch.empty_like(joint), []
    for part, count, size in equal_sizes(sizes.tolist()):
        view, share = (t[part].view(count, size, -1) for t in (joint, result))
        # Log-sum-exp and soft-max in one: the exponential is what costs.
        largest = view.amax(dim=1, keepdim=True)
        share = torch.sub(view, largest, out=share).clamp_(min=LOWEST).exp_().sub_(ZERO)
        total = share.sum(dim=1, keepdim=True)
        share.div_(total)
        likelihoods.append((largest + total.log()).squeeze(1))
    return result, torch.cat(likelihoods)


def equal_sizes(sizes: Sequence[int]) -> Iterator[tuple[slice, int, int]]:
    """Yield the components of all mixtures of one size, how many mixtures, and the size.

    Mixtures of equal size are neighbours: a few slices serve all, with no loop over mixtures.
    """
    start = 0
    for size, equals in groupby(sizes):
        count = len(list(equals))
        yield slice(start, start + size * count), count, size
        start += size * count


# --- the first step ------------------------------------------------------------------------------


def first_densities(
    rows: Tensor, max_components: int, n_initializations: int, *, reg_covar: float, seed: int
) -> tuple[Tensor, Callable[[slice], Tensor]]:
    """Return the sizes of all mixtures, and a function for log w N(x) before the first step.

    The means of a mixture are g distinct rows, its weights are equal, and its covariances are the
    mean variance of all rows in all directions. Each mixture (q, g) has its own seed and does not
    depend on the others.
    """
    chosen = [
        np.random.default_rng([seed, q, g]).choice(len(rows), g, replace=False)
        for g in range(2, max_components + 1)
        for q in range(n_initializations)
    ]
    sizes = torch.tensor([len(c) for c in chosen], device=rows.device)
    weights = torch.repeat_interleave(1 / sizes.to(rows.dtype), sizes).unsqueeze(1)
    # One table of log-densities around all first means serves every mixture.
    centres, first = (
        torch.from_numpy(t).to(rows.device)
        for t in np.unique(np.concatenate(chosen), return_inverse=True)
    )
    variances = rows.new_full((len(centres), 1), _variance_of(rows) + reg_covar)
    moments = torch.cat([rows.square().sum(dim=1, keepdim=True), rows], dim=1)
    table = log_joint(moments, rows.new_ones(len(centres)), rows[centres], variances)

    def log_densities(part: slice) -> Tensor:
        return table.index_select(0, first[part]).add_(weights[part].log())

    return sizes, log_densities


def unit_of(rows: Tensor) -> float:
    """Return the power of ten that is nearest to the spread of the rows, on a log scale.

    A power of ten, so that usual rows keep their unit, 1, to the last digit.
    """
    deviation = math.sqrt(_variance_of(rows))
    return 10.0 ** round(math.log10(deviation / TYPICAL)) if deviation > 0 else 1.0


def _variance_of(rows: Tensor) -> float:
    """Return the mean variance of all features."""
    return float((rows - rows.mean(dim=0)).square().sum()) / max(1, rows.numel())


# --- expectation maximisation --------------------------------------------------------------------


class FitResult(NamedTuple):
    """Mixtures after the last step, which of them converged, and after how many steps."""

    mixtures: Mixtures
    converged: Tensor
    n_iter: Tensor


def fit_mixtures(
    X: Tensor,
    sizes: Tensor,
    start: Callable[[slice], Tensor],
    *,
    reg_covar: float,
    max_iter: int,
    tol: float,
) -> FitResult:
    """Run expectation maximisation on all mixtures, each until it converges.

    A mixture has converged when its mean log-likelihood changes by less than `tol`; one whose
    likelihood is not finite never converges. The rows of `X` are centred, `sizes` in ascending
    order. `start` returns log w N(x) before the first step for a slice of all components, as a new
    array of (components × n). The other parameters are those of scikit-learn.
    """
    n_components, d = int(sizes.sum()), X.shape[1]
    # The first step writes every component; what another process fits stays 0.
    parameters = [X.new_zeros(n_components, *rest) for rest in [(), (d,), (d,)]]
    mixtures = Mixtures(sizes, *parameters)
    converged, n_iter = torch.zeros_like(sizes), torch.zeros_like(sizes)
    moments = moments_of(X)

    def fit(batch: tuple[slice, slice]) -> None:
        views = FitResult(mixtures.part(*batch), converged[batch[0]], n_iter[batch[0]])
        _fit_batch(moments, start(batch[1]), views, reg_covar, max_iter, tol)

    own = list(_batches(mixtures))[present().rank :: present().size]
    for _ in in_threads(fit, own, X.device):
        pass
    present().sum(*parameters, converged, n_iter)
    # The last step may have spoilt a mixture that had converged.
    return FitResult(mixtures, converged.bool() & _are_valid(mixtures), n_iter)


def _batches(mixtures: Mixtures) -> Iterator[tuple[slice, slice]]:
    """Yield consecutive mixtures and their components, of about `MAX_BATCH_BYTES` each."""
    ends = mixtures.sizes.cumsum(0)
    n_bytes = ends * mixtures.means.shape[1] * mixtures.means.element_size()
    last = [*((n_bytes // MAX_BATCH_BYTES).diff() > 0).nonzero().flatten().tolist(), len(ends) - 1]
    first_mixture = first_component = 0
    for end in last:
        yield slice(first_mixture, end + 1), slice(first_component, int(ends[end]))
        first_mixture, first_component = end + 1, int(ends[end])


def _fit_batch(
    moments: Tensor, joint: Tensor, into: FitResult, reg_covar: float, max_iter: int, tol: float
) -> None:
    """Run expectation maximisation on a few mixtures, and write the result to `into`.

    A mixture that has converged leaves the batch. A component whose posteriors did not move keeps
    its parameters and log-densities: after three steps most of them do.
    """
    sizes = into.mixtures.sizes
    # Indices of the mixtures and components that are still in the batch.
    ids, live = (torch.arange(len(t), device=joint.device) for t in (sizes, joint))
    bound = joint.new_full((len(ids),), -math.inf)
    before = torch.full_like(joint, -1)
    for step in range(1, max_iter + 1):
        into.n_iter[ids] = step
        responsibilities, log_likelihood = soft_max(joint, sizes[ids])
        # NaN counts as moved.
        moved = _where(~((responsibilities - before).abs_().amax(dim=1) <= UNMOVED))
        better = _maximize(moments, responsibilities.index_select(0, moved), reg_covar)
        for parameter, values in zip(into.mixtures.components, better, strict=True):
            parameter[live[moved]] = values
        previous, bound = bound, log_likelihood.mean(dim=1)
        done = (bound - previous).abs() < tol
        into.converged[ids[done]] = 1
        going_on = ~done & bound.isfinite()
        if step == max_iter or not going_on.any():
            return
        joint[moved] = log_joint(moments, *better)
        if not going_on.all():
            stay = _where(torch.repeat_interleave(going_on, sizes[ids]))
            ids, bound, live = ids[going_on], bound[going_on], live[stay]
            joint, responsibilities = (t.index_select(0, stay) for t in (joint, responsibilities))
        before = responsibilities


def _maximize(moments: Tensor, responsibilities: Tensor, reg_covar: float) -> Components:
    """Return the components that fit best: the M-step."""
    # As in scikit-learn: an empty component keeps a finite mean.
    mass = responsibilities.sum(dim=1) + 10 * torch.finfo(moments.dtype).eps
    averages = _averages(responsibilities / mass.unsqueeze(1), moments)
    squares, means = averages.tensor_split(2, dim=1)
    variances = squares.addcmul_(means, means, value=-1).add_(reg_covar)
    return mass / len(moments), means, variances


def _averages(shares: Tensor, moments: Tensor) -> Tensor:
    """Return shares @ moments, as a sparse product if few shares matter."""
    if shares.device.type == "cpu":
        matters = ~(shares <= NEGLIGIBLE)  # NaN matters too
        if matters.sum() < MAX_DENSITY * shares.numel():
            ends = torch.nn.functional.pad(matters.sum(dim=1).cumsum(0), (1, 0))
            parts = (shares[matters], matters.nonzero()[:, 1], ends)
            few = sparse.csr_array(tuple(t.numpy() for t in parts), shape=shares.shape)
            return torch.from_numpy(few @ moments.numpy())
    return shares @ moments


def _are_valid(mixtures: Mixtures) -> Tensor:
    """Return for each mixture whether all of its components are valid distributions."""
    variances = mixtures.covariances
    is_bad = ~((variances > 0) & variances.isfinite()).all(dim=1)
    owners = torch.repeat_interleave(mixtures.sizes)
    return torch.zeros_like(mixtures.sizes).index_add_(0, owners, is_bad.long()) == 0


def _where(mask: Tensor) -> Tensor:
    """Return the indices of True: they select rows twice as fast as the mask."""
    return mask.nonzero().flatten()
