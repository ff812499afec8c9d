"""Every parameter of every map and of its parts changes the fitted map, or is an error.

The walk goes over `get_params`, so a new parameter without a case fails here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.gaussian_process.kernels import Matern
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV

from dkae import DeepKernelizedAutoencoder, InvertibleNystroem
from dkae.augmentation import Images, Jitter, Mixup
from dkae.decoders import KernelRidgeDecoder, MLPDecoder, RidgeDecoder
from dkae.kernels import PairwiseKernel
from dkae.networks import ACTIVATIONS, Stack
from dkae.training import Callback, Optimization
from tests.laws.maps import MAPS, TRAINED, X, make, results
from tests.nets import Residual

pytestmark = pytest.mark.filterwarnings("ignore")  # of tiny fits and odd measures

GAPS = X.copy()
GAPS[::7, 1] = np.nan
#: Parameters that do not concern the map, and values that must leave every bit of it.
UNCONCERNED = {
    "verbose": 1,
    "device": "cpu",
    "cache_bytes": 0,
    "callbacks": [Callback()],
}
KERNELS = ["linear", "laplacian", Matern(), PairwiseKernel("rbf", gamma=0.02)]
#: What all maps share.
SHARED: dict[str, list[Any]] = {
    "n_components": [2, 5],
    "kernel": KERNELS,
    "gamma": ["scale", None, 0.02],
    "standardize": [True],
    "missing": ["mask"],
    "random_state": [1, np.random.RandomState(2)],
}
STACK: dict[str, list[Any]] = {
    "hidden_layer_sizes": [(), (9,), (8, 8), "auto"],
    "activation": sorted(set(ACTIVATIONS) - {"gelu"}),
    "code_activation": sorted(set(ACTIVATIONS) - {"identity"}),
    "output_activation": sorted(set(ACTIVATIONS) - {"identity"}),
    "layer_norm": [False],
    "tied_weights": [False],
    "input_scaling": ["features", False],
}
OPTIMIZATION: dict[str, list[Any]] = {
    "optimizer": [torch.optim.SGD],
    "learning_rate": ["cosine", "constant", "endless"],
    "learning_rate_init": [0.05],
    "max_grad_norm": [1e-4],
}
AUTOENCODER: dict[str, list[Any]] = SHARED | {
    "network": [None, Residual],
    "alignment": ["frobenius", "centered", "logdet", "von_neumann", "jensen_renyi", "bures"],
    "alignment_weight": [0.0, 0.5, 1.0],
    "batch_size": [17],
    "max_iter": [1],
    "decoder_max_iter": [0, 2],
    "pretrain_max_iter": [1],
    "steps_per_epoch": [4, "samples", "pairs"],
    "optimization": [Optimization(learning_rate_init=0.1)],
    "input_noise": [0.5],
    "augment": ["jitter", "mixup", Images((2, 3))],
    "validation_fraction": [0.2],
    "warm_start": [True],
}
NYSTROEM: dict[str, list[Any]] = SHARED | {
    "n_landmarks": [5, 21],
    "center": [True],
    "n_linear": [1, 3],
    "decoder": ["kernel_ridge", "auto", LinearRegression(fit_intercept=False)],
    "warm_start": [True],
}
PCA: dict[str, list[Any]] = SHARED | {
    "center": [False],
    "decoder": ["ridge", "mlp", LinearRegression()],
    # Another way to the same components: agreement is what it must show.
    "solver": [],
}
RIDGE: dict[str, list[Any]] = {"alphas": [[1.0, 2.0], (1e3,)]}
KERNEL_RIDGE: dict[str, list[Any]] = {
    "kernel": ["linear", "poly", "laplacian"],
    "gamma": ["scale", None, 3.0],
    "alphas": [(10.0,)],
    "n_landmarks": [5, None],
    "random_state": [7],
}
MLP: dict[str, list[Any]] = {
    "hidden_layer_sizes": [(), (9,), "auto"],
    "max_iter": [1],
    "batch_size": [17],
    "steps_per_epoch": [4, "samples", "pairs"],
    "optimization": [Optimization(learning_rate_init=0.1)],
    "validation_fraction": [0.3],
    "patience": [1],
    "tol": [1e6],
    "random_state": [7],
}
IMAGES: dict[str, list[Any]] = {
    "shape": [(3, 2)],
    "rotation": [90.0],
    "zoom": [0.5],
    "shear": [0.5],
    "shift": [0.5],
}
#: The parts of a map: the map, the prefix of their parameters, an object, and its cases.
PARTS: dict[str, tuple[str, str, Any, dict[str, list[Any]]]] = {
    "autoencoder": ("autoencoder", "", MAPS["autoencoder"], AUTOENCODER),
    "nystroem, ridge": ("nystroem, ridge", "", MAPS["nystroem, ridge"], NYSTROEM),
    "nystroem, mlp": ("nystroem, mlp", "", MAPS["nystroem, mlp"], NYSTROEM),
    "kernel PCA": ("kernel PCA", "", MAPS["kernel PCA"], PCA),
    "stack": ("autoencoder", "network__", Stack(), STACK),
    "optimization": ("autoencoder", "optimization__", Optimization(), OPTIMIZATION),
    "ridge": ("nystroem, ridge", "decoder__", RidgeDecoder(), RIDGE),
    "kernel ridge": ("nystroem, kernel ridge", "decoder__", KernelRidgeDecoder(), KERNEL_RIDGE),
    "kernel ridge of PCA": ("kernel PCA", "decoder__", KernelRidgeDecoder(), KERNEL_RIDGE),
    "mlp": ("nystroem, mlp", "decoder__", MLPDecoder(), MLP),
    "jitter": ("autoencoder", "augment__", Jitter(), {"scale": [1.0]}),
    "mixup": ("autoencoder", "augment__", Mixup(), {"alpha": [0.1]}),
    "images": ("autoencoder", "augment__", Images((2, 3)), IMAGES),
    "optimization of mlp": (
        "nystroem, mlp", "decoder__optimization__", Optimization(), OPTIMIZATION,
    ),
}  # fmt: skip
CASES = [
    pytest.param(name, param, value, id=f"{name}-{param}-{i}")
    for name, (_, _, _, cases) in PARTS.items()
    for param, values in cases.items()
    for i, value in enumerate(values)
]
#: What a part needs in order to count, and what a parameter needs.
NEEDS: dict[str, dict[str, Any]] = {
    # Or the regression that it starts as may be the best on the few rows that are held out.
    "nystroem, mlp": {"decoder__validation_fraction": 0.0},
    "mlp": {"decoder__validation_fraction": 0.0},
    "optimization of mlp": {"decoder__validation_fraction": 0.0},
    "mlp, validation_fraction": {},
    "mlp, patience": {"decoder__max_iter": 40},
    "mlp, tol": {"decoder__max_iter": 40, "decoder__patience": 2},
    "kernel PCA, random_state": {"kernel": "forest"},
    "jitter": {"augment": Jitter()},
    "mixup": {"augment": Mixup()},
    "images": {"augment": Images((2, 3))},
}


def outcome(model: BaseEstimator, param: str) -> Any:
    """Return what a fitted map does, or the error of its fit."""
    try:
        model.fit(GAPS if param == "missing" else X)
        if param == "warm_start":
            model.fit(3 * X[::-1] + 1)
    except ValueError as error:
        return str(error)
    return results(model)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, str) or isinstance(b, str):
        return bool(isinstance(a, str) and a == b)
    return all(x.shape == y.shape and np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("part", PARTS)
def test_every_parameter_has_a_case(part):
    _, _, made, cases = PARTS[part]
    assert cases.keys() | UNCONCERNED.keys() >= made.get_params(deep=False).keys()
    assert cases.keys() <= made.get_params(deep=False).keys()


@pytest.mark.parametrize(("part", "param", "value"), CASES)
def test_a_value_that_is_changed_changes_the_map(part, param, value):
    name, prefix, _, _ = PARTS[part]
    base = make(name, **NEEDS.get(f"{part}, {param}", NEEDS.get(part, {})))
    changed = clone(base).set_params(**{prefix + param: value})
    before, after = outcome(base, param), outcome(changed, param)
    assert not isinstance(before, str) or param == "missing"  # gaps are an error by default
    assert not same(before, after)
    if isinstance(after, str):
        assert param in after


@pytest.mark.parametrize(
    ("name", "param"),
    [(n, p) for n in MAPS for p in UNCONCERNED if p in MAPS[n].get_params(deep=False)],
)
def test_values_that_do_not_concern_the_map_change_no_bit(name, param):
    base, changed = make(name), make(name, **{param: UNCONCERNED[param]})
    if param == "callbacks" and name not in TRAINED:  # a closed form has no steps
        with pytest.raises(ValueError, match=r"callbacks was passed, but the decoder, .*: set dec"):
            changed.fit(X)
        return
    assert same(outcome(base, param), outcome(changed, param))


def test_both_solvers_find_the_same_components():
    dense, lanczos = (np.abs(make("kernel PCA", solver=s).fit_transform(X))
                      for s in ("dense", "lanczos"))  # fmt: skip
    np.testing.assert_allclose(dense, lanczos, atol=1e-4)


# --- parameters of parts --------------------------------------------------------------------------

#: A search for each part; parts given by name, or by default, become objects.
SEARCHES: dict[str, tuple[Any, str, list[Any]]] = {
    "kernel": (make("autoencoder"), "kernel__gamma", [1e-4, 0.1]),
    "kernel of Nystroem": (make("nystroem, ridge"), "kernel__gamma", [1e-4, 0.1]),
    "kernel of PCA": (make("kernel PCA"), "kernel__gamma", [1e-4, 0.1]),
    "network": (make("autoencoder"), "network__hidden_layer_sizes", [(4,), (9, 9)]),
    "default network": (make("autoencoder", network=None), "network__activation", ["elu", "relu"]),
    "optimization": (make("autoencoder"), "optimization__learning_rate_init", [1e-4, 0.01]),
    "named augmentation": (make("autoencoder", augment="jitter"), "augment__scale", [0.01, 1.0]),
    "ridge": (make("nystroem, ridge"), "decoder__alphas", [[1e-4], [1e4]]),
    "named decoder": (make("nystroem, ridge", decoder="ridge"), "decoder__alphas", [[1e-4], [1e4]]),
    "scikit-learn": (make("nystroem, scikit-learn"), "decoder__alpha", [1e-4, 1e4]),
    "mlp": (make("nystroem, mlp"), "decoder__optimization__learning_rate_init", [1e-4, 0.01]),
    "decoder of PCA": (make("kernel PCA", decoder="ridge"), "decoder__alphas", [[1e-4], [1e4]]),
}


def error_of(model: Any, rows: Any, y: object = None) -> float:
    """Return a score in which both directions count."""
    codes, back = results(model, rows)
    return float(-np.square(back - rows).mean() + 1e-3 * np.square(codes).mean())


@pytest.mark.parametrize("case", SEARCHES)
def test_a_search_reaches_into_parts(case):
    model, param, values = SEARCHES[case]
    search = GridSearchCV(model, {param: values}, cv=2, error_score="raise", scoring=error_of)
    search.fit(X)
    scores = search.cv_results_["mean_test_score"]
    assert scores[0] != scores[1]
    assert search.best_estimator_.get_params()[param] == search.best_params_[param]


def test_parts_by_default_become_objects():
    model = DeepKernelizedAutoencoder().set_params(
        network__tied_weights=False, optimization__learning_rate="constant", kernel__gamma=2.0
    )
    params = model.get_params()
    assert not params["network__tied_weights"]
    assert params["optimization__learning_rate"] == "constant"
    assert params["kernel__gamma"] == 2.0
    with pytest.raises(ValueError, match="decoder='auto' has no parameters of its own: set dec"):
        InvertibleNystroem().set_params(decoder__alphas=[1.0])
    with pytest.raises(ValueError, match="Invalid parameter 'alpa' for estimator RidgeDecoder"):
        InvertibleNystroem(decoder="ridge").set_params(decoder__alpa=[1.0])
