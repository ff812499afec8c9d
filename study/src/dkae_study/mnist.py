"""MNIST-20k, the data of the paper."""

from __future__ import annotations

from dkae.datasets import load_mnist20k
from dkae_study.declaration import Data, Part


def _load() -> dict[str, Part]:
    mnist = load_mnist20k(scaled=True)
    rows = {name: mnist[name] for name in ("train", "validation", "test")}
    return {name: Part(mnist.data[ids], mnist.target[ids]) for name, ids in rows.items()}


MNIST = Data(name="mnist20k", title="MNIST-20k", load=_load, row_shape=(28, 28))
