"""Potential maps: from a structure to a Grid."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vmdpotential import __version__, memory, registry
from vmdpotential.cell import Cell
from vmdpotential.engines import PRECISIONS, Engine, get_engine
from vmdpotential.errors import InputError, UsageError
from vmdpotential.interactions import Bound
from vmdpotential.lattice import Grid, Lattice, Provenance
from vmdpotential.methods import Method, Sources
from vmdpotential.select import select
from vmdpotential.structure import Structure
from vmdpotential.units import DEFAULT_TEMPERATURE, coulomb_constant

#: Atoms in 1 A^3 that no matter has (water 0.1, diamond 0.18): a cell with more is a mistake.
DENSEST = 1.0


def potential_map(
    structure: Structure,
    *,
    method: str = "auto",
    boundary: str = "auto",
    spacing: float = 0.5,
    padding: float = 10.0,
    cutoff: float = 12.0,
    interaction: str = "auto",
    parameters: Mapping[str, float] | None = None,
    atoms: str = "all",
    unit: str = "kT/e",
    temperature: float = DEFAULT_TEMPERATURE,
    dielectric: float = 1.0,
    precision: str = "single",
    engine: str = "auto",
    lattice: Lattice | None = None,
) -> Grid:
    """Return the electrostatic potential map of a structure with charges.

    Parameters
    ----------
    structure : Structure
    method : str
        ``direct``, ``cutoff`` or another registered method; ``auto`` takes ``cutoff`` in a periodic
        cell and ``direct`` in an open boundary.
    boundary : {"auto", "open", "periodic"}
        ``auto`` is periodic where the structure has a cell and the method can do it.
    spacing : float
        A, between lattice points; in an orthogonal periodic cell at most this, so that it divides
        the cell.
    padding : float
        A, around the atoms in an open boundary.
    cutoff : float
        A, of interactions that have one.
    interaction : str
        A registered interaction; ``auto`` is the method's own.
    parameters : mapping
        Further parameters of the interaction.
    atoms : str
        The atoms whose charges make the potential, see :func:`vmdpotential.select.select`.
    unit, temperature, dielectric
        Of the values, see :func:`vmdpotential.units.coulomb_constant`.
    precision : {"single", "compensated", "double"}
        Of the sums; values are float32.
    engine : str
    lattice : Lattice, optional
        Where to compute, instead of around the atoms or over the cell.

    Returns
    -------
    Grid
        A point nearer than 0.01 A to an atom has the potential at 0.01 A.

    Raises
    ------
    InputError
        When there are no charges, no atoms, or no cell for a periodic boundary, or when values would
        be larger than float32 holds.
    UsageError
        For names, values and combinations that do not fit.
    MemoryPlanError
        When the map does not fit into memory.
    """
    constant = coulomb_constant(unit, temperature, dielectric)
    if precision not in PRECISIONS:
        raise UsageError(f"--precision '{precision}': choose one of {', '.join(PRECISIONS)}")
    chosen, cell = choose_method(structure, method, boundary)
    bound = bind_interaction(chosen, interaction, cutoff, parameters or {})
    charges = structure.known_charges
    sources = select(structure, atoms)
    positions = structure.positions[sources]
    if lattice is None:
        lattice = plan_lattice(structure, positions, cell, spacing, padding)
    _plan_memory(lattice, len(positions), cell, bound.cutoff)
    backend: Engine = get_engine(engine)
    values: NDArray[np.float32] = chosen.compute(
        lattice, Sources(positions, charges[sources], cell, bound, precision), backend)
    with np.errstate(over="ignore", invalid="ignore"):
        values *= np.float32(constant)
    if not np.isfinite([values.min(), values.max()]).all():
        raise InputError(f"{_name(structure)}: its potential is too large for a map (3e38 {unit}); correct the "
                         "charges, --temperature or --dielectric")
    provenance = Provenance(
        method=chosen.name, interaction=str(bound), boundary="periodic" if cell is not None else "open",
        cutoff=bound.cutoff, precision=precision, engine=backend.name, atoms=atoms,
        inputs=tuple(Path(name).name for name in structure.sources), program=f"vmdpotential {__version__}",
    )
    return Grid(lattice, values, unit, temperature, dielectric, provenance)


def choose_method(structure: Structure, method: str, boundary: str) -> tuple[Method, Cell | None]:
    """Return the method for names that may be ``auto``, and the cell where the boundary is periodic.

    Raises
    ------
    UsageError
        When the method cannot do the boundary.
    InputError
        When the structure has no cell for a periodic one.
    """
    if method == "auto":
        periodic = boundary == "periodic" or (boundary == "auto" and structure.cell is not None)
        method = "cutoff" if periodic else "direct"
    chosen: Method = registry.get("method", method)
    if boundary == "auto":
        boundary = "periodic" if structure.cell is not None and "periodic" in chosen.boundaries else "open"
    if boundary not in chosen.boundaries:
        raise UsageError(
            f"--boundary {boundary}: the method {chosen.name} cannot do it; use --boundary "
            f"{' or '.join(chosen.boundaries)}, or another --method"
        )
    if boundary == "open":
        return chosen, None
    name = _name(structure)
    if structure.cell is None:
        raise InputError(f"{name}: has no periodic cell; use --boundary open")
    if structure.cell.volume * DENSEST < len(structure):
        raise InputError(
            f"{name}: {len(structure)} atoms do not fit into its periodic cell of {structure.cell.volume:.3g} A^3; "
            "correct the cell, or use --boundary open"
        )
    return chosen, structure.cell


def _name(structure: Structure) -> str:
    return structure.sources[0] if structure.sources else "structure"


def _plan_memory(lattice: Lattice, atoms: int, cell: Cell | None, cutoff: float | None) -> None:
    """Refuse a map that does not fit into memory with the atoms, their images and sorted copies of them."""
    points = " x ".join(map(str, lattice.shape))
    memory.require(4 * lattice.size + 200 * atoms, f"a map of {points} points",
                   "use a larger --spacing, less --padding or fewer --atoms")
    if cell is not None and cutoff is not None:
        images = atoms * float(np.prod(lattice.last - lattice.origin + 2 * cutoff)) / cell.volume
        memory.require(int(4 * lattice.size + 200 * images), f"a map with {images:.3g} periodic images of atoms",
                       f"use a --cutoff shorter than {cutoff:g} A or fewer --atoms")


def bind_interaction(method: Method, name: str, cutoff: float, parameters: Mapping[str, float]) -> Bound:
    """Return an interaction with its parameters; ``auto`` is the method's own.

    The cutoff method ends interactions without a cutoff of their own at `cutoff`.
    """
    interaction = registry.get("interaction", method.interaction if name == "auto" else name)
    values = dict(parameters)
    has_cutoff = any(q.name == "cutoff" for q in interaction.quantities)
    if has_cutoff:
        values.setdefault("cutoff", cutoff)
    bound: Bound = interaction.bind(**values)
    return bound if has_cutoff or method.name != "cutoff" else bound.truncated(cutoff)


def plan_lattice(
    structure: Structure, positions: NDArray[np.float64], cell: Cell | None, spacing: float, padding: float
) -> Lattice:
    """Return the lattice around positions, or over the periodic cell.

    The cell is laid around the middle of the structure's atoms, since programs differ in where they
    put its corner.
    """
    if cell is None:
        return Lattice.around(positions, spacing, padding)
    if not len(structure):
        raise InputError("there are no atoms to put a lattice around")
    middle = (structure.positions.min(0) + structure.positions.max(0)) / 2
    return Lattice.over_cell(cell, spacing, middle - cell.vectors.sum(0) / 2)
