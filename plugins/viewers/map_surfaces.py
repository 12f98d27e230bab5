"""What viewers draw of a map: the surface that it colours, the range of the colours, and their legend."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vmdpotential.errors import UsageError
from vmdpotential.figures import colours
from vmdpotential.figures.colours import ValueRange
from vmdpotential.grid.lattice import Grid
from vmdpotential.maps import Medium
from vmdpotential.maps.solute import chosen_atoms
from vmdpotential.molecule.selection import Selection, select
from vmdpotential.parameters import Report

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vmdpotential.molecule.structure import Structure


#: Range of distances from the nearest atom, A, in which lattice points are taken for points of a molecule's surface,
#: and about how many points of the lattice are examined.
NEXT_TO, LOOKED = (1.8, 3.5), 50_000

#: Distance from the nearest atom, A, within which a molecular surface and the places of its colours are.
BESIDE = 5.0


def colour_range(text: str) -> ValueRange:
    """Return the range of colours for a text with two limits, or with one for both signs.

    Raises
    ------
    ValueError
        When the text has another form.
    """
    try:
        numbers = [float(word) for word in text.replace(",", " ").split()]
    except ValueError:
        numbers = []
    if len(numbers) == 1:
        numbers = [-abs(numbers[0]), abs(numbers[0])]
    if len(numbers) != 2 or not np.isfinite(numbers).all() or not numbers[0] < numbers[1]:
        raise ValueError("a number such as 5, or two with the lower first such as -5,5, are needed")
    return ValueRange(*numbers)


def with_surface(structure: Structure, atoms: Selection = "solute") -> NDArray[np.bool_]:
    """Return the atoms (N,) bool of a map that have a surface: without solvent, or all if there are no others."""
    everything = np.ones(len(structure), bool)
    try:
        chosen = chosen_atoms(structure, "solute" if str(atoms) == "all" else atoms, Medium("water"))
        solute = chosen & select(structure, "solute")
    except UsageError:  # no atoms, or no solute
        return everything
    return solute if solute.any() else everything


def surface_of(report: Report, part: Selection | None = None, shown: Structure | None = None) -> Structure | None:
    """Return the atoms on whose surface a report's map is shown: those that were computed, where its map is.

    Parameters
    ----------
    report : Report
    part : str or array, optional
        Selection of the atoms that get a surface; all unless given.
    shown : Structure, optional
        Atoms for a report that has none.

    Raises
    ------
    UsageError
        When no atom of the part was computed.
    """
    structure: Structure | None = report.objects.get("structure", shown)
    if structure is None:
        return None
    chosen = with_surface(structure, report.mapped_atoms)
    if part is not None:
        chosen = chosen & select(structure, part, "surface_of")
        if not chosen.any():
            raise UsageError("surface_of", "selects none of the computed atoms that have a surface", value=str(part))
    return structure.take(chosen)


def covering_surface(grid: Grid, structure: Structure | None) -> Grid:
    """Return a map that covers the surface of a structure, if it is periodic: a viewer does not look up its images."""
    return grid if structure is None else grid.covering(structure.positions[with_surface(structure)], BESIDE)


def same_molecules(a: Structure, b: Structure) -> bool:
    """Return whether two structures have atoms of the same names and charges, at any positions.

    The number of atoms alone does not tell, since it may stay the same in a mutation.
    """
    if len(a) != len(b) or (a.charges is None) != (b.charges is None):
        return False
    alike = all(np.array_equal(getattr(a, name), getattr(b, name))
                for name in ("residue_names", "atom_names", "elements"))
    return alike and (a.charges is None or np.array_equal(a.charges, b.known_charges))


def surface_range(grid: Grid, structure: Structure | None) -> ValueRange:
    """Return the range of colours on a molecule's surface, by the rule of :mod:`vmdpotential.figures.colours`.

    It is for the values of the map next to the solute, or to all atoms if there is no solute; without a structure, for
    all values.
    """
    if (limit := colours.standard_limit(grid)) is not None:
        return ValueRange(-limit, limit)
    shown = grid.values
    if structure is not None:
        from scipy.spatial import cKDTree

        positions, lattice = structure.positions[with_surface(structure)], grid.lattice
        step = max(1, round((lattice.size / LOOKED) ** (1 / 3)))
        nodes = np.stack(np.meshgrid(*(np.arange(0, n, step) for n in lattice.shape), indexing="ij"), -1).reshape(-1, 3)
        distance, _ = cKDTree(positions).query(lattice.points(nodes), distance_upper_bound=NEXT_TO[1], workers=-1)
        near = nodes[(distance > NEXT_TO[0]) & np.isfinite(distance)]
        if len(near):
            shown = grid.values[tuple(near.T)]
    limit = max(map(abs, colours.colour_range([grid], [shown])))
    return ValueRange(-limit, limit)  # for both signs, because not every viewer has a colour scale that begins at 0


def legend(grid: Grid, span: ValueRange) -> str:
    """Return the legend of a map's colours, e.g. ``-50 to 50 kT/e at 298.15 K, vacuum, no screening``."""
    return f"{span.low:g} to {span.high:g} {colours.map_meaning(grid)}"
