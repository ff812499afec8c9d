"""For each model, changes of its state or of its tensors that must be noticed."""

from __future__ import annotations

import torch

from tests.persistence.helpers import state_of
from tests.persistence.hostile_changes import (
    KERNEL,
    LAYER,
    NETWORK,
    RBF,
    drop,
    fill,
    huge_image,
    layers,
    of_kernel,
    of_object,
    put,
    set_in,
    set_kind,
    set_learnt,
    set_params,
    widths,
)

BIG = 2**40
#: For each model, changes of its state, or of its tensors.
CHANGES = {
    "stack": {
        "a layer of 15,000 squared": widths(0, n_in=15_000, n_out=15_000),
        "a layer of 50,000 squared": widths(0, n_in=50_000, n_out=50_000),
        "a layer of 2^31 squared": widths(0, n_in=2**31, n_out=2**31),
        "a layer of 2^63": widths(0, n_in=2**63),
        "a layer of a negative width": widths(0, n_out=-6),
        "a layer of half a width": widths(0, n_out=6.5),
        "a layer of text": widths(0, n_out="6"),
        "a layer with a generator": widths(0, generator=1),
        "a layer of an unknown activation": widths(0, activation="os.system"),
        "a layer that does not fit the next": widths(1, n_in=7),
        "a layer that does not fit its weights": widths(0, n_out=7),
        "a million layers": layers(lambda described: [{"dict": LAYER}] * 70_000),
        "no layers": layers(lambda described: []),
        "layers that are none": layers(lambda described: [1, 2]),
        "layers in another order": layers(lambda described: described[::-1]),
        "a linear path of NaN": set_in(*NETWORK, linear_path={"float": "nan"}),
        "a linear path without weights": set_in(*NETWORK, linear_path=0.5),
        "a state without layers": drop(*NETWORK, "layers"),
        "a state without weights": drop(*NETWORK, "weights"),
        "a state without params": lambda state: state_of(state).pop("params"),
        "a state without learnt": lambda state: state_of(state).pop("learnt"),
        "__class__ as learnt": set_learnt(__class__="x"),
        "__dict__ as learnt": set_learnt(__dict__={"dict": {}}),
        "fit as learnt": set_learnt(fit=1),
        "transform as learnt": set_learnt(transform=1),
        "_maps as learnt": set_learnt(_maps=1),
        "an unknown parameter": set_params(nonsense=1),
        "a network of numbers": set_params(network=3),
        "row_shape_ of 10^9": set_learnt(row_shape_={"tuple": [10**9]}, n_features_in_=10**9),
        "row_shape_ of 6": set_learnt(row_shape_={"tuple": [6]}),
        "row_shape_ of many": set_learnt(row_shape_={"tuple": [10**6] * 30}),
        "row_shape_ of text": set_learnt(row_shape_="5"),
        "n_features_in_ of 10^9": set_learnt(n_features_in_=10**9),
        "n_features_in_ of text": set_learnt(n_features_in_="5"),
        "n_components_ of 10^9": set_learnt(n_components_=10**9),
        "n_components_ of 4": set_learnt(n_components_=4),
        "n_components_ of text": set_learnt(n_components_="3"),
        "kernel_scale_ of NaN": set_learnt(kernel_scale_={"float": "nan"}),
        "kernel_scale_ of text": set_learnt(kernel_scale_="1"),
        "a history that is text": set_learnt(history_="x"),
        "a history of numbers": set_learnt(history_=[1, 2]),
        "n_iter_ that is text": set_learnt(n_iter_="x"),
        "alignment_ that is text": set_learnt(alignment_="x"),
        "no network": drop("learnt", "network_"),
        "a network that is none": set_learnt(network_=None),
        "no scaling": drop("learnt", "scaling_"),
        "a scaling that is a network": set_learnt(scaling_={"dict": {}}),
        "feature names of another number": set_learnt(feature_names_in_=["a", "b"]),
        "feature names that are numbers": set_learnt(feature_names_in_=[1, 2, 3, 4, 5]),
        "a fill that is text": set_learnt(fill_="x"),
        "a kernel that is text": set_learnt(kernel_="rbf"),
        "a kernel by an unknown name": set_learnt(kernel_=of_kernel("PairwiseKernel", metric="x")),
        "a kernel of NaN": set_in(*KERNEL, "learnt", gamma_={"float": "nan"}),
        "a kernel of a text": set_in(*KERNEL, "learnt", gamma_="1"),
        "a kernel without its gamma": drop(*KERNEL, "learnt", "gamma_"),
        "a kernel of no kernels": set_learnt(
            kernel_=of_kernel("SumKernel", {"kernels_": [], "weights_": []}, kernels=[])
        ),
        "a product of no kernels": set_learnt(
            kernel_=of_kernel("ProductKernel", {"kernels_": []}, kernels=[])
        ),
        "a sum of numbers": set_learnt(
            kernel_=of_kernel("SumKernel", {"kernels_": [1], "weights_": [1.0]}, kernels=[1])
        ),
        "a sum of fewer weights": set_learnt(
            kernel_=of_kernel(
                "SumKernel", {"kernels_": [of_kernel(*RBF)], "weights_": []}, kernels=[]
            )
        ),
        "a negative weight": set_learnt(
            kernel_=of_kernel(
                "SumKernel", {"kernels_": [of_kernel(*RBF)], "weights_": [-1.0]}, kernels=[]
            )
        ),
        "a sum that is not fitted": set_learnt(kernel_=of_kernel("SumKernel", kernels=[])),
        "a cosine of nothing": set_learnt(
            kernel_=of_kernel("NormalizedKernel", {"kernel_": None}, kernel=None)
        ),
        "a kernel of a process that is text": set_learnt(
            kernel_=of_kernel("GaussianProcessKernel", kernel="RBF")
        ),
        "a kernel of a process of text": set_learnt(
            kernel_=of_kernel(
                "GaussianProcessKernel",
                kernel=of_object("sklearn gaussian_process RBF", length_scale="x"),
            )
        ),
        "a kernel of a process of zero": set_learnt(
            kernel_=of_kernel(
                "GaussianProcessKernel",
                kernel=of_object("sklearn gaussian_process RBF", length_scale=0.0),
            )
        ),
        "a kernel of a process of six": set_learnt(
            kernel_=of_kernel(
                "GaussianProcessKernel",
                kernel=of_object("sklearn gaussian_process RBF", length_scale=[1.0] * 6),
            )
        ),
        "an unknown name within a process": set_learnt(
            kernel_=of_kernel(
                "GaussianProcessKernel",
                kernel=of_object("sklearn gaussian_process PairwiseKernel", metric="os.system"),
            )
        ),
        "a transformer that is text": set_learnt(
            kernel_=of_kernel("TransformerKernel", transformer="x")
        ),
        "values of another kernel's shape": put("kernel_values", torch.zeros(3, 3).double()),
        "values in one dimension": put("kernel_values", torch.zeros(8).double()),
        "values of NaN": fill("kernel_values", torch.nan),
        "weights of NaN": fill("0.weight", torch.nan, 0),
        "weights of infinity": fill("1.bias", torch.inf, 0),
        "weights of another type": put("1.bias", torch.zeros(3, dtype=torch.float64)),
        "a mean of NaN": fill("scaling_.mean", torch.nan, 0),
        "a mean of another width": put("scaling_.mean", torch.zeros(4)),
        "a mean of a huge empty shape": put("scaling_.mean", torch.zeros(0, 2**31)),
        "a scale of zero": fill("scaling_.scale", 0),
        "a scale that is negative": fill("scaling_.scale", -1),
    },
    "layer": {
        "15,000 hidden units": set_in(*NETWORK, hidden_layer_sizes=[15_000]),
        "hidden units of 2^40": set_in(*NETWORK, hidden_layer_sizes=[BIG]),
        "a million hidden layers": set_in(*NETWORK, hidden_layer_sizes=[6] * 100_000),
        "hidden layers of text": set_in(*NETWORK, hidden_layer_sizes=["6"]),
        "an unknown output": set_in(*NETWORK, output_activation="x"),
        "an output that is none": set_in(*NETWORK, output_activation=None),
        "no similarity": set_in(*NETWORK, similarity=None),
        "an unknown formula": set_in(*NETWORK, "similarity", metric="chi2"),
        "a formula of other parameters": set_in(
            *NETWORK, "similarity", params={"dict": {"gamma": 1.0, "degree": 2}}
        ),
        "a formula of NaN": set_in(
            *NETWORK, "similarity", params={"dict": {"gamma": {"float": "nan"}}}
        ),
        "a formula of a negative gamma": set_in(
            *NETWORK, "similarity", params={"dict": {"gamma": -1e9}}
        ),
        "rows of NaN": fill("similarity.rows", torch.nan, 0),
        "rows of another width": put("similarity.rows", torch.zeros(30, 6)),
        "fewer rows than weights": put("similarity.rows", torch.zeros(29, 5)),
        "rows of another type": put("similarity.rows", torch.zeros(30, 5).double()),
        "directions of a huge empty shape": put("directions", torch.zeros(2**31, 0)),
        "a code scale of zero": fill("code_scale", 0),
        "no scaling of the output": set_in(*NETWORK, "scaling", scales_output="x"),
        "a scaling of another width": put("scaling.mean", torch.zeros(4)),
    },
    "evaluated layer": {
        "variances that are negative": fill("covariances", -1, 0),
        "variances of zero": fill("covariances", 0, 0),
        "weights that are negative": fill("mixtures_.weights", -1, 0),
        "weights that do not sum to one": fill("mixtures_.weights", 1e9),
        "sizes that do not sum": fill("mixtures_.sizes", 1, 0),
        "sizes that overflow": fill("mixtures_.sizes", 2**62),
        "sizes that are negative": fill("mixtures_.sizes", -1, 0),
        "no mixtures": set_kind("ProbabilisticClusterKernel", "learnt", mixtures_=None),
        "means of NaN": fill("mixtures_.means", torch.nan, 0),
        "means of another width": put("mixtures_.means", torch.zeros(8, 3).double()),
        "another kind of covariance": set_kind(
            "ProbabilisticClusterKernel", "params", covariance_type="full"
        ),
        "more mixtures than there are": set_kind(
            "ProbabilisticClusterKernel", "learnt", n_mixtures_=10**9
        ),
        "a wider kernel": set_kind("ProbabilisticClusterKernel", "learnt", n_features_in_=6),
        "a kernel of 10^9 features": set_kind(
            "ProbabilisticClusterKernel", "learnt", n_features_in_=10**9
        ),
        "an unknown normalisation": set_kind("ProbabilisticClusterKernel", "params", normalize="x"),
        "a normalisation by what was not learnt": set_kind(
            "ProbabilisticClusterKernel", "params", normalize="max"
        ),
        "a device of its own": set_kind("ProbabilisticClusterKernel", "params", device="nonsense"),
        "a basis beyond the rows": fill("_basis", 99, 0),
        "a basis of fractions": put("_basis", torch.tensor([0.5, 1, 2, 3, 4])),
    },
    "residual": {
        "a million blocks": set_in(*NETWORK, "config", n_blocks=10**6),
        "blocks of text": set_in(*NETWORK, "config", n_blocks="1"),
        "a width of 50,000": set_in(*NETWORK, "config", width=50_000),
        "a width of 2^60": set_in(*NETWORK, "config", width=2**60),
        "a shape of 10^9": set_in(*NETWORK, "config", shape=[10**9]),
        "a generator": set_in(*NETWORK, "config", generator=1),
        "another parameter": set_in(*NETWORK, "config", nonsense=1),
    },
    "convolution": {
        "a million channels": set_in(*NETWORK, "config", channels=[2] * 100_000),
        "channels of 10^9": set_in(*NETWORK, "config", channels=[10**9]),
        "an image of 10^6 squared": huge_image,
        "an image of other rows": set_learnt(row_shape_={"tuple": [1, 6, 9]}),
    },
    "forest": {
        "a forest with a cycle": fill("forest.left", 0, 0),
        "a child in another tree": fill("forest.right", 10**6, 0),
        "a child that is negative": fill("forest.right", -5, 0),
        "features that rows have not": fill("forest.feature", 5, 0),
        "negative features": fill("forest.feature", -1, 0),
        "thresholds of NaN": fill("forest.threshold", torch.nan, 0),
        "trees that do not fill the forest": fill("forest.bounds", 1, -1),
        "trees in descending order": fill("forest.bounds", 10**6, 1),
        "trees of fractions": put("forest.left", torch.tensor([0.5])),
        "no forest": set_kind("ForestKernel", "learnt", forest_=None),
        "a forest of 10^9 features": set_kind("ArrayForest", None, n_features_in_=10**9),
        "a forest of text": set_kind("ArrayForest", None, n_features_in_="5"),
        "a forest of more": set_kind("ArrayForest", None, more=1),
    },
    "KernelPCA": {
        "coefficients of NaN": fill("model.learnt.coefficients_", torch.nan, 0),
        "coefficients of other rows": put("model.learnt.coefficients_", torch.zeros(9, 2).double()),
        "no training rows": set_learnt(X_fit_=None),
        "training rows of another width": set_learnt(n_features_in_=6),
        "10^9 features": set_learnt(n_features_in_=10**9),
        "more components": set_learnt(n_components_=3),
        "components of text": set_learnt(n_components_="2"),
        "a solver that is none": set_params(solver="x"),
        "an inverse that is a kernel": set_learnt(preimage_=of_kernel(*RBF)),
        "an inverse of other components": set_kind("PreImage", "learnt", n_features_in_=3),
        "an inverse of 10^9 components": set_kind("PreImage", "learnt", n_features_in_=10**9),
        "an inverse without regression": set_kind("PreImage", "learnt", regression_="x"),
        "an inverse of NaN": fill("dual_coef_", torch.nan, 0),
        "an inverse of other rows": put("mean_", torch.zeros(3)),
        "an inverse by the kernel x": set_kind("sklearn KernelRidge", "params", kernel="x"),
        "a parameter of scikit-learn's that is none": set_kind(
            "sklearn KernelRidge", "params", nonsense=1
        ),
    },
    "KernelPCA of features": {
        "features of another number": put("model.learnt.coefficients_", torch.zeros(9, 2).double()),
        "features of 10^9 inputs": set_learnt(n_features_in_=10**9),
        "a sampler of 10^10 inputs": set_kind(
            "sklearn RBFSampler", "learnt", n_features_in_=10**10
        ),
        "a sampler of no inputs": set_kind("sklearn RBFSampler", "learnt", n_features_in_=0),
        "a sampler of NaN": fill("random_weights_", torch.nan, 0),
        "__class__ of a sampler": set_kind("sklearn RBFSampler", "learnt", __class__=1),
        "transform of a sampler": set_kind("sklearn RBFSampler", "learnt", transform=1),
    },
    "Nystroem": {
        "a million workers": set_kind("sklearn Nystroem", "params", n_jobs=10**6),
        "a kernel that is none": set_kind("sklearn Nystroem", "params", kernel="x"),
        "components beyond the data": fill("normalization_", torch.nan, 0),
    },
    "centred": {
        "references of another width": put("reference_", torch.zeros(30, 4)),
        "no references": put("reference_", torch.zeros(0, 5)),
        "references of NaN": fill("reference_", torch.nan, 0),
        "a mean that is text": set_kind("CenteredKernel", "learnt", mean_="x"),
    },
    "pipeline": {
        "a scale of nothing": fill("scale_", 0, 0),
        "a variance of another width": put("var_", torch.ones(3).double()),
        "a scaler of 10^9 features": set_kind(
            "sklearn StandardScaler", "learnt", n_features_in_=10**9
        ),
    },
    "normaliser": {
        "a scaler of 10^10 features": set_kind(
            "sklearn Normalizer", "learnt", n_features_in_=10**10
        ),
        "an unknown norm": set_kind("sklearn Normalizer", "params", norm="x"),
    },
}
