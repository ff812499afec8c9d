"""Spectral methods on any kernel: kernel PCA with its Nyström extension, and learned pre-images."""

from dkae.spectral.kernel_pca import KernelPCA
from dkae.spectral.preimage import PreImage

__all__ = ["KernelPCA", "PreImage"]
