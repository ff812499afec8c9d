"""The map that `dkae fit` fits: its class, its recipe, and its parameters from words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

#: The maps by name, as classes of `dkae`.
MAPS = {
    "autoencoder": "DeepKernelizedAutoencoder",
    "nystroem": "InvertibleNystroem",
    "kernel-pca": "KernelPCA",
}
_DECODERS = {"ridge": "RidgeDecoder", "kernel_ridge": "KernelRidgeDecoder", "mlp": "MLPDecoder"}


def build_map(map_name: str, recipe: str | None, params: Mapping[str, tuple[str, Any]]) -> Any:
    """Return the unfitted map.

    Parameters
    ----------
    map_name : str
        One of `MAPS`.
    recipe : str or None
        Named settings of the autoencoder.
    params : mapping of str to tuple
        For each parameter, nested ones as in ``network__activation``, the option and the value.
    """
    import dkae

    if recipe is None:
        model = getattr(dkae, MAPS[map_name])()
    elif map_name == "autoencoder":
        model = dkae.recipes.RECIPES[recipe]()
    else:
        raise ValueError(
            f"--recipe {recipe} sets parameters of the autoencoder: leave it out with --map "
            f"{map_name}"
        )
    for name in sorted(params, key=lambda name: name.count("__")):  # parts before their parts
        option, value = params[name]
        _make_part(model, name)
        _check_known(model, map_name, name, option)
        model.set_params(**{name: value})
    return model


def parse_options(options: Mapping[str, Any], flags: Mapping[str, str]) -> dict[str, Any]:
    """Return the parameters of options that were given; `flags` are the options' own names."""
    params = {
        name: value for name, value in options.items() if value is not None and value is not False
    }
    for name in {"gamma", "steps_per_epoch"} & params.keys():
        params[name] = parse(params[name])
    if "hidden_layer_sizes" in params:
        sizes = params["hidden_layer_sizes"].split(",")
        params["hidden_layer_sizes"] = tuple(parse(size) for size in sizes if size.strip())
    nested = {"hidden_layer_sizes": "network__hidden_layer_sizes"}
    return {nested.get(name, name): (flags[name], value) for name, value in params.items()}


def parse_pairs(pairs: tuple[str, ...]) -> dict[str, Any]:
    """Return the parameters of pairs NAME=VALUE after --set."""
    params = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(f"--set {pair}: expected NAME=VALUE, such as --set missing=mask")
        params[name] = (f"--set {name}", parse(value))
    return params


def parse(text: str) -> Any:
    """Parse JSON (0.5, true, null, [1, 2]), and return anything else as a string."""
    text = {"True": "true", "False": "false", "None": "null"}.get(text, text)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # the latter of thousands of brackets
        return text


def _make_part(model: Any, name: str) -> None:
    """Set the part that a nested name reaches into, if it is given by a word or not at all."""
    part, nested, _ = name.partition("__")
    value = getattr(model, part, None)
    if nested and not hasattr(value, "set_params"):
        model.set_params(**{part: _part(model, part, value)})


def _part(model: Any, part: str, value: Any) -> Any:
    """Return the object for a word, or the word if it has none."""
    if part == "kernel":
        from dkae.kernels import make_kernel

        return make_kernel(value, gamma=model.gamma, random_state=model.random_state)
    if part == "network":
        from dkae.networks import Stack

        return Stack()
    if part == "optimization":
        from dkae.training import Optimization

        return Optimization()
    if part == "decoder" and value in _DECODERS:
        from dkae import decoders

        return getattr(decoders, _DECODERS[value])()
    return value


def _check_known(model: Any, map_name: str, name: str, option: str) -> None:
    known = model.get_params()
    if name in known:
        return
    nearest = get_close_matches(name, known, n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    part, nested, _ = name.partition("__")
    if nested and part in known and not hasattr(getattr(model, part), "set_params"):
        hint = f": name the {part} first, such as --set {part}=ridge"
    raise ValueError(f"{option}: the map {map_name} has no parameter {name!r}{hint}")
