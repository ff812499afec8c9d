"""Fitted objects of scikit-learn as plain values: those that are known here, and no others.

Parameters, and attributes that end in an underscore, are all that such an object has. Anything that
is not in these lists could bring code, or state that nobody has looked at.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn import preprocessing
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.gaussian_process import kernels as gaussian_process
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline

from dkae._support.states import (
    NAMES,
    check_array,
    check_type,
    checked_names,
    is_learnt,
    state_of,
)
from dkae._support.trees import Codec, State

#: Kernels of Gaussian processes: their parameters are all that they have.
_KERNELS = (
    "CompoundKernel",
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
#: Transformers and regressions whose learned attributes are numbers and arrays.
_ESTIMATORS: tuple[Any, ...] = (
    preprocessing.StandardScaler,
    preprocessing.MinMaxScaler,
    preprocessing.MaxAbsScaler,
    preprocessing.RobustScaler,
    preprocessing.Normalizer,
    PCA,
    TruncatedSVD,
    Nystroem,
    RBFSampler,
    KernelRidge,
    Ridge,
)
#: Features of a row that may be made up for a trial, if no learned array has so many.
MAX_UNSEEN_FEATURES = 2**16
#: Learned attributes without an underscore at their end.
_PRIVATE = ("_n_features_out",)


def _build(state: State, kind: Callable[..., Any]) -> Any:
    params, learnt = (check_type(state, name, dict) for name in ("params", "learnt"))
    if "n_jobs" in params:
        raise ValueError("a file does not say how many processors to use")
    estimator = kind(**params)
    for name, value in learnt.items():
        if not is_learnt(name, _PRIVATE):
            raise ValueError(f"{str(name)[:80]!r} is nothing that an estimator learns")
        if isinstance(value, np.ndarray):
            check_array(name, value, value.shape)
        if name != NAMES:
            setattr(estimator, name, value)
    _check_widths(estimator)
    if NAMES in learnt:  # last: the row that the check makes up has no names
        estimator.feature_names_in_ = checked_names(learnt)
    return estimator


def _check_widths(estimator: Any) -> None:
    """Refuse what was not learnt from rows of the width that it states."""
    d = getattr(estimator, "n_features_in_", None)
    if d is None:
        return
    if type(d) is not int or d < 1:
        raise ValueError("a number of features is none")
    arrays = [v for v in vars(estimator).values() if isinstance(v, np.ndarray) and v.size]
    if d > MAX_UNSEEN_FEATURES and not any(d in array.shape for array in arrays):
        raise ValueError(f"nothing was learnt from the {d} features")
    for name in ("mean_", "scale_", "var_", "min_", "data_min_", "max_abs_", "center_"):
        value = getattr(estimator, name, None)
        if isinstance(value, np.ndarray) and value.ndim and len(value) != d:
            raise ValueError(f"{name} has {len(value)} entries for {d} features")
    if not np.all(getattr(estimator, "scale_", None) != np.float64(0)):
        raise ValueError("a scale is zero")
    # One row says whether the rest fits, of the type that was learnt from.
    dtype = next((array.dtype for array in arrays if array.dtype.kind == "f"), np.float64)
    apply = getattr(estimator, "transform", None) or estimator.predict
    if not np.isfinite(apply(np.ones((1, d), dtype=dtype))).all():
        raise ValueError(f"a {type(estimator).__name__} gives NaN or infinite values")


def _pipeline_state(pipeline: Pipeline) -> State:
    return {"steps": list(pipeline.steps)}


def _build_pipeline(state: State) -> Pipeline:
    steps = check_type(state, "steps", list)
    if not steps or not all(
        isinstance(step, tuple)
        and len(step) == 2
        and isinstance(step[0], str)
        and isinstance(step[1], BaseEstimator)
        for step in steps
    ):
        raise ValueError("a pipeline has steps that are none")
    widths = [getattr(step, "n_features_in_", None) for _, step in steps]
    scalers = tuple(kind for kind in _ESTIMATORS if kind.__module__.startswith("sklearn.prepro"))
    for (_, step), first, second in zip(steps, widths, widths[1:], strict=False):
        if isinstance(step, scalers) and None not in (first, second) and first != second:
            raise ValueError(f"a scaler has {first} features, and what follows it {second}")
    return Pipeline(steps)


def _kernel_codec(kind: Any) -> Codec:
    return Codec(kind, lambda kernel: kernel.get_params(deep=False), lambda state: kind(**state))


CODECS = {
    "sklearn Pipeline": Codec(Pipeline, _pipeline_state, _build_pipeline),
    **{
        f"sklearn {kind.__name__}": Codec(
            kind, partial(state_of, also=_PRIVATE), partial(_build, kind=kind)
        )
        for kind in _ESTIMATORS
    },
    **{
        f"sklearn gaussian_process {name}": _kernel_codec(getattr(gaussian_process, name))
        for name in _KERNELS
    },
}
