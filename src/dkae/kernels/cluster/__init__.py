"""The Probabilistic Cluster Kernel of the paper: mixtures, their posteriors, and a compact form."""

from dkae.kernels.cluster.kernel import ProbabilisticClusterKernel

__all__ = ["ProbabilisticClusterKernel"]
