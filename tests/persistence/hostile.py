"""Files that mean harm, with a right checksum. As a program: load each, and say what it took."""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process import kernels as gp
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from dkae import load, save
from dkae._support import container
from dkae.kernels import (
    ForestKernel,
    PairwiseKernel,
    ProbabilisticClusterKernel,
    TransformerKernel,
    center,
    normalize,
)
from dkae.networks import ConvolutionalAutoencoder, ResidualAutoencoder
from dkae.persistence import ModelFileError
from dkae.spectral import KernelPCA, PreImage
from tests.persistence.helpers import X, make, read, rewrite
from tests.persistence.hostile_bytes import HEADERS, TEXTS, other_files, with_checksum
from tests.persistence.hostile_changes import STATES
from tests.persistence.hostile_models import CHANGES


def base_models():
    labels = np.arange(len(X)) % 3
    forest = RandomForestClassifier(3, random_state=0).fit(X, labels)
    pck = ProbabilisticClusterKernel(3, 2, random_state=0, reg_covar=1e-2)
    image = np.random.default_rng(0).random((20, 1, 6, 5), dtype=np.float32)

    def flat(A, B):
        return A.reshape(len(A), -1) @ B.reshape(len(B), -1).T

    def kpca(kernel, **params):
        return KernelPCA(2, kernel=kernel, **params).fit(X)

    def residual(*args):
        return ResidualAutoencoder(*args, width=8, n_blocks=1)

    return {
        "stack": make().fit(X),
        "layer": make(network="kernel_layer").fit(X),
        "evaluated layer": make(network="kernel_layer", kernel=pck).fit(X),
        "residual": make(network=residual).fit(X),
        "convolution": make(network=ConvolutionalAutoencoder, kernel=flat).fit(image),
        "forest": kpca(ForestKernel(forest)),
        "KernelPCA": kpca("rbf", preimage=PreImage(random_state=0)),
        "KernelPCA of features": kpca(TransformerKernel(RBFSampler(n_components=6).fit(X))),
        "Nystroem": kpca(TransformerKernel(Nystroem(n_components=6).fit(X))),
        "centred": make(kernel=normalize(center(PairwiseKernel("rbf")))).fit(X),
        "pipeline": make_pipeline(StandardScaler(), make(kernel=gp.RBF())).fit(X),
        "normaliser": make_pipeline(Normalizer(), make()).fit(X),
    }


def write_all(folder):
    """Write all files, and return their names."""
    for name, header in (HEADERS | TEXTS).items():
        (folder / name).write_bytes(with_checksum(header, b"\7\7\7\7"))
    for name, content in other_files().items():
        (folder / name).write_bytes(content)
    models = base_models()
    for kind, model in models.items():
        save(model, folder / "base")
        tensors = read(folder / "base")[1]
        if kind == "stack":
            for name, text in STATES.items():
                (folder / safe(name)).write_bytes((folder / "base").read_bytes())
                rewrite(folder / safe(name), metadata={"state": text})
        for name, change in CHANGES[kind].items():
            path = folder / safe(f"{kind}: {name}")
            path.write_bytes((folder / "base").read_bytes())
            if change.__qualname__.startswith(("fill", "put")):
                rewrite(path, tensors=change(dict(tensors)))
            else:
                rewrite(path, change=change)
    (folder / "base").unlink()
    (folder / "a folder").mkdir()
    os.mkfifo(folder / "a pipe")
    (folder / "a loop").symlink_to(folder / "a loop")
    return sorted(path.name for path in folder.iterdir())


def safe(name):
    return name.replace("/", "|").replace("\0", "0")


# --- the program ---------------------------------------------------------------------------------


def memory(field):
    """Return a number of kilobytes that the system has of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1])
    raise LookupError(field)


def tried(path):
    """Return what became of loading a file, in how many seconds and megabytes."""
    Path("/proc/self/clear_refs").write_text("5")
    before, start = memory("VmRSS"), time.process_time()
    try:
        load(path)
        result = "loaded"
    except ModelFileError as error:
        result = f"refused: {error}"
    except Exception as error:
        result = f"{type(error).__name__}: {error}"
    seconds = time.process_time() - start
    return result, seconds, (memory("VmHWM") - before) / 1024


def main(folder):
    warnings.simplefilter("ignore")
    with (
        mock.patch.object(container, "MAX_SIGNS", 2**60),  # who means harm keeps no limits
        mock.patch.object(os, "fsync"),
    ):
        names = write_all(folder)
    for name in names:
        result, seconds, megabytes = tried(folder / name)
        print(json.dumps([name, result, seconds, megabytes]), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
