"""What a file may hold, class by class: all parameters and attributes, as data.

A new class is one more entry. Fields whose names end or begin with an underscore are attributes of
`fit`; the others are parameters. See `dkae.persistence.schema` for the words.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from dkae.persistence import networks
from dkae.persistence.relations import (
    centred_cost,
    check_forest,
    check_mixtures,
    check_pck,
    check_row,
    check_scaling,
    check_targets,
    check_weights,
    forest_cost,
    map_cost,
)
from dkae.persistence.schema import (
    FEATURE_NAMES,
    FLAG,
    NOTHING,
    SCHEMAS,
    Cost,
    Schema,
    Spec,
    Writer,
    array,
    build_estimator,
    estimator_state,
    instance,
    integer,
    kind_of,
    mapping,
    number,
    one_of,
    optional,
    plain_state,
    several,
    size,
    text,
)

# --- kinds ---------------------------------------------------------------------------------------

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
TRANSFORMERS = ("StandardScaler", "MinMaxScaler", "RobustScaler", "PCA")
REGRESSORS = ("Ridge", "KernelRidge")
DECODERS = ("RidgeDecoder", "KernelRidgeDecoder", "MLPDecoder", *REGRESSORS)
NETWORKS = ("Autoencoder", "ConvolutionalAutoencoder", "ResidualAutoencoder", "CustomNetwork")
#: What `save` takes, alone or at the end of a pipeline.
MODELS = (
    "DeepKernelizedAutoencoder",
    "InvertibleNystroem",
    "KernelPCA",
    "ProbabilisticClusterKernel",
)

# --- values that stand in many places ------------------------------------------------------------

REAL, POSITIVE, COUNT, TEXT = number(), number(1e-300), integer(), text()
#: What a parameter may be that is checked where it is used.
PLAIN = REAL | TEXT | FLAG | NOTHING | several(REAL | TEXT) | array()
ROW, POSITIVE_ROW = array("d"), array("d", is_positive=True)
WEIGHTS = mapping(array(kinds="fbiu", is_tensor=True))
RECORDS = several(mapping(number(may_be_infinite=True) | TEXT))
WIDTH = integer(1, "widest")
N_FEATURES = {"n_features_in_": size("d"), "feature_names_in_": FEATURE_NAMES}
#: Decoders and kernels in the places of parameters and of what was fitted.
KERNEL, DECODER = instance(*KERNELS), instance(*DECODERS)
OPTIMIZATION = instance("Optimization") | NOTHING
TARGETS, SCALING = instance("Targets"), instance("Scaling")


def plain(names: str) -> dict[str, Spec]:
    """Return the specs of parameters."""
    return dict.fromkeys(names.split(), PLAIN)


# --- what the maps leave out ---------------------------------------------------------------------


def map_state(model: Any, writer: Writer) -> dict[str, Any]:
    """Return the state of a map, with words in place of code."""
    state = estimator_state(model, writer)
    if writer.leaves_out(model.kernel_):
        state["kernel_"] = None
    if writer.leaves_out(model.kernel) or writer.why_not(model.kernel) is not None:
        state["kernel"] = "precomputed"
    return state


def autoencoder_state(model: Any, writer: Writer) -> dict[str, Any]:
    """Return the state of an autoencoder; of a custom network the weights and the name."""
    state = map_state(model, writer)
    network = model.network_
    if kind_of(network) is None:
        network = networks.CustomNetwork(type(network).__name__, network.state_dict())
    is_kept = kind_of(model.network) == "Stack" and writer.why_not(model.network) is None
    return state | {
        "network_": network,
        "network": model.network if is_kept else None,
        "alignment": name_of_code(model.alignment),
    }


def optimization_state(optimization: Any, writer: Writer) -> dict[str, Any]:
    """Return the state of an optimization, with the name of a function."""
    state = estimator_state(optimization, writer)
    return state | {"optimizer": name_of_code(optimization.optimizer)}


def name_of_code(value: Any) -> Any:
    """Return the name of a function, which `fit` must not take for one of ours."""
    return f"your {getattr(value, '__name__', type(value).__name__)}" if callable(value) else value


def build_autoencoder(kind: Any, fields: dict[str, Any]) -> Any:
    """Make the estimator; a network that needs no code can be built again by `fit`."""
    built = build_estimator(kind, fields)
    if hasattr(built.network_, "config"):
        built.network = networks.factory_of(built.network_)
    return built


# --- kernels -------------------------------------------------------------------------------------

_forest, _nodes = instance("ArrayForest") | NOTHING, partial(array, "nodes")
_column = partial(array, "n", dtype="float64", is_tensor=True)
SCHEMAS.update(
    {
        "PairwiseKernel": Schema(
            "dkae.kernels.pairwise:PairwiseKernel",
            {"metric": TEXT, **plain("gamma degree coef0"), "gamma_": number(0) | NOTHING},
            cost=lambda fields, parts: Cost(1),
        ),
        "TransformerKernel": Schema(
            "dkae.kernels.features:TransformerKernel",
            {"transformer": instance(*TRANSFORMERS, "Pipeline")},
            cost=lambda fields, parts: parts.plus(Cost(1)),
        ),
        "ForestKernel": Schema(
            "dkae.kernels.forests:ForestKernel",
            {
                "forest": _forest,
                **plain("n_estimators max_depth random_state"),
                "forest_": _forest,
            },
            cost=lambda fields, parts: parts.plus(Cost(1)),
        ),
        "ArrayForest": Schema(
            "dkae.kernels.array_forest:ArrayForest",
            {
                "left": _nodes(kinds="i", low=-1, below="nodes"),
                "right": _nodes(kinds="i", low=-1, below="nodes"),
                "n_features_in_": size("d"),
                "feature": _nodes(kinds="i", low=0, below="d"),
                "threshold": _nodes(may_be_infinite=True),
                "missing_left": _nodes(kinds="b"),
                "bounds": array("bounds", kinds="i", low=0),
            },
            check=check_forest,
            cost=forest_cost,
            state=plain_state,
            build=lambda kind, fields: kind(**fields),
        ),
        "ProbabilisticClusterKernel": Schema(
            "dkae.kernels.cluster.kernel:ProbabilisticClusterKernel",
            {
                **plain("max_components n_initializations max_fit_samples max_iter"),
                **plain("reg_covar tol init random_state"),
                "covariance_type": one_of("diag", "spherical", "full"),
                "normalize": one_of("mixtures", "max", "cosine"),
                "tolerance": number(0, 1),
                **N_FEATURES,
                "mixtures_": instance("Mixtures"),
                "n_mixtures_": integer(1),
                "n_iter_": COUNT,
                "largest_": optional(POSITIVE),
                "_offset": ROW,
                "_basis": array("?", kinds="iu", low=0, below="d") | array("d", "?"),
            },
            check=check_pck,
            cost=lambda fields, parts: parts.plus(Cost(1)),
        ),
        "Mixtures": Schema(
            "dkae.kernels.cluster.mixtures:Mixtures",
            {
                "means": _column("?"),
                "weights": _column(is_positive=True),
                "sizes": array("mixtures", kinds="i", low=1, below=2**31, is_tensor=True),
                "covariances": _column("?", is_positive=True) | _column("?", "?"),
            },
            check=check_mixtures,
            state=plain_state,
            build=lambda kind, fields: kind(**fields),
        ),
        "SumKernel": Schema(
            "dkae.kernels.compose:SumKernel",
            {
                "kernels": several(KERNEL, 1),
                "weights": several(REAL) | NOTHING,
                "kernels_": several(KERNEL, 1),
                "weights_": several(number(0)),
            },
            check=check_weights,
        ),
        "ProductKernel": Schema(
            "dkae.kernels.compose:ProductKernel",
            {"kernels": several(KERNEL, 1), "kernels_": several(KERNEL, 1)},
        ),
        "NormalizedKernel": Schema(
            "dkae.kernels.compose:NormalizedKernel",
            {"kernel": KERNEL, "kernel_": KERNEL},
            cost=centred_cost,
        ),
        "CenteredKernel": Schema(
            "dkae.kernels.compose:CenteredKernel",
            {
                "kernel": KERNEL,
                "max_reference": COUNT | NOTHING,
                "kernel_": KERNEL,
                "reference_": array(),
                "mean_": REAL,
            },
            cost=centred_cost,
        ),
    }
)

# --- kernels of Gaussian processes ---------------------------------------------------------------

_LENGTHS = POSITIVE | several(POSITIVE) | array(is_positive=True)
#: For each class its parameters that have bounds, which are parameters too.
_PROCESSES: dict[str, dict[str, Spec]] = {
    "ConstantKernel": {"constant_value": REAL},
    "DotProduct": {"sigma_0": REAL},
    "ExpSineSquared": {"length_scale": POSITIVE, "periodicity": POSITIVE},
    "RBF": {"length_scale": _LENGTHS},
    "RationalQuadratic": {"length_scale": POSITIVE, "alpha": POSITIVE},
    "WhiteKernel": {"noise_level": REAL},
}
_OTHERS = ("Matern", "Exponentiation", "Product", "Sum")
GP = instance(*(f"gp {name}" for name in (*_PROCESSES, *_OTHERS)))
_BOUNDS = several(REAL, 2, 2) | TEXT


def _process(name: str, fields: dict[str, Spec], **fixed: Spec) -> tuple[str, Schema]:
    """Return the schema of a kernel of scikit-learn's Gaussian processes."""
    bounds = {f"{field}_bounds": _BOUNDS for field in fields}
    return f"gp {name}", Schema(
        f"sklearn.gaussian_process.kernels:{name}",
        fields | bounds | fixed,
        cost=lambda fields, parts: Cost(max(1, parts.kernels)),
    )


SCHEMAS.update(
    [
        (
            "GaussianProcessKernel",
            Schema("dkae.kernels.pairwise:GaussianProcessKernel", {"kernel": GP}),
        ),
        *(_process(name, fields) for name, fields in _PROCESSES.items()),
        _process("Matern", {"length_scale": _LENGTHS}, nu=number(may_be_infinite=True)),
        _process("Exponentiation", {}, kernel=GP, exponent=REAL),
        _process("Product", {}, k1=GP, k2=GP),
        _process("Sum", {}, k1=GP, k2=GP),
    ]
)

# --- estimators of scikit-learn ------------------------------------------------------------------

_row_or_none = ROW | NOTHING


def _estimator(target: str, params: str, **learnt: Spec) -> tuple[str, Schema]:
    """Return the schema of an estimator: its parameters by name, and what it learns."""
    return target.split(":")[1], Schema(
        f"sklearn.{target}", {**plain(params), **N_FEATURES, **learnt}
    )


SCHEMAS.update(
    [
        _estimator(
            "preprocessing:StandardScaler",
            "with_mean with_std",
            mean_=_row_or_none,
            var_=_row_or_none,
            scale_=POSITIVE_ROW | NOTHING,
            n_samples_seen_=REAL | array("d", kinds="iuf"),
        ),
        _estimator(
            "preprocessing:MinMaxScaler",
            "feature_range clip",
            **dict.fromkeys(("scale_", "min_", "data_min_", "data_max_", "data_range_"), ROW),
            n_samples_seen_=COUNT,
        ),
        _estimator(
            "preprocessing:RobustScaler",
            "with_centering with_scaling unit_variance quantile_range",
            center_=_row_or_none,
            scale_=POSITIVE_ROW | NOTHING,
        ),
        _estimator(
            "decomposition:PCA",
            "n_components svd_solver tol iterated_power n_oversamples power_iteration_normalizer "
            "whiten random_state",
            components_=array("m", "d"),
            mean_=ROW,
            explained_variance_=array("m", low=0),
            explained_variance_ratio_=array("m"),
            singular_values_=array("m"),
            n_components_=size("m"),
            n_samples_=COUNT,
            noise_variance_=REAL,
            _fit_svd_solver=optional(TEXT),
        ),
        _estimator(
            "kernel_ridge:KernelRidge",
            "alpha kernel gamma degree coef0 kernel_params",
            X_fit_=array("n", "d"),
            dual_coef_=array("n") | array("n", "m"),
        ),
        _estimator(
            "linear_model:Ridge",
            "alpha max_iter tol solver fit_intercept positive random_state",
            coef_=ROW | array("m", "d"),
            intercept_=REAL | array("m"),
            n_iter_=COUNT | array(kinds="iu") | NOTHING,
            solver_=TEXT,
        ),
        (
            "Pipeline",
            Schema(
                "sklearn.pipeline:Pipeline",
                {"steps": several(several(TEXT | instance(*TRANSFORMERS, *MODELS), 2, 2), 1, 100)},
            ),
        ),
    ]
)

# --- networks ------------------------------------------------------------------------------------

_network = partial(
    Schema,
    check=networks.check_network,
    state=networks.network_state,
    build=networks.build_network,
)
_own = {"scaling": SCALING | NOTHING, "weights": WEIGHTS}
SCHEMAS.update(
    {
        "Autoencoder": _network(
            "dkae.networks:Autoencoder",
            {"layers": several(mapping(integer(1, 2**31) | FLAG | TEXT), 1, 1000), **_own},
        ),
        "ConvolutionalAutoencoder": _network(
            "dkae.networks:ConvolutionalAutoencoder",
            {
                "shape": several(WIDTH, 3, 3),
                "n_components": WIDTH,
                "channels": several(integer(1, 2**20)),
                **_own,
            },
            cost=networks.convolution_cost,
        ),
        "ResidualAutoencoder": _network(
            "dkae.networks:ResidualAutoencoder",
            {
                "shape": several(WIDTH, 1, 16),
                "n_components": WIDTH,
                "width": WIDTH,
                "n_blocks": COUNT,
                **_own,
            },
        ),
        "CorrectedRidge": _network(
            "dkae.decoders.mlp:CorrectedRidge",
            {
                "n_components": WIDTH,
                "n_features": WIDTH,
                "hidden_layer_sizes": several(WIDTH, 0, 1000),
                "output_activation": one_of("identity", "sigmoid"),
                **_own,
            },
        ),
        "CustomNetwork": Schema(
            "dkae.persistence.networks:CustomNetwork",
            {
                "name": text(200),
                "weights": mapping(array(kinds="fbiu", is_tensor=True, may_be_infinite=True)),
            },
            state=networks.custom_state,
        ),
        "Scaling": Schema(
            "dkae.networks:Scaling",
            {
                "mean": array(is_tensor=True),
                "scale": array(is_tensor=True, is_positive=True),
                "scales_output": FLAG,
            },
            check=check_scaling,
            state=networks.scaling_state,
            build=lambda kind, fields: kind(**fields),
        ),
        "Stack": Schema(
            "dkae.networks:Stack",
            plain(
                "hidden_layer_sizes activation code_activation output_activation layer_norm "
                "tied_weights input_scaling"
            ),
        ),
    }
)

# --- decoders ------------------------------------------------------------------------------------

SCHEMAS.update(
    {
        "Targets": Schema(
            "dkae.decoders.targets:Targets",
            {"center": array(), "scale": array(is_positive=True), "is_unit_interval": FLAG},
            check=check_targets,
            state=plain_state,
            build=lambda kind, fields: kind(**fields),
        ),
        "RidgeDecoder": Schema(
            "dkae.decoders:RidgeDecoder",
            {
                **plain("alphas"),
                **N_FEATURES,
                "targets_": TARGETS,
                "code_mean_": ROW,
                "code_scale_": POSITIVE_ROW,
                "coef_": array("d", "o"),
                "intercept_": array("o"),
                "alpha_": REAL,
            },
        ),
        "KernelRidgeDecoder": Schema(
            "dkae.decoders:KernelRidgeDecoder",
            {
                **plain("kernel gamma alphas n_landmarks random_state"),
                **N_FEATURES,
                "ridge_": instance("RidgeDecoder"),
                "landmarks_": array("n", "d"),
                "gamma_": number(0) | NOTHING,
                "alpha_": REAL,
                "coef_": array("n", "o"),
            },
        ),
        "MLPDecoder": Schema(
            "dkae.decoders:MLPDecoder",
            {
                **plain("hidden_layer_sizes max_iter batch_size steps_per_epoch"),
                **plain("validation_fraction patience tol random_state"),
                "optimization": OPTIMIZATION,
                **N_FEATURES,
                "network_": instance("CorrectedRidge"),
                "history_": RECORDS,
            },
        ),
        "Optimization": Schema(
            "dkae.training:Optimization",
            plain("optimizer learning_rate learning_rate_init max_grad_norm"),
            state=optimization_state,
        ),
    }
)

# --- maps ----------------------------------------------------------------------------------------

_map = {
    **plain("n_components gamma missing random_state"),
    "kernel": TEXT | KERNEL | GP,
    "standardize": FLAG,
    **N_FEATURES,
    "n_components_": size("m"),
    "row_shape_": several(WIDTH, 1, 16),
    "kernel_": KERNEL | NOTHING,
    "kernel_scale_": REAL,
    "center_": array() | NOTHING,
    "scale_": array(is_positive=True) | NOTHING,
    "fill_": array() | NOTHING,
    **dict.fromkeys(("alignment_", "centered_alignment_", "r2_"), optional(REAL | NOTHING)),
}
_trained = {**plain("warm_start"), "history_": RECORDS, "n_iter_": COUNT}
SCHEMAS.update(
    {
        "DeepKernelizedAutoencoder": Schema(
            "dkae.autoencoder:DeepKernelizedAutoencoder",
            {
                **_map,
                **_trained,
                **plain("alignment alignment_weight batch_size max_iter decoder_max_iter"),
                **plain("pretrain_max_iter steps_per_epoch input_noise validation_fraction"),
                "network": NOTHING | instance("Stack"),
                "optimization": OPTIMIZATION,
                "network_": instance(*NETWORKS),
            },
            check=check_row,
            state=autoencoder_state,
            build=build_autoencoder,
        ),
        "InvertibleNystroem": Schema(
            "dkae.nystroem:InvertibleNystroem",
            {
                **_map,
                **_trained,
                **plain("n_landmarks center n_linear"),
                "decoder": PLAIN | DECODER,
                "landmarks_": array("n", "w"),
                "projection_": array("n", "k"),
                "offset_": array("k"),
                "linear_path_": array("w", "l"),
                "linear_center_": array("w"),
                "decoder_": DECODER,
            },
            check=check_row,
            cost=partial(map_cost, "landmarks_"),
            state=map_state,
        ),
        "KernelPCA": Schema(
            "dkae.spectral.kernel_pca:KernelPCA",
            {
                **_map,
                **plain("center solver"),
                "decoder": PLAIN | DECODER,
                "eigenvalues_": array("m"),
                "coefficients_": array("n", "m"),
                "offset_": array("m"),
                "rows_": array("n", "w") | NOTHING,
                "decoder_": DECODER | NOTHING,
            },
            check=check_row,
            cost=partial(map_cost, "rows_"),
            state=map_state,
        ),
    }
)
