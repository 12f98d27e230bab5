"""Molecular electrostatics inside molecular viewers: potential maps, ion placement, slice images.

The public names are imported when first used; ``import vmdpotential`` itself loads nothing heavy.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for type checkers and editors; a test checks that these are the names below
    from vmdpotential.errors import BackendError as BackendError
    from vmdpotential.errors import ChargeError as ChargeError
    from vmdpotential.errors import CheckError as CheckError
    from vmdpotential.errors import IncompleteError as IncompleteError
    from vmdpotential.errors import InputError as InputError
    from vmdpotential.errors import MemoryPlanError as MemoryPlanError
    from vmdpotential.errors import NoRoomError as NoRoomError
    from vmdpotential.errors import OutputError as OutputError
    from vmdpotential.errors import StoppedError as StoppedError
    from vmdpotential.errors import TaskError as TaskError
    from vmdpotential.errors import UsageError as UsageError
    from vmdpotential.errors import VmdpotentialError as VmdpotentialError
    from vmdpotential.figures.page import thumbnail as thumbnail
    from vmdpotential.figures.slices import draw_slice as draw_slice
    from vmdpotential.grid.lattice import Grid as Grid
    from vmdpotential.grid.lattice import Lattice as Lattice
    from vmdpotential.grid.lattice import Provenance as Provenance
    from vmdpotential.grid.planes import Plane as Plane
    from vmdpotential.interactions import Interaction as Interaction
    from vmdpotential.interactions import Quantity as Quantity
    from vmdpotential.io import open_map as open_map
    from vmdpotential.io import read_map as read_map
    from vmdpotential.io import read_structure as read_structure
    from vmdpotential.io import write_map as write_map
    from vmdpotential.io import write_structure as write_structure
    from vmdpotential.io.trajectories.frames import Trajectory as Trajectory
    from vmdpotential.maps import MapOptions as MapOptions
    from vmdpotential.maps import potential_map as potential_map
    from vmdpotential.maps.medium import Medium as Medium
    from vmdpotential.maps.solvation import solvation_energy as solvation_energy
    from vmdpotential.molecule.cell import Cell as Cell
    from vmdpotential.molecule.charges import assign_charges as assign_charges
    from vmdpotential.molecule.selection import select as select
    from vmdpotential.molecule.structure import Structure as Structure
    from vmdpotential.molecule.structure import Topology as Topology
    from vmdpotential.points import potential_at as potential_at
    from vmdpotential.registry import available as available
    from vmdpotential.registry import register as register
    from vmdpotential.task_types import *  # noqa: F403

__version__ = "0.2.0.dev0"

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
    "Trajectory": "io.trajectories.frames",
    "select": "molecule.selection",
    "assign_charges": "molecule.charges",
    "MapOptions": "maps",
    "Medium": "maps.medium",
    "potential_map": "maps",
    "potential_at": "points",
    "solvation_energy": "maps.solvation",
    "Interaction": "interactions",
    "Quantity": "interactions",
    "draw_slice": "figures.slices",
    "thumbnail": "figures.page",
    "register": "registry",
    "available": "registry",
    "VmdpotentialError": "errors",
    "UsageError": "errors",
    "InputError": "errors",
    "ChargeError": "errors",
    "IncompleteError": "errors",
    "TaskError": "errors",
    "NoRoomError": "errors",
    "MemoryPlanError": "errors",
    "CheckError": "errors",
    "StoppedError": "errors",
    "OutputError": "errors",
    "BackendError": "errors",
}


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        from inspect import isfunction

        from vmdpotential.exported import naming_its_parameters

        value = getattr(import_module(f"vmdpotential.{_PUBLIC[name]}"), name)
        globals()[name] = value = naming_its_parameters(value) if isfunction(value) else value
        return value
    if name == "__all__":
        return __dir__()
    # imports ask for modules, too, and must not load the registry
    if not name.startswith("_") and find_spec(f"vmdpotential.{name}") is None:
        tasks = import_module("vmdpotential.tasks")
        if name in tasks.__dir__():
            return getattr(tasks, name)
    raise AttributeError(f"module 'vmdpotential' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*_PUBLIC, *import_module("vmdpotential.tasks").__dir__()])
