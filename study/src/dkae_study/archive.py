"""The committed results, which version 0.2 made; this file goes when the study is run again.

Version 0.2 had a third recipe, "default", whose codes were Nyström features of landmark rows; only
its decoder was trained. `InvertibleNystroem` is that map today.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dkae import recipes
from dkae_study.declaration import Recipe, Study
from dkae_study.paper import LAPTOP, PAPER

NYSTROEM = "nystroem-0.2"

_paper, _network = PAPER.recipes
#: The study as version 0.2 ran it. Its results are drawn; no new ones can be made.
ARCHIVE = replace(
    PAPER,
    recipes=(
        _paper,
        Recipe(
            NYSTROEM,
            "Nyström codes of version 0.2, computed from 1,000 landmark rows; where λ = 0 or the "
            "input is noisy, its networks are those of the recipe network",
            recipes.network,
        ),
        _network,
    ),
    former_recipes={"default": NYSTROEM},
    scales=(
        replace(LAPTOP, schedules={**LAPTOP.schedules, NYSTROEM: LAPTOP.schedules["network"]}),
    ),
)


def study_of(folder: Path) -> Study:
    """Return the study that the results in a folder belong to."""
    return ARCHIVE if any(folder.glob("*-default-*.json")) else PAPER
