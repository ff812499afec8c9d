"""Parameters of the estimator from words: numbers, JSON, or text."""

import json
from typing import Any


def parse_options(options: dict[str, Any], extra: tuple[str, ...]) -> dict[str, Any]:
    """Return the parameters of options that were given, and of pairs NAME=VALUE after --set."""
    params = _given(options) | _parse_pairs(extra)
    _check_kernel_params(params.get("kernel_params"))
    return params


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that the user gave, with numbers as numbers."""
    params = {name: value for name, value in options.items() if value is not None}
    for name in {"gamma", "epoch", "steps_per_epoch"} & params.keys():
        params[name] = _parse(params[name])
    if "hidden_layer_sizes" in params:
        sizes = params["hidden_layer_sizes"].split(",")
        params["hidden_layer_sizes"] = tuple(_parse(size) for size in sizes if size.strip())
    return params


def _parse_pairs(pairs: tuple[str, ...]) -> dict[str, Any]:
    params = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(f"--set {pair}: expected NAME=VALUE, such as --set tied_weights=false")
        params[name] = _parse(value)
    return params


def _parse(text: str) -> Any:
    """Parse JSON (0.5, true, null, [1, 2]), and return anything else as a string."""
    text = {"True": "true", "False": "false", "None": "null"}.get(text, text)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # the latter of thousands of brackets
        return text


def _check_kernel_params(value: Any) -> None:
    if not isinstance(value, dict | None):
        raise ValueError(
            f"kernel_params={value!r} is not a table of names: pass JSON, such as "
            """--set 'kernel_params={"gamma": 0.5}'"""
        )
