r"""Hundreds of Gaussian mixtures: their log-densities and posteriors.

The components of all mixtures form one stack, so that a few large matrix products serve all of
them; only the soft-max is taken within each mixture. For diagonal covariance

.. math::
    \log w_k \mathcal N(x; \mu_k, \sigma_k^2)
    = \Bigl\langle (x^2, x),\; \bigl(-\tfrac{1}{2 \sigma_k^2}, \tfrac{\mu_k}{\sigma_k^2}\bigr)
      \Bigr\rangle + c_k , \qquad
    c_k = \log w_k - \tfrac12 \sum_d \Bigl( \frac{\mu_{kd}^2}{\sigma_{kd}^2}
      + \log 2 \pi \sigma_{kd}^2 \Bigr)

is linear in the moments :math:`(x^2, x)`: all log-densities are one product of (n × 2d) with
(2d × components). For spherical covariance the first moment is the one number :math:`\|x\|^2`.

Everything here is float64. Where all members of a component agree in a feature, its variance is
``reg_covar``: with 1e-6 the terms above reach 1e8, and float32 leaves errors of up to about 10 in
an exponent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor

COVARIANCES = ("diag", "full", "spherical")

#: Parameters of a batch of components take about this many bytes: batches that fit into the caches
#: are faster than one of everything.
MAX_BATCH_BYTES = 2**22
#: exp is 0 below this exponent: below -708, where float64 ends, it takes ten times as long.
LOWEST = -600.0
ZERO = math.exp(LOWEST)


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
        if chosen.all():
            return self
        return self.part(chosen, torch.repeat_interleave(chosen, self.sizes))

    def part(self, mixtures: slice | Tensor, components: slice | Tensor) -> Mixtures:
        """Return some of the mixtures; `components` selects those that belong to them."""
        return Mixtures(
            self.sizes[mixtures],
            self.weights[components],
            self.means[components],
            self.covariances[components],
        )

    def put(self, components: Mixtures, numbers: Tensor) -> None:
        """Overwrite the components at these positions."""
        self.weights[numbers] = components.weights
        self.means[numbers] = components.means
        self.covariances[numbers] = components.covariances


def posteriors(X: Tensor, mixtures: Mixtures) -> Tensor:
    r"""Return :math:`\pi(x)` under every mixture, side by side: (n_samples, n_components)."""
    moments = moments_of(X, mixtures)
    # Full covariances in batches: each component needs an array of (features × rows).
    full = mixtures.covariances.dim() == 3
    parts = [mixtures.part(*batch) for batch in batches(mixtures)] if full else [mixtures]
    shares = [soft_max(log_joint_of(X, moments, part), part.sizes)[0] for part in parts]
    result = torch.cat(shares).T.contiguous()
    if not result.isfinite().all():
        raise ValueError(
            "posteriors are not finite: rows are too far from those that the mixtures were fitted "
            "on, or too large for float64 squares"
        )
    return result


def log_joint(X: Tensor, mixtures: Mixtures) -> Tensor:
    """Return log w N(x) of every row under every component: (n_components, n)."""
    return log_joint_of(X, moments_of(X, mixtures), mixtures)


def moments_of(X: Tensor, mixtures: Mixtures) -> Tensor:
    """Return the moments of each row that log w N(x) is linear in: (x², x), or (‖x‖², x)."""
    squares = X.square()
    if mixtures.covariances.shape[1] == 1:
        squares = squares.sum(dim=1, keepdim=True)
    return torch.cat([squares, X], dim=1)


def linear_form(mixtures: Mixtures) -> tuple[Tensor, Tensor]:
    """Return slopes and constants of log w N(x), linear in the moments of x."""
    means, variances = mixtures.means, mixtures.covariances
    d, n_squares = means.shape[1], variances.shape[1]
    slopes = means.new_empty(len(means), n_squares + d)
    torch.div(-0.5, variances, out=slopes[:, :n_squares])
    torch.div(means, variances, out=slopes[:, n_squares:])
    log_determinant = variances.log().sum(dim=1) * (d / max(1, n_squares))
    squares = (means * slopes[:, n_squares:]).sum(dim=1)
    constants = mixtures.weights.log() - 0.5 * (
        squares + log_determinant + d * math.log(2 * math.pi)
    )
    return slopes, constants


def by_size(columns: Tensor, sizes: Sequence[int]) -> Iterator[Tensor]:
    """Yield views (n, mixtures, components) of (n, all components), one for each size."""
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


def batches(mixtures: Mixtures) -> Iterator[tuple[slice, slice]]:
    """Yield consecutive mixtures and their components, of about `MAX_BATCH_BYTES` each."""
    numbers = max(mixtures.means[0].numel(), mixtures.covariances[0].numel())
    ends = mixtures.sizes.cumsum(0)
    batch = ends * numbers * mixtures.means.element_size() // MAX_BATCH_BYTES
    last = [*(batch.diff() > 0).nonzero().flatten().tolist(), len(ends) - 1]
    first_mixture = first_component = 0
    for end in last:
        yield slice(first_mixture, end + 1), slice(first_component, int(ends[end]))
        first_mixture, first_component = end + 1, int(ends[end])


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


def log_joint_of(X: Tensor, moments: Tensor, mixtures: Mixtures) -> Tensor:
    """Return log w N(x) as (components, n), the order in which the rest of a step reads it."""
    if mixtures.covariances.dim() == 3:
        return _log_joint_of_full(X, mixtures)
    slopes, constants = linear_form(mixtures)
    # A tenth faster than the product the other way round.
    return torch.addmm(constants, moments, slopes.T).T.contiguous()


def _log_joint_of_full(X: Tensor, mixtures: Mixtures) -> Tensor:
    """Return log w N(x; mean, covariance) for covariances that are matrices."""
    # cholesky_ex does not raise if a matrix is not positive definite; its log-determinant is then
    # not finite, and the mixture does not converge.
    factors = torch.linalg.cholesky_ex(mixtures.covariances).L
    differences = (X - mixtures.means.unsqueeze(1)).mT
    scaled = torch.linalg.solve_triangular(factors, differences, upper=False)
    log_determinant = 2 * factors.diagonal(dim1=1, dim2=2).log().sum(dim=1)
    constants = mixtures.weights.log() - 0.5 * (
        log_determinant + X.shape[1] * math.log(2 * math.pi)
    )
    joint: Tensor = constants.unsqueeze(1) - 0.5 * scaled.square().sum(dim=1)
    return joint
