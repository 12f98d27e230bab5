"""Small rigid molecules whose free energy is mapped, and the orientations over which it is averaged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.errors import InputError, UsageError
from vmdpotential.io.files.text import buffered_stream, read_text, reading_file
from vmdpotential.units import AVOGADRO, BOLTZMANN, CALORIE

#: Energy that corresponds to 1 K, kcal/mol.
KELVIN = BOLTZMANN * AVOGADRO / (1000 * CALORIE)

#: Largest number of atoms in a file, and largest number (A and kcal/mol) that is accepted in it.
MOST_ATOMS, LARGEST = 50, 100.0


@dataclass(frozen=True, eq=False)
class Ligand:
    """Rigid molecule of Lennard-Jones atoms.

    Parameters
    ----------
    name : str
    positions : (S, 3) float64, A
        Positions of its atoms relative to the point to which the free energy is assigned.
    sigma, epsilon : (S,) float64, A and kcal/mol
    source : str
        Origin of the parameters.
    """

    name: str
    positions: Floats
    sigma: Floats
    epsilon: Floats
    source: str

    @cached_property
    def linear(self) -> bool:
        """Whether all atoms are on a line through the origin."""
        return bool(np.linalg.matrix_rank(self.positions, tol=1e-6) < 2)

    def orientations(self, count: int) -> list[Floats]:
        """Return the positions (S, 3) of the atoms in evenly distributed orientations of equal weight.

        A single atom has one orientation. Linear molecules have those of the vertices of an icosahedron or, if `count`
        exceeds 12, of a spiral of points on a sphere; half of them if both ends of the molecule are alike. Other
        molecules have `count` rotations from a low-discrepancy sequence.
        """
        if not self.positions.any():
            return [self.positions]
        if self.linear:
            axis = self.positions[np.argmax(np.linalg.norm(self.positions, axis=1))]
            along = self.positions @ (axis / np.linalg.norm(axis))
            return [along[:, None] * unit for unit in _directions(count, self._symmetric(along))]
        return [self.positions @ rotation.T for rotation in _rotations(count)]

    def _symmetric(self, along: Floats) -> bool:
        atoms = np.stack([along, self.sigma, self.epsilon], 1)
        mirrored = atoms * [-1, 1, 1]
        return bool(np.allclose(atoms[np.lexsort(atoms.T[::-1])], mirrored[np.lexsort(mirrored.T[::-1])], atol=1e-9))


def _directions(count: int, half: bool) -> Floats:
    """Return unit vectors (n, 3); with `half`, only one of each pair of opposite vectors."""
    if count <= 12:  # the vertices of an icosahedron, whose mean is exact for polynomials up to the fifth degree
        golden = (1 + 5**0.5) / 2
        result = np.array([[0, a, b] for a in (1.0, -1.0) for b in (golden, -golden)])
        result = np.concatenate([np.roll(result, n, axis=1) for n in range(3)]) / np.hypot(1, golden)
        chosen = np.array([item[item != 0][0] > 0 for item in result]) if half else np.ones(len(result), bool)
        return np.asarray(result[chosen], np.float64)
    number = count + count % 2
    z = 1 - (2 * np.arange(number) + 1) / number
    angle = np.pi * (1 + 5**0.5) * (np.arange(number) + 0.5)
    spiral = np.stack([np.sqrt(1 - z * z) * np.cos(angle), np.sqrt(1 - z * z) * np.sin(angle), z], 1)
    return spiral[: number // 2] if half else spiral


def _rotations(count: int) -> Floats:
    """Return uniformly distributed rotation matrices (n, 3, 3), from unit quaternions (K. Shoemake, 1992).

    The three coordinates of a quaternion are a low-discrepancy sequence in the unit cube.
    """
    from scipy.spatial.transform import Rotation

    n = np.arange(count) + 0.5
    plastic = 1.2207440846057596  # root of x^4 = x + 1, whose inverse powers generate the sequence
    u, v, w = n / count, (n / plastic) % 1, (n / plastic**2) % 1
    a, b = np.sqrt(1 - u), np.sqrt(u)
    q = np.stack([a * np.sin(2 * np.pi * v), a * np.cos(2 * np.pi * v), b * np.sin(2 * np.pi * w),
                  b * np.cos(2 * np.pi * w)], 1)
    return np.asarray(Rotation.from_quat(q).as_matrix())


def _on_a_line(name: str, atoms: list[tuple[float, float, float]], source: str) -> Ligand:
    """Return a linear molecule of atoms, each given by its x coordinate, sigma and epsilon."""
    along, sigma, epsilon = np.array(atoms).T
    return Ligand(name, along[:, None] * [1.0, 0.0, 0.0], sigma, epsilon, source)


def _sphere(name: str, sigma: float, kelvin: float) -> Ligand:
    """Return a molecule of one atom, whose epsilon / k is given in K; both parameters were fitted to viscosities."""
    return _on_a_line(name, [(0.0, sigma, kelvin * KELVIN)], "B. E. Poling, J. M. Prausnitz, J. P. O'Connell, "
                      "The Properties of Gases and Liquids, 5th ed. (2001), appendix B")


#: Bond lengths, sigmas and epsilons as in the reference simulations of NIST, in.TraPPEN2 and in.TraPPECO2 of
#: github.com/dwsideriusNIST/LAMMPS_Examples: N is 0.55 A from the centre of N2, and C 1.16 A from O.
_TRAPPE = "TraPPE, J. J. Potoff, J. I. Siepmann, AIChE J. 47 (2001) 1676"

#: Molecules by their names. The partial charges of N2, CO2 and CO are left out, because only Lennard-Jones is computed.
LIGANDS = {ligand.name: ligand for ligand in (
    _on_a_line("O2", [(-0.615, 3.0290556, 0.12), (0.615, 3.0290556, 0.12)],
               "CHARMM36, A. D. MacKerell et al., J. Phys. Chem. B 102 (1998) 3586"),
    _on_a_line("N2", [(-0.55, 3.31, 36.0 * KELVIN), (0.55, 3.31, 36.0 * KELVIN)], _TRAPPE),
    _on_a_line("CO2", [(-1.16, 3.05, 79.0 * KELVIN), (0.0, 2.80, 27.0 * KELVIN), (1.16, 3.05, 79.0 * KELVIN)], _TRAPPE),
    _on_a_line("CO", [(-0.564, 3.83, 0.0262), (0.564, 3.12, 0.1591)],
               "J. E. Straub, M. Karplus, Chem. Phys. 158 (1991) 221, as in E. Awoonor-Williams, C. N. Rowley, "
               "arXiv:1610.09046, table I"),
    _sphere("NO", 3.492, 116.7), _sphere("Xe", 4.047, 231.0), _sphere("Ar", 3.542, 93.3), _sphere("Ne", 2.82, 32.8),
)}


def ligand_of(text: str) -> Ligand:
    """Return a ligand by its name in :data:`LIGANDS`, or from the file of this name.

    Raises
    ------
    UsageError
        If neither exists.
    InputError
        If the file cannot be read.
    """
    for name, ligand in LIGANDS.items():
        if name.lower() == text.lower():
            return ligand
    path = Path(text)
    if not path.suffix and not path.exists():
        raise UsageError("ligand", f"choose one of {', '.join(LIGANDS)}, or name a file", value=text)
    return read_ligand(path)


def read_ligand(path: Path) -> Ligand:
    """Return the ligand in a file with a line ``name x y z sigma epsilon`` for each atom, in A and kcal/mol.

    Text after # is a comment. The free energy is assigned to the point at the origin of the coordinates.

    Raises
    ------
    InputError
        If the file cannot be read, or numbers are missing or out of range.
    """
    path = buffered_stream(path)
    with reading_file(path):
        lines = read_text(path, 20, 200).decode("utf-8", "replace").split("\n")
    rows: list[list[float]] = []
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            values = [float(word) for word in words[1:]]
        except ValueError:
            values = []
        if len(values) != 5:
            raise InputError(f"{path}: line {number}: is not a name and the five numbers x, y, z, sigma, epsilon",
                             "write one atom per line, in A and kcal/mol")
        valid = all(abs(x) <= LARGEST for x in values) and values[3] > 0 and values[4] > 0
        if not valid or len(rows) == MOST_ATOMS:
            raise InputError(f"{path}: line {number}: sigma and epsilon must be above 0, no number beyond {LARGEST:g}, "
                             f"and a ligand has at most {MOST_ATOMS} atoms", "correct it")
        rows.append(values)
    if not rows:
        raise InputError(f"{path}: contains no atoms", "write a line 'name x y z sigma epsilon' for each")
    table = np.array(rows)
    return Ligand(path.stem, table[:, :3], table[:, 3], table[:, 4], str(path))
