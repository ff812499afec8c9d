"""The MNIST digits that ship with the package, and IDX, the format in which MNIST is published."""

from dkae.datasets.idx import DataFileError, load_idx, read_idx
from dkae.datasets.mnist import load_mnist20k

__all__ = ["DataFileError", "load_idx", "load_mnist20k", "read_idx"]
