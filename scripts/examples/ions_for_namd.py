"""Ions for NAMD.

A solvated protein from psfgen (PDB and PSF with CHARMM's names) gets neutralising ions and 0.15 mol/L of salt. Each ion
replaces the water with the lowest energy in the potential of the protein and of the ions placed before it. PDB and PSF
are written for NAMD with the ions' CHARMM names, types, charges and masses, and so are the lines of the configuration
file that set the periodic cell. The picture shows the screened potential of the protein and all ions on a plane with
ions.
"""

import sys
from pathlib import Path

import vmdpotential as vp

DATA = Path(__file__).resolve().parents[2] / "data"
out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/ions_for_namd")
out.mkdir(parents=True, exist_ok=True)

structure = vp.read_structure(DATA / "dhfr.pdb.gz", topology=DATA / "dhfr.psf.gz")
placed = vp.place_ions(structure, cation="SOD", anion="CLA", concentration=0.15)
print(f"net charge {structure.charges.sum():+.0f} e, then {placed.structure.charges.sum():+.0f} e with "
      f"{len(placed.ions)} ions")

vp.write_structure(placed.structure, out / "ionized.pdb", force=True)
vp.write_structure(placed.structure, out / "ionized.psf", force=True)
ions = placed.to_dataframe()
ions.to_csv(out / "ions.csv", index=False)

lines = ["structure ionized.psf", "coordinates ionized.pdb"]
for n, vector in enumerate(placed.structure.cell.vectors, 1):
    lines.append("cellBasisVector{} {:.4f} {:.4f} {:.4f}".format(n, *vector))
(out / "ionized.namd").write_text("\n".join(lines) + "\n")

potential = vp.potential_map(placed.structure, atoms="not water", medium="screened", spacing=1.0)
axes = potential.plot(plane=f"z={ions['z_A'].median():.0f}", structure=placed.structure, slab=4, value_range=(-5, 5))
axes.figure.savefig(out / "ions.png", dpi=300)
