"""The golden case: one small system that goes through every adapter, with what must come out.

A made-up anion of five atoms (-3 e) in a periodic box of water of 24 x 25 x 26 A, made from code. Coordinates have
three decimals and charges six, so that no file format rounds them. The map's values come from the definition of the
potential, summed here in float64; the ions from the Python API.

Adapters load the structure as their viewer holds it, run ``map`` with :data:`VIEWER_OPTIONS` and ``ionize`` with
:data:`ION_OPTIONS`, and compare with :func:`potential` at lattice points, with :func:`interpolated` at atoms (what a
viewer's trilinear lookup gives), and with :func:`ions`.
"""

from functools import cache
from pathlib import Path

import numpy as np

from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure, Topology

LENGTHS = np.array([24.0, 25.0, 26.0])
MAP_OPTIONS = {"spacing": 1.0, "method": "cutoff", "cutoff": 9.0}
#: The same for viewers, whose default is the solute in water.
VIEWER_OPTIONS = {"medium": "explicit", **MAP_OPTIONS}
ION_OPTIONS = {"concentration": 0.2}
#: Of the net charge, -3 e, and 0.2 mol/L of salt in this box: set by the counts' own tests, not here.
NET_CHARGE = -3.0

# kT/e A/e at 298.15 K, from CODATA 2018: e^2 / (4 pi epsilon_0 k T)
_COULOMB = 1.602176634e-19**2 / (4 * np.pi * 8.8541878128e-12 * 1.380649e-23 * 298.15) * 1e10

_SOLUTE = [  # name, position from the middle of the box, charge, element, mass
    ("C1", (0.000, 0.000, 0.000), 0.348272, "C", 12.011),
    ("O1", (1.210, 0.332, -0.117), -0.912345, "O", 15.999),
    ("O2", (-0.871, 0.942, 0.205), -0.905679, "O", 15.999),
    ("P1", (-0.503, -1.611, 0.612), 0.870123, "P", 30.974),
    ("S1", (-1.120, -2.743, -1.035), -2.400371, "S", 32.06),
]


#: A hydrogen molecule with two functions, of which the second orbital has a plane of symmetry as its node.
MOLDEN = """[Molden Format]
[Atoms] AU
H 1 1 0.0 0.0 -0.7
H 2 1 0.0 0.0 0.7
[GTO]
1 0
 s 3 1.0
  3.42525091 0.15432897
  0.62391373 0.53532814
  0.16885540 0.44463454

2 0
 s 3 1.0
  3.42525091 0.15432897
  0.62391373 0.53532814
  0.16885540 0.44463454

[MO]
 Ene= -0.578
 Spin= Alpha
 Occup= 2.0
 1 0.548934
 2 0.548934
 Ene= 0.670
 Spin= Alpha
 Occup= 0.0
 1 1.211463
 2 -1.211463
"""


@cache
def structure() -> Structure:
    """The system: the anion (residue ANI, segment LIG), then waters (TIP3, segments W1 and W2), with bonds."""
    random = np.random.default_rng(20)
    middle = np.array([1.5, -2.25, 3.75])  # the box is not centred on 0, and does not start there
    names, places, charges, elements, masses, bonds = [], [], [], [], [], [(0, 1), (0, 2), (0, 3), (3, 4)]
    for name, place, charge, element, mass in _SOLUTE:
        names.append(name)
        places.append(np.array(place) + middle)
        charges.append(charge)
        elements.append(element)
        masses.append(mass)
    anion = np.array(places)
    steps = np.round(LENGTHS / 3.1).astype(int)
    for node in np.ndindex(*steps):
        oxygen = np.round(middle - LENGTHS / 2 + (np.array(node) + 0.5) * LENGTHS / steps
                          + random.uniform(-0.2, 0.2, 3), 3)
        if np.linalg.norm(anion - oxygen, axis=1).min() < 2.6:
            continue
        axis, other = np.linalg.qr(random.normal(size=(3, 2)))[0].T
        angle = np.radians(104.52 / 2)
        first = len(names)
        for name, shift in (("OH2", 0), ("H1", np.cos(angle) * axis + np.sin(angle) * other),
                            ("H2", np.cos(angle) * axis - np.sin(angle) * other)):
            names.append(name)
            places.append(np.round(oxygen + 0.9572 * np.asarray(shift), 3))
            charges.append(-0.834 if name == "OH2" else 0.417)
            elements.append(name[0])
            masses.append(15.9994 if name == "OH2" else 1.008)
        bonds += [(first, first + 1), (first, first + 2)]
    waters = (len(names) - 5) // 3
    residue = np.concatenate([np.zeros(5, int), np.repeat(np.arange(1, waters + 1), 3)])
    second = residue > waters // 2  # the second segment of waters counts its residues from 1 again
    number = np.where(residue == 0, 1, np.where(second, residue - waters // 2, residue))
    segment = np.where(residue == 0, "LIG", np.where(second, "W2", "W1"))
    return Structure(
        np.array(places), np.array(names), np.where(residue == 0, "ANI", "TIP3"), number, residue,
        segment_ids=segment, elements=np.array(elements), charges=np.array(charges),
        cell=Cell.from_parameters(*LENGTHS),
        topology=Topology("psf", np.where(residue == 0, np.array(elements), [n[:1] + "T" for n in names]),
                          np.array(masses), np.array(bonds)),
    )


def write(folder: Path) -> dict[str, Path]:
    """Write golden.molden, and the system as golden.pdb, golden.psf and golden.pqr; return these by suffix."""
    from vmdpotential import write_structure

    paths = {suffix: Path(folder, f"golden.{suffix}") for suffix in ("pdb", "psf", "pqr")}
    for path in paths.values():
        write_structure(structure(), path, force=True)
    Path(folder, "golden.molden").write_text(MOLDEN)
    return paths


def potential(points: np.ndarray) -> np.ndarray:
    """Return the map's values at points (M, 3), kT/e: the definition, over all images within the cutoff, in float64."""
    system, cutoff = structure(), MAP_OPTIONS["cutoff"]
    values = np.zeros(len(points))
    # the cutoff is less than half of every edge: the nearest image is the only one that counts
    assert 2 * cutoff < LENGTHS.min()
    for row, point in enumerate(np.asarray(points, float)):
        away = system.positions - point
        away -= LENGTHS * np.round(away / LENGTHS)
        r = np.sqrt((away**2).sum(1))
        near = r < cutoff
        values[row] = (system.charges[near] / np.maximum(r[near], 0.01) * (1 - (r[near] / cutoff) ** 2) ** 2).sum()
    return _COULOMB * values


def lattice_points(count: int = 40) -> np.ndarray:
    """Return points (count, 3) of the map's lattice, whole numbers of A, all within the box, some near the anion."""
    system = structure()
    middle = (system.positions.min(0) + system.positions.max(0)) / 2
    low, high = np.ceil(middle - LENGTHS / 2 + 1), np.floor(middle + LENGTHS / 2 - 1)
    random = np.random.default_rng(5)
    anywhere = random.integers(low, high + 1, (count // 2, 3))
    near = np.round(system.positions[:5].mean(0)) + random.integers(-4, 5, (count - count // 2, 3))
    return np.concatenate([anywhere, near]).astype(float)


def interpolated(points: np.ndarray) -> np.ndarray:
    """Return what trilinear interpolation of the map gives at points (M, 3), from :func:`potential` at the nodes."""
    points = np.asarray(points, float)
    base = np.floor(points)
    values = np.zeros(len(points))
    for corner in np.ndindex(2, 2, 2):
        weight = np.prod(np.where(corner, points - base, 1 - (points - base)), axis=1)
        values += weight * potential(base + corner)
    return values


@cache
def ions() -> list[tuple[str, tuple[float, float, float]]]:
    """Return the ions that the Python API places: name and position, A, in the order of the structure."""
    from vmdpotential import place_ions

    return [(ion.name, ion.position) for ion in place_ions(structure(), **ION_OPTIONS).ions]
