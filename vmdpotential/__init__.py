"""Molecular electrostatics inside molecular viewers: potential maps, ion placement, slice images.

The public names are imported when first used; ``import vmdpotential`` itself loads nothing heavy.
"""

from importlib import import_module
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
    from vmdpotential.io.topologies.forcefield import nonbonded as nonbonded
    from vmdpotential.io.trajectories.frames import Trajectory as Trajectory
    from vmdpotential.ions import place_ions as place_ions
    from vmdpotential.ions import place_replicas as place_replicas
    from vmdpotential.maps import MapOptions as MapOptions
    from vmdpotential.maps import potential_map as potential_map
    from vmdpotential.maps.binding import binding_energy as binding_energy
    from vmdpotential.maps.medium import Medium as Medium
    from vmdpotential.maps.solvation import solvation_energy as solvation_energy
    from vmdpotential.molecule.cell import Cell as Cell
    from vmdpotential.molecule.charges import assign_charges as assign_charges
    from vmdpotential.molecule.selection import select as select
    from vmdpotential.molecule.structure import Structure as Structure
    from vmdpotential.molecule.structure import Topology as Topology
    from vmdpotential.pairs.energy import interaction_energy as interaction_energy
    from vmdpotential.points import potential_at as potential_at
    from vmdpotential.preparation.prepare import prepare_structure as prepare_structure
    from vmdpotential.registry import available as available
    from vmdpotential.registry import register as register
    from vmdpotential.tasks import average as average
    from vmdpotential.tasks import compare as compare
    from vmdpotential.tasks import density as density
    from vmdpotential.tasks import energy as energy
    from vmdpotential.tasks import field as field
    from vmdpotential.tasks import forces as forces
    from vmdpotential.tasks import orbital as orbital
    from vmdpotential.tasks import prepare as prepare
    from vmdpotential.tasks import probe as probe
    from vmdpotential.tasks import profile as profile
    from vmdpotential.tasks import rdf as rdf
    from vmdpotential.tasks import surface as surface

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
    "prepare_structure": "preparation.prepare",
    "MapOptions": "maps",
    "Medium": "maps.medium",
    "potential_map": "maps",
    "potential_at": "points",
    "binding_energy": "maps.binding",
    "solvation_energy": "maps.solvation",
    "place_ions": "ions",
    "place_replicas": "ions",
    "nonbonded": "io.topologies.forcefield",
    "interaction_energy": "pairs.energy",
    "Interaction": "interactions",
    "Quantity": "interactions",
    **dict.fromkeys((
        "average", "compare", "density", "energy", "field", "forces", "orbital", "prepare", "probe",
        "profile", "rdf", "surface"), "tasks"),
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

__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(f"vmdpotential.{_PUBLIC[name]}"), name)
    raise AttributeError(f"module 'vmdpotential' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
