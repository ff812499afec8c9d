"""Kernel PCA on any kernel, with its Nyström extension to new rows."""

from dkae.spectral.kernel_pca import KernelPCA

__all__ = ["KernelPCA"]
