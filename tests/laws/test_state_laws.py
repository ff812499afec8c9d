"""Everything that is fitted, and the laws of its file: the same maps, and the same bytes."""

from __future__ import annotations

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
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from dkae import DeepKernelizedAutoencoder, InvertibleNystroem, KernelPCA, load, save
from dkae.augmentation import Images
from dkae.decoders import KernelRidgeDecoder, MLPDecoder
from dkae.kernels import (
    ForestKernel,
    PairwiseKernel,
    ProbabilisticClusterKernel,
    TransformerKernel,
    normalize,
)
from dkae.networks import Stack
from dkae.training import Optimization

X = np.random.default_rng(0).uniform(0.1, 1, (36, 5)).astype(np.float32)
GAPS = X.copy()
GAPS[::7, 1] = np.nan
LABELS = np.arange(36) % 3
RBF = PairwiseKernel("rbf", gamma=0.7)


def pck(**params):
    return ProbabilisticClusterKernel(3, 2, random_state=0, reg_covar=1e-2, **params)


def embedding(transformer):
    return TransformerKernel(transformer.fit(X))


#: Each is used by one map in turn: an autoencoder, a Nyström map, a kernel PCA.
KERNELS = {
    "linear": "linear",
    "poly": PairwiseKernel("poly", degree=2, coef0=0.5),
    "chi2": "chi2",
    "pck, new": pck(tolerance=1e-4),
    "pck fitted": pck().fit(X),
    "forest": ForestKernel(n_estimators=7, random_state=0),
    "random forest": ForestKernel(RandomForestClassifier(5, random_state=0).fit(X, LABELS)),
    "boosted": ForestKernel(GradientBoostingClassifier(n_estimators=3).fit(X, LABELS)),
    "PCA": embedding(PCA(3)),
    "pipeline": embedding(make_pipeline(MinMaxScaler(), PCA(3, whiten=True))),
    "Matern": gp.Matern(nu=1.5) + 0.5 * gp.RationalQuadratic(),
    "anisotropic": gp.RBF([1.0, 2.0, 3.0, 4.0, 5.0]) * gp.ConstantKernel(2.0),
    "others": gp.DotProduct() ** 2 + gp.ExpSineSquared() + gp.WhiteKernel(0.1),
    "sum": 0.3 * RBF + PairwiseKernel("laplacian", gamma="scale"),
    "product": RBF * PairwiseKernel("linear") * 2,
    "nested": normalize(0.5 * pck() + RBF * RBF) + normalize(RBF) * pck(tolerance=1e-4),
    "one in two places": RBF + normalize(RBF),
    "many": sum([PairwiseKernel("rbf", gamma=g) for g in np.linspace(0.1, 1, 20)], RBF),
}  # fmt: skip


def autoencoder(kernel="rbf", **params):
    small = {"network": Stack((6,)), "max_iter": 1, "decoder_max_iter": 1, "steps_per_epoch": 2}
    return DeepKernelizedAutoencoder(3, kernel=kernel, random_state=0, **(small | params))


def nystroem(kernel="rbf", decoder="ridge", **params):
    return InvertibleNystroem(3, kernel=kernel, decoder=decoder, random_state=0, **params)


def pca(kernel="rbf", decoder=None, **params):
    return KernelPCA(2, kernel=kernel, decoder=decoder, random_state=0, **params)


MAPS = (autoencoder, nystroem, pca)
MLP = MLPDecoder((6,), max_iter=2, steps_per_epoch=2, optimization=Optimization(max_grad_norm=1.0))
CASES = {
    **{name: MAPS[i % 3](kernel) for i, (name, kernel) in enumerate(KERNELS.items())},
    "autoencoder": autoencoder(
        standardize=True,
        network=Stack((6,), activation="tanh", tied_weights=False, input_scaling="features"),
        optimization=Optimization(learning_rate="constant"),
        augment=Images((5, 1), zoom=0.2),
    ),
    "autoencoder of pixels": autoencoder(network=Stack((), output_activation="sigmoid")),
    "kernel ridge": nystroem(decoder="kernel_ridge", standardize=True),
    "kernel ridge on landmarks": nystroem(decoder=KernelRidgeDecoder(n_landmarks=9, kernel="poly")),
    "MLP": nystroem(decoder=MLP, n_landmarks=20, n_linear=1),
    "scikit-learn's Ridge": nystroem(decoder=Ridge(alpha=0.1)),
    "scikit-learn's KernelRidge": pca(decoder=KernelRidge(kernel="rbf", gamma=0.5)),
    "kernel PCA": pca(decoder="kernel_ridge", center=False, solver="lanczos"),
    "gaps, autoencoder": autoencoder(missing="mask"),
    "gaps, kernel PCA": pca(decoder="ridge", missing="mask", standardize=True),
    "pck": pck(),
    "pck of a generator": pck().set_params(random_state=np.random.RandomState(0)),
    "pipeline": make_pipeline(StandardScaler(), autoencoder()),
    "pipeline of several": make_pipeline(RobustScaler(), MinMaxScaler(), PCA(4), nystroem()),
    "pipeline of pck": Pipeline([("a", MinMaxScaler()), ("b", pck())]),
}  # fmt: skip

pytestmark = [
    pytest.mark.filterwarnings("ignore:max_components=.*"),
    pytest.mark.filterwarnings("ignore:.*not positive semi-definite"),
    pytest.mark.filterwarnings("ignore:.*nearer to a constant kernel"),
    pytest.mark.filterwarnings("ignore:.*R².*below"),
]


def rows_of(name):
    return GAPS if name.startswith("gaps") else X


def maps(model, rows=X):
    """Return all that a model computes of rows."""
    found = [model.transform(rows)]
    if hasattr(model, "inverse_transform"):
        found.append(model.inverse_transform(found[0]))
    if isinstance(model, ProbabilisticClusterKernel):
        found += [model.gram(rows), model.on(rows).diagonal()]
    if hasattr(model, "score"):
        found.append(model.score(rows))
    return found


def assert_same(found, expected):
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
        assert np.asarray(a).dtype == np.asarray(b).dtype
        assert np.isfinite(a).all()


@pytest.mark.parametrize("name", CASES)
def test_laws_of_a_file(name, tmp_path):
    """The maps are the same to the bit, so are the bytes of a file of what was loaded.

    What was loaded can be fitted again, and so can a clone of it.
    """
    rows = rows_of(name)
    model = clone(CASES[name]).fit(rows)
    expected = maps(model, rows)
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
    assert_same(maps(loaded, rows), expected)
    assert_same(maps(model, rows), expected)
    contents = {(tmp_path / name).read_bytes() for name in "abc"}
    assert len(contents) == 1
    if name != "pck of a generator":  # it has moved on
        cloned = clone(loaded).fit(rows)
        assert_same(maps(loaded.fit(rows), rows), expected)
        # A clone of a model with a fitted kernel fits the kernel anew.
        assert_same(maps(cloned, rows), maps(clone(model).fit(rows), rows))


def test_a_kernel_that_is_nested_too_deep_is_left_out_with_a_warning(tmp_path):
    """Operators nest: a sum of a hundred kernels is a hundred levels deep."""
    many = sum([PairwiseKernel("rbf", gamma=g) for g in np.linspace(0.1, 1, 100)], RBF)
    model = autoencoder(many).fit(X)
    with pytest.warns(UserWarning, match=r"does not hold .*nested deeper than"):
        save(model, tmp_path / "a")
    loaded = load(tmp_path / "a").attach_kernel(many.fit(X))
    assert_same(maps(loaded), maps(model))


PROGRAM = """
import sys
from pathlib import Path
import torch
from sklearn.base import clone
from dkae import save
from tests.laws.test_state_laws import CASES, X
torch.set_num_threads(1)
for name in sys.argv[2:]:
    save(clone(CASES[name]).fit(X), Path(sys.argv[1]) / name)
"""


def test_another_process_writes_the_same_bytes(tmp_path):
    """Sets and dicts have another order there."""
    names = ["nested", "MLP", "pipeline of several"]
    (tmp_path / "there").mkdir()
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, tmp_path / "there", *names]
    subprocess.run(command, check=True, env=os.environ | {"PYTHONHASHSEED": "1"})
    for name in names:
        save(clone(CASES[name]).fit(X), tmp_path / name)
        assert (tmp_path / name).read_bytes() == (tmp_path / "there" / name).read_bytes(), name
