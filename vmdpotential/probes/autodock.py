"""Maps of AutoDock 4's energies of probe atoms with a receptor, as AutoGrid computes them.

R. Huey, G. M. Morris, A. J. Olson, D. S. Goodsell, J. Comput. Chem. 28 (2007) 1145. A map of a type of atoms has, for
a probe of that type at each node, dispersion and repulsion of the powers 12 and 6, hydrogen bonds of the powers 12 and
10, and what desolvation by the receptor's atoms costs; the maps ``e`` and ``d`` have the Coulomb energy of a unit
charge and the desolvation of a unit charge. All pairs within :data:`CUTOFF` count but for ``e``, which has all.

Hydrogen bonds are weaker away from the directions of the receptor's atoms (:mod:`vmdpotential.probes.bonds`). All maps
are AutoGrid's to the rounding of its tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import progress
from vmdpotential.engines import Engine, LatticeSum
from vmdpotential.engines.bonds import DONOR, ONE_PAIR, TWO_PAIRS, BondSum
from vmdpotential.errors import InputError, UsageError
from vmdpotential.grid.lattice import Grid, Lattice, Provenance
from vmdpotential.interactions import Bound
from vmdpotential.interactions.probe import DISPERSION, GAUSSIAN
from vmdpotential.molecule.elements import fill
from vmdpotential.molecule.structure import Structure
from vmdpotential.probes.bonds import directions
from vmdpotential.probes.coulomb import coulomb
from vmdpotential.units import coulomb_constant

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]


@dataclass(frozen=True)
class Kind:
    """A type of atoms: distance of the least energy, A, depth, kcal/mol, volume, A^3, and solvation parameter of two
    alike; and of hydrogen bonds, `role` (``donor``, ``acceptor`` or none), distance, A, and depth of an acceptor's, and
    how many lone pairs it has.
    """

    rmin: float
    depth: float
    volume: float
    solvation: float
    role: str = ""
    bond: float = 0.0
    strength: float = 0.0
    pairs: int = 0


#: AutoDock 4.2's types (Huey et al. 2007, table 2, and the supplement for metals and halogens).
KINDS = {
    "H": Kind(2.0, 0.020, 0.0, 0.00051), "HD": Kind(2.0, 0.020, 0.0, 0.00051, "donor"),
    "C": Kind(4.0, 0.150, 33.5103, -0.00143), "A": Kind(4.0, 0.150, 33.5103, -0.00052),
    "N": Kind(3.5, 0.160, 22.4493, -0.00162), "NA": Kind(3.5, 0.160, 22.4493, -0.00162, "acceptor", 1.9, 5.0, 1),
    "OA": Kind(3.2, 0.200, 17.1573, -0.00251, "acceptor", 1.9, 5.0, 2),
    "SA": Kind(4.0, 0.200, 33.5103, -0.00214, "acceptor", 2.5, 1.0, 2), "S": Kind(4.0, 0.200, 33.5103, -0.00214),
    "P": Kind(4.2, 0.200, 38.7924, -0.00110), "F": Kind(3.09, 0.080, 15.4480, -0.00110),
    "Cl": Kind(4.09, 0.276, 35.8235, -0.00110), "Br": Kind(4.33, 0.389, 42.5661, -0.00110),
    "I": Kind(4.72, 0.550, 55.0585, -0.00110), "Mg": Kind(1.30, 0.875, 1.5600, -0.00110),
    "Ca": Kind(1.98, 0.550, 2.7700, -0.00110), "Mn": Kind(1.30, 0.875, 2.1400, -0.00110),
    "Fe": Kind(1.30, 0.010, 1.8400, -0.00110), "Zn": Kind(1.48, 0.550, 1.7000, -0.00110),
}

#: Maps that are not of a type: the Coulomb energy of a unit charge, and desolvation by charges.
ELECTROSTATIC, DESOLVATION = "e", "d"

#: Weights of the terms, fitted to free energies of binding.
DISPERSION_WEIGHT, BOND_WEIGHT, COULOMB_WEIGHT, SOLVATION_WEIGHT = 0.1662, 0.1209, 0.1406, 0.1322

#: A, where pairs end, over which the least energy counts, and the width of desolvation; and its part by a charge.
CUTOFF, SMOOTH, WIDTH, BY_CHARGE = 8.0, 0.25, 3.6, 0.01097

#: kcal/mol, the largest energy of a pair.
CLAMP = 1e5

#: A, from a polar hydrogen to its nitrogen, oxygen or sulfur at most, and from any other to its carbon.
_POLAR, _BONDED = 1.45, 1.3

#: Ring carbons of residues, which are aromatic.
_AROMATIC = {
    **{name: {"CG", "CD1", "CD2", "CE1", "CE2", "CZ"} for name in ("PHE", "TYR")},
    "TRP": {"CG", "CD1", "CD2", "CE2", "CE3", "CZ2", "CZ3", "CH2"},
    **{name: {"CG", "CD2", "CE1"} for name in ("HIS", "HID", "HIE", "HIP", "HSD", "HSE", "HSP")},
    **{name: {"C2", "C4", "C5", "C6", "C8"} for name in ("A", "G", "C", "U", "DA", "DG", "DC", "DT")},
}


@dataclass(frozen=True, eq=False)
class Receptor:
    """Atoms with AutoDock's types: (N, 3) A, (N,) str and (N,) e; hydrogens on carbons are part of these."""

    positions: Floats
    kinds: NDArray[np.str_]
    charges: Floats
    inputs: tuple[str, ...] = ()


def receptor(structure: Structure) -> Receptor:
    """Return a structure's atoms with AutoDock's types.

    Hydrogens on nitrogen, oxygen and sulfur are HD; others become a part of their carbon, with their charge. Oxygen is
    OA, sulfur SA, nitrogen without hydrogens in the ring of a histidine or a base NA, ring carbons of standard residues
    A, and other atoms have the type of their element.

    Raises
    ------
    ChargeError
        When an atom has no charge.
    InputError
        For an element that AutoDock has no type of.
    """
    from scipy.spatial import cKDTree

    elements, charges = fill(structure).elements, structure.known_charges.copy()
    names, residues = structure.atom_names, structure.residue_names
    hydrogen = np.flatnonzero((elements == "H") | (elements == "D"))
    heavy = np.flatnonzero((elements != "H") & (elements != "D") & (elements != ""))
    kinds = elements.astype("<U2")
    merged, bearing = np.zeros(len(structure), bool), np.zeros(len(structure), bool)
    merged[elements == ""] = True  # sites of water without mass
    if len(hydrogen) and len(heavy):
        distance, nearest = cKDTree(structure.positions[heavy]).query(structure.positions[hydrogen])
        owner = heavy[nearest]
        polar = np.isin(elements[owner], ["N", "O", "S"]) & (distance < _POLAR)
        on_carbon = ~polar & (distance < _BONDED)
        kinds[hydrogen[polar]] = "HD"
        bearing[owner[polar]] = True
        np.add.at(charges, owner[on_carbon], charges[hydrogen[on_carbon]])
        merged[hydrogen[on_carbon]] = True
        kinds[hydrogen[~polar]] = "H"
    for n in np.flatnonzero(elements == "C"):
        if str(names[n]) in _AROMATIC.get(str(residues[n]).upper(), ()):
            kinds[n] = "A"
    kinds[elements == "O"], kinds[elements == "S"] = "OA", "SA"
    in_ring = np.isin(names, ["ND1", "NE2", "N1", "N3", "N7"]) & np.isin(residues, list(_AROMATIC))
    kinds[(elements == "N") & ~bearing & in_ring] = "NA"
    kept = ~merged
    unknown = np.flatnonzero(kept & ~np.isin(kinds, list(KINDS)))
    if len(unknown):
        atom = int(unknown[0])
        raise InputError(f"{structure.where}: atom {atom + 1} ({structure.label(atom)}) is of {elements[atom]}, which "
                         "AutoDock has no type of", "leave it out by {atoms}")
    return Receptor(structure.positions[kept], kinds[kept], charges[kept], structure.sources)


def autodock_maps(atoms: Receptor, lattice: Lattice, probes: Sequence[str], engine: Engine) -> dict[str, Grid]:
    """Return the maps of probes by their names, kcal/mol (of `e` and `d`, by the charge of the atom there).

    Parameters
    ----------
    atoms : Receptor
    lattice : Lattice
    probes : sequence of str
        Of :data:`KINDS`, and ``e`` or ``d``.
    engine : Engine

    Raises
    ------
    UsageError
        For a probe that does not exist.
    """
    for probe in probes:
        if probe not in KINDS and probe not in (ELECTROSTATIC, DESOLVATION):
            raise UsageError("probe", "is not an atom type of AutoDock",
                             f"choose {', '.join(KINDS)}, or the maps e and d", value=probe)
    sums = _Sums(atoms, lattice, engine)
    result, bonds = {}, _bonds(atoms, lattice, probes, engine)
    for number, probe in enumerate(probes):
        progress.report("probe maps", number / len(probes))
        if probe == ELECTROSTATIC:
            values = coulomb(engine, lattice, atoms.positions,
                             atoms.charges * COULOMB_WEIGHT * coulomb_constant("kcal/mol/e"))
        elif probe == DESOLVATION:
            values = BY_CHARGE * sums.volumes()
        else:
            kind = KINDS[probe]
            values = kind.solvation * sums.volumes() + kind.volume * sums.solvations() + bonds.get(probe, 0.0)
            for other in sums.wells():
                if not _bonding(kind, other):
                    values += sums.well(kind, other)
        named = {ELECTROSTATIC: "Coulomb energy of a unit charge", DESOLVATION: "desolvation of a unit charge"}
        made = Provenance(quantity=named.get(probe, f"energy of a probe {probe}"), method="AutoDock 4 maps",
                          boundary="open", cutoff=None if probe == ELECTROSTATIC else CUTOFF, precision="single",
                          engine=engine.name, inputs=atoms.inputs)
        result[probe] = Grid(lattice, values.astype(np.float32), "kcal/mol", provenance=made)
    return result


def _bonding(probe: Kind, atom: Kind) -> bool:
    """Return whether a probe and an atom form a hydrogen bond."""
    return {probe.role, atom.role} == {"donor", "acceptor"}


def _bonds(atoms: Receptor, lattice: Lattice, probes: Sequence[str], engine: Engine) -> dict[str, Floats]:
    """Return the energies of hydrogen bonds (nx, ny, nz) of the probes that form some."""
    result: dict[str, Floats] = {}
    types = sorted(set(atoms.kinds.tolist()))
    types_of_atoms = np.array([types.index(kind) for kind in atoms.kinds.tolist()], np.int64)
    for role, other in (("donor", "acceptor"), ("acceptor", "donor")):
        chosen = [probe for probe in dict.fromkeys(probes) if probe in KINDS and KINDS[probe].role == other]
        kinds = np.array([(ONE_PAIR if KINDS[name].pairs == 1 else TWO_PAIRS if KINDS[name].pairs else DONOR)
                          if KINDS[name].role == role else -1 for name in atoms.kinds.tolist()])
        if not chosen or kinds.max(initial=-1) < 0:
            continue
        acceptors = [[KINDS[name] if role == "acceptor" else KINDS[probe] for name in types] for probe in chosen]
        bonding = directions(atoms.positions, atoms.kinds.tolist(), kinds)
        energies = engine.bonds(BondSum(
            lattice, atoms.positions[bonding.rows], bonding.kinds, bonding.directions, bonding.normals, bonding.powers,
            types_of_atoms[bonding.rows], np.array([[kind.bond for kind in row] for row in acceptors]),
            BOND_WEIGHT * np.array([[kind.strength for kind in row] for row in acceptors]),
            np.array([KINDS[probe].pairs < 2 for probe in chosen]), SMOOTH, CLAMP, CUTOFF))
        result.update(zip(chosen, energies, strict=True))
    return result


def _alike(kind: Kind) -> Kind:
    """Return a kind of which others differ in nothing that dispersion depends on, nor in whether they form bonds."""
    return Kind(kind.rmin, kind.depth, 0.0, 0.0, kind.role)


class _Sums:
    """Sums over the receptor's atoms; those that all probes share are made once."""

    def __init__(self, atoms: Receptor, lattice: Lattice, engine: Engine) -> None:
        self.atoms, self.lattice, self.engine = atoms, lattice, engine
        self._kept: dict[Any, Floats] = {}
        self._rows: dict[Any, NDArray[np.int64]] = {}
        for name in np.unique(atoms.kinds).tolist():
            kind, rows = _alike(KINDS[name]), np.flatnonzero(atoms.kinds == name)
            self._rows[kind] = np.concatenate([self._rows[kind], rows]) if kind in self._rows else rows

    def of(self, bound: Bound, weights: Floats, rows: Any = slice(None)) -> Floats:
        """Return the sum of an interaction over some atoms by their weights, (nx, ny, nz) float64."""
        work = LatticeSum(self.lattice, bound)
        values = self.engine.prepare(work).run(self.atoms.positions[rows], weights).values()
        return np.asarray(values, np.float64).reshape(self.lattice.shape)

    def wells(self) -> list[Kind]:
        """Return the kinds of atoms that differ in their dispersion, or in the bonds that they form."""
        return list(self._rows)

    def well(self, probe: Kind, atom: Kind) -> Floats:
        """Return the dispersion of a probe with all atoms of a kind; once for probes alike, such as C and A."""
        rmin, depth = (probe.rmin + atom.rmin) / 2, DISPERSION_WEIGHT * float(np.sqrt(probe.depth * atom.depth))
        name, rows = (probe.rmin, probe.depth, atom), self._rows[atom]
        if name not in self._kept:
            bound = DISPERSION.bind(rmin=rmin, smooth=SMOOTH, cap=CLAMP / depth, cutoff=CUTOFF)
            self._kept[name] = self.of(bound, np.full(len(rows), depth), rows)
        return self._kept[name]

    def volumes(self) -> Floats:
        """Return the sum of the atoms' volumes by their Gaussians."""
        return self._gaussians("volumes", np.array([KINDS[kind].volume for kind in self.atoms.kinds.tolist()]))

    def solvations(self) -> Floats:
        """Return the sum of the atoms' solvation parameters, with the part of their charges."""
        own = np.array([KINDS[kind].solvation for kind in self.atoms.kinds.tolist()])
        return self._gaussians("solvations", own + BY_CHARGE * np.abs(self.atoms.charges))

    def _gaussians(self, name: str, weights: Floats) -> Floats:
        if name not in self._kept:
            self._kept[name] = self.of(GAUSSIAN.bind(width=WIDTH, cutoff=CUTOFF), SOLVATION_WEIGHT * weights)
        return self._kept[name]
