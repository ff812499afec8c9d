"""Whether the weights of this version are those of another one, bit for bit.

Small models of both recipes, with every phase and most settings, are trained with the working tree
and with the source of another commit, each in processes of its own on this machine::

    python benchmarks/bit_identity.py v0.1.0

Prints a line for each model and exits with 1 if one differs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from hashlib import blake2b
from pathlib import Path

ROOT = Path(__file__).parents[1]

#: Settings beyond those of `SMALL`, by name; the recipe is in the name.
MODELS = {
    "default": {},
    "default, tied": {"decoder_max_iter": 0},
    "default, untied": {"tied_weights": False},
    "default, plain autoencoder": {"alignment_weight": 0.0},
    "default, alignment alone": {"alignment_weight": 1.0},
    "default, noise": {"input_noise": 0.3},
    "default, early stopping": {"early_stopping": True, "n_iter_no_change": 1, "max_iter": 9},
    "default, cosine and clipped": {"learning_rate": "cosine", "max_grad_norm": 0.1},
    "default, epochs of pairs": {"steps_per_epoch": "pairs", "max_iter": 1},
    "default, cluster kernel": {
        "kernel": "pck",
        "kernel_params": {"max_components": 4, "n_initializations": 3},
    },
    "default, forest": {"kernel": "forest"},
    "paper": {"kernel_params": {"max_components": 4, "n_initializations": 3}},
    "paper, rbf, held out": {"kernel": "rbf", "validation_fraction": 0.2},
}
#: The default recipe of 0.2, in the words of later versions: what an earlier one does not know it
#: does without.
DEFAULT_OF_0_2 = {
    "alignment": "frobenius",
    "network": "stacked",
    "standardize": False,
    "layer_norm": False,
    "tied_weights": True,
    "decoder_max_iter": 5,
    "early_stopping": False,
}
SMALL = {
    "n_components": 12,
    "hidden_layer_sizes": (40, 30),
    "steps_per_epoch": 7,
    "batch_size": 60,
    "max_iter": 4,
    "random_state": 3,
}


def hashes() -> dict[str, str]:
    """Train all models with the package that is imported; return hashes of what they are."""
    import torch
    from sklearn.datasets import load_digits

    from dkae import recipes

    torch.set_num_threads(1)
    X = (load_digits().data[:400] / 16).astype("float32")
    found = {}
    for name, params in MODELS.items():
        recipe = recipes.RECIPES[name.split(",")[0]]
        settings = SMALL | ({"pretrain_max_iter": 2} if recipe is recipes.paper else {}) | params
        if recipe is recipes.default and hasattr(recipe(), "layer_norm"):
            settings = DEFAULT_OF_0_2 | settings
        if not hasattr(recipe(), "steps_per_epoch"):  # version 0.1 has another name for it
            settings["epoch"] = settings.pop("steps_per_epoch")
        model = recipe(**settings).fit(X)
        state = [t.numpy().tobytes() for t in model.network_.state_dict().values()]
        numbers = repr((model.history_, model.kernel_scale_, model.n_iter_)).encode()
        maps = [model.transform(X), model.inverse_transform(model.transform(X))]
        parts = [*state, numbers, *(m.tobytes() for m in maps), repr(model.score(X)).encode()]
        found[name] = blake2b(b"".join(parts), digest_size=8).hexdigest()
    return found


def hashes_of(source: Path) -> dict[str, str]:
    """Return the hashes with the package in this folder."""
    code = "import sys, json, bit_identity; print(json.dumps(bit_identity.hashes()))"
    paths = {"PYTHONPATH": f"{source}:{Path(__file__).parent}"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=paths, capture_output=True, text=True, check=True
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


def main(commit: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "-C", str(ROOT), "archive", commit, "src"], capture_output=True, check=True
        )
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        there, here = hashes_of(Path(folder) / "src"), hashes_of(ROOT / "src")
    for name, value in here.items():
        print(f"{name:<32}{value}  {'same' if value == there[name] else 'DIFFERS'}")
    return int(here != there)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
