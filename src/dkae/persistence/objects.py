"""Objects as fields of a file, and back: estimators, networks, and plain objects of arrays.

What using an object takes is counted before it is built. A network is built without memory, on
torch's device "meta"; then the tensors of the file take the places of its weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from dkae._support.json_state import Fields, NotPlainError, Packer, Unpacker, check_form
from dkae.kernels.forests import ArrayForest
from dkae.networks import Layer
from dkae.persistence.schema import (
    NEVER,
    SCHEMAS,
    Schema,
    Scope,
    Spec,
    in_short,
    is_learnt,
    kind_of,
)

#: A row may have so many features whatever a file holds.
MAX_UNEXPLAINED = 2**20
#: Rows whose use is counted.
N_ROWS = 128
#: Comparing a row with one that is held takes as long as so many operations.
PAIR_WORK = 64
#: What using an object may take: a number, and a number for each of the file.
LIMITS = {"objects": (1000, 0), "operations": (2**35, 2**13), "numbers": (2**23, 4)}


class Cost(NamedTuple):
    """What using an object takes, with all that it uses."""

    objects: float
    #: On `N_ROWS` rows.
    operations: float
    #: Numbers that are made of a row, such as features.
    width: float


@dataclass(frozen=True)
class CustomNetwork:
    """The weights of a network whose code no file holds, under the name of its class."""

    name: str
    weights: Mapping[str, Tensor]


class Writer(Packer):
    """Turns a model into JSON and tensors, with None in place of the object `left_out`."""

    def __init__(self, left_out: Any = None) -> None:
        super().__init__()
        self._left_out = left_out

    def why_not(self, value: Any, spec: Spec | None = None) -> str | None:
        """Return why no file can hold a value, or a value of a spec; None if one can."""
        writer = Writer(self._left_out)
        try:
            packed = writer.pack(value)
            reader = Reader(writer.tensors)
            found = reader.unpack(packed)
            if spec is not None:
                spec.check(found, reader.scope())
        except ValueError as error:
            return str(error)
        return None

    def pack(self, value: Any, name: str = "", depth: int = 0) -> Any:
        return super().pack(None if value is self._left_out else value, name, depth)

    def describe(self, value: Any) -> tuple[str, Fields]:
        value = value if kind_of(value) is not None else _known_form(value)
        kind = kind_of(value)
        if kind is None:
            raise NotPlainError(f"it is a {type(value).__name__}")
        schema = SCHEMAS[kind]
        state = _state(value, schema)
        for name in schema.code:
            given = state[name]
            is_left_out = given is not None and given is self._left_out
            if is_left_out or self.why_not(given, schema.fields[name]) is not None:
                state[name] = f"your {name}"
        lost = state.keys() - schema.fields.keys() - NEVER
        if found := [name for name in sorted(lost) if not name.startswith("_")]:
            what = f"{found[0]}={in_short(state[found[0]])}"
            raise NotPlainError(f"a {kind} with {what} has no place in files")
        return kind, {name: state[name] for name in schema.fields if name in state}


class Reader(Unpacker):
    """Builds what a file describes, and counts what using it takes."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        super().__init__(tensors)
        self.n_numbers = sum(tensor.numel() for tensor in tensors.values())
        self._costs: dict[int, Cost] = {}

    def scope(self) -> Scope:
        """Return the sizes that hold for all objects."""
        return {"widest": MAX_UNEXPLAINED + 4 * self.n_numbers}

    def build(self, kind: str, fields: Fields) -> Any:
        if kind not in SCHEMAS:
            raise ValueError(f"{kind[:80]!r} is not a kind of object that this version knows")
        schema, scope = SCHEMAS[kind], self.scope()
        schema.check(kind, fields, scope)
        cost = self._cost(schema, fields, scope)
        built = _built(schema.target_class, fields)
        self._costs[id(built)] = cost
        return built

    def _cost(self, schema: Schema, fields: Fields, scope: Scope) -> Cost:
        """Return what using an object takes; raise if that is more than the file explains.

        Its parts see the rows that it holds too, and what they make of these is kept.
        """
        # What a fitted object was made of takes nothing any more.
        learnt = {name: value for name, value in fields.items() if is_learnt(name)}
        values = list(_flat(learnt or fields))
        parts = [self._costs[id(value)] for value in values if id(value) in self._costs]
        n_held, width = scope.get("n", 0), sum(part.width for part in parts)
        objects = 1 + sum(part.objects for part in parts)
        own = sum(map(_size, values)) if schema.work is None else schema.work(fields)
        operations = sum(part.operations for part in parts) * (1 + n_held / N_ROWS)
        # Each part may compare new rows with those.
        operations += N_ROWS * (own + PAIR_WORK * n_held) * objects
        objects, operations = schema.times * objects, schema.times * operations
        kept = n_held * (width + objects)
        found = {"objects": objects, "operations": operations, "numbers": kept}
        for what, (limit, for_each) in LIMITS.items():
            if found[what] > limit + for_each * self.n_numbers:
                raise ValueError(
                    f"using it takes {found[what]:.3g} {what}, more than its {self.n_numbers:,} "
                    "numbers explain"
                )
        return Cost(objects, operations, width + scope.get("m", 0))


def _flat(value: Any) -> Iterator[Any]:
    """Yield all values within nested lists and dicts."""
    if isinstance(value, dict | list | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _flat(part)
    else:
        yield value


def _size(value: Any) -> int:
    """Return how many numbers an array has; anything else has none."""
    return value.numel() if isinstance(value, Tensor) else getattr(value, "size", 0)


# --- objects as fields ---------------------------------------------------------------------------


def _known_form(value: Any) -> Any:
    """Return what a file has in place of a forest of scikit-learn or of a custom network."""
    if isinstance(value, nn.Module):
        return CustomNetwork(type(value).__name__, value.state_dict())
    return ArrayForest.of(value) if hasattr(value, "estimators_") else value


def _state(value: Any, schema: Schema) -> Fields:
    """Return the fields of an object; generators of random numbers stay."""
    if hasattr(value, "config"):  # a network
        scaling = {"scaling": value.scaling} if hasattr(value, "scaling") else {}
        return {**value.config, **scaling, "weights": _own_weights(value)}
    if not schema.is_estimator:
        return {name: getattr(value, name) for name in schema.declared}
    state = {**vars(value), **value.get_params(deep=False)}
    if "random_state" in state and not isinstance(state["random_state"], int | np.integer):
        state["random_state"] = None
    if "feature_names_in_" in state:
        state["feature_names_in_"] = list(state["feature_names_in_"])
    return state


def _own_weights(network: nn.Module) -> dict[str, Tensor]:
    """Return the weights of a network; its scaling stands by itself."""
    weights = network.state_dict().items()
    return {name: tensor for name, tensor in weights if not name.startswith("scaling.")}


# --- fields as objects ---------------------------------------------------------------------------


def _built(kind: Any, fields: Fields) -> Any:
    """Return the object of a class that has these fields."""
    if issubclass(kind, nn.Module) and "weights" in fields:
        return _network(kind, fields)
    if not hasattr(kind, "get_params"):
        return kind(**fields)
    built = kind(**{name: value for name, value in fields.items() if not is_learnt(name)})
    for name, value in fields.items():
        if is_learnt(name):
            is_names = name == "feature_names_in_"
            setattr(built, name, np.array(value, dtype=object) if is_names else value)
    return built


def _network(kind: Any, fields: Fields) -> nn.Module:
    """Return the network of a configuration; its parameters are the tensors of the file."""
    config = {name: v for name, v in fields.items() if name != "weights" and v is not None}
    with torch.device("meta"):
        if "layers" in config:
            config["layers"] = [Layer(**layer) for layer in config["layers"]]
        network: nn.Module = kind(**config)
    check_form(fields["weights"], _own_weights(network), "weights:")
    network.load_state_dict(fields["weights"], strict=False, assign=True)
    return network.eval()
