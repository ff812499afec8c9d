"""Which recipe is best on MNIST for about 2,000 steps? One variation at a time, test part.

``--resume`` skips what already stands in the results file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from dkae import DeepKernelizedAutoencoder, recipes
from dkae.datasets import load_mnist20k
from dkae.metrics.comparison import compare_grams

RESULTS = Path(__file__).parent / "results" / "recipes.json"

#: What the variations start from.
REFERENCE: dict[str, Any] = {
    "kernel": "rbf",
    "activation": "relu",
    "learning_rate_init": 1e-3,
    "decoder_max_iter": 0,
}

#: The default recipe but for its last phase, and with it.
END_TO_END: dict[str, Any] = {"activation": "gelu", "learning_rate_init": 2e-3}
DEFAULT = END_TO_END | {"decoder_max_iter": recipes.default().decoder_max_iter}

#: Differences from the reference.
VARIANTS: dict[str, dict[str, Any]] = {
    "reference: ReLU": {},
    "N_c = 2000": {"n_components": 2000},
    "N_c = 128": {"n_components": 128},
    "peak learning rate 2e-3": {"learning_rate_init": 2e-3},
    "constant learning rate": {"learning_rate": "constant"},
    "ReLU, Probabilistic Cluster Kernel": {"kernel": "pck"},
    "GELU, Probabilistic Cluster Kernel": {"activation": "gelu", "kernel": "pck"},
    "weights not tied": {"tied_weights": False},
    "GELU": {"activation": "gelu"},
    "GELU, 2e-3": END_TO_END,
    "GELU, 2e-3, Probabilistic Cluster Kernel": END_TO_END | {"kernel": "pck"},
    "GELU, 2e-3, weights not tied": END_TO_END | {"tied_weights": False},
    "GELU, 2e-3, λ = 0.9": END_TO_END | {"alignment_weight": 0.9},
    "GELU, 2e-3, λ = 0.9, weights not tied": END_TO_END
    | {"alignment_weight": 0.9, "tied_weights": False},
    "the default: GELU, 2e-3, then the decoder": DEFAULT,
    "the default, λ = 0.9": DEFAULT | {"alignment_weight": 0.9},
    "pretrained (3 epochs a layer)": {"pretrain_max_iter": 3, "max_iter": 17},
}


def scores(model: DeepKernelizedAutoencoder, X: np.ndarray) -> dict[str, float]:
    """L_c over all pairs of the rows, and the mean squared error of their reconstruction."""
    codes = model.transform(X)
    return {
        "alignment_loss": compare_grams(codes, model.kernel_.on(X)).alignment_loss,
        "reconstruction_mse": float(np.mean((model.inverse_transform(codes) - X) ** 2)),
    }


def measure(model: DeepKernelizedAutoencoder) -> dict[str, Any]:
    """Fit on the 14,000 training rows; score on these and on the 3,000 test rows."""
    mnist = load_mnist20k(scaled=True)
    train, test = mnist.data[mnist.train], mnist.data[mnist.test]
    model.set_params(random_state=0, verbose=sys.stderr.isatty()).fit(train)
    return {"test": scores(model, test), "train": scores(model, train[:3000])}


def main() -> None:
    """Measure what is missing and print the table."""
    models = {name: recipes.default(**(REFERENCE | changes)) for name, changes in VARIANTS.items()}
    models["paper, 2,000 + 4 x 600 steps"] = recipes.paper(kernel="rbf", steps_per_epoch=20)
    results = json.loads(RESULTS.read_text()) if "--resume" in sys.argv else {}
    for name, model in models.items():
        if name not in results:
            results[name] = measure(model)
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        test, train = results[name]["test"], results[name]["train"]
        print(
            f"{name:<44} test L_c {test['alignment_loss']:.4f}  MSE "
            f"{test['reconstruction_mse']:.5f}   train L_c {train['alignment_loss']:.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
