"""A study in one declaration: its data, its kernel, how large it is run, recipes, experiments."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dkae import DeepKernelizedAutoencoder
    from dkae.kernels import Kernel
    from dkae_study.declaration.experiment import Experiment


class Part(NamedTuple):
    """Rows and their labels."""

    X: NDArray[np.float32]
    y: NDArray[np.int64]


@dataclass(frozen=True)
class Data:
    """The rows of a study."""

    #: As configurations call it.
    name: str
    #: As readers call it.
    title: str
    #: Returns the parts "train", "validation" and "test".
    load: Callable[[], Mapping[str, Part]]
    #: The height and width of a row that is drawn as an image.
    row_shape: tuple[int, int]

    @property
    def n_features(self) -> int:
        """The length of a row."""
        return math.prod(self.row_shape)


@dataclass(frozen=True)
class Recipe:
    """Settings of the estimator under a name."""

    name: str
    #: In a few words, for the head of the page.
    summary: str
    #: Returns an unfitted map.
    make: Callable[[], DeepKernelizedAutoencoder]


@dataclass(frozen=True)
class Scale:
    """The size of everything that costs time."""

    name: str
    summary: str
    #: Rows for training, and for validation and test each.
    n_train: int
    n_held_out: int
    #: Parameters of the kernel.
    kernel: Mapping[str, Any]
    hidden_layer_sizes: tuple[int, ...]
    #: N_c where it is not swept over.
    n_components: int
    batch_size: int
    #: How long a recipe trains, and its widths if they are others: parameters of the map as
    #: `set_params` takes them, by the recipe's name.
    schedules: Mapping[str, Mapping[str, Any]]
    #: At most so many seeds.
    n_seeds: int
    #: What single experiments need to know of a scale, by name.
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: The values of axes that depend on the scale; a result depends on its own value alone.
    axes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    #: What a reader of its verdicts must know.
    caution: str = ""

    def sizes(self) -> dict[str, int]:
        """Return the number of rows of each part."""
        held_out = self.n_held_out
        return {"train": self.n_train, "validation": held_out, "test": held_out}

    def width(self, recipe: str) -> int:
        """Return a recipe's N_c where it is not swept over."""
        return int(self.schedules[recipe].get("n_components", self.n_components))


class _Named(Protocol):
    @property
    def name(self) -> str: ...


Thing = TypeVar("Thing", bound=_Named)


@dataclass(frozen=True)
class Study:
    """Experiments on the same data, with networks of the same recipes and the same kernel."""

    title: str
    #: What makes its results on a command line; options follow it.
    command: str
    data: Data
    #: Returns an unfitted kernel from the parameters of a scale and a `random_state`.
    kernel: Callable[..., Kernel]
    scales: tuple[Scale, ...]
    #: In the order in which they stand side by side; contrasts compare all others to the first.
    recipes: tuple[Recipe, ...]
    experiments: tuple[Experiment, ...]
    #: Numbers that every result states of the fitted kernel.
    kernel_counts: Callable[[Any], Mapping[str, int]] = lambda kernel: {}
    #: A note for readers of the contrasts.
    contrast_note: str = ""
    #: Names of recipes in results of an earlier version, and their present names.
    former_recipes: Mapping[str, str] = field(default_factory=dict)
    #: Raised when a change of the code makes existing results worthless.
    version: int = 1

    def __post_init__(self) -> None:
        for what in ("scales", "recipes", "experiments"):
            names = [thing.name for thing in getattr(self, what)]
            if not names or len(set(names)) < len(names):
                raise ValueError(f"{what}={names} must be at least one, each with its own name")
        for scale in self.scales:
            if missing := set(self.recipe_names) - set(scale.schedules):
                raise ValueError(
                    f"schedules of the scale {scale.name!r} lack {sorted(missing)}: "
                    "give each recipe of the study a schedule, which may be empty"
                )

    @property
    def recipe_names(self) -> tuple[str, ...]:
        """The names of the recipes, in their order."""
        return tuple(recipe.name for recipe in self.recipes)

    @property
    def experiment_names(self) -> tuple[str, ...]:
        """The names of the experiments, in their order."""
        return tuple(experiment.name for experiment in self.experiments)

    def experiment(self, name: str) -> Experiment:
        """Return the experiment of that name."""
        return _find("experiment", name, self.experiments)

    def scale(self, name: str) -> Scale:
        """Return the scale of that name."""
        return _find("scale", name, self.scales)

    def estimator(self, scale: Scale, recipe: str) -> DeepKernelizedAutoencoder:
        """Return a recipe's map at a scale, unfitted."""
        shape = {
            "n_components": scale.n_components,
            "network__hidden_layer_sizes": scale.hidden_layer_sizes,
            "batch_size": scale.batch_size,
        }
        estimator = _find("recipe", recipe, self.recipes).make()
        return estimator.set_params(**(shape | dict(scale.schedules[recipe])))

    def parts(self, scale: Scale) -> dict[str, Part]:
        """Return the rows for training, validation and test; at small scales the first of each."""
        whole = self.data.load()
        return {
            name: Part(whole[name].X[:n], whole[name].y[:n]) for name, n in scale.sizes().items()
        }


def _find(kind: str, name: str, things: Iterable[Thing]) -> Thing:
    known = {thing.name: thing for thing in things}
    if name in known:
        return known[name]
    nearest = get_close_matches(name, known, n=1)
    raise ValueError(
        f"{kind}={name!r} is not known: expected one of {', '.join(map(repr, known))}"
        + (f"; did you mean {nearest[0]!r}?" if nearest else "")
    )
