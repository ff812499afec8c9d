r"""Hundreds of Gaussian mixtures fitted together by expectation maximisation.

The components of all mixtures stand in one stack, so that a step for all of them is a few large
matrix products; only the soft-max is taken within each mixture. For diagonal covariance

.. math::
    \log w_k \mathcal N(x; \mu_k, \sigma_k^2)
    = \Bigl\langle (x^2, x),\; \bigl(-\tfrac{1}{2 \sigma_k^2}, \tfrac{\mu_k}{\sigma_k^2}\bigr)
      \Bigr\rangle + c_k , \qquad
    c_k = \log w_k - \tfrac12 \sum_d \Bigl( \frac{\mu_{kd}^2}{\sigma_{kd}^2}
      + \log 2 \pi \sigma_{kd}^2 \Bigr)

is linear in the moments :math:`(x^2, x)`: one product of (n × 2d) with (2d × all components) is the
E-step, and one of (all components × n) with (n × 2d) the M-step. The steps are those of
scikit-learn's ``GaussianMixture``, which is the oracle in the tests. Variances are differences of
moments, so rows should be centred: far from the origin their digits are lost.

Everything here is float64. Where all members of a component agree in a feature, its variance is
``reg_covar``: with 1e-6 the terms above reach 1e8, and float32 leaves errors of up to about 10 in
an exponent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["COVARIANCES", "FitResult", "Mixtures", "by_size", "fit_mixtures", "posteriors", "split"]

COVARIANCES = ("diag", "full", "spherical")

#: Covariance matrices whose densities are computed together take at most about this many bytes.
MAX_MATRIX_BYTES = 2**22


@dataclass(frozen=True)
class Mixtures:
    """Parameters of many mixtures; component k of the stack belongs to one of them.

    Attributes
    ----------
    sizes : Tensor of shape (n_mixtures,)
        Components of each mixture, in ascending order.
    weights : Tensor of shape (n_components,)
        Summing to 1 within each mixture.
    means : Tensor of shape (n_components, n_features)
        Means.
    covariances : Tensor
        Shape (n_components, n_features) if diagonal, (n_components, 1) if spherical,
        (n_components, n_features, n_features) if full.
    """

    sizes: Tensor
    weights: Tensor
    means: Tensor
    covariances: Tensor

    def select(self, chosen: Tensor) -> Mixtures:
        """Return the mixtures for which the mask `chosen` is true."""
        parts = torch.repeat_interleave(chosen, self.sizes)
        return Mixtures(
            self.sizes[chosen], self.weights[parts], self.means[parts], self.covariances[parts]
        )


class FitResult(NamedTuple):
    """Mixtures after the last step, which of them converged, and after how many steps."""

    mixtures: Mixtures
    converged: Tensor
    n_iter: Tensor


def fit_mixtures(
    X: Tensor, start: Mixtures, *, reg_covar: float, max_iter: int, tol: float
) -> FitResult:
    """Run expectation maximisation on all mixtures, each until its own convergence.

    A mixture has converged when its mean log-likelihood changes by less than `tol`; it then leaves
    the batch, and the products get smaller. One whose likelihood is not finite never converges.
    """
    n_mixtures = len(start.sizes)
    mixtures = Mixtures(*(t.clone() for t in vars(start).values()))
    converged = torch.zeros(n_mixtures, dtype=torch.bool, device=X.device)
    n_iter = torch.full((n_mixtures,), max_iter, device=X.device)
    ids = torch.arange(n_mixtures, device=X.device)
    moments = moments_of(X)
    active, bound = start, torch.full((n_mixtures,), -math.inf, dtype=X.dtype, device=X.device)
    for step in range(1, max_iter + 1):
        responsibilities, log_likelihood = _expect(X, moments, active)
        active = _maximize(X, moments, active, responsibilities, reg_covar)
        previous, bound = bound, log_likelihood.mean(dim=1)
        done = (bound - previous).abs() < tol
        failed = ~bound.isfinite()
        if step == max_iter or (done | failed).any():
            _put(active, ids, into=mixtures)
            converged[ids[done]] = True
            n_iter[ids[done]] = step
            going_on = ~(done | failed)
            active, ids, bound = active.select(going_on), ids[going_on], bound[going_on]
        if not len(ids):
            break
    # The last step may have spoilt what had converged.
    return FitResult(mixtures, converged & _are_valid(mixtures), n_iter)


def posteriors(X: Tensor, mixtures: Mixtures) -> Tensor:
    r"""Return :math:`\pi(x)` under every mixture, side by side: (n_samples, n_components)."""
    moments = moments_of(X)
    # Matrices are taken a few at a time: each needs an array of (features × rows).
    parts = split(mixtures, MAX_MATRIX_BYTES) if mixtures.covariances.dim() == 3 else [mixtures]
    result = torch.cat([_expect(X, moments, part)[0] for part in parts]).T.contiguous()
    if not result.isfinite().all():
        raise ValueError(
            "posteriors are not finite: rows are too far from those that the mixtures were fitted "
            "on, or too large for float64 squares"
        )
    return result


def moments_of(X: Tensor) -> Tensor:
    """Return (x², x) of each row."""
    return torch.cat([X.square(), X], dim=1)


def linear_form(mixtures: Mixtures) -> tuple[Tensor, Tensor]:
    """Return slopes (components, 2d) and constants of log w N(x), linear in the moments of x."""
    means, variances = mixtures.means, mixtures.covariances
    d = means.shape[1]
    slopes = torch.empty(len(means), 2 * d, dtype=means.dtype, device=means.device)
    torch.div(-0.5, variances.expand_as(means), out=slopes[:, :d])
    torch.div(means, variances, out=slopes[:, d:])
    log_determinant = variances.log().sum(dim=1) * (d / max(1, variances.shape[1]))
    squares = torch.einsum("kd,kd->k", means, slopes[:, d:])
    constants = mixtures.weights.log() - 0.5 * (
        squares + log_determinant + d * math.log(2 * math.pi)
    )
    return slopes, constants


def by_size(columns: Tensor, sizes: Sequence[int]) -> Iterator[Tensor]:
    """Yield views (n, mixtures, components) of (n, all components), one for each number of them."""
    for part, count, size in equal_sizes(sizes):
        yield columns[:, part].view(len(columns), count, size)


def equal_sizes(sizes: Sequence[int]) -> Iterator[tuple[slice, int, int]]:
    """Yield the components of all mixtures of one size, how many mixtures, and the size.

    Mixtures of equal size are neighbours: a few slices serve all, with no loop over mixtures.
    """
    start = 0
    for size, equals in groupby(sizes):
        count = len(list(equals))
        yield slice(start, start + size * count), count, size
        start += size * count


def split(mixtures: Mixtures, max_bytes: int) -> Iterator[Mixtures]:
    """Yield consecutive parts whose covariances take at most about `max_bytes`."""
    each = mixtures.covariances[0].numel() * mixtures.covariances.element_size()
    parts = mixtures.sizes.cumsum(0) * each // max_bytes
    for part in sorted(set(parts.tolist())):
        yield mixtures.select(parts == part)


def _expect(X: Tensor, moments: Tensor, mixtures: Mixtures) -> tuple[Tensor, Tensor]:
    """Return the posteriors, (components, n), and the log-likelihood, (mixtures, n).

    With the components first both products of a step go through memory in order.
    """
    if mixtures.covariances.dim() == 3:
        joint = _log_joint_of_full(X, mixtures)
    else:
        slopes, constants = linear_form(mixtures)
        joint = torch.addmm(constants.unsqueeze(1), slopes, moments.T)
    likelihoods = []
    for part, count, size in equal_sizes(mixtures.sizes.tolist()):
        view = joint[part].view(count, size, -1)
        # Log-sum-exp and soft-max in one: the exponential is what costs.
        largest = view.amax(dim=1, keepdim=True)
        total = view.sub_(largest).exp_().sum(dim=1, keepdim=True)
        view.div_(total)
        likelihoods.append((largest + total.log()).squeeze(1))
    return joint, torch.cat(likelihoods)


def _log_joint_of_full(X: Tensor, mixtures: Mixtures) -> Tensor:
    """Return log w N(x; mean, covariance) for covariances that are matrices."""
    # cholesky_ex leaves a matrix that is not positive definite without a word; its log-determinant
    # is then not finite, and the mixture does not converge.
    factors = torch.linalg.cholesky_ex(mixtures.covariances).L
    differences = (X - mixtures.means.unsqueeze(1)).mT
    scaled = torch.linalg.solve_triangular(factors, differences, upper=False)
    log_determinant = 2 * factors.diagonal(dim1=1, dim2=2).log().sum(dim=1)
    constants = mixtures.weights.log() - 0.5 * (
        log_determinant + X.shape[1] * math.log(2 * math.pi)
    )
    joint: Tensor = constants.unsqueeze(1) - 0.5 * scaled.square().sum(dim=1)
    return joint


def _maximize(
    X: Tensor, moments: Tensor, mixtures: Mixtures, responsibilities: Tensor, reg_covar: float
) -> Mixtures:
    """Return the mixtures that explain the rows best, given who belongs to which component."""
    d = X.shape[1]
    # As in scikit-learn: an empty component keeps a finite mean.
    mass = responsibilities.sum(dim=1) + 10 * torch.finfo(X.dtype).eps
    shares = responsibilities / mass.unsqueeze(1)
    if mixtures.covariances.dim() == 3:
        means = shares @ X
        differences = X - means.unsqueeze(1)
        covariances = differences.mT @ (differences * shares.unsqueeze(2))
        covariances.diagonal(dim1=1, dim2=2).add_(reg_covar)
    else:
        averages = shares @ moments
        means = averages[:, d:]
        covariances = torch.addcmul(averages[:, :d], means, means, value=-1).add_(reg_covar)
        if mixtures.covariances.shape[1] == 1 < d:
            covariances = covariances.mean(dim=1, keepdim=True)
    return Mixtures(mixtures.sizes, _weights(mass, mixtures.sizes), means, covariances)


def _weights(mass: Tensor, sizes: Tensor) -> Tensor:
    """Return the mass of each component as a share of its mixture's."""
    owners = torch.repeat_interleave(sizes)
    totals = torch.zeros(len(sizes), dtype=mass.dtype, device=mass.device)
    return mass / totals.index_add_(0, owners, mass)[owners]


def _are_valid(mixtures: Mixtures) -> Tensor:
    """Say of each mixture whether all of its components are distributions."""
    covariances = mixtures.covariances
    if covariances.dim() == 3:
        good = torch.linalg.cholesky_ex(covariances).info == 0
    else:
        good = ((covariances > 0) & covariances.isfinite()).all(dim=1)
    owners = torch.repeat_interleave(mixtures.sizes)
    n_bad = torch.zeros(len(mixtures.sizes), dtype=torch.long, device=good.device)
    return n_bad.index_add_(0, owners, (~good).long()) == 0


def _put(parts: Mixtures, ids: Tensor, *, into: Mixtures) -> None:
    """Write `parts` over the mixtures of number `ids`."""
    chosen = torch.zeros(len(into.sizes), dtype=torch.bool, device=ids.device)
    chosen[ids] = True
    where = torch.repeat_interleave(chosen, into.sizes)
    into.weights[where] = parts.weights
    into.means[where] = parts.means
    into.covariances[where] = parts.covariances
