"""Whether the models of this version are those of another one, bit for bit.

Small models of all three maps, with every phase and most settings, are fitted with the working tree
and with the source of another commit, each in a process of its own on this machine::

    python benchmarks/bit_identity.py HEAD~1

Prints a line for each model and exits with 1 if one differs. A model that the other commit cannot
fit is "new". It works between commits from version 0.3 on. Two minutes of one core.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import warnings
from argparse import ArgumentParser
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def models() -> dict[str, Callable[[], Any]]:
    """Return what makes each model, with the package that is imported."""
    from dkae import DeepKernelizedAutoencoder, InvertibleNystroem, KernelPCA, recipes
    from dkae.decoders import MLPDecoder
    from dkae.kernels import ProbabilisticClusterKernel
    from dkae.networks import Stack
    from dkae.training import Optimization

    pck = ProbabilisticClusterKernel(4, 3, random_state=0)
    small: dict[str, Any] = {"n_components": 12, "random_state": 3}
    learned = small | {"network": Stack((40, 30)), "batch_size": 60, "steps_per_epoch": 7,
                       "max_iter": 3, "decoder_max_iter": 2}  # fmt: skip

    def autoencoder(**params: Any) -> Callable[[], Any]:
        return lambda: DeepKernelizedAutoencoder(**learned | params)

    def nystroem(**params: Any) -> Callable[[], Any]:
        return lambda: InvertibleNystroem(**small | params)

    paper = learned | {"pretrain_max_iter": 1, "decoder_max_iter": 0, "kernel": pck}
    paper["network"] = recipes.paper().network.set_params(hidden_layer_sizes=(40, 30))
    clipped = Optimization(learning_rate="cosine", max_grad_norm=0.1)
    mlp = MLPDecoder((30,), max_iter=2, batch_size=60, steps_per_epoch=7)
    return {
        "autoencoder": autoencoder(),
        "autoencoder, paper": lambda: recipes.paper(**paper),
        "autoencoder, untied": autoencoder(network=Stack((40,), tied_weights=False)),
        "autoencoder, λ = 0, noise": autoencoder(alignment_weight=0.0, input_noise=0.3),
        "autoencoder, held out": autoencoder(validation_fraction=0.2, optimization=clipped),
        "autoencoder, centred": autoencoder(alignment="centered", standardize=True),
        "autoencoder, forest": autoencoder(kernel="forest"),
        "nystroem, kernel_ridge": nystroem(),
        "nystroem, ridge": nystroem(decoder="ridge", n_linear=0, kernel="laplacian"),
        "nystroem, mlp": nystroem(decoder=mlp, n_landmarks=100),
        "nystroem, pck": nystroem(kernel=pck, decoder=mlp),
        "kernel PCA": lambda: KernelPCA(**small),
        "kernel PCA, pck": lambda: KernelPCA(kernel=pck, center=False, decoder="ridge", **small),
    }


def hashes() -> dict[str, str]:
    """Fit all models with the package that is imported; return hashes of what they are."""
    import numpy as np
    import torch
    from sklearn.datasets import load_digits

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    X = (load_digits().data[:400] / 16).astype("float32")
    X += 1e-3 * np.random.default_rng(0).random(X.shape, dtype=np.float32)  # no constant feature
    found = {}
    for name, make in models().items():
        try:
            model = make().fit(X)
        except (TypeError, ValueError, AttributeError) as error:
            found[name] = f"error: {error}"
            continue
        network = getattr(model, "network_", None)
        state = [] if network is None else [t.numpy() for t in network.state_dict().values()]
        codes = model.transform(X)
        arrays = [*state, codes, model.inverse_transform(codes)]
        numbers = repr((getattr(model, "history_", []), model.kernel_scale_, model.score(X)))
        parts = [numbers.encode(), *(array.tobytes() for array in arrays)]
        found[name] = blake2b(b"".join(parts), digest_size=8).hexdigest()
    return found


def hashes_of(source: Path) -> dict[str, str]:
    """Return the hashes with the package in this folder."""
    code = "import sys, json, bit_identity; print(json.dumps(bit_identity.hashes()))"
    paths = {"PYTHONPATH": f"{source}:{Path(__file__).parent}"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=paths, stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("commit")
    commit = parser.parse_args().commit
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "-C", str(ROOT), "archive", commit, "src"], capture_output=True, check=True
        )
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        there, here = hashes_of(Path(folder) / "src"), hashes_of(ROOT / "src")
    for name, value in here.items():
        is_new = there[name].startswith("error") and not value.startswith("error")
        word = "same" if value == there[name] else "new" if is_new else "DIFFERS"
        print(f"{name:<28}{value}  {word}")
    return int(here != there)


if __name__ == "__main__":
    sys.exit(main())
