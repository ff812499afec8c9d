"""What a file may hold, class by class, as data; see `dkae.persistence.schema` for the words.

A new class is one more entry. Parameters of the constructor are plain values unless they stand
here; attributes of `fit`, whose names end or begin with an underscore, all stand here.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin, TransformerMixin
from sklearn.gaussian_process import kernels
from sklearn.pipeline import Pipeline

from dkae._support.json_state import Fields
from dkae.kernels import Kernel
from dkae.persistence.schema import (
    FLAG,
    NOTHING,
    PLAIN,
    REAL,
    ROW_SHAPE,
    SCHEMAS,
    TEXT,
    Schema,
    array,
    instance,
    integer,
    mapping,
    number,
    one_of,
    optional,
    several,
    size,
    text,
)

#: What `save` takes, alone or at the end of a pipeline.
MODELS = (
    "DeepKernelizedAutoencoder",
    "InvertibleNystroem",
    "KernelPCA",
    "ProbabilisticClusterKernel",
)

#: The smallest positive number.
TINY = 5e-324
POSITIVE, COUNT, WIDTH = number(TINY), integer(), size("?")
ROW, POSITIVE_ROW, MATRIX = array("d"), array("d", low=TINY), array("m", "d")
NAMES = optional(several(text()))
N_FEATURES: dict[str, Any] = {"n_features_in_": size("d"), "feature_names_in_": NAMES}
RECORDS = several(mapping(number(may_be_infinite=True) | TEXT))
KERNEL, GP, DECODER = instance(Kernel), instance(kernels.Kernel), instance(RegressorMixin)
OPTIMIZATION = instance("Optimization") | NOTHING


def declare(target: str, **declared: Any) -> None:
    """Add the schema of a class: its fields, and what a `Schema` has besides."""
    names = declared.keys() & {"code", "relation", "work", "times"}
    besides = {name: declared.pop(name) for name in names}
    SCHEMAS[target.split(":")[1]] = Schema(target, declared, **besides)


# --- kernels -------------------------------------------------------------------------------------


#: Of a forest, and of its trees.
MAX_TREES, MAX_DEPTH = 2**16, 2**14
#: A step down a tree takes as long as so many operations.
STEP_WORK = 256


def check_forest(forest: Fields) -> None:
    """Raise an error unless each node but the roots has one parent, before it in its tree."""
    bounds, left, right = forest["bounds"], forest["left"], forest["right"]
    if len(bounds) < 2 or bounds[0] != 0 or bounds[-1] != len(left) or (np.diff(bounds) < 1).any():
        raise ValueError("the trees of a forest do not fill it")
    if len(bounds) - 1 > MAX_TREES:
        raise ValueError(f"a forest has more than {MAX_TREES:,} trees")
    inner = np.flatnonzero(left != -1)
    end = np.repeat(bounds[1:], np.diff(bounds))[inner]
    children = np.stack([left[inner], right[inner]])
    if not ((children > inner) & (children < end)).all():
        raise ValueError("a node of a forest has children that come before it")
    n_parents = np.bincount(children.ravel(), minlength=len(left))
    n_parents[bounds[:-1]] += 1
    if not (n_parents == 1).all():
        raise ValueError("a node of a forest has no parent, or several")


def forest_work(forest: Fields) -> float:
    """Return trees times depth, which is counted level by level over all trees."""
    left, right, level, depth = forest["left"], forest["right"], forest["bounds"][:-1], 0
    while len(level := level[left[level] != -1]):
        level, depth = np.concatenate([left[level], right[level]]), depth + 1
        if depth > MAX_DEPTH:
            raise ValueError(f"a forest has a tree that is deeper than {MAX_DEPTH:,}")
    return STEP_WORK * (len(forest["bounds"]) - 1) * max(1, depth)


def check_mixtures(mixtures: Fields) -> None:
    """Raise an error unless each component belongs to one mixture."""
    n = len(mixtures["weights"])
    if mixtures["sizes"].sum() != n:
        raise ValueError(f"the sizes of mixtures do not sum to the {n} components")


declare("dkae.kernels.pairwise:PairwiseKernel", metric=TEXT, gamma_=number(0) | NOTHING)
declare("dkae.kernels.features:TransformerKernel", transformer=instance(TransformerMixin, Pipeline))
_forest = instance("ArrayForest") | NOTHING
declare("dkae.kernels.forests:ForestKernel", forest=_forest, forest_=_forest)
declare(
    "dkae.kernels.forests:ArrayForest",
    left=array("nodes", kinds="i", low=-1, below="nodes"),
    right=array("nodes", kinds="i", low=-1, below="nodes"),
    n_features_in_=size("d"),
    feature=array("nodes", kinds="i", low=0, below="d"),
    threshold=array("nodes", may_be_infinite=True),
    missing_left=array("nodes", kinds="b"),
    bounds=array("m", kinds="i", low=0),
    relation=check_forest,
    work=forest_work,
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
)
declare(
    "dkae.kernels.mixtures:Mixtures",
    means=array("m", "d", is_tensor=True),
    weights=array("m", low=TINY, is_tensor=True),
    sizes=array("?", kinds="i", low=1, below=2**31, is_tensor=True),
    covariances=array("m", "d", low=TINY, is_tensor=True),
    relation=check_mixtures,
)
_parts = several(KERNEL, 1)
declare(
    "dkae.kernels.compose:SumKernel",
    kernels=_parts,
    kernels_=_parts,
    weights_=several(number(0), 1),
)
declare("dkae.kernels.compose:ProductKernel", kernels=_parts, kernels_=_parts)
# A normalised block takes the diagonals of its rows and columns too.
declare("dkae.kernels.compose:NormalizedKernel", kernel=KERNEL, kernel_=KERNEL, times=3)

# --- kernels of Gaussian processes ---------------------------------------------------------------

_length = POSITIVE | several(POSITIVE) | array("?", low=TINY)
_plain = ("ConstantKernel", "DotProduct", "ExpSineSquared", "RationalQuadratic", "WhiteKernel")
for _name in _plain:
    declare(f"sklearn.gaussian_process.kernels:{_name}")
declare("sklearn.gaussian_process.kernels:RBF", length_scale=_length)
declare(
    "sklearn.gaussian_process.kernels:Matern",
    length_scale=_length,
    nu=number(may_be_infinite=True),
)
declare("sklearn.gaussian_process.kernels:Sum", k1=GP, k2=GP)
declare("sklearn.gaussian_process.kernels:Product", k1=GP, k2=GP)
declare("sklearn.gaussian_process.kernels:Exponentiation", kernel=GP)
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
    n_iter_=COUNT | array("?", kinds="iu") | NOTHING,
    solver_=TEXT,
)
declare(
    "sklearn.pipeline:Pipeline",
    steps=several(several(TEXT | instance(TransformerMixin), 2, 2), 1, 100),
)

# --- networks ------------------------------------------------------------------------------------


def convolution_work(fields: Fields) -> float:
    """Return what the convolutions take on all places of an image, up and down."""
    before, *sides = fields["shape"]
    work = float(sum(weight.numel() for weight in fields["weights"].values()))
    for channels in fields["channels"]:
        sides = [math.ceil(n / 2) for n in sides]
        # Numbers between layers take memory too.
        work += channels * math.prod(sides) * (2 * 9 * before + 128)
        before = channels
    return work


_weights = mapping(array("*", kinds="fbiu", is_tensor=True))
declare(
    "dkae.networks:Autoencoder",
    layers=several(mapping(integer(1, 2**31) | FLAG | TEXT), 1, 1000),
    scaling=instance("Scaling") | NOTHING,
    weights=_weights,
)
declare(
    "dkae.networks:ConvolutionalAutoencoder",
    shape=several(WIDTH, 3, 3),
    n_components=WIDTH,
    channels=several(integer(1, 2**20), 0, 1000),
    weights=_weights,
    work=convolution_work,
)
declare(
    "dkae.decoders.mlp:CorrectedRidge",
    n_components=WIDTH,
    n_features=WIDTH,
    hidden_layer_sizes=several(WIDTH, 0, 1000),
    output_activation=one_of("identity", "sigmoid"),
    scaling=instance("Scaling"),
    weights=_weights,
)
declare(
    "dkae.persistence.objects:CustomNetwork",
    name=text(200),
    weights=mapping(array("*", kinds="fbiu", is_tensor=True, may_be_infinite=True)),
)
declare(
    "dkae.networks:Scaling",
    mean=array("d", is_tensor=True),
    scale=array(is_tensor=True, low=TINY) | array("d", is_tensor=True, low=TINY),
    scales_output=FLAG,
)
declare("dkae.networks:Stack")

# --- decoders ------------------------------------------------------------------------------------

declare(
    "dkae.decoders:RidgeDecoder",
    **N_FEATURES,
    row_mean_=array("o"),
    row_scale_=array("o", low=TINY),
    is_unit_interval_=FLAG,
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


_measure = optional(REAL | NOTHING)
declare_map: Any = partial(
    declare,
    code=("kernel",),
    kernel=TEXT | KERNEL | GP,
    standardize=FLAG,
    **N_FEATURES,
    n_components_=size("m"),
    row_shape_=ROW_SHAPE,
    kernel_=KERNEL | NOTHING,
    kernel_scale_=REAL,
    center_=array("*row") | NOTHING,
    scale_=array("*row", low=TINY) | NOTHING,
    fill_=array("*row") | NOTHING,
    alignment_=_measure,
    centered_alignment_=_measure,
    r2_=_measure,
)
declare("dkae.training:Optimization", code=("optimizer",))
for _name in ("Images", "Jitter", "Mixup"):
    declare(f"dkae.augmentation:{_name}")
declare_map(
    "dkae.autoencoder:DeepKernelizedAutoencoder",
    code=("kernel", "network", "alignment", "augment"),
    network=instance("Stack") | TEXT | NOTHING,
    optimization=OPTIMIZATION,
    augment=instance("Images", "Jitter", "Mixup") | TEXT | NOTHING,
    network_=instance("Autoencoder", "ConvolutionalAutoencoder", "CustomNetwork"),
    steps_per_epoch_=COUNT,
    history_=RECORDS,
    n_iter_=COUNT,
)
declare_map(
    "dkae.nystroem:InvertibleNystroem",
    decoder=PLAIN | DECODER,
    landmarks_=array("n", "*row"),
    projection_=array("n", "k"),
    offset_=array("k"),
    linear_path_=array("*row", "l"),
    linear_center_=array("*row"),
    decoder_=DECODER,
    history_=RECORDS,
    n_iter_=COUNT,
)
declare_map(
    "dkae.spectral.kernel_pca:KernelPCA",
    decoder=PLAIN | DECODER,
    eigenvalues_=array("m"),
    coefficients_=array("?", "m"),
    offset_=array("m"),
    rows_=array("n", "*row") | NOTHING,
    decoder_=DECODER | NOTHING,
)
