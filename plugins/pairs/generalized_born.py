"""Energies of charges in water by the Generalized Born models OBC2 and GBn2.

The energy of solvation is -1/2 sum_ij q_i q_j (1/eps_in - exp(-kappa f)/eps_out) / f with f^2 = r^2 + R_i R_j
exp(-r^2 / (4 R_i R_j)) (W. C. Still et al., J. Am. Chem. Soc. 112 (1990) 6127; ions: J. Srinivasan et al., Theor. Chem.
Acc. 101 (1999) 426). An atom's Born radius R follows from the integral over all other atoms' balls (G. D. Hawkins,
C. J. Cramer, D. G. Truhlar, J. Phys. Chem. 100 (1996) 19824), which OBC2 corrects for the gaps between them
(A. Onufriev, D. Bashford, D. A. Case, Proteins 55 (2004) 383), and GBn2 also for necks between two atoms (J. Mongan et
al., J. Chem. Theory Comput. 3 (2007) 156; H. Nguyen, D. R. Roe, C. Simmerling, J. Chem. Theory Comput. 9 (2013) 2020).
Both are Amber's, igb=5 and 8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines import get_engine
from vmdpotential.errors import InputError
from vmdpotential.interactions import SOFT_CORE, Quantity, complete_parameters
from vmdpotential.interactions.screened_coulomb import WATER_PERMITTIVITY
from vmdpotential.kernels.launch import Kernel, KernelFile
from vmdpotential.molecule.atomnames import NUCLEOTIDE_NAMES, family
from vmdpotential.molecule.elements import fill_elements
from vmdpotential.molecule.names import unique_names
from vmdpotential.molecule.radii import ON_NITROGEN, bonded_pairs
from vmdpotential.molecule.structure import Structure
from vmdpotential.molecule.templates import table_bytes
from vmdpotential.units import DEFAULT_TEMPERATURE, MAX_SALT, coulomb_constant, debye_length

from .all_pairs import sum_all_pairs, sum_pairs_between

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

KERNELS = KernelFile(Path(__file__).with_name("generalized_born.cu"))

#: Amber's radii by element, A; mbondi2 has another one for hydrogens on nitrogen, and mbondi3 also those below.
RADII = {"C": 1.7, "H": 1.2, "N": 1.55, "O": 1.5, "F": 1.5, "Si": 2.1, "P": 1.85, "S": 1.8, "Cl": 1.7}
OTHER_RADIUS = 1.5
#: Radii of mbondi3: oxygens of carboxylates, and the hydrogens HE and HH of arginine, A.
CARBOXYLATE, GUANIDINIUM = 1.4, 1.17

#: Ions, which cannot come as close to the charges as water, screen less: factor on the inverse Debye length.
KAPPA_FACTOR = 0.73

#: Largest radius in the table of necks, A.
LARGEST = 2.0

#: Factor on the integrals of necks, and width of the gap in which they are, A.
NECK_SCALE, NECK_WIDTH = 0.826836, 6.8

#: Parameters of the solution.
QUANTITIES = (
    Quantity("salt", "M", 0.15, 0.0, MAX_SALT, "1:1 salt"),
    Quantity("inside", "", 1.0, 1.0, 200.0, "relative permittivity of the molecule"),
)


@dataclass(frozen=True)
class BornModel:
    """A Generalized Born model: its parameters by element.

    Parameters
    ----------
    radii : str
        Name of the set of radii that its parameters are for.
    offset : float, A
        What is subtracted from all radii.
    scales, nucleic_scales : mapping
        Factors on radii of atoms that take away solvent, in general and in nucleic acids; "" for other elements.
    shapes, nucleic_shapes : mapping
        Coefficients of an integral, its square and its cube, from which the radius follows.
    necks : bool
    """

    radii: str
    offset: float
    scales: Mapping[str, float]
    shapes: Mapping[str, tuple[float, float, float]]
    nucleic_scales: Mapping[str, float]
    nucleic_shapes: Mapping[str, tuple[float, float, float]]
    necks: bool


_OBC_SCALES = {"H": 0.85, "C": 0.72, "N": 0.79, "O": 0.85, "F": 0.88, "P": 0.86, "S": 0.96, "": 0.8}
_OBC_SHAPES = {"": (1.0, 0.8, 4.85)}

#: The models by name.
MODELS = {
    "obc2": BornModel("mbondi2", 0.09, _OBC_SCALES, _OBC_SHAPES, _OBC_SCALES, _OBC_SHAPES, False),
    "gbn2": BornModel(
        "mbondi3", 0.195141,
        {"H": 1.425952, "C": 1.058554, "N": 0.733599, "O": 1.061039, "S": -0.703469, "": 0.5},
        {"H": (0.788440, 0.798699, 0.437334), "C": (0.733756, 0.506378, 0.205844), "N": (0.503364, 0.316828, 0.192915),
         "O": (0.867814, 0.876635, 0.387882), "S": (0.867814, 0.876635, 0.387882), "": (1.0, 0.8, 4.851)},
        {"H": 1.696538, "C": 1.268902, "N": 1.4259728, "O": 0.1840098, "P": 1.5450597, "S": 0.05, "": 0.5},
        {"H": (0.537050, 0.362861, 0.116704), "C": (0.331670, 0.196842, 0.093422), "N": (0.686311, 0.463189, 0.138722),
         "O": (0.606344, 0.463006, 0.142262), "S": (0.606344, 0.463006, 0.142262),
         "P": (0.418365, 0.290054, 0.1064245), "": (1.0, 0.8, 4.851)},
        True),
}


@dataclass(frozen=True, eq=False)
class GeneralizedBorn:
    """A Generalized Born model of some atoms, whose positions may differ from frame to frame.

    Parameters
    ----------
    model : BornModel
    charges : (N,) float64, e
    radii, scales : (N,) float64
        Radii, A, and the factors on them of atoms that take away solvent.
    shapes : (N, 3) float64
        Coefficients of the radii's correction.
    kinds : (N,) int64
        Places of the atoms' radii in the tables of necks.
    necks : (2, K, K) float64
        Distances, A, at which the integral over the neck between two kinds of atoms is largest, and these integrals.
    inside, outside : float
        Permittivities.
    kappa : float, 1/A
    engine : str
    """

    model: BornModel
    charges: Floats
    radii: Floats
    scales: Floats
    shapes: Floats
    kinds: Integers
    necks: Floats
    inside: float
    outside: float
    kappa: float
    engine: str

    @classmethod
    def of(cls, structure: Structure, model: str = "obc2", parameters: Mapping[str, float] | None = None,
           dielectric: float | None = None, temperature: float = DEFAULT_TEMPERATURE,
           engine: str = "auto") -> GeneralizedBorn:
        """Return a model of all atoms of a structure with charges.

        Parameters
        ----------
        structure : Structure
        model : str
            One of :data:`MODELS`.
        parameters : mapping, optional
            Those of :data:`QUANTITIES`.
        dielectric : float, optional
            Relative permittivity of the solvent.
        temperature : float, K
        engine : str

        Raises
        ------
        UsageError
            For an unknown parameter.
        InputError
            For atoms without an element.
        """
        chosen = MODELS[model]
        values = complete_parameters(QUANTITIES, parameters or {}, f"the model {model}")
        outside = WATER_PERMITTIVITY if dielectric is None else dielectric
        elements = _elements(structure)
        radii = _radii(structure, elements, chosen.radii == "mbondi3")
        names, inverse = unique_names(structure.residue_names)
        nucleic = np.array([family(str(name)) in NUCLEOTIDE_NAMES for name in names], bool)[inverse]
        found, kind = unique_names(elements)
        scales, shapes = np.empty(len(radii)), np.empty((len(radii), 3))
        for rows, scale, shape in ((~nucleic, chosen.scales, chosen.shapes),
                                   (nucleic, chosen.nucleic_scales, chosen.nucleic_shapes)):
            scales[rows] = np.array([scale.get(str(name), scale[""]) for name in found])[kind[rows]]
            shapes[rows] = np.array([shape.get(str(name), shape[""]) for name in found])[kind[rows]]
        sizes, kinds = np.unique(radii, return_inverse=True)
        if chosen.necks and sizes.max(initial=0.0) > LARGEST:
            atom = int(radii.argmax())
            raise InputError(f"{structure.where}: the model {model} is for radii up to {LARGEST:g} A, and "
                             f"{structure.label(atom)} has {radii[atom]:g} A", "choose another {gb_model}")
        kappa = KAPPA_FACTOR / debye_length(values["salt"], temperature, outside)
        return cls(chosen, structure.known_charges, radii, scales, shapes, kinds,
                   _necks(sizes) if chosen.necks else np.zeros((2, 1, 1)), values["inside"], outside, kappa,
                   get_engine(engine).name)

    def take(self, rows: Integers) -> GeneralizedBorn:
        """Return the model of some of the atoms."""
        return replace(self, charges=self.charges[rows], radii=self.radii[rows], scales=self.scales[rows],
                       shapes=self.shapes[rows], kinds=self.kinds[rows])

    def energies(self, positions: Floats) -> Floats:
        """Return the energy of solvation of each atom (N,), kcal/mol, at positions (N, 3), A."""
        return self.energies_of(positions, self.born_radii(self.integrals(positions)))

    def integrals(self, positions: Floats) -> Floats:
        """Return what the other atoms take away of the solvent around each atom (N,), 1/A; those of sets add up."""
        result: Floats = sum_all_pairs(get_engine(self.engine), self._descreening, 1,
                                       self._spheres(positions, positions.mean(0)), split=0, **self._gaps(self))[0]
        return result

    def integrals_between(self, positions: Floats, other: GeneralizedBorn, places: Floats) -> tuple[Floats, Floats]:
        """Return what the atoms (M,) of another set take away of the solvent around each atom (N,), and vice versa."""
        middle = positions.mean(0)
        first, second = sum_pairs_between(
            get_engine(self.engine), self._descreening, 1, self._spheres(positions, middle),
            other._spheres(places, middle), **self._gaps(self, other))
        return first[0], second[0]

    @property
    def _descreening(self) -> Kernel:
        return KERNELS["sum_necks" if self.model.necks else "sum_balls"]

    def _spheres(self, positions: Floats, middle: Floats) -> Floats:
        offset = self.radii - self.model.offset
        columns = [*(positions - middle).T, offset, offset * self.scales]
        return np.stack(columns + ([self.radii, self.kinds.astype(np.float64)] if self.model.necks else []))

    def _gaps(self, *parts: GeneralizedBorn) -> dict[str, Any]:
        """Return the constants of the integrals in some sets: where balls are apart, and the necks between them."""
        largest = max(float(np.abs((part.radii - self.model.offset) * np.maximum(1.0, np.abs(part.scales))).max())
                      for part in parts)
        most = 2 * max(float(part.radii.max()) for part in parts) + NECK_WIDTH
        return {"soft2": SOFT_CORE**2, "apart2": 9 * largest**2, "kinds": self.necks.shape[1], "width": NECK_WIDTH,
                "neck2": most**2, "necks": np.stack([self.necks[0], NECK_SCALE * self.necks[1]])}

    def born_radii(self, integrals: Floats) -> Floats:
        """Return the Born radii (N,), A, from integrals."""
        offset = self.radii - self.model.offset
        x = integrals * offset
        alpha, beta, gamma = self.shapes.T
        result: Floats = 1 / (1 / offset - np.tanh(x * (alpha + x * (gamma * x - beta))) / self.radii)
        return result

    def energies_of(self, positions: Floats, born: Floats) -> Floats:
        """Return the energy of each atom (N,), kcal/mol, with Born radii (N,), A: its own, and half of each pair's."""
        pairs = sum_all_pairs(get_engine(self.engine), self._pairs(), 1,
                              self._charged(positions, positions.mean(0), born), split=0, **self._medium)[0]
        result: Floats = 0.5 * (self._alone(born) + pairs)
        return result

    def changes_of(self, positions: Floats, born: Floats, before: Floats) -> Floats:
        """Return the changes (N,) of :meth:`energies_of`, kcal/mol, from other Born radii (N,), A."""
        pairs = sum_all_pairs(get_engine(self.engine), self._pairs("changes"), 1,
                              self._charged(positions, positions.mean(0), born, before), split=0, **self._medium)[0]
        result: Floats = 0.5 * (self._alone(born) - self._alone(before) + pairs)
        return result

    def energies_between(self, positions: Floats, born: Floats, other: GeneralizedBorn, places: Floats,
                         other_born: Floats) -> tuple[Floats, Floats]:
        """Return the energies (N,) and (M,) of the atoms of two sets with those of the other set, kcal/mol."""
        middle = positions.mean(0)
        first, second = sum_pairs_between(
            get_engine(self.engine), self._pairs(), 1, self._charged(positions, middle, born),
            other._charged(places, middle, other_born), **self._medium)
        return first[0], second[0]

    def _alone(self, born: Floats) -> Floats:
        alone = np.exp(-self.kappa * born) / self.outside - 1 / self.inside
        result: Floats = coulomb_constant("kcal/mol/e") * self.charges**2 * alone / born
        return result

    def _pairs(self, what: str = "born") -> Kernel:
        return KERNELS[f"sum_{what}_in_salt" if self.kappa > 0 else f"sum_{what}"]

    def _charged(self, positions: Floats, middle: Floats, *radii: Floats) -> Floats:
        root = np.sqrt(coulomb_constant("kcal/mol/e"))
        return np.stack([*(positions - middle).T, root * self.charges,
                         *(column for born in radii for column in (born, 0.5 / born))])

    @property
    def _medium(self) -> dict[str, Any]:
        return {"soft2": SOFT_CORE**2, "inside": 1 / self.inside, "outside": 1 / self.outside, "kappa": self.kappa}


def _elements(structure: Structure) -> NDArray[np.str_]:
    elements = fill_elements(structure).elements
    bare = np.flatnonzero(elements == "")
    if len(bare):
        raise InputError(f"{structure.where}: {structure.label(int(bare[0]))} has no element, so it has no Born radius",
                         "select other atoms, or use {solvent pb}")
    return np.where(elements == "D", "H", elements)


def _radii(structure: Structure, elements: NDArray[np.str_], third: bool) -> Floats:
    """Return Amber's radii (N,), A: mbondi3, or else mbondi2."""
    different, inverse = unique_names(elements)
    radii = np.array([RADII.get(str(name), OTHER_RADIUS) for name in different])[inverse]
    bonds = bonded_pairs(structure, elements)
    both = np.concatenate([bonds, bonds[:, ::-1]])
    to_nitrogen = both[(elements[both[:, 0]] == "H") & (elements[both[:, 1]] == "N"), 0]
    radii[to_nitrogen] = ON_NITROGEN
    if not third:
        return radii
    count = np.bincount(both[:, 0], minlength=len(radii))
    # the oxygens with one bond, to a carbon with three, of which at least one more is an oxygen
    oxygens = np.bincount(both[elements[both[:, 1]] == "O", 0], minlength=len(radii))
    first, second = both.T
    ends = ((elements[first] == "O") & (count[first] == 1) & (elements[second] == "C") & (count[second] == 3)
            & (oxygens[second] >= 2))
    radii[first[ends]] = CARBOXYLATE
    names, of_atom = unique_names(structure.residue_names)
    arginine = np.array([family(str(name)) == "ARG" for name in names], bool)[of_atom]
    atoms = structure.atom_names
    radii[arginine & (np.char.startswith(atoms, "HH") | np.char.startswith(atoms, "HE"))] = GUANIDINIUM
    return radii


@cache
def _neck_table() -> Floats:
    """Return distances and integrals (2, 21, 21) of necks, for radii of 1 to 2 A in steps of 0.05 A."""
    rows = np.loadtxt(table_bytes("necks.csv", "table of necks").decode("ascii").splitlines()[1:], delimiter=",")
    size = int(np.sqrt(len(rows)))
    result: Floats = rows[:, 2:].T.reshape(2, size, size)
    return result


def _necks(radii: Floats) -> Floats:
    """Return distances and integrals (2, K, K) of necks between atoms of some radii, interpolated in the table."""
    table = _neck_table()
    last = table.shape[1] - 1
    place = np.clip((radii - 1.0) * 20, 0, last)
    low = np.minimum(place.astype(np.int64), last - 1)
    weights = np.zeros((len(radii), last + 1))
    rows = np.arange(len(radii))
    weights[rows, low] = 1 - (place - low)
    weights[rows, low + 1] = place - low
    result: Floats = weights @ table @ weights.T
    return result
