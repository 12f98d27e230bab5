#!/usr/bin/env python3
"""Compare the errors that the method `pb` states with the actual errors, from finer grids, for 50 structures.

These are fragments of T4 lysozyme (openmmtools) and of dihydrofolate reductase (data/), drug-sized molecules, and whole
proteins. A spacing of 0.6 A is compared with 0.15 A, or with 0.3 A for large structures. The script prints a line for
each structure, and how many actual errors are larger than the stated ones. It takes a quarter of an hour and 4 GB.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from vmdpotential import read_structure
from vmdpotential.grid.lattice import Lattice
from vmdpotential.maps import MapOptions, plan_map
from vmdpotential.molecule.radii import atomic_radii
from vmdpotential.molecule.structure import Structure
from vmdpotential.sums.result import Result, SolvationTerms
from vmdpotential.surfaces import region

DATA = Path(__file__).parent.parent / "data"
OTHERS = Path(importlib.util.find_spec("openmmtools").origin).parent / "data"  # its import needs much else

#: Largest number of nodes of a grid with a quarter of the spacing; otherwise half the spacing is used.
MAX_NODES = 60_000_000


def fragments(structure: Structure, step: int, lengths: tuple[int, ...]) -> Iterator[tuple[str, Structure]]:
    """Yield fragments of a chain, whose numbers of residues cycle through `lengths`."""
    starts = structure.residue_starts
    for count, first in enumerate(range(3, len(starts) - 1 - max(lengths), step)):
        last = first + lengths[count % len(lengths)]
        rows = np.zeros(len(structure), bool)
        rows[starts[first] : starts[last]] = True
        yield f"residues {first + 1} to {last}", structure.part(rows)


def structures() -> Iterator[tuple[str, Structure, float]]:
    """Yield the name, the structure with charges, and the grid spacing of each case."""
    lysozyme, t4 = OTHERS / "T4-lysozyme-L99A-implicit", []
    for name in ("receptor", "ligand", "complex"):
        t4.append(read_structure(lysozyme / f"{name}.pdb", topology=lysozyme / f"{name}.prmtop"))
    dhfr = read_structure(DATA / "dhfr.pdb.gz", topology=DATA / "dhfr.psf.gz")
    protein = dhfr.part(np.arange(len(dhfr)) < 2489)
    for name, whole, step in (("T4 lysozyme", t4[0], 7), ("DHFR", protein, 7)):
        for piece, structure in fragments(whole, step, (1, 2, 3, 5, 8)):
            yield f"{name} {piece}", structure, 0.6
    yield "p-xylene", t4[1], 0.6
    for name in ("receptor", "ligand"):
        stem = OTHERS / "cb7-viologen" / "leap" / name
        host = read_structure(stem.with_suffix(".pdb"), topology=stem.with_suffix(".prmtop"))
        yield f"CB7 and viologen, {name}", host, 0.6
    yield "T4 lysozyme", t4[0], 0.6
    yield "T4 lysozyme and p-xylene", t4[2], 0.6
    yield "DHFR", protein, 0.6


def solve(structure: Structure, radii: str, lattice: Lattice, gaussian: float) -> tuple[Result, SolvationTerms]:
    """Return the solution on a lattice, and its energies."""
    result = plan_map(structure, MapOptions(method="pb", radii=radii, boundary="open", tolerance=1e-3,
                                            parameters={"gaussian": gaussian}), lattice=lattice)[1]
    assert result.solvated is not None
    return result, result.solvated


def compare(structure: Structure, spacing: float, gaussian: float) -> tuple[list[float], list[float], int]:
    """Return the stated and the actual errors outside, at the surface and of the energy, and the ratio of spacings."""
    lattice = Lattice.around(structure.positions, spacing, 6.0)
    ratio = 4 if 64 * lattice.size < MAX_NODES else 2
    shape = tuple(ratio * (n - 1) + 1 for n in lattice.shape)
    finer = Lattice(lattice.origin, lattice.spacing / ratio, (shape[0], shape[1], shape[2]))
    radii = "auto" if structure.radii is not None else "bondi"
    values = atomic_radii(structure, np.ones(len(structure), bool), radii)[0]
    (result, solvated), (exact, solvated_finer) = (
        solve(structure, radii, each, gaussian) for each in (lattice, finer))
    own = (slice(None, None, ratio),) * 3
    surface = region.Surface(structure.positions, values, 1.4)
    inside = surface.distances(lattice) < 0
    outside = ~(inside | (surface.distances(finer)[own] < 0))
    near = np.zeros_like(inside)
    for axis in range(3):
        for step in (-1, 1):
            near |= np.roll(inside, step, axis)
    a, b = result.values().astype(np.float64), exact.values()[own].astype(np.float64)

    def relative(chosen: np.ndarray) -> float:
        return float(np.sqrt(np.mean((a - b)[chosen] ** 2) / np.mean(b[chosen] ** 2)))

    total = float(solvated_finer.energies.sum())
    assert result.errors is not None
    stated = [result.errors.everywhere, result.errors.away, solvated.error / abs(total)]
    return stated, [relative(outside), relative(near & outside), abs(float(solvated.energies.sum()) / total - 1)], ratio


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only every fifth structure")
    parser.add_argument("--gaussian", type=float, default=0.0, help="width of the densities of a smooth permittivity")
    arguments = parser.parse_args()
    cases = list(structures())[:: 5 if arguments.quick else 1]
    ratios = []
    for name, structure, spacing in cases:
        stated, actual, finer = compare(structure, spacing, arguments.gaussian)
        ratios.append([true / claimed for true, claimed in zip(actual, stated, strict=True)])
        print(f"{name:32} {len(structure):5} atoms, {spacing:g} A against {spacing / finer:g} A, "
              "actual (stated): " + ", ".join(
            f"{where} {100 * true:.2f} ({100 * claimed:.2f}) %" for where, true, claimed in zip(
                ("outside", "at the surface", "energy"), actual, stated, strict=True)), flush=True)
    for where, column in zip(("outside", "at the surface", "energy"), np.array(ratios).T, strict=True):
        print(f"{where}: {np.sum(column > 1)} of {len(column)} actual errors are larger than the stated ones; "
              f"median of their ratio {np.median(column):.2f}, largest {column.max():.2f}")


if __name__ == "__main__":
    main()
