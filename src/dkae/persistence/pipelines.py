"""A pipeline of a `StandardScaler` and a model as plain data, beside the model's own."""

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from dkae.estimator import DeepKernelizedAutoencoder
from dkae.persistence.plain import plain

#: What a StandardScaler has learnt.
_SCALER_ATTRIBUTES = ("mean_", "var_", "scale_", "n_features_in_", "n_samples_seen_")


def split_pipeline(model: Any) -> tuple[Pipeline | None, Any]:
    """Return a pipeline of a scaler and a model with the model in it; any other model alone."""
    if not isinstance(model, Pipeline) or len(model.steps) != 2:
        return None, model
    # A subclass may compute something else from the same attributes.
    return (model, model[1]) if type(model[0]) is StandardScaler else (None, model)


def describe_pipeline(pipeline: Pipeline) -> dict[str, Any]:
    """Return everything but the model, as JSON can hold it; it keeps all digits of a float."""
    scaler = pipeline[0]
    if not hasattr(scaler, "scale_"):
        raise ValueError("the StandardScaler is not fitted: call fit before save")
    attributes = {name: plain(getattr(scaler, name)) for name in _SCALER_ATTRIBUTES}
    if hasattr(scaler, "feature_names_in_"):
        attributes["feature_names_in_"] = plain(scaler.feature_names_in_)
    params = {name: getattr(scaler, name) for name in ("with_mean", "with_std")}
    names = [name for name, _ in pipeline.steps]
    return {"steps": names, "params": params, "attributes": attributes}


def rebuild_pipeline(described: dict[str, Any], model: DeepKernelizedAutoencoder) -> Pipeline:
    """Return the pipeline of a scaler and the model."""
    scaler = StandardScaler(**described["params"])
    for name, value in described["attributes"].items():
        if name not in (*_SCALER_ATTRIBUTES, "feature_names_in_"):
            raise ValueError(f"a StandardScaler has no {name!r}")
        kind = object if name == "feature_names_in_" else None
        setattr(scaler, name, np.array(value, kind) if isinstance(value, list) else value)
    if scaler.n_features_in_ != model.n_features_in_:
        raise ValueError(f"the scaler has {scaler.n_features_in_} features, not those of the model")
    return Pipeline(list(zip(described["steps"], (scaler, model), strict=True)))
