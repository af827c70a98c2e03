"""The recipes: each feature alone, the modes, the version pairs, odd protocols, and mixtures."""

from __future__ import annotations

from deltaproto.certification.kit.recipe import Recipe
from deltaproto.certification.kit.recipes.generated import generated
from deltaproto.certification.kit.recipes.hazards import of_hazards
from deltaproto.certification.kit.recipes.legacy import LEGACY
from deltaproto.certification.kit.recipes.mixtures import MIXTURES
from deltaproto.certification.kit.recipes.readers import READERS
from deltaproto.certification.kit.recipes.writers import WRITERS

KIT_VERSION = 2
"""raised with every change of a recipe: results of different kits are not compared"""


def recipes() -> tuple[Recipe, ...]:
    """All of them, by name."""
    every = (*generated(), *LEGACY, *READERS, *WRITERS, *MIXTURES, *of_hazards())
    return tuple(sorted(every, key=lambda recipe: recipe.name))
