"""What a result depends on, as a dictionary with a hash; results of other hashes are not mixed.

Committed results must keep their hashes when the library renames a parameter or adds one. This is
the one place that knows the names under which they were written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dkae import DeepKernelizedAutoencoder
    from dkae_study.declaration.study import Scale, Study

#: Present names of parameters, and those under which results have them.
_NAMES_IN_RESULTS = {"steps_per_epoch": "epoch"}
#: Parameters that came after the first results, with what those were made with: no part of a
#: configuration that has the same.
_ADDED = {
    "alignment": "frobenius",
    "compile": False,
    "distillation": 0.0,
    "layer_norm": False,
    "linear_path": 0.0,
    "missing": "error",
    "network": "stacked",
    "optimizer": "adam",
    "shuffle": "rows",
    "standardize": False,
    "warm_start": False,
}
#: Parameters that change no result, or that stand elsewhere in a configuration.
_NEVER = frozenset(
    {
        "cache_bytes", "callbacks", "device", "engine", "kernel", "kernel_params", "random_state",
        "verbose",
    }
)  # fmt: skip
#: Fields of a scale that change no result.
_NOT_OF_A_SCALE = ("summary", "n_seeds", "caution", "settings", "axes", "schedules")


def estimator_config(estimator: DeepKernelizedAutoencoder) -> dict[str, Any]:
    """Return the parameters that a network depends on, under their names in results.

    A phase that is left out is no part of it, nor is a parameter that came after the first results
    if it is what they were made with.
    """
    params = _with_names_in_results(estimator.get_params(deep=False))
    return {
        name: value
        for name, value in params.items()
        if name not in _NEVER
        and not (name in _ADDED and value == _ADDED[name])
        and not (name.endswith("_max_iter") and value == 0)
    }


def _with_names_in_results(params: Mapping[str, Any]) -> dict[str, Any]:
    """Rename parameters; if a parameter has both names, its present one counts."""
    renamed = {new: old for new, old in _NAMES_IN_RESULTS.items() if new in params}
    kept = {name: v for name, v in params.items() if name not in renamed.values()}
    return {renamed.get(name, name): value for name, value in kept.items()}


def scale_config(scale: Scale, recipe: str) -> dict[str, Any]:
    """Return everything of a scale that a recipe's results depend on, as JSON can hold it."""
    fields = asdict(scale)
    config = {name: value for name, value in fields.items() if name not in _NOT_OF_A_SCALE}
    config["schedule"] = _with_names_in_results(scale.schedules[recipe])
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
