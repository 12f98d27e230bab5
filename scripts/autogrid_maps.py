#!/usr/bin/env python3
"""Compare nine maps of `probe` with those of the program autogrid4, for the same atoms and the same grid.

The receptor is HIV protease (1HVR), completed as `prepare` does it, without its ligand and water; the grid has 61^3
nodes, 0.375 A apart, so that the Coulomb energies are summed by parts. Prints the differences of the maps where an atom
can be, that is where the energy of a carbon is below 1 kcal/mol: their median, 99th percentile and maximum. AutoGrid
truncates distances to 0.01 A, reads energies from tables, and writes three decimals. So two more results are printed:
the remaining differences of C, A and N if our distances are truncated in the same way, and the errors of both programs'
Coulomb energies against the sum over all pairs, with truncated and with exact distances. Debian's package autogrid
contains the program.

`--nodes` and `--spacing` change the grid.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vmdpotential import prepare, read_structure
from vmdpotential.engines import get_engine
from vmdpotential.grid.lattice import Lattice
from vmdpotential.molecule.selection import select
from vmdpotential.plugins.probes import autodock
from vmdpotential.plugins.probes.autodock import COULOMB_WEIGHT, Receptor, autodock_maps, receptor
from vmdpotential.plugins.probes.interactions import SCREENED
from vmdpotential.units import coulomb_constant

DATA = Path(__file__).parent.parent / "data"
PROBES = ("C", "A", "N", "NA", "OA", "SA", "HD", "e", "d")

#: Step to which AutoGrid truncates distances, and smallest distance from a charge, A.
STEP, LEAST = 0.01, 0.5

#: Energy of a carbon below which an atom can be at a node, kcal/mol.
FREE = 1.0

Floats = NDArray[np.float64]


def rounded() -> Receptor:
    """Return the receptor, rounded to the digits of a PDBQT file."""
    structure = read_structure(DATA / "1hvr.pdb.gz")
    atoms = receptor(prepare(structure.part(select(structure, "protein"))).structure)
    return Receptor(atoms.positions.round(3), atoms.kinds, atoms.charges.round(3))


def autogrid(atoms: Receptor, lattice: Lattice, folder: Path) -> dict[str, Floats]:
    """Return the maps (nx, ny, nz) of the program by name."""
    lines = [f"ATOM  {n % 100000:5d}  {kind[:1]:<3s} ALA A{n // 10 % 10000:4d}    {x:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00"
             f"    {charge:6.3f} {kind:<2s}" for n, (kind, (x, y, z), charge) in enumerate(
                 zip(atoms.kinds.tolist(), atoms.positions.tolist(), atoms.charges.tolist(), strict=True), 1)]
    (folder / "r.pdbqt").write_text("\n".join(lines) + "\n")
    kinds = [probe for probe in PROBES if probe not in "ed"]
    centre = lattice.origin + lattice.spacing * (np.array(lattice.shape) - 1) / 2
    words = ["npts " + " ".join(str(n - 1) for n in lattice.shape), "gridfld r.fld", f"spacing {lattice.spacing[0]}",
             "receptor_types " + " ".join(sorted(set(atoms.kinds.tolist()))), "ligand_types " + " ".join(kinds),
             "receptor r.pdbqt", "gridcenter " + " ".join(f"{x:.3f}" for x in centre), f"smooth {LEAST}",
             *(f"map r.{kind}.map" for kind in kinds), "elecmap r.e.map", "dsolvmap r.d.map", "dielectric -0.1465"]
    (folder / "r.gpf").write_text("\n".join(words) + "\n")
    start = time.perf_counter()
    subprocess.run(["autogrid4", "-p", "r.gpf", "-l", "r.glg"], cwd=folder, check=True)
    print(f"autogrid4: {time.perf_counter() - start:.2f} s")
    return {name: np.loadtxt(folder / f"r.{name}.map", skiprows=6).reshape(lattice.shape[::-1]).T for name in PROBES}


def coulomb(atoms: Receptor, points: Floats, step: float) -> Floats:
    """Return the Coulomb energies (n,) at points, for distances truncated to multiples of `step`; 0 for exact ones."""
    bound, result = SCREENED.bind(), np.empty(len(points))
    for n, point in enumerate(points):
        r = np.maximum(np.linalg.norm(atoms.positions - point, axis=1), 1e-6)
        near = np.floor(r / step) * step if step else r
        # the truncated distance determines the permittivity, but not Coulomb's law
        values = bound(np.maximum(near, 1e-6)) * np.maximum(near, LEAST) / np.maximum(r, LEAST)
        result[n] = values @ atoms.charges
    return COULOMB_WEIGHT * coulomb_constant("kcal/mol/e") * result


def cut_dispersion(atoms: Receptor, points: Floats, name: str) -> Floats:
    """Return the change of the dispersion energies (n,) of a probe without hydrogen bonds by truncated distances."""
    probe, result = autodock.KINDS[name], np.zeros(len(points))
    for kind in set(atoms.kinds.tolist()):
        rows, atom = atoms.kinds == kind, autodock.KINDS[kind]
        depth = autodock.DISPERSION_WEIGHT * float(np.sqrt(probe.depth * atom.depth))
        bound = autodock.DISPERSION.bind(rmin=(probe.rmin + atom.rmin) / 2, smooth=autodock.SMOOTH,
                                         cap=autodock.CLAMP / depth, cutoff=autodock.CUTOFF)
        for n, point in enumerate(points):
            r = np.linalg.norm(atoms.positions[rows] - point, axis=1)
            r = r[r < autodock.CUTOFF]
            result[n] += depth * (bound(np.floor(r / STEP) * STEP) - bound(r)).sum()
    return result


def main() -> None:
    """Compare the maps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=61, help="number of nodes along each axis, odd (default 61)")
    parser.add_argument("--spacing", type=float, default=0.375, help="grid spacing, A (default 0.375)")
    options = parser.parse_args()
    atoms = rounded()
    middle = atoms.positions.mean(0).round(3)
    half = options.spacing * (options.nodes // 2)
    lattice = Lattice(middle - half, np.full(3, options.spacing), (options.nodes,) * 3)
    print(f"{len(atoms.kinds)} atoms, {options.nodes}^3 nodes {options.spacing} A apart")
    start = time.perf_counter()
    ours = autodock_maps(atoms, lattice, PROBES, get_engine("cpu"))
    print(f"probe: {time.perf_counter() - start:.2f} s, including compilation in the first run")
    with tempfile.TemporaryDirectory() as folder:
        theirs = autogrid(atoms, lattice, Path(folder))
    free = np.flatnonzero(theirs["C"] < FREE)
    print(f"map   median    99 %     largest, kcal/mol, at {len(free)} nodes")
    for name in PROBES:
        apart = np.abs(ours[name].values - theirs[name]).ravel()[free]
        print(f"{name:4s} {np.median(apart):.5f} {np.quantile(apart, 0.99):8.4f} {apart.max():8.4f}")
    nodes = np.random.default_rng(7).choice(free, min(4000, len(free)), replace=False)
    points = lattice.points()[nodes]
    for name in ("C", "A", "N"):
        apart = (theirs[name] - ours[name].values).ravel()[nodes]
        rest = apart - cut_dispersion(atoms, points, name)
        print(f"{name} at {len(nodes)} nodes: largest {np.abs(apart).max():.4f}, with truncated distances "
              f"{np.abs(rest).max():.4f} kcal/mol")
    exact, cut = (coulomb(atoms, points, step) for step in (0.0, STEP))
    mine, its = (maps.ravel()[nodes] for maps in (ours["e"].values, theirs["e"]))
    print(f"e at {len(nodes)} nodes, largest difference, kcal/mol: ours, all pairs {np.abs(mine - exact).max():.1e}, "
          f"autogrid4, all pairs with truncated distances {np.abs(its - cut).max():.1e}, "
          f"all pairs with truncated and with exact distances {np.abs(cut - exact).max():.1e}")


if __name__ == "__main__":
    main()
