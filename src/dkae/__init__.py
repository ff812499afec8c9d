"""An explicit, invertible feature map for any kernel: deep kernelized autoencoders.

The public names are loaded when they are first used, so that ``import dkae`` (and with it
``dkae --help``) does not pay for torch and scikit-learn.
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dkae._support.threads import calm_spinning

if TYPE_CHECKING:
    from dkae import (
        alignment,
        baselines,
        codespace,
        datasets,
        decoders,
        grams,
        kernels,
        metrics,
        networks,
        persistence,
        recipes,
        spectral,
        training,
    )
    from dkae.autoencoder import DeepKernelizedAutoencoder
    from dkae.nystroem import InvertibleNystroem
    from dkae.persistence import load, save
    from dkae.rows import RowArray
    from dkae.spectral import KernelPCA

__version__ = "0.3.0"

# Threads of OpenMP that wait sleep after a short spin; this counts if torch is not loaded yet.
calm_spinning()
# A library logs nothing by default: add a handler to see its messages.
logging.getLogger("dkae").addHandler(logging.NullHandler())

# Without `plotting`, which needs an extra: a star import must do without matplotlib.
__all__ = [
    "DeepKernelizedAutoencoder",
    "InvertibleNystroem",
    "KernelPCA",
    "RowArray",
    "__version__",
    "alignment",
    "augmentation",
    "baselines",
    "codespace",
    "datasets",
    "decoders",
    "grams",
    "kernels",
    "load",
    "metrics",
    "networks",
    "persistence",
    "recipes",
    "save",
    "spectral",
    "training",
]

_HOMES = {
    "DeepKernelizedAutoencoder": "dkae.autoencoder",
    "InvertibleNystroem": "dkae.nystroem",
    "KernelPCA": "dkae.spectral",
    "RowArray": "dkae.rows",
    "load": "dkae.persistence",
    "save": "dkae.persistence",
}
#: `plotting` needs an extra.
_ROOMS = {*__all__, "plotting"} - {*_HOMES, "__version__"}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"dkae.{name}")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'dkae' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "plotting"])
