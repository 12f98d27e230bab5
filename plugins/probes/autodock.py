"""Maps of AutoDock 4's energies of probe atoms with a receptor, as AutoGrid computes them.

R. Huey, G. M. Morris, A. J. Olson, D. S. Goodsell, J. Comput. Chem. 28 (2007) 1145. The map of an atom type contains,
for a probe of that type at each node, dispersion and repulsion (powers 6 and 12), hydrogen bonds (powers 10 and 12)
and the energy of desolvation by the receptor's atoms. The map ``e`` contains the Coulomb energy of a unit charge, and
``d`` its desolvation energy. All sums end at :data:`CUTOFF`, except that of ``e``, which has no cutoff.

Hydrogen bonds are weaker away from the directions of the receptor's atoms (:mod:`.bonds`). All maps
agree with AutoGrid's to the rounding of its tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import progress
from vmdpotential.arrays import Floats
from vmdpotential.engines import Engine
from vmdpotential.errors import InputError, UsageError
from vmdpotential.grid.lattice import Grid, Lattice, Provenance
from vmdpotential.interactions import Bound
from vmdpotential.molecule.elements import fill_elements
from vmdpotential.molecule.structure import Structure
from vmdpotential.sums.potential_sum import PotentialSum, prepare_sum
from vmdpotential.units import coulomb_constant

from .bonds import DONOR, ONE_PAIR, TWO_PAIRS, Wells, bond_energies, directions
from .coulomb import coulomb
from .interactions import DISPERSION, GAUSSIAN

Singles = NDArray[np.float32]


@dataclass(frozen=True)
class Kind:
    """AutoDock's parameters of an atom type.

    Parameters
    ----------
    rmin, depth : float, A and kcal/mol
        Distance and depth of the energy minimum of two atoms of this type.
    volume : float, A^3
    solvation : float
        Solvation parameter.
    role : str
        Role in hydrogen bonds: ``donor``, ``acceptor`` or empty.
    bond, strength : float, A and kcal/mol
        Distance and depth of an acceptor's hydrogen bonds.
    pairs : int
        Number of an acceptor's lone pairs.
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

#: Names of the maps that belong to no atom type: Coulomb energy and desolvation energy of a unit charge.
ELECTROSTATIC, DESOLVATION = "e", "d"

#: Weights of the terms, fitted to free energies of binding.
DISPERSION_WEIGHT, BOND_WEIGHT, COULOMB_WEIGHT, SOLVATION_WEIGHT = 0.1662, 0.1209, 0.1406, 0.1322

#: Cutoff, half the width of the smoothing and standard deviation of the desolvation's Gaussian, A; solvation parameter
#: per unit charge.
CUTOFF, SMOOTH, WIDTH, BY_CHARGE = 8.0, 0.25, 3.6, 0.01097

#: Largest energy of a pair, kcal/mol.
CLAMP = 1e5

#: Largest bond lengths, A, of a polar hydrogen to nitrogen, oxygen or sulfur, and of other hydrogens to carbon.
_POLAR, _BONDED = 1.45, 1.3

#: Aromatic ring carbons of residues.
_AROMATIC = {
    **{name: {"CG", "CD1", "CD2", "CE1", "CE2", "CZ"} for name in ("PHE", "TYR")},
    "TRP": {"CG", "CD1", "CD2", "CE2", "CE3", "CZ2", "CZ3", "CH2"},
    **{name: {"CG", "CD2", "CE1"} for name in ("HIS", "HID", "HIE", "HIP", "HSD", "HSE", "HSP")},
    **{name: {"C2", "C4", "C5", "C6", "C8"} for name in ("A", "G", "C", "U", "DA", "DG", "DC", "DT")},
}


@dataclass(frozen=True, eq=False)
class Receptor:
    """Atoms of a receptor, whose carbons include their hydrogens.

    Parameters
    ----------
    positions : (N, 3) float64, A
    kinds : (N,) str
        AutoDock's atom types.
    charges : (N,) float64, e
    inputs : tuple of str
        Names of the input files.
    """

    positions: Floats
    kinds: NDArray[np.str_]
    charges: Floats
    inputs: tuple[str, ...] = ()


def receptor(structure: Structure) -> Receptor:
    """Return a structure's atoms with AutoDock's types.

    Hydrogens on nitrogen, oxygen and sulfur are HD; others are merged into their carbon, which gets their charge.
    Oxygen is OA, sulfur SA, nitrogen without hydrogens in the ring of a histidine or a base NA, aromatic ring carbons
    of standard residues A, and other atoms have the type of their element.

    Raises
    ------
    ChargeError
        If an atom has no charge.
    InputError
        If AutoDock has no type for an element.
    """
    from scipy.spatial import cKDTree

    elements, charges = fill_elements(structure).elements, structure.known_charges.copy()
    names, residues = structure.atom_names, structure.residue_names
    hydrogen = np.flatnonzero((elements == "H") | (elements == "D"))
    heavy = np.flatnonzero((elements != "H") & (elements != "D") & (elements != ""))
    kinds = elements.astype("<U2")
    merged, has_polar_hydrogen = np.zeros(len(structure), bool), np.zeros(len(structure), bool)
    merged[elements == ""] = True  # virtual sites of water
    if len(hydrogen) and len(heavy):
        distance, nearest = cKDTree(structure.positions[heavy]).query(structure.positions[hydrogen])
        owner = heavy[nearest]
        polar = np.isin(elements[owner], ["N", "O", "S"]) & (distance < _POLAR)
        on_carbon = ~polar & (distance < _BONDED)
        kinds[hydrogen[polar]] = "HD"
        has_polar_hydrogen[owner[polar]] = True
        np.add.at(charges, owner[on_carbon], charges[hydrogen[on_carbon]])
        merged[hydrogen[on_carbon]] = True
        kinds[hydrogen[~polar]] = "H"
    for n in np.flatnonzero(elements == "C"):
        if str(names[n]) in _AROMATIC.get(str(residues[n]).upper(), ()):
            kinds[n] = "A"
    kinds[elements == "O"], kinds[elements == "S"] = "OA", "SA"
    in_ring = np.isin(names, ["ND1", "NE2", "N1", "N3", "N7"]) & np.isin(residues, list(_AROMATIC))
    kinds[(elements == "N") & ~has_polar_hydrogen & in_ring] = "NA"
    kept = ~merged
    unknown = np.flatnonzero(kept & ~np.isin(kinds, list(KINDS)))
    if len(unknown):
        atom = int(unknown[0])
        raise InputError(f"{structure.where}: AutoDock has no type for the element {elements[atom]} of atom {atom + 1} "
                         f"({structure.label(atom)})", "leave it out by {atoms}")
    return Receptor(structure.positions[kept], kinds[kept], charges[kept], structure.sources)


def autodock_maps(atoms: Receptor, lattice: Lattice, probes: Sequence[str], engine: Engine) -> dict[str, Grid]:
    """Return maps by the names of their probes, kcal/mol (those of `e` and `d` are per unit charge).

    Parameters
    ----------
    atoms : Receptor
    lattice : Lattice
    probes : sequence of str
        Keys of :data:`KINDS`, or ``e`` or ``d``.
    engine : Engine

    Raises
    ------
    UsageError
        For an unknown probe.
    """
    for probe in probes:
        if probe not in KINDS and probe not in (ELECTROSTATIC, DESOLVATION):
            raise UsageError("probe", "is not an atom type of AutoDock",
                             f"choose {', '.join(KINDS)}, or the maps e and d", value=probe)
    sums = _Sums(atoms, lattice, engine)
    result, bonds = {}, _bonds(atoms, lattice, probes, engine)
    for number, probe in enumerate(probes):
        progress.report_progress("probe maps", number / len(probes))
        if probe == ELECTROSTATIC:
            values = coulomb(engine, lattice, atoms.positions,
                             atoms.charges * COULOMB_WEIGHT * coulomb_constant("kcal/mol/e"))
        elif probe == DESOLVATION:
            values = BY_CHARGE * sums.volumes()
        else:
            kind = KINDS[probe]
            values = kind.solvation * sums.volumes() + kind.volume * sums.solvations() + bonds.get(probe, 0.0)
            for other in sums.wells():
                if {kind.role, other.role} != {"donor", "acceptor"}:  # these form hydrogen bonds
                    values += sums.well(kind, other)
        quantities = {ELECTROSTATIC: "Coulomb energy of a unit charge", DESOLVATION: "desolvation of a unit charge"}
        provenance = Provenance(
            quantity=quantities.get(probe, f"energy of a probe {probe}"), method="AutoDock 4 maps", boundary="open",
            cutoff=None if probe == ELECTROSTATIC else CUTOFF, precision="single", engine=engine.name,
            inputs=atoms.inputs)
        result[probe] = Grid(lattice, values.astype(np.float32), "kcal/mol", provenance=provenance)
    return result


def _bonds(atoms: Receptor, lattice: Lattice, probes: Sequence[str], engine: Engine) -> dict[str, Floats]:
    """Return the hydrogen-bond energies (nx, ny, nz) of those probes that form hydrogen bonds."""
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
        wells = Wells(np.array([[kind.bond for kind in row] for row in acceptors]),
                      BOND_WEIGHT * np.array([[kind.strength for kind in row] for row in acceptors]),
                      np.array([KINDS[probe].pairs < 2 for probe in chosen]), SMOOTH, CLAMP, CUTOFF)
        energies = bond_energies(engine, lattice, atoms.positions, types_of_atoms, bonding, wells)
        result.update(zip(chosen, energies, strict=True))
    return result


def _dispersion_kind(kind: Kind) -> Kind:
    """Return a kind with only those parameters on which dispersion, and its replacement by bonds, depend."""
    return Kind(kind.rmin, kind.depth, 0.0, 0.0, kind.role)


class _Sums:
    """Sums over the receptor's atoms, kept for all probes that share them."""

    def __init__(self, atoms: Receptor, lattice: Lattice, engine: Engine) -> None:
        self.atoms, self.lattice, self.engine = atoms, lattice, engine
        self._cache: dict[Any, Floats] = {}
        self._rows: dict[Any, NDArray[np.int64]] = {}
        for name in np.unique(atoms.kinds).tolist():
            kind, rows = _dispersion_kind(KINDS[name]), np.flatnonzero(atoms.kinds == name)
            self._rows[kind] = np.concatenate([self._rows[kind], rows]) if kind in self._rows else rows

    def of(self, bound: Bound, weights: Floats, rows: Any = slice(None)) -> Floats:
        """Return the weighted sum (nx, ny, nz) float64 of an interaction over the atoms `rows`."""
        lattice_sum = PotentialSum(self.lattice, bound)
        values = prepare_sum(self.engine, lattice_sum).run(self.atoms.positions[rows], weights).values()
        return np.asarray(values, np.float64).reshape(self.lattice.shape)

    def wells(self) -> list[Kind]:
        """Return the kinds of the receptor's atoms that differ in dispersion or in their role in hydrogen bonds."""
        return list(self._rows)

    def well(self, probe: Kind, atom: Kind) -> Floats:
        """Return the dispersion of a probe with all atoms of a kind; probes such as C and A share one sum."""
        rmin, depth = (probe.rmin + atom.rmin) / 2, DISPERSION_WEIGHT * float(np.sqrt(probe.depth * atom.depth))
        key, rows = (probe.rmin, probe.depth, atom), self._rows[atom]
        if key not in self._cache:
            bound = DISPERSION.bind(rmin=rmin, smooth=SMOOTH, cap=CLAMP / depth, cutoff=CUTOFF)
            self._cache[key] = self.of(bound, np.full(len(rows), depth), rows)
        return self._cache[key]

    def volumes(self) -> Floats:
        """Return the sum of the atoms' volumes, weighted by the Gaussians of their distances."""
        return self._gaussians("volumes", np.array([KINDS[kind].volume for kind in self.atoms.kinds.tolist()]))

    def solvations(self) -> Floats:
        """Return the sum of the solvation parameters of atoms and charges, weighted likewise."""
        of_types = np.array([KINDS[kind].solvation for kind in self.atoms.kinds.tolist()])
        return self._gaussians("solvations", of_types + BY_CHARGE * np.abs(self.atoms.charges))

    def _gaussians(self, name: str, weights: Floats) -> Floats:
        if name not in self._cache:
            self._cache[name] = self.of(GAUSSIAN.bind(width=WIDTH, cutoff=CUTOFF), SOLVATION_WEIGHT * weights)
        return self._cache[name]
