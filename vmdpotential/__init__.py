"""Molecular electrostatics inside molecular viewers: potential maps, ion placement, slice images.

The public names are imported when first used; ``import vmdpotential`` itself loads nothing heavy.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "Cell": "molecule.cell",
    "Structure": "molecule.structure",
    "Topology": "molecule.structure",
    "Lattice": "grid.lattice",
    "Grid": "grid.lattice",
    "Plane": "grid.planes",
    "Provenance": "grid.lattice",
    "read_structure": "io",
    "write_structure": "io",
    "open_map": "io",
    "read_map": "io",
    "write_map": "io",
    "assign_charges": "molecule.charges",
    "potential_map": "maps",
    "potential_at": "points",
    "solvation_energy": "maps.solvation",
    "place_ions": "ions",
    "place_replicas": "ions",
    "interaction_energy": "pairs.energy",
    "draw_slice": "figures.slices",
    "thumbnail": "figures.page",
    "register": "registry",
    "available": "registry",
    "VmdpotentialError": "errors",
}

__all__ = sorted(_PUBLIC)  # a test imports each


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(f"vmdpotential.{_PUBLIC[name]}"), name)
    raise AttributeError(f"module 'vmdpotential' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
