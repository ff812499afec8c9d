"""What a file may hold, class by class: all parameters and attributes, as data.

A new class is one more entry. Fields whose names end or begin with an underscore are attributes of
`fit`; the others are parameters. See `dkae.persistence.schema` for the words.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from dkae._support.json_state import Fields
from dkae.persistence import networks
from dkae.persistence.schema import (
    FLAG,
    NOTHING,
    SCHEMAS,
    Array,
    Choice,
    Converted,
    Cost,
    Mapped,
    Names,
    Number,
    Object,
    Optional,
    OrElse,
    Schema,
    Scope,
    Seed,
    Sequence,
    Size,
    Spec,
    Text,
    build_estimator,
    estimator_state,
    integer,
    kind_of,
)

# --- kinds ---------------------------------------------------------------------------------------

GP_KERNELS = (
    "ConstantKernel",
    "DotProduct",
    "ExpSineSquared",
    "Exponentiation",
    "Matern",
    "PairwiseKernel",
    "Product",
    "RBF",
    "RationalQuadratic",
    "Sum",
    "WhiteKernel",
)
KERNELS = (
    "PairwiseKernel",
    "ProbabilisticClusterKernel",
    "ForestKernel",
    "TransformerKernel",
    "GaussianProcessKernel",
    "SumKernel",
    "ProductKernel",
    "NormalizedKernel",
    "CenteredKernel",
)
SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "Normalizer")
TRANSFORMERS = (*SCALERS, "PCA", "TruncatedSVD", "Nystroem", "RBFSampler")
REGRESSORS = ("Ridge", "KernelRidge")
DECODERS = ("RidgeDecoder", "KernelRidgeDecoder", "MLPDecoder", *REGRESSORS, "Pipeline")
NETWORKS = ("Autoencoder", "ConvolutionalAutoencoder", "ResidualAutoencoder")
#: What `save` takes, alone or at the end of a pipeline.
MODELS = (
    "DeepKernelizedAutoencoder",
    "InvertibleNystroem",
    "KernelPCA",
    "ProbabilisticClusterKernel",
)

#: Of a tree in a forest.
MAX_DEPTH = 2**14

# --- values that stand in many places ------------------------------------------------------------

GP = Object(tuple(f"gp {name}" for name in GP_KERNELS))
KERNEL = Object(KERNELS)
POSITIVE, COUNT, REAL = Number(1e-300), integer(), Number()
NUMBER_OR_NONE, TEXT = REAL | NOTHING, Text()
#: A gamma, a size or a share: a number, or one of a few words.
WORD_OR_NUMBER = REAL | TEXT | NOTHING
#: What a parameter may be that `fit` checks when it is called again.
PLAIN = WORD_OR_NUMBER | FLAG | Sequence(REAL | TEXT)
KERNEL_OR_NAME = OrElse(TEXT | KERNEL | GP, lambda kernel: "precomputed")
RECORDS = Sequence(Mapped(Number(is_finite=False) | Text()))
WEIGHTS = Mapped(Array(kinds="fbiu", is_tensor=True))
ANY_WEIGHTS = Mapped(Array(kinds="fbiu", is_tensor=True, may_be_infinite=True))
N_FEATURES: dict[str, Spec] = {"n_features_in_": Size("d"), "feature_names_in_": Optional(Names())}


def _your(value: Any) -> str:
    """Return the name of a function; `fit` must not take it for one of ours."""
    return f"your {getattr(value, '__name__', type(value).__name__)}"


#: A function, of which the file holds the name.
CODE_OR_NAME = OrElse(PLAIN, _your)


def _array(*shape: str | int, **more: Any) -> Array:
    return Array(shape, **more)


def _plain(*names: str) -> dict[str, Spec]:
    return dict.fromkeys(names, PLAIN)


# --- relations that fields alone cannot say ------------------------------------------------------


def _check_forest(forest: Fields, scope: Scope) -> None:
    """Raise an error unless each node but the roots has one parent, before it in its tree."""
    bounds, n = forest["bounds"], scope["nodes"]
    if len(bounds) < 2 or bounds[0] != 0 or bounds[-1] != n or not (np.diff(bounds) > 0).all():
        raise ValueError("the trees of a forest do not fill it")
    inner = np.flatnonzero(forest["left"] != -1)
    end = np.repeat(bounds[1:], np.diff(bounds))[inner]
    children = np.stack([forest["left"][inner], forest["right"][inner]])
    if not ((children > inner) & (children < end)).all():
        raise ValueError("a node of a forest has children that come before it")
    n_parents = np.bincount(children.ravel(), minlength=n)
    n_parents[bounds[:-1]] += 1
    if not (n_parents == 1).all():
        raise ValueError("a node of a forest has no parent, or several")


def _forest_cost(forest: Fields, scope: Scope, parts: Cost) -> Cost:
    """Return trees times depth: a step down a tree takes as long as 256 operations."""
    n_trees = len(forest["bounds"]) - 1
    return Cost(0, 256 * n_trees * max(1, _depth(forest)), 32 * n_trees)


def _depth(forest: Fields) -> int:
    """Return how many steps the longest way down takes, level by level over all trees."""
    left, right, level, depth = forest["left"], forest["right"], forest["bounds"][:-1], 0
    while len(level := level[left[level] != -1]):
        level, depth = np.concatenate([left[level], right[level]]), depth + 1
        if depth > MAX_DEPTH:
            raise ValueError(f"a forest has a tree that is deeper than {MAX_DEPTH}")
    return depth


def _check_mixtures(fields: Fields, scope: Scope) -> None:
    sizes, weights = fields["sizes"].numpy(), fields["weights"].numpy()
    if sizes.sum() != len(weights):
        raise ValueError(f"the sizes of mixtures do not sum to the {len(weights)} components")
    starts = np.cumsum(sizes) - sizes
    if not np.allclose(np.add.reduceat(weights, starts), 1, atol=1e-3):
        raise ValueError("the weights of a mixture do not sum to one")
    covariances = fields["covariances"]
    if covariances.ndim == 3:
        import torch

        for part in covariances.split(256):
            if torch.linalg.cholesky_ex(part).info.any():
                raise ValueError("a covariance is not positive definite")


def _check_pck(fields: Fields, scope: Scope) -> None:
    if "mixtures_" not in fields:
        return
    mixtures, form = fields["mixtures_"], fields["covariance_type"]
    n, d = mixtures.means.shape
    shapes = {"diag": (n, d), "spherical": (n, 1), "full": (n, d, d)}
    if tuple(mixtures.covariances.shape) != shapes[form]:
        raise ValueError(f"covariances are not of covariance_type={form!r}")
    if fields["_basis"].shape[-1] != d or fields["n_mixtures_"] != len(mixtures.sizes):
        raise ValueError("mixtures_ are not those of _basis and n_mixtures_")
    if fields["normalize"] == "max" and "largest_" not in fields:
        raise ValueError("largest_ is missing")


def _pck_cost(fields: Fields, scope: Scope, parts: Cost) -> Cost:
    return parts.plus(Cost(1))


def _kernel_cost(fields: Fields, scope: Scope, parts: Cost) -> Cost:
    return parts._replace(kernels=1)


def _centred_cost(fields: Fields, scope: Scope, parts: Cost) -> Cost:
    """Return what a block and its two means take, and the kernel with the reference rows."""
    rows = fields.get("reference_", np.empty((0, 0)))
    work = 3 * (parts.work + rows.size * parts.kernels)
    return Cost(3 * parts.kernels, work, 3 * parts.memory, 3 * parts.once + len(rows) * parts.work)


def _map_cost(rows: str, fields: Fields, scope: Scope, parts: Cost) -> Cost:
    """Return what the kernel takes with the rows that a map holds."""
    held = fields.get(rows)
    if held is None:
        return parts
    once = parts.once + len(held) * parts.work
    return Cost(parts.kernels, parts.work + held.size * parts.kernels, parts.memory, once)


def _check_weights(fields: Fields, scope: Scope) -> None:
    if "kernels_" in fields and len(fields["kernels_"]) != len(fields["weights_"]):
        raise ValueError("weights_ are not one for each kernel")


def _check_targets(fields: Fields, scope: Scope) -> None:
    if fields["center"].shape != fields["scale"].shape or fields["center"].ndim < 1:
        raise ValueError("center and scale of Targets do not have the shape of a row")


def _check_row(fields: Fields, scope: Scope) -> None:
    """Raise an error if a row is larger than the file explains, or not what `fit` has seen."""
    shape = fields.get("row_shape_")
    if shape is not None and (
        not shape or math.prod(shape) > scope["widest"] or shape[0] != fields["n_features_in_"]
    ):
        raise ValueError(f"row_shape_ {shape} does not fit the rest")
    for name in ("center_", "scale_", "fill_"):
        if fields.get(name) is not None and fields[name].shape != shape:
            raise ValueError(f"{name} does not have the shape of a row")


# --- how they are built --------------------------------------------------------------------------


def _forest_of(forest: Any) -> Any:
    from dkae.kernels.array_forest import ArrayForest

    return forest if isinstance(forest, ArrayForest) else ArrayForest.of(forest)


def _build_autoencoder(kind: Any, fields: Fields) -> Any:
    """Make the estimator; a network that needs no code can be built again by `fit`."""
    built = build_estimator(kind, fields)
    if hasattr(built.network_, "config"):
        built.network = networks.factory_of(built.network_)
    return built


def _autoencoder_state(model: Any) -> Fields:
    """Return parameters and attributes; of a custom network the weights and the name."""
    return estimator_state(model) | {"network_": with_custom(model.network_)}


def with_custom(network: Any) -> Any:
    """Return a network as a file holds it: a custom one as its weights."""
    if kind_of(network) is None:
        return networks.CustomNetwork(type(network).__name__, dict(network.state_dict()))
    return network


_POSITIVE_ROW = _array("d", is_positive=True)
_ESTIMATORS: dict[str, dict[str, Spec]] = {
    "preprocessing:StandardScaler": {
        "with_mean": FLAG,
        "with_std": FLAG,
        "mean_": _array("d") | NOTHING,
        "var_": _array("d", low=0) | NOTHING,
        "scale_": _POSITIVE_ROW | NOTHING,
        "n_samples_seen_": Number(0, of=np.float64) | _array("d", kinds="iuf"),
    },
    "preprocessing:MinMaxScaler": {
        "feature_range": Sequence(REAL, 2, 2),
        "clip": FLAG,
        "scale_": _array("d"),
        **dict.fromkeys(("min_", "data_min_", "data_max_", "data_range_"), _array("d")),
        "n_samples_seen_": COUNT,
    },
    "preprocessing:MaxAbsScaler": {
        "clip": FLAG,
        "scale_": _POSITIVE_ROW,
        "max_abs_": _array("d", low=0),
        "n_samples_seen_": COUNT,
    },
    "preprocessing:RobustScaler": {
        "with_centering": FLAG,
        "with_scaling": FLAG,
        "unit_variance": FLAG,
        "quantile_range": Sequence(REAL, 2, 2),
        "center_": _array("d") | NOTHING,
        "scale_": _POSITIVE_ROW | NOTHING,
    },
    "preprocessing:Normalizer": {"norm": Choice(("l1", "l2", "max"))},
    "decomposition:PCA": {
        **_plain("n_components", "svd_solver", "tol", "iterated_power", "n_oversamples"),
        **_plain("power_iteration_normalizer"),
        "whiten": FLAG,
        "random_state": Seed(),
        "components_": _array("m", "d"),
        "mean_": _array("d"),
        "explained_variance_": _array("m", low=0),
        "explained_variance_ratio_": _array("m"),
        "singular_values_": _array("m"),
        "n_components_": Size("m"),
        "n_samples_": COUNT,
        "noise_variance_": Number(of=np.float64),
        "_fit_svd_solver": Optional(TEXT),
    },
    "decomposition:TruncatedSVD": {
        **_plain("n_components", "algorithm", "n_iter", "n_oversamples", "tol"),
        **_plain("power_iteration_normalizer"),
        "random_state": Seed(),
        "components_": _array("m", "d"),
        "explained_variance_": _array("m"),
        "explained_variance_ratio_": _array("m"),
        "singular_values_": _array("m"),
    },
    "kernel_approximation:Nystroem": {
        "kernel": TEXT,
        "gamma": NUMBER_OR_NONE,
        "coef0": NUMBER_OR_NONE,
        "degree": NUMBER_OR_NONE,
        "kernel_params": NOTHING,
        "n_components": COUNT,
        "random_state": Seed(),
        "components_": _array("m", "d"),
        "component_indices_": _array("m", kinds="iu"),
        "normalization_": _array("m", "m"),
        "_n_features_out": Size("m"),
    },
    "kernel_approximation:RBFSampler": {
        "gamma": REAL | TEXT,
        "n_components": COUNT,
        "random_state": Seed(),
        "random_weights_": _array("d", "m"),
        "random_offset_": _array("m"),
        "_gamma": Optional(REAL),
        "_n_features_out": Size("m"),
    },
    "kernel_ridge:KernelRidge": {
        "alpha": REAL,
        "kernel": TEXT,
        "gamma": NUMBER_OR_NONE,
        "degree": REAL,
        "coef0": REAL,
        "kernel_params": NOTHING,
        "X_fit_": _array("n", "d"),
        "dual_coef_": _array("n") | _array("n", "m"),
    },
    "linear_model:Ridge": {
        "alpha": REAL | Sequence(REAL) | Array(),
        **_plain("max_iter", "tol", "solver"),
        "fit_intercept": FLAG,
        "positive": FLAG,
        "random_state": Seed(),
        "coef_": _array("d") | _array("m", "d"),
        "intercept_": Number(of=float) | _array("m"),
        "n_iter_": COUNT | Array(kinds="iu") | NOTHING,
        "solver_": TEXT,
    },
}
_BOUNDS = Sequence(REAL, 2, 2) | TEXT
_GP_FIELDS: dict[str, dict[str, Spec]] = {
    "ConstantKernel": {"constant_value": REAL, "constant_value_bounds": _BOUNDS},
    "DotProduct": {"sigma_0": REAL, "sigma_0_bounds": _BOUNDS},
    "ExpSineSquared": {
        **dict.fromkeys(("length_scale", "periodicity"), POSITIVE),
        **dict.fromkeys(("length_scale_bounds", "periodicity_bounds"), _BOUNDS),
    },
    "Exponentiation": {"kernel": GP, "exponent": REAL},
    "Matern": {
        "length_scale": POSITIVE | Sequence(POSITIVE) | Array(is_positive=True),
        "length_scale_bounds": _BOUNDS,
        "nu": Number(1e-3, math.inf, is_finite=False),
    },
    "PairwiseKernel": {
        "gamma": REAL,
        "gamma_bounds": _BOUNDS,
        "metric": TEXT,
        "pairwise_kernels_kwargs": NOTHING,
    },
    "Product": {"k1": GP, "k2": GP},
    "RBF": {
        "length_scale": POSITIVE | Sequence(POSITIVE) | Array(is_positive=True),
        "length_scale_bounds": _BOUNDS,
    },
    "RationalQuadratic": {
        **dict.fromkeys(("length_scale", "alpha"), POSITIVE),
        **dict.fromkeys(("length_scale_bounds", "alpha_bounds"), _BOUNDS),
    },
    "Sum": {"k1": GP, "k2": GP},
    "WhiteKernel": {"noise_level": REAL, "noise_level_bounds": _BOUNDS},
}
_FOREST = Converted(Object(("ArrayForest",)), _forest_of) | NOTHING
_NODES = partial(_array, "nodes")

#: What all maps have beside their own fields.
_MAP: dict[str, Spec] = {
    **_plain("n_components", "gamma", "missing"),
    "kernel": KERNEL_OR_NAME,
    "standardize": FLAG,
    "random_state": Seed(),
    **N_FEATURES,
    "n_components_": Size("m"),
    "row_shape_": Sequence(integer(1, "widest"), 1, 16),
    "kernel_": KERNEL | NOTHING,
    "kernel_scale_": REAL,
    **dict.fromkeys(("center_", "fill_"), Array() | NOTHING),
    "scale_": Array(is_positive=True) | NOTHING,
    **dict.fromkeys(("alignment_", "centered_alignment_", "r2_"), Optional(REAL | NOTHING)),
}
_TRAINED: dict[str, Spec] = {
    **_plain("warm_start"),
    "history_": RECORDS,
    "n_iter_": COUNT,
}
_DECODER = Object(DECODERS)
_OPTIMIZATION = Object(("Optimization",)) | NOTHING

SCHEMAS.update(
    {
        # --- kernels
        "PairwiseKernel": Schema(
            "dkae.kernels.pairwise:PairwiseKernel",
            {
                "metric": TEXT,
                "gamma": WORD_OR_NUMBER,
                "degree": NUMBER_OR_NONE,
                "coef0": NUMBER_OR_NONE,
                "gamma_": Number(0) | NOTHING,
            },
            cost=_kernel_cost,
        ),
        "GaussianProcessKernel": Schema(
            "dkae.kernels.pairwise:GaussianProcessKernel", {"kernel": GP}
        ),
        "TransformerKernel": Schema(
            "dkae.kernels.features:TransformerKernel",
            {"transformer": Object((*TRANSFORMERS, "Pipeline"))},
            cost=_pck_cost,
        ),
        "ForestKernel": Schema(
            "dkae.kernels.forests:ForestKernel",
            {
                "forest": _FOREST,
                "n_estimators": COUNT,
                "max_depth": COUNT,
                "random_state": Seed(),
                "forest_": _FOREST,
            },
            cost=_pck_cost,
        ),
        "ArrayForest": Schema(
            "dkae.kernels.array_forest:ArrayForest",
            {
                "left": _NODES(kinds="i", low=-1, below="nodes"),
                "right": _NODES(kinds="i", low=-1, below="nodes"),
                "n_features_in_": Size("d"),
                "feature": _NODES(kinds="i", low=0, below="d"),
                "threshold": Array(("nodes",), may_be_infinite=True),
                "missing_left": _NODES(kinds="b"),
                "bounds": _array("bounds", kinds="i", low=0),
            },
            check=_check_forest,
            cost=_forest_cost,
            build=lambda kind, fields: kind(**fields),
        ),
        "ProbabilisticClusterKernel": Schema(
            "dkae.kernels.cluster.kernel:ProbabilisticClusterKernel",
            {
                **dict.fromkeys(
                    ("max_components", "n_initializations", "max_fit_samples", "max_iter"), COUNT
                ),
                "covariance_type": Choice(("diag", "spherical", "full")),
                **_plain("reg_covar", "tol", "init"),
                "normalize": Choice(("mixtures", "max", "cosine")),
                "tolerance": Number(0, 1),
                "random_state": Seed(),
                **N_FEATURES,
                "mixtures_": Object(("Mixtures",)),
                "n_mixtures_": integer(1),
                "n_iter_": COUNT,
                "largest_": Optional(POSITIVE),
                "_offset": _array("d"),
                "_basis": _array("?", kinds="iu", low=0, below="d") | _array("d", "?"),
            },
            check=_check_pck,
            cost=_pck_cost,
        ),
        "Mixtures": Schema(
            "dkae.kernels.cluster.mixtures:Mixtures",
            {
                "means": _array("n", "?", dtype="float64", is_tensor=True),
                "weights": _array("n", dtype="float64", is_positive=True, is_tensor=True),
                "sizes": _array(
                    "mixtures", kinds="i", dtype="int64", low=1, below=2**31, is_tensor=True
                ),
                "covariances": _array("n", "?", dtype="float64", is_positive=True, is_tensor=True)
                | _array("n", "?", "?", dtype="float64", is_tensor=True),
            },
            check=_check_mixtures,
            build=lambda kind, fields: kind(**fields),
        ),
        "SumKernel": Schema(
            "dkae.kernels.compose:SumKernel",
            {
                "kernels": Sequence(KERNEL, 1),
                "weights": Sequence(REAL) | NOTHING,
                "kernels_": Sequence(KERNEL, 1),
                "weights_": Sequence(Number(0, of=np.float32)),
            },
            check=_check_weights,
        ),
        "ProductKernel": Schema(
            "dkae.kernels.compose:ProductKernel",
            {"kernels": Sequence(KERNEL, 1), "kernels_": Sequence(KERNEL, 1)},
        ),
        "NormalizedKernel": Schema(
            "dkae.kernels.compose:NormalizedKernel",
            {"kernel": KERNEL, "kernel_": KERNEL},
            cost=_centred_cost,
        ),
        "CenteredKernel": Schema(
            "dkae.kernels.compose:CenteredKernel",
            {
                "kernel": KERNEL,
                "max_reference": COUNT | NOTHING,
                "kernel_": KERNEL,
                "reference_": Array(),
                "mean_": Number(of=np.float32),
            },
            cost=_centred_cost,
        ),
        # --- scikit-learn
        "Pipeline": Schema(
            "sklearn.pipeline:Pipeline",
            {
                "steps": Sequence(
                    Sequence(TEXT | Object((*TRANSFORMERS, *REGRESSORS, *MODELS)), 2, 2), 1, 100
                )
            },
        ),
        **{
            target.split(":")[1]: Schema(f"sklearn.{target}", {**N_FEATURES, **fields})
            for target, fields in _ESTIMATORS.items()
        },
        **{
            f"gp {name}": Schema(
                f"sklearn.gaussian_process.kernels:{name}",
                fields,
                cost=lambda fields, scope, parts: Cost(max(1, parts.kernels)),
            )
            for name, fields in _GP_FIELDS.items()
        },
        # --- networks
        "Autoencoder": Schema(
            "dkae.networks:Autoencoder",
            {
                "layers": Sequence(Mapped(integer(1, 2**31) | FLAG | TEXT), 1, 1000),
                "scaling": Object(("Scaling",)) | NOTHING,
                "weights": WEIGHTS,
            },
            check=networks.check_stack,
            state=networks.stack_state,
            build=networks.build_stack,
        ),
        "ConvolutionalAutoencoder": Schema(
            "dkae.networks:ConvolutionalAutoencoder",
            {
                "shape": Sequence(integer(1, "widest"), 3, 3),
                "n_components": integer(1, "widest"),
                "channels": Sequence(integer(1, 2**20)),
                "weights": WEIGHTS,
            },
            check=networks.check_layers,
            cost=networks.convolution_cost,
            state=networks.configured_state,
            build=networks.build_configured,
        ),
        "ResidualAutoencoder": Schema(
            "dkae.networks:ResidualAutoencoder",
            {
                "shape": Sequence(integer(1, "widest"), 1, 16),
                "n_components": integer(1, "widest"),
                "width": integer(1, 2**31),
                "n_blocks": COUNT,
                "weights": WEIGHTS,
            },
            check=networks.check_layers,
            state=networks.configured_state,
            build=networks.build_configured,
        ),
        "Scaling": Schema(
            "dkae.networks:Scaling",
            {
                "mean": Array(is_tensor=True),
                "scale": Array(is_tensor=True, is_positive=True),
                "scales_output": FLAG,
            },
            check=lambda fields, scope: _check_scaling(fields),
            state=networks.scaling_state,
            build=networks.build_scaling,
        ),
        "CustomNetwork": Schema(
            "dkae.persistence.networks:CustomNetwork",
            {"name": Text(200), "weights": ANY_WEIGHTS},
            state=lambda network: {"name": network.name, "weights": network.weights},
        ),
        "Stack": Schema(
            "dkae.networks:Stack",
            _plain(
                "hidden_layer_sizes",
                "activation",
                "code_activation",
                "output_activation",
                "layer_norm",
                "tied_weights",
                "input_scaling",
            ),
        ),
        # --- decoders
        "Targets": Schema(
            "dkae.decoders.targets:Targets",
            {
                "center": Array(),
                "scale": Array(is_positive=True),
                "is_unit_interval": FLAG,
            },
            check=_check_targets,
            state=lambda targets: dict(vars(targets)),
            build=lambda kind, fields: kind(**fields),
        ),
        "RidgeDecoder": Schema(
            "dkae.decoders:RidgeDecoder",
            {
                "alphas": Sequence(REAL),
                **N_FEATURES,
                "targets_": Object(("Targets",)),
                "code_mean_": _array("d"),
                "code_scale_": _POSITIVE_ROW,
                "coef_": _array("d", "o"),
                "intercept_": _array("o"),
                "alpha_": REAL,
            },
        ),
        "KernelRidgeDecoder": Schema(
            "dkae.decoders:KernelRidgeDecoder",
            {
                **_plain("kernel", "gamma", "n_landmarks"),
                "alphas": Sequence(REAL),
                "random_state": Seed(),
                **N_FEATURES,
                "ridge_": Object(("RidgeDecoder",)),
                "landmarks_": _array("n", "d"),
                "gamma_": Number(0) | NOTHING,
                "alpha_": REAL,
                "coef_": _array("n", "o"),
            },
        ),
        "MLPDecoder": Schema(
            "dkae.decoders:MLPDecoder",
            {
                **_plain("hidden_layer_sizes", "max_iter", "batch_size", "steps_per_epoch"),
                **_plain("validation_fraction", "patience", "tol"),
                "random_state": Seed(),
                "optimization": _OPTIMIZATION,
                **N_FEATURES,
                "network_": Object(("CorrectedRidge",)),
                "history_": RECORDS,
            },
        ),
        "CorrectedRidge": Schema(
            "dkae.decoders.mlp:CorrectedRidge",
            {
                "hidden_layer_sizes": Sequence(integer(1, 2**31), 0, 1000),
                "output_activation": TEXT,
                "scaling": Object(("Scaling",)),
                "weights": WEIGHTS,
            },
            check=networks.check_decoder_layers,
            state=networks.decoder_state,
            build=networks.build_decoder,
        ),
        # --- maps
        "Optimization": Schema(
            "dkae.training:Optimization",
            {
                "optimizer": CODE_OR_NAME,
                **_plain("learning_rate", "learning_rate_init", "max_grad_norm"),
            },
        ),
        "DeepKernelizedAutoencoder": Schema(
            "dkae.autoencoder:DeepKernelizedAutoencoder",
            {
                **_MAP,
                **_TRAINED,
                **_plain("alignment_weight", "batch_size", "max_iter", "decoder_max_iter"),
                **_plain("pretrain_max_iter", "steps_per_epoch", "input_noise"),
                **_plain("validation_fraction"),
                "network": OrElse(NOTHING | Object(("Stack",)), lambda network: None),
                "alignment": CODE_OR_NAME,
                "optimization": _OPTIMIZATION,
                "network_": Object((*NETWORKS, "CustomNetwork")),
            },
            check=_check_row,
            state=_autoencoder_state,
            build=_build_autoencoder,
        ),
        "InvertibleNystroem": Schema(
            "dkae.nystroem:InvertibleNystroem",
            {
                **_MAP,
                **_TRAINED,
                **_plain("n_landmarks", "n_linear"),
                "decoder": PLAIN | _DECODER,
                "landmarks_": _array("n", "w"),
                "projection_": _array("n", "k"),
                "linear_path_": _array("w", "l"),
                "linear_center_": _array("w"),
                "decoder_": _DECODER,
            },
            check=_check_row,
            cost=partial(_map_cost, "landmarks_"),
        ),
        "KernelPCA": Schema(
            "dkae.spectral.kernel_pca:KernelPCA",
            {
                **_MAP,
                **_plain("center", "solver"),
                "decoder": PLAIN | _DECODER,
                "eigenvalues_": _array("m"),
                "coefficients_": _array("n", "m"),
                "offset_": _array("m"),
                "rows_": _array("n", "w") | NOTHING,
                "decoder_": _DECODER | NOTHING,
            },
            check=_check_row,
            cost=partial(_map_cost, "rows_"),
        ),
    }
)


def _check_scaling(fields: Fields) -> None:
    shape = fields["mean"].shape
    others = [fields["scale"]] if fields["scale"].ndim else []
    if any(other.shape != shape for other in others):
        raise ValueError("mean and scale of Scaling have several shapes")
