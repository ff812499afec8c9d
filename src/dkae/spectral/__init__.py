"""Spectral methods on any kernel: kernel PCA with its Nyström extension, and clustering."""

from dkae.spectral.clustering import spectral_clustering, spectral_embedding
from dkae.spectral.kernel_pca import KernelPCA

__all__ = ["KernelPCA", "spectral_clustering", "spectral_embedding"]
