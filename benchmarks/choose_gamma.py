"""Which γ each score prefers, for an RBF kernel on scikit-learn's digits.

A small network, 64–128–32, learns with γ from 1e-4 to 30 times that of the median heuristic, and
with two losses: L_c, the default, and the centred alignment. Means over three random splits, of
which a quarter of the rows is scored. "constant" is the alignment of a constant kernel with the
prior; "classifier" the accuracy of a logistic regression on codes, in cross-validation on the
scored rows: what labels know of a code, by other means than alignment. A minute on two free cores.
Writes ``results/choose_gamma.json``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dkae import DeepKernelizedAutoencoder, metrics
from dkae.kernels import PairwiseKernel

RESULTS = Path(__file__).parent / "results" / "choose_gamma.json"
FACTORS = (1e-4, 0.1, 1 / 3, 1, 3, 10, 30)


def own_score(model: Any, X: Any, y: Any = None) -> float:
    return float(model.score(X))


def constant(model: Any, X: Any, y: Any = None) -> float:
    return metrics.alignment(np.ones((len(X), len(X)), np.float32), model.prior_gram(X))


def classifier(model: Any, X: Any, y: Any) -> float:
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return float(cross_val_score(pipeline, model.transform(X), y, cv=3).mean())


SCORING = {
    "constant": constant,
    "score": own_score,
    "centered_alignment": metrics.centered_alignment_score,
    "label_alignment": metrics.label_alignment_score,
    "r2": metrics.reconstruction_r2_score,
    "classifier": classifier,
}


def main() -> None:
    """Search over γ with each loss, print the means, write the results file."""
    X, y = load_digits(return_X_y=True)
    X = (X / 16).astype(np.float32)
    median = PairwiseKernel("rbf", gamma="median").fit(X).gamma_
    model = DeepKernelizedAutoencoder(
        32,
        network="stacked",
        standardize=False,
        layer_norm=False,
        hidden_layer_sizes=(128,),
        max_iter=20,
        decoder_max_iter=5,
        steps_per_epoch=50,
        random_state=0,
    )
    results: dict[str, Any] = {"median": round(median, 6)}
    for loss in ("frobenius", "centered"):
        search = GridSearchCV(
            model.set_params(alignment=loss),
            {"gamma": [factor * median for factor in FACTORS]},
            scoring=SCORING,
            refit=False,
            cv=StratifiedShuffleSplit(3, test_size=0.25, random_state=0),
            n_jobs=2,
        ).fit(X, y)
        results[loss] = {
            f"{factor:.4g}": {
                name: round(float(search.cv_results_[f"mean_test_{name}"][i]), 5)
                for name in SCORING
            }
            for i, factor in enumerate(FACTORS)
        }
        for factor, found in results[loss].items():
            print(f"{loss:<10} {factor:>7}  {found}")
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
