"""Maps and files of maps that tests write."""

from __future__ import annotations

import numpy as np
from scipy import constants

from vmdpotential.grid.lattice import Grid, Lattice, Provenance

BOHR = constants.physical_constants["Bohr radius"][0] / constants.angstrom
# largest relative error that the digits of a format leave
DIGITS = {".dx": 6e-7, ".dx.gz": 6e-7, ".cube": 6e-6, ".cub": 6e-6}

PROVENANCE = Provenance(
    method="cutoff", interaction="shifted coulomb", boundary="periodic", cutoff=12.0, tolerance=1e-4,
    cell=(38.4265938, 0, 0, 19.1797637, 33.2590814, 0, -1e-6, -123.456789, 44.7598),
    precision="single", engine="cpu", atoms="solute", program="vmdpotential 0.1.0",
    inputs=("my protein; 100%.psf", "/a  long/folder, with 'quotes' and Ångström/" + "x" * 150 + ".pdb"),
)

#: Lattice of many steps of no round length, for :func:`make`.
FAR = {"shape": (300, 2, 3), "origin": (-70.123456789, 1 / 3, 1e-7),
       "spacing": (61.64472315757705 / 124, 1 / 3, 2 / 3)}


def make(shape=(5, 6, 7), origin=(-3, 4, 7.5), spacing=(0.5, 0.75, 1.25), seed=1, **changes):
    values = np.random.default_rng(seed).normal(size=shape).astype(np.float32) * 40
    settings = {"unit": "kT/e", "temperature": 298.15, "dielectric": 2.0, "provenance": PROVENANCE} | changes
    return Grid(Lattice(origin, spacing, shape), values, **settings)


def writable(suffix, **kwargs):
    # a .ccp4 file starts at whole spacings
    return make(**({"origin": (-3, 4.5, 7.5)} | kwargs if suffix == ".ccp4" else kwargs))


def dx_text(values="1 2 3\n4 5 6\n7 8\n", head="", counts="2 2 2", items="8", kind="double", **parts):
    deltas = parts.get("deltas", "delta 0.5 0 0\ndelta 0 0.5 0\ndelta 0 0 0.5\n")
    return (
        f"{head}object 1 class gridpositions counts {counts}\norigin -3 4 7.5\n{deltas}"
        f"object 2 class gridconnections counts {counts}\n"
        f"object 3 class array type {kind} rank 0 items {items} {parts.get('data', 'data follows')}\n{values}"
        f"{parts.get('tail', '')}"
    )


COUNTING = np.arange(1, 9).reshape(2, 2, 2)


def cube_text(values="1 2\n3 4\n5 6\n7 8\n", natoms="1", counts=(2, 2, 2), extra="", atom="8 8.0 0 0 0\n", steps=None):
    steps = steps or ("0.5 0 0", "0 0.5 0", "0 0 0.5")
    rows = "".join(f"{n} {step}\n" for n, step in zip(counts, steps, strict=True))
    return f"title\ncomment\n{natoms} 1 2 3{extra}\n{rows}{atom}{values}"


def autodock_text(values, counts="2 2 2", spacing="0.375"):
    return (f"GRID_PARAMETER_FILE a.gpf\nGRID_DATA_FILE a.maps.fld\nMACROMOLECULE a.pdbqt\nSPACING {spacing}\n"
            f"NELEMENTS {counts}\nCENTER 1.5 -2 3\n{values}\n")
