"""Spectral methods on any kernel: kernel PCA with its Nyström extension, pre-images, clustering."""

from dkae.spectral.clustering import spectral_clustering, spectral_embedding
from dkae.spectral.kernel_pca import KernelPCA
from dkae.spectral.preimage import PreImage

__all__ = ["KernelPCA", "PreImage", "spectral_clustering", "spectral_embedding"]
