"""Potential maps: from a structure to a Grid."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vmdpotential import __version__, memory, registry
from vmdpotential.engines import PRECISIONS, Engine, get_engine
from vmdpotential.errors import InputError, TaskError, UsageError
from vmdpotential.grid.lattice import Grid, Lattice, Provenance, bounds
from vmdpotential.interactions import Bound
from vmdpotential.methods import Method, Sources, accuracy
from vmdpotential.methods.cutoff import choose_algorithm
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.selection import select
from vmdpotential.molecule.structure import Structure
from vmdpotential.units import DEFAULT_TEMPERATURE, coulomb_constant

log = logging.getLogger(__name__)

#: Atoms in 1 A^3 that no matter has (water 0.1, diamond 0.18): a cell with more is a mistake.
DENSEST = 1.0

#: A, of interactions that have one, unless asked for otherwise.
CUTOFF = 12.0

#: Below this the rounding of single precision values counts.
LEAST_TOLERANCE = 1e-6


def potential_map(
    structure: Structure,
    *,
    method: str = "auto",
    boundary: str = "auto",
    spacing: float = 0.5,
    padding: float = 10.0,
    cutoff: float = CUTOFF,
    algorithm: str = "pair",
    interaction: str = "auto",
    parameters: Mapping[str, float] | None = None,
    tolerance: float = 1e-4,
    atoms: str = "all",
    unit: str = "kT/e",
    temperature: float = DEFAULT_TEMPERATURE,
    dielectric: float = 1.0,
    field: bool = False,
    precision: str = "single",
    engine: str = "auto",
    lattice: Lattice | None = None,
) -> Grid:
    """Return the electrostatic potential map of a structure with charges.

    Parameters
    ----------
    structure : Structure
    method : str
        ``direct``, ``cutoff``, ``pme`` or another registered method; ``auto`` takes the one that has
        the full potential within the tolerance soonest.
    boundary : {"auto", "open", "periodic"}
        ``auto`` is periodic where the structure has a cell and the method can do it.
    spacing : float
        A, between lattice points; in an orthogonal periodic cell at most this, so that it divides
        the cell.
    padding : float
        A, around the atoms in an open boundary.
    cutoff : float
        A, of interactions that have one.
    algorithm : {"pair", "mesh", "auto"}
        Of the method cutoff: pair by pair, exactly; the shifted potential on a mesh, to the tolerance;
        or the faster of the two.
    interaction : str
        A registered interaction; ``auto`` is the method's own.
    parameters : mapping
        Further parameters of the interaction.
    tolerance : float
        Of methods that are not exact: root mean square error over that of the potential, 1e-6 to 0.1.
        The map's provenance states the error that was measured at 200 points.
    atoms : str
        The atoms whose charges make the potential, see :func:`vmdpotential.molecule.selection.select`.
    unit, temperature, dielectric
        Of the values, see :func:`vmdpotential.units.coulomb_constant`.
    field : bool
        Whether to compute the electric field too, as the map's attribute ``field``: three maps, in V/A.
    precision : {"single", "compensated", "double"}
        Of the sums; values are float32.
    engine : str
    lattice : Lattice, optional
        Where to compute, instead of around the atoms or over the cell.

    Returns
    -------
    Grid
        A point nearer than 0.01 A to an atom has the potential at 0.01 A, and no field from it.

    Raises
    ------
    InputError
        When there are no charges, no atoms, or no cell for a periodic boundary, or when values would
        be larger than float32 holds.
    UsageError
        For names, values and combinations that do not fit, such as a cutoff for a method that has none.
    MemoryPlanError
        When the map does not fit into memory.
    TaskError
        When the tolerance cannot be kept.
    """
    constant = coulomb_constant(unit, temperature, dielectric)
    if precision not in PRECISIONS:
        raise UsageError(f"--precision '{precision}': choose one of {', '.join(PRECISIONS)}")
    if not LEAST_TOLERANCE <= tolerance <= 0.1:
        raise UsageError(f"--tolerance {tolerance:g}: give {LEAST_TOLERANCE:g} to 0.1")
    cell = choose_cell(structure, method, boundary)
    charges = structure.known_charges
    chosen_atoms = select(structure, atoms)
    positions, charges = structure.positions[chosen_atoms], charges[chosen_atoms]
    if lattice is None:
        lattice = plan_lattice(structure, positions, cell, spacing, padding)
    backend: Engine = get_engine(engine)
    coulomb = registry.get("interaction", "coulomb").bind()
    sources = Sources(positions, charges, cell, coulomb, precision, tolerance, field)
    _plan_memory(lattice, len(positions), None, None, field)
    if method == "auto":
        chosen, sources = fastest(lattice, sources, interaction, backend)
    else:
        chosen = registry.get("method", method)
    bound = bind_interaction(chosen, interaction, cutoff, parameters or {})
    if bound.cutoff is None and cutoff != CUTOFF:
        raise UsageError(f"--cutoff {cutoff:g}: the method {chosen.name} has none; use --method cutoff")
    if bound.end is not None and cutoff == CUTOFF:  # an end that nobody asked for
        rest = abs(float(bound(np.nextafter(cutoff, 0)))) * cutoff
        if rest > 0.01:
            log.warning("%s is cut off at %g A, where it is still %.2g %% of q/r; --cutoff sets another distance",
                        bound.interaction.name, cutoff, 100 * rest)
    sources = replace(sources, interaction=bound)
    _plan_memory(lattice, len(positions), cell, bound.cutoff, field)
    if chosen.name == "cutoff":
        chosen, sources = choose_algorithm(algorithm, lattice, sources, backend)
    elif algorithm != "pair":
        raise UsageError(f"--algorithm {algorithm}: is for --method cutoff")
    if not chosen.exact and len(positions):
        sources = replace(sources, sample=accuracy.exact(lattice, sources, backend))
    values: NDArray[np.float32] = chosen.compute(lattice, sources, backend)
    error = None if sources.sample is None or chosen.exact else sources.sample.error(values)
    if field and values.ndim != 4:
        raise UsageError(f"--field: the method {chosen.name} has none; use another --method")
    parts = values if field else values[None]
    with np.errstate(over="ignore", invalid="ignore"):
        parts[0] *= np.float32(constant)
        parts[1:] *= np.float32(coulomb_constant("V", dielectric=dielectric))
    if not np.isfinite([values.min(), values.max()]).all():
        raise InputError(f"{_name(structure)}: its potential is too large for a map (3e38 {unit}); correct the "
                         "charges, --temperature or --dielectric")
    provenance = Provenance(
        method=chosen.name, interaction=str(bound), boundary="periodic" if cell is not None else "open",
        cell=None if cell is None else tuple(cell.vectors.ravel().tolist()),
        cutoff=bound.cutoff, tolerance=None if chosen.exact else tolerance, error=error, precision=precision,
        engine=backend.name, atoms=atoms,
        inputs=tuple(Path(name).name for name in structure.sources), program=f"vmdpotential {__version__}",
    )
    components = [Grid(lattice, part, "V/A", None, dielectric, replace(
        provenance, quantity=f"electric field along {axis}", tolerance=None, error=None))
        for axis, part in zip("xyz", parts[1:], strict=False)]
    return Grid(lattice, parts[0], unit, temperature, dielectric, provenance,
                (components[0], components[1], components[2]) if field else None)


def choose_cell(structure: Structure, method: str, boundary: str) -> Cell | None:
    """Return the periodic cell, None for an open boundary; `method` and `boundary` may be ``auto``.

    A crystal's asymmetric unit, a part of what its cell holds, has an open boundary by itself.

    Raises
    ------
    UsageError
        When the method cannot do the boundary.
    InputError
        When the structure has no cell for a periodic one, or is a crystal's asymmetric unit.
    """
    boundaries = ("open", "periodic") if method == "auto" else registry.get("method", method).boundaries
    if boundary == "auto":
        boundary = "periodic" if structure.cell is not None and "periodic" in boundaries else "open"
        if boundary == "periodic" and structure.cell is not None and not structure.cell.whole:
            boundary = "open"
            log.warning("%s: is the asymmetric unit of a crystal (%s); the boundary is open, with these atoms alone",
                        _name(structure), structure.cell.space_group)
    if boundary not in boundaries:
        raise UsageError(
            f"--boundary {boundary}: the method {method} cannot do it; use --boundary {' or '.join(boundaries)}, or "
            "another --method"
        )
    if boundary == "open":
        return None
    name = _name(structure)
    if structure.cell is None:
        raise InputError(f"{name}: has no periodic cell; use --boundary open")
    structure.require_whole_cell("use --boundary open, expand it to the cell")
    if structure.cell.volume * DENSEST < len(structure):
        raise InputError(
            f"{name}: {len(structure)} atoms do not fit into its periodic cell of {structure.cell.volume:.3g} A^3; "
            "correct the cell, or use --boundary open"
        )
    return structure.cell


def fastest(lattice: Lattice, sources: Sources, interaction: str, engine: Engine) -> tuple[Method, Sources]:
    """Return the method that has the full potential within the tolerance soonest, and what it sums.

    Other interactions than Coulomb's are summed directly, or to a cutoff where they have one or the
    cell is periodic.
    """
    from vmdpotential.methods import msm
    from vmdpotential.methods.costs import COSTS, cheapest
    from vmdpotential.methods.pme import charge_density, task

    direct, pme = registry.get("method", "direct"), registry.get("method", "pme")
    if interaction not in ("auto", "coulomb"):
        has_cutoff = any(q.name == "cutoff" for q in registry.get("interaction", interaction).quantities)
        return registry.get("method", "cutoff") if has_cutoff or sources.cell is not None else direct, sources
    if not len(sources.positions):
        return direct if sources.cell is None else pme, sources
    costs = COSTS.get(engine.name, COSTS["cpu"])
    directly = costs.direct * lattice.size * len(sources.positions)
    if sources.cell is None and directly < 10 * costs.fixed:  # soon enough, and exact
        return direct, sources
    sources = replace(sources, sample=accuracy.exact(lattice, sources, engine))
    assert sources.sample is not None
    density, size = charge_density(sources), task(lattice, sources)
    error = sources.tolerance * sources.sample.rms / density if density > 0 else np.inf
    seconds = {"msm": msm.cheapest(size, engine.name, error)[-1]}
    if engine.has_transforms:
        with contextlib.suppress(TaskError):  # no mesh is good enough
            seconds["pme"] = cheapest(size, costs, error)[-1]
    if sources.cell is None:
        seconds["direct"] = directly
    return registry.get("method", min(seconds, key=seconds.__getitem__)), sources


def _name(structure: Structure) -> str:
    return structure.sources[0] if structure.sources else "structure"


def _plan_memory(lattice: Lattice, atoms: int, cell: Cell | None, cutoff: float | None, field: bool) -> None:
    """Refuse a map that does not fit into memory with the atoms, their images and sorted copies of them."""
    points = " x ".join(map(str, lattice.shape))
    values = lattice.size * (4 if field else 1)
    memory.require(4 * values + 200 * atoms, f"a map of {points} points" + (" with its field" if field else ""),
                   "use a larger --spacing, less --padding or fewer --atoms")
    if cell is not None and cutoff is not None:
        images = atoms * cell.images_near(lattice.origin, lattice.last, cutoff)
        memory.require(int(4 * values + 200 * images), f"a map with {images:.3g} periodic images of atoms",
                       f"use a --cutoff shorter than {cutoff:g} A or fewer --atoms")


def bind_interaction(method: Method, name: str, cutoff: float, parameters: Mapping[str, float]) -> Bound:
    """Return an interaction with its parameters; ``auto`` is the method's own.

    The cutoff method ends interactions without a cutoff of their own at `cutoff`.
    """
    interaction = registry.get("interaction", method.interaction if name == "auto" else name)
    values = dict(parameters)
    if not method.exact and interaction.name != method.interaction:
        raise UsageError(f"--interaction {name}: the method {method.name} sums {method.interaction} alone; use "
                         "--method cutoff or direct")
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
    low, high = bounds(structure.positions)
    return Lattice.over_cell(cell, spacing, (low + high) / 2 - cell.vectors.sum(0) / 2)
