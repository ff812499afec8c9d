"""The MNIST digits: a subset that ships with the package, the full set, and the IDX format."""

from dkae.datasets.errors import DataFileError
from dkae.datasets.idx import load_idx, read_idx
from dkae.datasets.mnist import fetch_mnist, load_mnist20k

__all__ = ["DataFileError", "fetch_mnist", "load_idx", "load_mnist20k", "read_idx"]
