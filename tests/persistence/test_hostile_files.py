"""Files with a right checksum that mean harm: refused at once, for little time and memory."""

from __future__ import annotations

import os
import resource
import sys
import time
from functools import partial

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process import kernels as gp
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dkae import load, save
from dkae._support import safe_file
from dkae.kernels import ForestKernel, ProbabilisticClusterKernel, TransformerKernel
from dkae.networks import ConvolutionalAutoencoder
from dkae.persistence import FORMAT, ModelFileError
from dkae.persistence.objects import Writer
from tests.persistence.helpers import (
    MLP,
    X,
    fields_of,
    fill,
    kpca,
    make,
    nystroem,
    put,
    rewrite,
    with_fields,
    without,
)

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="memory is measured"),
    pytest.mark.filterwarnings("ignore:.* does not hold "),
]

MAX_SECONDS, MAX_MEGABYTES = 1.0, 200
RBF = {"object": ["PairwiseKernel", {"metric": "rbf", "gamma_": 1.0}]}


def image_model():
    def flat(A, B):
        return A.reshape(len(A), -1) @ B.reshape(len(B), -1).T

    images = np.random.default_rng(0).random((20, 1, 6, 5), dtype=np.float32)
    network = partial(ConvolutionalAutoencoder, channels=(4, 4, 4, 4, 4))
    return make(network=network, kernel=flat).fit(images)


def pck():
    return ProbabilisticClusterKernel(3, 2, random_state=0, reg_covar=1e-2)


def embedding():
    return TransformerKernel(PCA(3).fit(X))


def forest():
    return ForestKernel(RandomForestClassifier(3, random_state=0).fit(X, np.arange(30) % 3))


MODELS = {
    "stack": lambda: make().fit(X),
    "pck": lambda: kpca(kernel=pck()).fit(X),
    "convolution": image_model,
    "forest": lambda: kpca(kernel=forest()).fit(X),
    "kernel PCA": lambda: kpca().fit(X),
    "Nyström": lambda: nystroem(decoder=MLP, n_linear=1).fit(X),
    "regressor": lambda: nystroem(decoder=KernelRidge(kernel="rbf")).fit(X),
    "transformer": lambda: nystroem(decoder="ridge", kernel=embedding()).fit(X),
    "process": lambda: make(kernel=gp.RBF(2.0) + gp.Matern()).fit(X),
    "pipeline": lambda: make_pipeline(StandardScaler(), kpca()).fit(X),
}
DKA, KPCA, PCK = "DeepKernelizedAutoencoder", "KernelPCA", "ProbabilisticClusterKernel"
NYSTROEM = "InvertibleNystroem"


def widths(**values):
    """Change the first layer of a stack."""

    def change(content):
        (fields,) = fields_of(content.state, "Autoencoder")
        layer = dict(fields["layers"][0]["dict"]) | values
        fields["layers"][0]["dict"] = [[k, v] for k, v in layer.items()]

    return change


def many_layers(content):
    (fields,) = fields_of(content.state, "Autoencoder")
    fields["layers"] *= 5_000


def doubled(content):
    """Each sum holds the one before twice: the work doubles with each level."""
    kernels = [RBF]
    for i in range(30):
        parts = [{"again": i}, {"again": i}]
        weights = {"weights": None, "weights_": [1.0, 1.0]}
        kernels.append({"object": ["SumKernel", {"kernels": parts, "kernels_": parts, **weights}]})
    fields_of(content.state, DKA)[0]["kernel"] = kernels


def sum_of(n):
    weights = {"weights": None, "weights_": [1.0] * n}
    return {"object": ["SumKernel", {"kernels": [RBF], "kernels_": [RBF] * n, **weights}]}


def normalised(n_times):
    """The diagonal of a normalised kernel takes three blocks of its part."""
    kernel = RBF
    for _ in range(n_times):
        kernel = {"object": ["NormalizedKernel", {"kernel_": kernel, "kernel": RBF}]}
    return kernel


def chain(n_chain, n_trees):
    """A tree that is a chain, beside trees of one leaf."""

    def change(content):
        n = n_chain + n_trees
        left = torch.full((n,), -1, dtype=torch.int32)
        right = left.clone()
        left[: n_chain - 1 : 2] = torch.arange(1, n_chain, 2, dtype=torch.int32)
        right[: n_chain - 1 : 2] = torch.arange(2, n_chain + 1, 2, dtype=torch.int32)
        arrays = {
            "left": left,
            "right": right,
            "feature": torch.zeros(n, dtype=torch.int32),
            "threshold": torch.full((n,), 2.0, dtype=torch.float64),
            "missing_left": torch.zeros(n, dtype=torch.bool),
            "bounds": torch.tensor([0, *range(n_chain, n + 1)], dtype=torch.int32),
        }
        for name, array in arrays.items():
            put(f"forest.{name}", array)(content)

    return change


def callbacks_of_one_tensor(content):
    """Nine hundred objects that name one tensor."""
    scaler = {"object": ["StandardScaler", {"mean_": {"array": "kernel_values"}}]}
    fields_of(content.state, DKA)[0]["callbacks"] = [scaler] * 900


def kernels_of_one_tensor(content):
    fields = fields_of(content.state, "TransformerKernel")[0]
    kernel = {"object": ["TransformerKernel", {"transformer": fields["transformer"]}]}
    many = {"object": ["SumKernel", {"kernels": [kernel] * 900, "weights": None}]}
    fields_of(content.state, NYSTROEM)[0]["kernel_"] = many


def landmarks(n, change):
    """Many landmarks, and a kernel that takes long or keeps much for each."""

    def change_both(content):
        put("landmarks_", torch.ones(n, 5))(content)
        put("projection_", torch.ones(n, len(content.tensors["offset_"])))(content)
        change(content)

    return change_both


def features(n):
    """A projection to many features."""

    def change(content):
        put("components_", torch.ones(5, n).double())(content)  # it is transposed
        for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_"):
            put(name, torch.ones(n).double())(content)
        with_fields("PCA", n_components_=n)(content)

    return change


def broken_kernel(content):
    """A kernel that no map of rows needs, and no value to compare with."""
    content.state["kernel_values"] = None
    del content.tensors["kernel_values"]
    with_fields("PairwiseKernel", metric="x")(content)


#: For each model, changes of the JSON or of the tensors, and what the error says.
CHANGES = {
    "stack": {
        "a layer of 2^31 squared": (widths(n_in=2**31 - 1, n_out=2**31 - 1), "overflowed"),
        "a negative layer": (widths(n_out=-6), "layers of Autoencoder"),
        "an unknown activation": (widths(activation="os.system"), "activation='os.system'"),
        "10,000 layers": (many_layers, "layers of Autoencoder is a list"),
        "no layers": (with_fields("Autoencoder", layers=[]), "layers of Autoencoder is a list"),
        "no weights": (without("Autoencoder", "weights"), "weights"),
        "callbacks of one tensor": (callbacks_of_one_tensor, "StandardScaler|callbacks"),
        "threads": (with_fields(DKA, n_jobs=1500), "has no 'n_jobs'"),
        "__class__": (with_fields(DKA, __class__="x"), "has no '__class__'"),
        "a row of 10^12": (with_fields(DKA, row_shape_={"tuple": [10**12]}), "row_shape_"),
        "a row of 6": (with_fields(DKA, row_shape_={"tuple": [6]}), "X has 6 features"),
        "10^9 features": (with_fields(DKA, n_features_in_=10**9), "n_features_in_"),
        "4 components": (with_fields(DKA, n_components_=4), ""),
        "a scale of NaN": (with_fields(DKA, kernel_scale_={"float": "nan"}), "kernel_scale_ of"),
        "a history of numbers": (with_fields(DKA, history_=[1, 2]), "history_ of"),
        "no network": (without(DKA, "network_"), "network_ of .* is missing"),
        "another network": (with_fields(DKA, network_=RBF), "network_ of .* is a PairwiseKernel"),
        "a number for a name": (with_fields(DKA, feature_names_in_=["a", 1]), "feature_names_in_"),
        "a kernel of NaN": (with_fields("PairwiseKernel", gamma_={"float": "nan"}), "gamma_ of"),
        "a kernel that nothing checks": (broken_kernel, "kernel='x' is not known"),
        "a kernel normalised 9 times": (with_fields(DKA, kernel_=normalised(9)), "objects"),
        "objects a billion times": (doubled, r"using it takes 1.02e.03 objects"),
        "weights of NaN": (fill("0.weight", torch.nan, 0), "NaN or infinite"),
        "weights in float64": (put("1.bias", torch.zeros(3).double()), "of torch.float64"),
        "values that are no block": (put("kernel_values", torch.ones(3, 4).double()), "the shape"),
        "values of NaN": (fill("kernel_values", torch.nan), "NaN or infinite"),
        "another tensor": (lambda c: c.tensors.update(x=torch.ones(1)), "belongs to nothing"),
        "a mean for each of 10^6 rows": (
            put("scaling.mean", torch.zeros(10**6, 1)), "mean of Scaling has the shape",
        ),
        "a scale for each of 10^6 rows": (
            put("scaling.scale", torch.ones(10**6, 1)), "scale of Scaling has the shape",
        ),
        "another kind": (with_fields(DKA, kernel_={"object": ["os.system", {}]}), "not a kind of"),
        "a kind of scikit-learn": (
            with_fields(DKA, kernel_={"object": ["sklearn.svm.SVC", {}]}), "not a kind of",
        ),
    },
    "pck": {
        "negative variances": (fill("covariances", -1, 0), "covariances of Mixtures"),
        "negative weights": (fill("mixtures_.weights", -1.0), "weights of Mixtures"),
        "sizes that do not sum": (fill("mixtures_.sizes", 1, 0), "do not sum"),
        "sizes of 2^62": (fill("mixtures_.sizes", 2**62), "outside"),
        "means of another width": (put("mixtures_.means", torch.zeros(8, 3).double()), ""),
        "other mixtures": (with_fields(PCK, n_mixtures_=10**9), "n_mixtures_|is missing"),
        "a device": (with_fields(PCK, device="cuda"), "has no 'device'"),
        "a basis beyond rows": (fill("_basis", 99, 0), "_basis"),
    },
    "convolution": {
        "100,000 channels": (
            with_fields("ConvolutionalAutoencoder", channels=[2] * 100_000), "channels of",
        ),
        "a large image": (
            with_fields("ConvolutionalAutoencoder", shape=[1, 10**5, 10**5]), "more than",
        ),
        "sizes that no weights fit": (
            with_fields("ConvolutionalAutoencoder", channels=[200, 1, 1, 1, 1]), "weights:",
        ),
    },
    "forest": {
        "a cycle": (fill("left", 0, 0), "children that come before"),
        "a child in another tree": (fill("right", 10**6, 0), "outside|children"),
        "two parents": (fill("right", 1, 0), "no parent, or several"),
        "a feature beyond rows": (fill("feature", 5, 0), "feature of ArrayForest"),
        "trees in descending order": (fill("bounds", 10**6, 1), "do not fill"),
        "nodes of fractions": (put("left", torch.tensor([0.5])), "of type float32"),
        "10^9 features": (with_fields("ArrayForest", n_features_in_=10**9), "n_features_in_"),
        "no forest": (with_fields("ForestKernel", forest_=None), ""),
        "a chain beside 30,000 trees": (chain(30_001, 30_000), "using it takes"),
        "a chain of 40,001": (chain(40_001, 1), "deeper than"),
        "a million trees": (chain(1, 10**6), "more than 65,536 trees"),
    },
    "kernel PCA": {
        "coefficients of NaN": (fill("coefficients_", torch.nan, 0), "NaN or infinite"),
        "other rows": (put("coefficients_", torch.zeros(9, 2).double()), ""),
        "more components": (with_fields(KPCA, n_components_=3), "eigenvalues_"),
        "no decoder": (with_fields(KPCA, decoder_=None), "belongs to nothing"),
        "a kernel that needs a fit": (
            with_fields(KPCA, kernel_={"object": ["ForestKernel", {"forest": None}]}), "",
        ),
        "landmarks of another width": (put("decoder_.landmarks_", torch.zeros(30, 3).double()), ""),
        "units of 10^6 rows": (put("row_scale_", torch.ones(10**6, 1).double()), "row_scale_ of"),
        "units of nothing": (fill("row_scale_", 0, 0), "outside of"),
        "rows of another shape": (put("row_mean_", torch.zeros(6).double()), "shape"),
        "an unknown kernel on codes": (with_fields("KernelRidgeDecoder", kernel="x"), "kernel"),
    },
    "Nyström": {
        "landmarks of another width": (put("landmarks_", torch.zeros(30, 4)), ""),
        "a projection of NaN": (fill("projection_", torch.nan, 0), "NaN or infinite"),
        "a feature of 10^6 landmarks": (put("landmarks_", torch.zeros(10**6, 1)), "shape"),
        "a path from another width": (put("linear_path_", torch.zeros(6, 1)), "linear_path_ of"),
        "10^6 layers": (
            with_fields("CorrectedRidge", hidden_layer_sizes=[6] * 10**6), "hidden_layer_sizes of",
        ),
        "a layer of 2^31": (
            with_fields("CorrectedRidge", hidden_layer_sizes=[2**31]), "hidden_layer_sizes of",
        ),
        "a function for an activation": (
            with_fields("CorrectedRidge", output_activation="os.system"), "output_activation of",
        ),
        "100 kernels on 100,000 landmarks": (
            landmarks(100_000, with_fields(NYSTROEM, kernel_=sum_of(100))), "takes .* operations",
        ),
        "another decoder": (with_fields(NYSTROEM, decoder_=RBF), "decoder_ of .* a PairwiseKernel"),
    },
    "regressor": {
        "a function": (with_fields("KernelRidge", kernel="os.system"), ""),
        "keywords": (
            with_fields("KernelRidge", kernel_params={"dict": [["n_jobs", 1500]]}), "kernel_params",
        ),
    },
    "transformer": {
        "10^10 inputs": (with_fields("PCA", n_features_in_=10**10), "n_features_in_"),
        "components of NaN": (fill("components_", torch.nan, 0), "NaN or infinite"),
        "in place": (with_fields("PCA", copy=False), "has no 'copy'"),
        "20,000 features of 10,000 landmarks": (
            landmarks(10_000, features(20_000)), "using it takes 2e.08 numbers",
        ),
        "kernels of one tensor": (kernels_of_one_tensor, "stands in two places"),
    },
    "process": {
        "a length of zero": (with_fields("RBF", length_scale=0.0), "length_scale of"),
        "six lengths": (with_fields("RBF", length_scale=[1.0] * 6), ""),
        "another class": (
            with_fields("GaussianProcessKernel", kernel={"object": ["CompoundKernel", {}]}),
            "not a kind of",
        ),
    },
    "pipeline": {
        "a scale of nothing": (fill("scale_", 0, 0), "outside of"),
        "another width": (put("var_", torch.ones(3).double()), "var_ of StandardScaler has the"),
        "no steps": (with_fields("Pipeline", steps=[]), "steps of Pipeline"),
    },
}  # fmt: skip
CASES = [(kind, name) for kind, changes in CHANGES.items() for name in changes]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return the bytes of a file of each model."""
    folder = tmp_path_factory.mktemp("models")
    found = {}
    for kind, fit in MODELS.items():
        save(fit(), folder / kind)
        load(folder / kind)
        found[kind] = (folder / kind).read_bytes()
    return found


@pytest.mark.parametrize(("kind", "name"), CASES, ids=[f"{k}: {n}" for k, n in CASES])
def test_it_is_refused_at_once(kind, name, files, tmp_path):
    path = tmp_path / "f"
    path.write_bytes(files[kind])
    change, message = CHANGES[kind][name]
    rewrite(path, change)
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with pytest.raises(ModelFileError, match=rf"f is damaged or not from dkae: .*({message})"):
        load(path)
    assert time.process_time() - start < MAX_SECONDS
    megabytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert megabytes < MAX_MEGABYTES + 20 * path.stat().st_size / 2**20


def test_a_convolution_that_is_tiny_in_a_file_and_huge_at_work(tmp_path):
    """Its weights fit: it is refused before anything runs."""
    model = image_model()
    model.network_ = ConvolutionalAutoencoder((1, 1000, 1000), 1, channels=[2000, 1, 1, 1, 1])
    model.row_shape_, model.n_features_in_, model.n_components_ = (1, 1000, 1000), 1, 1
    writer = Writer(model.kernel_)
    state = {"format": FORMAT, "model": writer.pack(model), "kernel_values": None}
    safe_file.write(tmp_path / "f", state, writer.tensors)
    with pytest.raises(ModelFileError, match=r"using it takes .* operations"):
        load(tmp_path / "f")


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("", "pipe", "loop"):
        with pytest.raises(ModelFileError, match="is a folder, a pipe, a device or a link"):
            load(tmp_path / name)
