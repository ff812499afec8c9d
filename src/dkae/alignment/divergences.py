r"""Divergences of density matrices: Gram matrices of trace 1.

Each is 0 if and only if :math:`C \propto P`, and positive otherwise. They compare

.. math:: \rho(G) = \frac{1}{1 + \varepsilon} \left( \frac{G}{\operatorname{tr} G}
    + \frac{\varepsilon}{k} I \right) .

The share ε of the identity keeps logarithms, roots and their slopes finite where a matrix lacks
full rank; it is the same for both, so no minimum moves. A zero matrix has no direction and counts
as :math:`I`. Negative eigenvalues, of a kernel that is not positive semi-definite, count as zero.

Everything is computed in float64. The prior is a constant, so its eigenvectors may be used; the
gradient goes through eigenvalues only: that of eigenvectors is infinite where eigenvalues repeat.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.special import entr

from dkae.alignment.distances import of_blocks

#: Share ε of the identity: every eigenvalue is at least about ε times the mean one. A smaller ε
#: comes near the round-off of float32, which for k = 500 changes the gradient of `logdet` by 0.3 %,
#: but with ε = 1e-5 by 37 % (``benchmarks/alignment_measures.py``).
EPSILON = 1e-3


@of_blocks
def logdet(code_gram: Tensor, prior_gram: Tensor) -> Tensor:
    r"""LogDet divergence in Stein's symmetric form, for each of the k rows.

    .. math:: \frac1k \left( \log\det \tfrac{A + B}{2} - \tfrac12 \log\det A
        - \tfrac12 \log\det B \right), \qquad A = \rho(C),\; B = \rho(P)

    It is the mean of the Bregman divergences of Kulis et al. (2009) of A and of B to their mean.
    Theirs between A and B has :math:`\operatorname{tr} A B^{-1}`, which grows as 1/ε where the
    prior lacks full rank; this one only as log 1/ε. Codes need at least k components: with fewer,
    C is singular, and ε rather than the data decides how far it is from P.
    """
    return _jensen_gap(lambda eigenvalues: eigenvalues.log().mean(), code_gram, prior_gram)


@of_blocks
def jensen_renyi(code_gram: Tensor, prior_gram: Tensor) -> Tensor:
    r"""Jensen-Rényi divergence in bits, from 0 to 1, of the matrix entropy of order α → 1.

    .. math:: H\left(\tfrac{A + B}{2}\right) - \tfrac12 H(A) - \tfrac12 H(B), \qquad
        H(A) = \lim_{\alpha \to 1} \frac{\log_2 \operatorname{tr} A^\alpha}{1 - \alpha}
             = - \operatorname{tr} A \log_2 A

    with :math:`A = \rho(C), B = \rho(P)` and the entropy of Giraldo et al. (2015). The entropy is
    strictly concave for 0 < α ≤ 1, hence the divergence is positive; for α = 2, which is cheaper,
    it is negative for some pairs.

    Their mutual information :math:`H(C) + H(P) - H(C \circ P)` is not a measure of alignment: its
    maximum is not at :math:`C \propto P`. For a prior with a constant diagonal :math:`C = I` gives
    :math:`H(P)`, and :math:`C = P` gives :math:`2 H(P) - H(P \circ P)`, which is never more.
    """
    return _jensen_gap(
        lambda eigenvalues: entr(eigenvalues).sum() / math.log(2), code_gram, prior_gram
    )


@of_blocks
def von_neumann(code_gram: Tensor, prior_gram: Tensor) -> Tensor:
    r"""Von Neumann divergence (Kulis et al., 2009), the relative entropy of C to P.

    .. math:: \operatorname{tr}(A \log A - A \log B - A + B)
        = \operatorname{tr} A \log A - \operatorname{tr} A \log B,
        \qquad A = \rho(C),\; B = \rho(P)

    In this direction codes may have fewer components than the prior; they are penalised for
    directions that the prior lacks.
    """
    code = _density(code_gram)
    _, log_prior = _prior(prior_gram, torch.log)
    divergence = -entr(_eigenvalues(code)).sum() - (code * log_prior).sum()
    return _loss(divergence, code_gram, prior_gram)


@of_blocks
def bures(code_gram: Tensor, prior_gram: Tensor) -> Tensor:
    r"""Squared Bures distance, from 0 to 2.

    .. math:: \operatorname{tr} A + \operatorname{tr} B
        - 2 \operatorname{tr} \left( B^{1/2} A B^{1/2} \right)^{1/2},
        \qquad A = \rho(C),\; B = \rho(P)

    It is the squared Wasserstein distance of two centred normal distributions with these
    covariances.
    """
    _, root = _prior(prior_gram, torch.sqrt)
    product = root @ _density(code_gram) @ root
    fidelity = _eigenvalues(product, floor=_floor(product) ** 2).sqrt().sum()
    return _loss(2 - 2 * fidelity, code_gram, prior_gram)


def _jensen_gap(
    concave: Callable[[Tensor], Tensor], code_gram: Tensor, prior_gram: Tensor
) -> Tensor:
    """Return how far a concave function of the eigenvalues is above its chord, at the middle."""
    code = _density(code_gram)
    prior_eigenvalues, prior = _prior(prior_gram, lambda eigenvalues: eigenvalues)
    ends = concave(_eigenvalues(code)) + concave(prior_eigenvalues)
    gap = concave(_eigenvalues((code + prior) / 2)) - ends / 2
    return _loss(gap, code_gram, prior_gram)


def _density(gram: Tensor) -> Tensor:
    """Return ρ(G) in float64; a G that is not finite counts as zero, and `_loss` returns NaN."""
    gram = torch.where(gram.isfinite().all(), gram, torch.zeros_like(gram))
    gram = (gram.cpu() if gram.device.type == "mps" else gram).double()  # MPS has no float64
    gram = (gram + gram.T) / 2
    trace = gram.trace()
    gram = gram / torch.where(trace > 0, trace, torch.ones_like(trace))
    gram = gram + torch.diag(torch.full_like(gram[0], EPSILON / len(gram)))
    return gram / gram.trace()


@torch.no_grad()
def _prior(gram: Tensor, function: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """Return the eigenvalues of ρ(P), and `function` of this matrix."""
    density = _density(gram)
    eigenvalues, eigenvectors = torch.linalg.eigh(density)
    eigenvalues = eigenvalues.clamp_min(_floor(density))
    eigenvalues = eigenvalues / eigenvalues.sum()
    return eigenvalues, (eigenvectors * function(eigenvalues)) @ eigenvectors.T


def _eigenvalues(matrix: Tensor, floor: float | None = None) -> Tensor:
    eigenvalues: Tensor = torch.linalg.eigvalsh(matrix)
    return eigenvalues.clamp_min(_floor(matrix) if floor is None else floor)


def _floor(matrix: Tensor) -> float:
    # Half the least eigenvalue of a density: only an indefinite matrix, not rounding, reaches it.
    return EPSILON / len(matrix) / 2


def _loss(divergence: Tensor, code_gram: Tensor, prior_gram: Tensor) -> Tensor:
    """Return the loss in at least float32; NaN, not a LAPACK error, if an entry is not finite."""
    is_finite = (code_gram.isfinite().all() & prior_gram.isfinite().all()).to(divergence.device)
    # Rounding may make it slightly negative.
    divergence = torch.where(is_finite, divergence.clamp_min(0), torch.nan)
    return divergence.to(code_gram.device, torch.promote_types(code_gram.dtype, torch.float32))
