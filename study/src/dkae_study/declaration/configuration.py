"""What a result depends on, as a dictionary with a hash; results of other hashes are not mixed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator

if TYPE_CHECKING:
    from dkae import DeepKernelizedAutoencoder
    from dkae_study.declaration.study import Scale, Study

#: Parameters that change no result, or that stand elsewhere in a configuration.
_NEVER = frozenset({"cache_bytes", "callbacks", "device", "kernel", "random_state", "verbose"})
#: Fields of a scale that change no result.
_NOT_OF_A_SCALE = ("summary", "n_seeds", "caution", "settings", "axes", "schedules")


def estimator_config(estimator: DeepKernelizedAutoencoder) -> dict[str, Any]:
    """Return the parameters that a network depends on, without phases that are left out."""
    return {
        name: _plain(value)
        for name, value in estimator.get_params(deep=False).items()
        if name not in _NEVER and not (name.endswith("_max_iter") and value == 0)
    }


def _plain(value: Any) -> Any:
    """Return a parameter as JSON can hold it: a part of the map by the parameters of its own."""
    return value.get_params() if isinstance(value, BaseEstimator) else value


def scale_config(scale: Scale, recipe: str) -> dict[str, Any]:
    """Return everything of a scale that a recipe's results depend on, as JSON can hold it."""
    fields = asdict(scale)
    config = {name: value for name, value in fields.items() if name not in _NOT_OF_A_SCALE}
    config["schedule"] = scale.schedules[recipe]
    plain: dict[str, Any] = json.loads(json.dumps(config | fields["settings"]))
    return plain


def data_config(study: Study, scale: Scale) -> dict[str, Any]:
    """Return what the rows of a study depend on."""
    return {"name": study.data.name, "n_train": scale.n_train, "n_held_out": scale.n_held_out}


def kernel_config(study: Study, scale: Scale, seed: int, **changes: Any) -> dict[str, Any]:
    """Return what the kernel of a seed depends on; `changes` are parameters in place of its own."""
    kernel = study.kernel(**(dict(scale.kernel) | changes), random_state=seed)
    params = {name: v for name, v in kernel.get_params().items() if name != "device"}
    return {"version": study.version, "data": data_config(study, scale), "params": params}


def digest(config: Mapping[str, Any]) -> str:
    """Return a short hash of a configuration."""
    text = json.dumps(config, sort_keys=True, default=list)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
