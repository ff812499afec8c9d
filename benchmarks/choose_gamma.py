"""Which γ each score prefers, for an RBF kernel on scikit-learn's digits.

A small network, 64–128–32, learns with γ from 1e-4 to 30 times that of the median heuristic, and
with two losses: L_c and the centred alignment. Means over three random splits, of which a quarter
of the rows is scored. "constant" is the alignment of a constant kernel with the prior, "alignment"
the A of the paper, "score" what `score` returns, the centred alignment; "classifier" is the
accuracy of a logistic regression on codes, in cross-validation on the scored rows: what labels know
of a code, by other means than alignment. A minute on two free cores. Writes
``results/choose_gamma.json``.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from measuring import make_parser, save
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dkae import DeepKernelizedAutoencoder, metrics
from dkae.kernels import PairwiseKernel
from dkae.networks import Stack

FACTORS = (1e-4, 0.1, 1 / 3, 1, 3, 10, 30)


def own_score(model: Any, X: Any, y: Any = None) -> float:
    return float(model.score(X))


def alignment(model: Any, X: Any, y: Any = None) -> float:
    return metrics.kernel_alignment(metrics.code_gram(model.transform(X)), model.prior_gram(X))


def constant(model: Any, X: Any, y: Any = None) -> float:
    return metrics.constant_alignment(model.prior_gram(X))


def classifier(model: Any, X: Any, y: Any) -> float:
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return float(cross_val_score(pipeline, model.transform(X), y, cv=3).mean())


SCORING = {
    "constant": constant,
    "alignment": alignment,
    "score": own_score,
    "label_alignment": metrics.label_alignment_score,
    "r2": metrics.reconstruction_r2_score,
    "classifier": classifier,
}


def main() -> None:
    """Search over γ with each loss, print the means, write the results file."""
    parser = make_parser("choose_gamma", __doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--rows", type=int, help="rows at most, for a trial")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    X, y = load_digits(return_X_y=True)
    X, y = (X[: given.rows] / 16).astype(np.float32), y[: given.rows]
    median = PairwiseKernel("rbf", gamma="median").fit(X).gamma_
    model = DeepKernelizedAutoencoder(
        32,
        network=Stack((128,), layer_norm=False, input_scaling=False),
        max_iter=given.epochs,
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
            n_jobs=given.jobs,
        ).fit(X, y)
        means = {name: search.cv_results_[f"mean_test_{name}"] for name in SCORING}
        results[loss] = {
            f"{factor:.4g}": {name: float(values[i]) for name, values in means.items()}
            for i, factor in enumerate(FACTORS)
        }
        for factor, found in results[loss].items():
            print(f"{loss:<10} {factor:>7}  {found}")
    save(given.results, results)


if __name__ == "__main__":
    main()
