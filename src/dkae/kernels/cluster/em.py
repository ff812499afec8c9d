r"""Expectation maximisation of hundreds of Gaussian mixtures at once.

With the moments :math:`(x^2, x)` of the rows, in which log-densities are linear (see `mixtures`),
the E-step for all mixtures is one product of (n × 2d) with (2d × all components), and the M-step
one of (all components × n) with (n × 2d). The steps are those of scikit-learn's
``GaussianMixture``, which is the oracle in the tests. Variances are differences of moments, so rows
should be centred: far from the origin variances lose their digits.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from scipy import sparse
from torch import Tensor

from dkae._support.processes import present
from dkae._support.threads import in_threads
from dkae.kernels.cluster.mixtures import Mixtures, batches, log_joint_of, moments_of, soft_max

#: Posteriors that change by no more than this, the round-off of float64, count as unmoved.
UNMOVED = 2.0**-52
#: A smaller share of a row in a component vanishes in the round-off of the component's moments,
#: unless the row is very much larger than the others; its share is then 0 after the next step.
NEGLIGIBLE = 2.0**-60
#: A sparse product is faster than a dense one if at most this part of the shares matters.
MAX_DENSITY = 0.15


class FitResult(NamedTuple):
    """Mixtures after the last step, which of them converged, and after how many steps."""

    mixtures: Mixtures
    converged: Tensor
    n_iter: Tensor


def fit_mixtures(
    X: Tensor,
    sizes: Tensor,
    start: Callable[[slice], Tensor],
    covariance_type: str,
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
    d = X.shape[1]
    shape = {"diag": (d,), "spherical": (1,), "full": (d, d)}[covariance_type]
    n_components = int(sizes.sum())
    # The first step writes every component; what another process fits stays 0.
    parameters = [X.new_zeros(n_components, *rest) for rest in [(), (d,), shape]]
    mixtures = Mixtures(sizes, *parameters)
    converged = torch.zeros_like(sizes, dtype=torch.bool)
    n_iter = torch.full_like(sizes, max_iter)
    moments = moments_of(X, mixtures)
    own = list(batches(mixtures))[present().rank :: present().size]

    def fit(batch: tuple[slice, slice]) -> None:
        views = FitResult(mixtures.part(*batch), converged[batch[0]], n_iter[batch[0]])
        _fit_batch(X, moments, start(batch[1]), covariance_type, reg_covar, tol, into=views)

    for _ in in_threads(fit, own, X.device):
        pass
    _share(own, converged, n_iter, parameters)
    # The last step may have spoilt a mixture that had converged.
    return FitResult(mixtures, converged & _are_valid(mixtures), n_iter)


def _share(
    own: list[tuple[slice, slice]], converged: Tensor, n_iter: Tensor, parameters: list[Tensor]
) -> None:
    """Give all processes what each has fitted of its own."""
    if present().size == 1:
        return
    others = torch.ones_like(converged)
    for mixtures, _ in own:
        others[mixtures] = False
    has_converged, steps = converged.long(), n_iter.masked_fill(others, 0)
    present().sum(*parameters, has_converged, steps)
    converged.copy_(has_converged.bool())
    n_iter.copy_(steps)


def _fit_batch(
    X: Tensor,
    moments: Tensor,
    joint: Tensor,
    covariance_type: str,
    reg_covar: float,
    tol: float,
    *,
    into: FitResult,
) -> None:
    """Run expectation maximisation on a few mixtures, and write the result to `into`.

    A mixture that has converged leaves the batch. A component whose posteriors did not move keeps
    its parameters and log-densities: after three steps most of them do.
    """
    mixtures, max_iter = into.mixtures, int(into.n_iter.max())
    # Indices of the mixtures and components that are still in the batch.
    ids, live = (torch.arange(len(t), device=X.device) for t in (mixtures.sizes, joint))
    bound = torch.full((len(ids),), -math.inf, dtype=X.dtype, device=X.device)
    before = torch.full_like(joint, -1)
    for step in range(1, max_iter + 1):
        responsibilities, log_likelihood = soft_max(joint, mixtures.sizes[ids])
        # NaN counts as moved.
        moved = _where(~((responsibilities - before).abs_().amax(dim=1) <= UNMOVED))
        shares = responsibilities.index_select(0, moved)
        better = _maximize(X, moments, shares, covariance_type, reg_covar)
        mixtures.put(better, live[moved])
        previous, bound = bound, log_likelihood.mean(dim=1)
        done = (bound - previous).abs() < tol
        into.converged[ids[done]] = True
        into.n_iter[ids[done]] = step
        going_on = ~done & bound.isfinite()
        if step == max_iter or not going_on.any():
            return
        joint[moved] = log_joint_of(X, moments, better)
        if not going_on.all():
            stay = _where(torch.repeat_interleave(going_on, mixtures.sizes[ids]))
            ids, bound, live = ids[going_on], bound[going_on], live[stay]
            joint, responsibilities = (t.index_select(0, stay) for t in (joint, responsibilities))
        before = responsibilities


def _maximize(
    X: Tensor, moments: Tensor, responsibilities: Tensor, covariance_type: str, reg_covar: float
) -> Mixtures:
    """Return the components that fit best (the M-step), each as a mixture of one."""
    d = X.shape[1]
    # As in scikit-learn: an empty component keeps a finite mean.
    mass = responsibilities.sum(dim=1) + 10 * torch.finfo(X.dtype).eps
    shares = responsibilities / mass.unsqueeze(1)
    if covariance_type == "full":
        means = shares @ X
        differences = X - means.unsqueeze(1)
        covariances = differences.mT @ (differences * shares.unsqueeze(2))
        covariances.diagonal(dim1=1, dim2=2).add_(reg_covar)
    else:
        averages = _averages(shares, moments)
        squares, means = averages[:, :-d], averages[:, -d:]
        if covariance_type == "diag":
            covariances = squares.addcmul_(means, means, value=-1).add_(reg_covar)
        else:
            covariances = (squares - means.square().sum(dim=1, keepdim=True)) / d + reg_covar
    one = torch.ones(len(mass), dtype=torch.long, device=X.device)
    return Mixtures(one, mass / len(X), means, covariances)


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
    covariances = mixtures.covariances
    if covariances.dim() == 3:
        good = torch.linalg.cholesky_ex(covariances).info == 0
    elif covariances.shape[1]:
        smallest, largest = covariances.aminmax(dim=1)  # NaN if any is NaN
        good = (smallest > 0) & largest.isfinite()
    else:
        good = torch.ones(len(covariances), dtype=torch.bool, device=covariances.device)
    owners = torch.repeat_interleave(mixtures.sizes)
    n_bad = torch.zeros(len(mixtures.sizes), dtype=torch.long, device=good.device)
    return n_bad.index_add_(0, owners, (~good).long()) == 0


def _where(mask: Tensor) -> Tensor:
    """Return the indices of True: they select rows twice as fast as the mask."""
    return mask.nonzero().flatten()
