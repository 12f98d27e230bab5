"""The faces of two molecules that touch, the potentials of both on them, and their complementarity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.engines import get_engine, with_transforms
from vmdpotential.grid.lattice import Lattice
from vmdpotential.maps.interaction import medium_of_sum
from vmdpotential.maps.medium import Medium
from vmdpotential.maps.options import Engine, MethodOptions, Spacing
from vmdpotential.maps.solute import in_continuum
from vmdpotential.maps.solution import solution_of
from vmdpotential.molecule.selection import Mask
from vmdpotential.molecule.structure import Structure
from vmdpotential.surfaces.contact import BuriedFace, find_faces, interface_axes

from ..continuum.request import continuum_of_request
from ..continuum.solution import solve_charge_sets
from ..continuum.solved_potential import SolvedPotential
from .correlation import Agreement, FaceSample, agreements, opposition, weighted_sums

#: The coarser lattice for the error of the solution: its spacing over that of the fine one, and the error of values on
#: the fine one over the difference of both, for which the second order would give 1/3. The number of vertices of each
#: face at which they are compared, about.
COARSER, OF_DIFFERENCE, COMPARED = 2.0, 0.5, 2000

#: Margin of the lattice around the molecules, A.
LATTICE_MARGIN = 6.0


@dataclass(frozen=True, eq=False)
class ContactFace(BuriedFace):
    """The face of a molecule, and both potentials on it.

    Parameters
    ----------
    surface, buried
        As of :class:`BuriedFace`.
    own, partner : (F,) float64, kT/e
        Potentials of the charges of the molecule and of its partner, at the vertices of the face.
    """

    own: Floats
    partner: Floats


@dataclass(frozen=True, eq=False)
class Interface:
    """Two faces, and the complementarity of the potentials on them.

    Parameters
    ----------
    structure : Structure
        The atoms, with whole molecules.
    faces : (ContactFace, ContactFace)
    axes : (3, 3) float64
        Two directions in the plane of the interface, its long one first, and its normal from the first molecule to the
        second.
    pearson, spearman : list of Agreement
        Of each face, and last the means of both.
    grid_errors : list of float
        Of the three values by Pearson's coefficient, from the solution on a coarser lattice.
    """

    structure: Structure
    faces: tuple[ContactFace, ContactFace]
    axes: Floats
    pearson: Sequence[Agreement]
    spearman: Sequence[Agreement]
    grid_errors: Sequence[float]

    @property
    def area(self) -> float:
        """Area of both faces, A^2."""
        return float(sum(face.areas.sum() for face in self.faces))


def find_interface(structure: Structure, first: Mask, second: Mask, solution: MethodOptions, *, spacing: Spacing = 0.5,
                   probe: float = 1.4, mesh_spacing: float = 0.4, engine: Engine = "auto") -> Interface:
    """Return the interface of two parts of a structure in water, by the Poisson-Boltzmann equation.

    Parameters
    ----------
    structure : Structure
        With charges.
    first, second : (N,) bool
        Atoms of both parts; others are left out.
    solution : MethodOptions
        Salt, permittivities, temperature and radii.
    spacing : float, A
        Spacing of the lattice of the solution.
    probe : float, A
        Radius of the probe that rolls over the surfaces.
    mesh_spacing : float, A
        Spacing of the lattice on which the surfaces are made.
    engine : str

    Raises
    ------
    UsageError
        If the parts share atoms or do not touch.
    InputError
        For atoms without charges or radii.
    TaskError
        If the solution does not converge.
    MemoryPlanError
        If a lattice does not fit into memory.
    """
    both = first | second
    structure = in_continuum(structure, both, Medium.continuum())[0]
    buried = find_faces(structure, first, second, probe=probe, spacing=mesh_spacing)
    counts = [len(face.areas) for face in buried]
    points = np.concatenate([face.places for face in buried])
    charges, medium = structure.known_charges, medium_of_sum(replace(solution, method="pb"))
    positions, device = structure.positions[both], with_transforms(get_engine(engine))

    def potentials(step: float, places: Floats) -> list[Floats]:
        """Return the potentials of the charges of each part at points of both faces."""
        molecules = continuum_of_request(solution_of(structure, both, solution.radii, medium, "kT/e", step), positions,
                                         charges[both])
        sets = (np.where(part, charges, 0.0)[both] for part in (first, second))
        return [SolvedPotential(solved).at(places, False)[0] for solved in solve_charge_sets(
            molecules, Lattice.around(positions, step, LATTICE_MARGIN), device, sets)]

    a, b = potentials(spacing, points)
    faces = (ContactFace(buried[0].surface, buried[0].buried, a[: counts[0]], b[: counts[0]]),
             ContactFace(buried[1].surface, buried[1].buried, b[counts[0] :], a[counts[0] :]))
    # some vertices are enough for a difference
    rows = [np.arange(0, count, 1 + count // COMPARED) for count in counts]
    some = np.concatenate([rows[0], counts[0] + rows[1]])
    coarse = potentials(COARSER * spacing, points[some])
    changes = []
    for n, (face, at) in enumerate(zip(faces, rows, strict=True)):
        at_coarse = slice(0, len(rows[0])) if n == 0 else slice(len(rows[0]), None)
        changes.append(abs(face_value(face.own[at], face.partner[at], face.areas[at])
                           - face_value(coarse[n][at_coarse], coarse[1 - n][at_coarse], face.areas[at])))
    axes = interface_axes(faces)
    pearson, spearman = agreements([FaceSample(face.places @ axes[:2].T, face.areas, face.own, face.partner)
                                    for face in faces])
    errors = [OF_DIFFERENCE * change for change in (*changes, float(np.mean(changes)))]
    return Interface(structure, faces, axes, pearson, spearman, errors)


def face_value(own: Floats, partner: Floats, areas: Floats) -> float:
    """Return minus Pearson's correlation coefficient of two potentials (F,), weighted by area."""
    own, partner = (value - np.average(value, weights=areas) for value in (own, partner))
    return float(opposition(weighted_sums(own, partner, areas, np.zeros(len(own), np.int64), 1))[0])
