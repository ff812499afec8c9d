"""What the study adds to the house style of figures: recipes, and where the scale stands."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.figure import Figure

from dkae import plotting
from dkae.plotting import BLUE, VERMILLION

__all__ = ["RECIPES", "SERIES", "Series", "new_figure"]

#: The recipes that stand side by side everywhere, in their order.
RECIPES = ("paper", "default")


@dataclass(frozen=True)
class Series:
    """How a series is drawn: colour, marker and dash, so that no one of them is needed alone."""

    color: str
    marker: str
    dash: str


#: The same look for a recipe in every figure.
SERIES = {"paper": Series(VERMILLION, "s", "--"), "default": Series(BLUE, "o", "-")}


def new_figure(width: float, height: float, scale: str = "") -> Figure:
    """Return an empty figure of a size in inches that says at which scale its runs were made."""
    return plotting.new_figure(width, height, f"scale: {scale}" if scale else "")
