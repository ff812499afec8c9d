"""What a file may hold, class by class, as data; see `dkae.persistence.schema` for the words.

A new class is one more entry. Parameters of the constructor are plain values unless they stand
here; attributes of `fit`, whose names end or begin with an underscore, all stand here.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from dkae._support.json_state import Fields
from dkae.persistence import networks, relations
from dkae.persistence.schema import (
    FEATURE_NAMES,
    FLAG,
    NOTHING,
    PLAIN,
    REAL,
    SCHEMAS,
    TEXT,
    Cost,
    Schema,
    Spec,
    Writer,
    array,
    build_estimator,
    build_of_fields,
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
DECODERS = ("RidgeDecoder", "KernelRidgeDecoder", "MLPDecoder", "Ridge", "KernelRidge")
NETWORKS = ("Autoencoder", "ConvolutionalAutoencoder", "ResidualAutoencoder", "CustomNetwork")
#: What `save` takes, alone or at the end of a pipeline.
MODELS = (
    "DeepKernelizedAutoencoder",
    "InvertibleNystroem",
    "KernelPCA",
    "ProbabilisticClusterKernel",
)

#: The smallest positive number.
TINY = 5e-324
POSITIVE, COUNT, WIDTH = number(TINY), integer(), integer(1, "widest")
ROW, POSITIVE_ROW, MATRIX = array("d"), array("d", low=TINY), array("m", "d")
N_FEATURES: dict[str, Any] = {"n_features_in_": size("d"), "feature_names_in_": FEATURE_NAMES}
RECORDS = several(mapping(number(may_be_infinite=True) | TEXT))
KERNEL, DECODER = instance(*KERNELS), instance(*DECODERS)
OPTIMIZATION = instance("Optimization") | NOTHING


def declare(target: str, **declared: Any) -> None:
    """Add the schema of a class: its fields, and how it is checked, counted, written and built."""
    names = declared.keys() & {"check", "cost", "state", "build"}
    how = {name: declared.pop(name) for name in names}
    SCHEMAS[target.split(":")[1]] = Schema(target, declared, **how)


#: Of a class that is made of its fields.
declare_record = partial(declare, state=plain_state, build=build_of_fields)


# --- kernels -------------------------------------------------------------------------------------


def _one_more(fields: Fields, parts: Cost) -> Cost:
    return parts.plus(Cost(1))


declare(
    "dkae.kernels.pairwise:PairwiseKernel",
    metric=TEXT,
    gamma_=number(0) | NOTHING,
    cost=lambda fields, parts: Cost(1),
)
declare(
    "dkae.kernels.features:TransformerKernel",
    transformer=instance(*TRANSFORMERS, "Pipeline"),
    cost=_one_more,
)
_forest = instance("ArrayForest") | NOTHING
declare("dkae.kernels.forests:ForestKernel", forest=_forest, forest_=_forest, cost=_one_more)
declare_record(
    "dkae.kernels.forests:ArrayForest",
    left=array("nodes", kinds="i", low=-1, below="nodes"),
    right=array("nodes", kinds="i", low=-1, below="nodes"),
    n_features_in_=size("d"),
    feature=array("nodes", kinds="i", low=0, below="d"),
    threshold=array("nodes", may_be_infinite=True),
    missing_left=array("nodes", kinds="b"),
    bounds=array("bounds", kinds="i", low=0),
    check=relations.check_forest,
    cost=relations.forest_cost,
)
declare(
    "dkae.kernels.cluster:ProbabilisticClusterKernel",
    tolerance=number(TINY, 1),
    **N_FEATURES,
    mixtures_=instance("Mixtures"),
    n_mixtures_=integer(1),
    n_iter_=COUNT,
    _offset=ROW,
    _basis=array("?", kinds="iu", low=0, below="d"),
    check=relations.check_pck,
    cost=_one_more,
)
declare_record(
    "dkae.kernels.mixtures:Mixtures",
    means=array("n", "m", is_tensor=True),
    weights=array("n", low=TINY, is_tensor=True),
    sizes=array("mixtures", kinds="i", low=1, below=2**31, is_tensor=True),
    covariances=array("n", "m", low=TINY, is_tensor=True),
    check=relations.check_mixtures,
)
_parts = several(KERNEL, 1)
declare(
    "dkae.kernels.compose:SumKernel",
    kernels=_parts,
    kernels_=_parts,
    weights_=several(number(0)),
    check=relations.check_weights,
)
declare("dkae.kernels.compose:ProductKernel", kernels=_parts, kernels_=_parts)
declare(
    "dkae.kernels.compose:NormalizedKernel",
    kernel=KERNEL,
    kernel_=KERNEL,
    cost=relations.centred_cost,
)
declare(
    "dkae.kernels.compose:CenteredKernel",
    kernel=KERNEL,
    kernel_=KERNEL,
    reference_=array(),
    mean_=REAL,
    cost=relations.centred_cost,
)

# --- kernels of Gaussian processes ---------------------------------------------------------------

_lengths = {"length_scale": POSITIVE | several(POSITIVE) | array(low=TINY)}
_processes = (
    "ConstantKernel",
    "DotProduct",
    "ExpSineSquared",
    "Exponentiation",
    "Matern",
    "Product",
    "RBF",
    "RationalQuadratic",
    "Sum",
    "WhiteKernel",
)
GP = instance(*_processes)
_declared: dict[str, dict[str, Spec]] = {
    "Exponentiation": {"kernel": GP},
    "Matern": {**_lengths, "nu": number(may_be_infinite=True)},
    "Product": {"k1": GP, "k2": GP},
    "RBF": _lengths,
    "Sum": {"k1": GP, "k2": GP},
}
for _name in _processes:
    declare(
        f"sklearn.gaussian_process.kernels:{_name}",
        cost=lambda fields, parts: Cost(max(1, parts.kernels)),
        **_declared.get(_name, {}),
    )
declare("dkae.kernels.pairwise:GaussianProcessKernel", kernel=GP)

# --- estimators of scikit-learn ------------------------------------------------------------------

declare(
    "sklearn.preprocessing:StandardScaler",
    **N_FEATURES,
    mean_=ROW | NOTHING,
    var_=ROW | NOTHING,
    scale_=POSITIVE_ROW | NOTHING,
    n_samples_seen_=REAL | array("d", kinds="iuf"),
)
declare(
    "sklearn.preprocessing:MinMaxScaler",
    **N_FEATURES,
    **dict.fromkeys(("scale_", "min_", "data_min_", "data_max_", "data_range_"), ROW),
    n_samples_seen_=COUNT,
)
declare(
    "sklearn.preprocessing:RobustScaler",
    **N_FEATURES,
    center_=ROW | NOTHING,
    scale_=POSITIVE_ROW | NOTHING,
)
declare(
    "sklearn.decomposition:PCA",
    **N_FEATURES,
    components_=MATRIX,
    mean_=ROW,
    explained_variance_=array("m", low=0),
    **dict.fromkeys(("explained_variance_ratio_", "singular_values_"), array("m")),
    n_components_=size("m"),
    n_samples_=COUNT,
    noise_variance_=REAL,
    _fit_svd_solver=optional(TEXT),
)
declare(
    "sklearn.kernel_ridge:KernelRidge",
    **N_FEATURES,
    X_fit_=array("n", "d"),
    dual_coef_=array("n") | array("n", "m"),
)
declare(
    "sklearn.linear_model:Ridge",
    **N_FEATURES,
    coef_=ROW | MATRIX,
    intercept_=REAL | array("m"),
    n_iter_=COUNT | array(kinds="iu") | NOTHING,
    solver_=TEXT,
)
declare(
    "sklearn.pipeline:Pipeline",
    steps=several(several(TEXT | instance(*TRANSFORMERS, *MODELS), 2, 2), 1, 100),
)

# --- networks ------------------------------------------------------------------------------------


declare_network = partial(
    declare,
    check=networks.check_network,
    state=networks.network_state,
    build=networks.build_network,
    scaling=instance("Scaling") | NOTHING,
    weights=mapping(array(kinds="fbiu", is_tensor=True)),
)
declare_network(
    "dkae.networks:Autoencoder", layers=several(mapping(integer(1, 2**31) | FLAG | TEXT), 1, 1000)
)
declare_network(
    "dkae.networks:ConvolutionalAutoencoder",
    shape=several(WIDTH, 3, 3),
    n_components=WIDTH,
    channels=several(integer(1, 2**20)),
    cost=networks.convolution_cost,
)
declare_network(
    "dkae.networks:ResidualAutoencoder",
    shape=several(WIDTH, 1, 16),
    n_components=WIDTH,
    width=WIDTH,
    n_blocks=COUNT,
)
declare_network(
    "dkae.decoders.mlp:CorrectedRidge",
    n_components=WIDTH,
    n_features=WIDTH,
    hidden_layer_sizes=several(WIDTH, 0, 1000),
    output_activation=one_of("identity", "sigmoid"),
)
declare_record(
    "dkae.persistence.networks:CustomNetwork",
    name=text(200),
    weights=mapping(array(kinds="fbiu", is_tensor=True, may_be_infinite=True)),
)
declare(
    "dkae.networks:Scaling",
    mean=array("d", is_tensor=True),
    scale=array(is_tensor=True, low=TINY),
    scales_output=FLAG,
    check=relations.check_scaling,
    state=networks.scaling_state,
    build=build_of_fields,
)
declare("dkae.networks:Stack")

# --- decoders ------------------------------------------------------------------------------------

declare_record(
    "dkae.decoders.targets:Targets",
    center=array(),
    scale=array(low=TINY),
    is_unit_interval=FLAG,
    check=relations.check_targets,
)
declare(
    "dkae.decoders:RidgeDecoder",
    **N_FEATURES,
    targets_=instance("Targets"),
    code_mean_=ROW,
    code_scale_=POSITIVE_ROW,
    coef_=array("d", "o"),
    intercept_=array("o"),
    alpha_=REAL,
)
declare(
    "dkae.decoders:KernelRidgeDecoder",
    **N_FEATURES,
    ridge_=instance("RidgeDecoder"),
    landmarks_=array("n", "d"),
    gamma_=number(0) | NOTHING,
    alpha_=REAL,
    coef_=array("n", "o"),
)
declare(
    "dkae.decoders:MLPDecoder",
    optimization=OPTIMIZATION,
    **N_FEATURES,
    network_=instance("CorrectedRidge"),
    history_=RECORDS,
)

# --- maps ----------------------------------------------------------------------------------------


def map_state(model: Any, writer: Writer) -> Fields:
    """Return the state of a map, with a word in place of a kernel that is code."""
    state = estimator_state(model, writer)
    if writer.leaves_out(model.kernel_):
        state["kernel_"] = None
    if writer.leaves_out(model.kernel) or writer.why_not(model.kernel) is not None:
        state["kernel"] = "precomputed"
    return state


def autoencoder_state(model: Any, writer: Writer) -> Fields:
    """Return the state of an autoencoder; of a custom network the weights and the name."""
    state, network = map_state(model, writer), model.network_
    if kind_of(network) is None:
        network = networks.CustomNetwork(type(network).__name__, network.state_dict())
    is_kept = kind_of(model.network) == "Stack" and writer.why_not(model.network) is None
    return state | {
        "network_": network,
        "network": model.network if is_kept else None,
        "alignment": _name_of_code(model.alignment),
    }


def optimization_state(optimization: Any, writer: Writer) -> Fields:
    """Return the state of an optimization, with the name of a function."""
    state = estimator_state(optimization, writer)
    return state | {"optimizer": _name_of_code(optimization.optimizer)}


def _name_of_code(value: Any) -> Any:
    """Return the name of a function; `fit` must not take it for a name that it knows."""
    return f"your {getattr(value, '__name__', type(value).__name__)}" if callable(value) else value


def build_autoencoder(kind: Any, fields: Fields) -> Any:
    """Make the estimator; `fit` can build a network that needs no code again."""
    built = build_estimator(kind, fields)
    if hasattr(built.network_, "config"):
        built.network = networks.factory_of(built.network_)
    return built


_measure = optional(REAL | NOTHING)
declare_map: Any = partial(
    declare,
    check=relations.check_row,
    state=map_state,
    kernel=TEXT | KERNEL | GP,
    standardize=FLAG,
    **N_FEATURES,
    n_components_=size("m"),
    row_shape_=several(WIDTH, 1, 16),
    kernel_=KERNEL | NOTHING,
    kernel_scale_=REAL,
    center_=array() | NOTHING,
    scale_=array(low=TINY) | NOTHING,
    fill_=array() | NOTHING,
    alignment_=_measure,
    centered_alignment_=_measure,
    r2_=_measure,
)
declare("dkae.training:Optimization", state=optimization_state)
declare_map(
    "dkae.autoencoder:DeepKernelizedAutoencoder",
    network=instance("Stack") | NOTHING,
    optimization=OPTIMIZATION,
    network_=instance(*NETWORKS),
    steps_per_epoch_=COUNT,
    history_=RECORDS,
    n_iter_=COUNT,
    state=autoencoder_state,
    build=build_autoencoder,
)
declare_map(
    "dkae.nystroem:InvertibleNystroem",
    decoder=PLAIN | DECODER,
    landmarks_=array("n", "w"),
    projection_=array("n", "k"),
    offset_=array("k"),
    linear_path_=array("w", "l"),
    linear_center_=array("w"),
    decoder_=DECODER,
    history_=RECORDS,
    n_iter_=COUNT,
    cost=partial(relations.map_cost, "landmarks_"),
)
declare_map(
    "dkae.spectral.kernel_pca:KernelPCA",
    decoder=PLAIN | DECODER,
    eigenvalues_=array("m"),
    coefficients_=array("n", "m"),
    offset_=array("m"),
    rows_=array("n", "w") | NOTHING,
    decoder_=DECODER | NOTHING,
    cost=partial(relations.map_cost, "rows_"),
)
