"""Everything that is fitted, and the laws of its file: the same maps, and the same bytes."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.gaussian_process import kernels as gp
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from dkae import DeepKernelizedAutoencoder, load, save
from dkae.kernels import (
    ForestKernel,
    PairwiseKernel,
    ProbabilisticClusterKernel,
    TransformerKernel,
    center,
    normalize,
)
from dkae.spectral import KernelPCA

X = np.random.default_rng(0).uniform(0.1, 1, (36, 5)).astype(np.float32)
LABELS = np.arange(36) % 3
RBF = PairwiseKernel("rbf", gamma=0.7)


def pck(**params):
    return ProbabilisticClusterKernel(3, 2, random_state=0, reg_covar=1e-2, **params)


def embedding(transformer):
    return TransformerKernel(transformer.fit(X))


KERNELS = {
    "rbf": "rbf",
    "linear": "linear",
    "laplacian": PairwiseKernel("laplacian", gamma="scale"),
    "poly": PairwiseKernel("poly", degree=2, coef0=0.5),
    "chi2": "chi2",
    "pck": "pck",
    "pck full": pck(covariance_type="full"),
    "pck spherical": pck(covariance_type="spherical"),
    "pck cosine": pck(normalize="cosine"),
    "pck max": pck(normalize="max"),
    "pck exact": pck(tolerance=0),
    "pck of a random state": pck().set_params(random_state=np.random.RandomState(0)),
    "forest": ForestKernel(n_estimators=7, random_state=0),
    "random forest": ForestKernel(RandomForestClassifier(5, random_state=0).fit(X, LABELS)),
    "boosted": ForestKernel(GradientBoostingClassifier(n_estimators=3).fit(X, LABELS)),
    "Nystroem": embedding(Nystroem(n_components=8, random_state=0)),
    "RBFSampler": embedding(RBFSampler(n_components=8, random_state=0)),
    "PCA": embedding(PCA(3)),
    "StandardScaler": embedding(StandardScaler()),
    "pipeline": embedding(make_pipeline(MinMaxScaler(), PCA(3, whiten=True))),
    "Matern": gp.Matern(nu=1.5) + 0.5 * gp.RationalQuadratic(),
    "anisotropic": gp.RBF([1.0, 2.0, 3.0, 4.0, 5.0]) * gp.ConstantKernel(2.0),
    "others": gp.DotProduct() ** 2 + gp.ExpSineSquared() + gp.WhiteKernel(0.1),
    "sum": 0.3 * RBF + PairwiseKernel("linear"),
    "product": RBF * PairwiseKernel("linear") * 2,
    "centred": center(RBF, max_reference=20),
    "normalised": normalize(PairwiseKernel("poly")),
    "nested": normalize(center(0.5 * pck() + RBF * RBF)) + normalize(RBF) * pck(tolerance=0),
    "fitted": pck().fit(X),
    "one in two places": RBF + normalize(RBF),
    "many": sum([PairwiseKernel("rbf", gamma=g) for g in np.linspace(0.1, 1, 20)], RBF),
}  # fmt: skip


def autoencoder(kernel, **params):
    small = {"hidden_layer_sizes": (6,), "max_iter": 1, "steps_per_epoch": 2, "random_state": 0}
    if kernel == "pck":
        small["kernel_params"] = {"max_components": 3, "n_initializations": 2}
    return DeepKernelizedAutoencoder(3, kernel=kernel, **(small | params))


def pca(kernel, **params):
    if kernel == "pck":
        params["kernel_params"] = {"max_components": 3, "n_initializations": 2}
    return KernelPCA(2, kernel=kernel, random_state=0, **params)


MODELS = {
    "stack": lambda kernel: autoencoder(kernel, network="stacked"),
    "KernelPCA": pca,
}
SCALERS = {
    "autoencoder": (StandardScaler(),),
    "two scalers": (RobustScaler(), MinMaxScaler()),
    "PCA": (PCA(4, random_state=0),),
}
OTHERS = {
    "pck": pck(),
    **{
        f"pipeline of {name}": make_pipeline(*steps, autoencoder("rbf", network="stacked"))
        for name, steps in SCALERS.items()
    },
    "pipeline of KernelPCA": make_pipeline(StandardScaler(), pca("rbf")),
    "pipeline of pck": Pipeline([("a", MinMaxScaler()), ("b", pck())]),
}
CASES = {
    **{f"{m}, {k}": (m, k) for m in MODELS for k in KERNELS},
    **{name: (None, name) for name in OTHERS},
}

pytestmark = [
    pytest.mark.filterwarnings("ignore:max_components=.*"),
    pytest.mark.filterwarnings("ignore:.*not positive semi-definite"),
]


def unfitted(case):
    kind, name = case
    if kind is None:
        return clone(OTHERS[name])
    return MODELS[kind](KERNELS[name])


def maps(model):
    """Return all that a model computes of rows."""
    found = [model.transform(X)]
    if hasattr(model, "inverse_transform"):
        found.append(model.inverse_transform(found[0]))
    if isinstance(model, ProbabilisticClusterKernel):
        found += [model.gram(X), model.diag(X)]
    if hasattr(model, "score"):
        found.append(model.score(X))
    return found


def assert_same(found, expected):
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
        assert np.asarray(a).dtype == np.asarray(b).dtype
        assert np.isfinite(a).all()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_laws_of_a_file(case, tmp_path):
    """The maps are the same to the bit, and so are the bytes of a file of what was loaded."""
    model = unfitted(case).fit(X)
    expected = maps(model)
    np.random.seed(3)  # noqa: NPY002
    torch.manual_seed(3)
    before = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002

    save(model, tmp_path / "a")
    save(model, tmp_path / "b")
    loaded = load(tmp_path / "a")
    save(loaded, tmp_path / "c")

    np.testing.assert_array_equal(np.random.get_state()[1], before[0])  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), before[1])
    assert type(loaded) is type(model)
    assert_same(maps(loaded), expected)
    assert_same(maps(model), expected)
    contents = {(tmp_path / name).read_bytes() for name in "abc"}
    assert len(contents) == 1


#: A random state that has moved on does not give the same again; the other models fit alike.
REPEATABLE = {
    name: (kind, what)
    for name, (kind, what) in CASES.items()
    if what != "pck of a random state" and kind != "KernelPCA"
}


@pytest.mark.parametrize("case", REPEATABLE.values(), ids=REPEATABLE)
def test_what_was_loaded_can_be_cloned_and_fitted_again(case, tmp_path):
    model = unfitted(case).fit(X)
    save(model, tmp_path / "a")
    again, cloned = load(tmp_path / "a"), clone(load(tmp_path / "a"))
    assert_same(maps(again.fit(X)), maps(model))
    # A clone of a model with a fitted kernel fits the kernel anew.
    assert_same(maps(cloned.fit(X)), maps(clone(model).fit(X)))


def test_a_sum_of_too_many_is_told_and_not_lost_in_silence(tmp_path):
    """Operators nest: a sum of a hundred kernels is a hundred levels deep."""
    many = sum([PairwiseKernel("rbf", gamma=g) for g in np.linspace(0.1, 1, 100)], RBF)
    model = MODELS["stack"](many).fit(X)
    with pytest.warns(UserWarning, match=r"does not hold .*nested deeper than"):
        save(model, tmp_path / "a")
    loaded = load(tmp_path / "a").attach_kernel(many.fit(X))
    assert_same(maps(loaded), maps(model))


PROGRAM = """
import sys
from pathlib import Path
from dkae import load, save
from tests.laws import test_state_laws as laws
for name in sys.argv[2:]:
    case = laws.CASES[name]
    model = laws.unfitted(case).fit(laws.X)
    save(model, Path(sys.argv[1]) / name)
"""


def test_another_process_writes_the_same_bytes(tmp_path):
    """Sets and dicts have another order there."""
    names = ["stack, nested", "KernelPCA, pck", "pipeline of two scalers"]
    for seed in ("1", "2"):
        (tmp_path / seed).mkdir()
        environment = os.environ | {"PYTHONHASHSEED": seed}
        command = [sys.executable, "-W", "ignore", "-c", PROGRAM, tmp_path / seed, *names]
        subprocess.run(command, check=True, env=environment)
    for name in names:
        first, second = ((tmp_path / seed / name).read_bytes() for seed in ("1", "2"))
        assert hashlib.sha256(first).digest() == hashlib.sha256(second).digest(), name
