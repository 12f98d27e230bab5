"""The files that are mutated: one system of 11 atoms and one map of 24 points, in every format that is read."""

from __future__ import annotations

import importlib.util
import io
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vmdpotential import write_map, write_structure
from vmdpotential.grid.lattice import Grid, Lattice, Provenance
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure, Topology
from vmdpotential.plugins.ions.placement import PlacedIon

NAMES = ["N", "CA", "C", "O", "SOD", "OH2", "H1", "H2", "OH2", "H1", "H2"]
RESIDUES = [0, 0, 0, 0, 1, 2, 2, 2, 3, 3, 3]
RESIDUE_NAMES = ["ALA", "SOD", "TIP3", "TIP3"]
CHARGES = [-0.47, 0.07, 0.51, -0.51, 1.0, -0.834, 0.417, 0.417, -0.834, 0.417, 0.417]


def system() -> Structure:
    """Return a residue, an ion and two waters in a triclinic cell, with bonds."""
    count = len(NAMES)
    index = np.array(RESIDUES)
    positions = np.random.default_rng(1).uniform(-5, 15, (count, 3)).round(3)
    topology = Topology(
        "psf", np.array(["NH1", "CT1", "C", "O", "SOD", "OT", "HT", "HT", "OT", "HT", "HT"]),
        np.array([14.007, 12.011, 12.011, 15.999, 22.99, 15.9994, 1.008, 1.008, 15.9994, 1.008, 1.008]),
        np.array([[0, 1], [1, 2], [2, 3], [5, 6], [5, 7], [8, 9], [8, 10]]),
        angles=np.array([[0, 1, 2], [1, 2, 3], [6, 5, 7], [9, 8, 10]]), dihedrals=np.array([[0, 1, 2, 3]]),
        impropers=np.array([[2, 0, 1, 3]]), title=(" REMARKS a system",),
    )
    return Structure(
        positions, np.array(NAMES), np.array(RESIDUE_NAMES)[index], index + 1, index,
        chain_ids=np.where(index == 0, "A", "W"), segment_ids=np.where(index == 0, "PROA", "WAT"),
        charges=np.array(CHARGES), hetero=index > 0, cell=Cell.from_parameters(20, 21, 22, 80, 85, 95),
        topology=topology, title="a small system",
    )


def grid() -> Grid:
    """Return a map with all of its provenance."""
    values = np.random.default_rng(2).normal(size=(2, 3, 4)).astype(np.float32)
    made = Provenance(method="pme", interaction="coulomb", boundary="periodic", cell=(20, 0, 0, 0, 20, 0, 0, 0, 20),
                      tolerance=1e-4, error=1e-5, inputs=("a.pdb", "b.psf"), program="vmdpotential")
    return Grid(Lattice(np.array([-3.0, 4.0, 7.5]), np.array([0.5, 0.5, 0.5]), (2, 3, 4)), values, "kT/e", 298.15, 1.0,
                made)


def gro() -> str:
    """Return the system as GROMACS writes it."""
    s = system()
    lines = ["a small system, t= 0.0", f"{len(s):5d}"]
    for n in range(len(s)):
        x, y, z = s.positions[n] / 10
        label = f"{s.residue_ids[n]:5d}{s.residue_names[n]:<5}{s.atom_names[n]:>5}{n + 1:5d}"
        lines.append(f"{label}{x:8.3f}{y:8.3f}{z:8.3f}")
    box = "".join(f"{x:10.5f}" for x in (2.0, 2.1, 2.1, 0.0, 0.0, -0.1, 0.0, 0.2, 0.3))
    return "\n".join([*lines, box]) + "\n"


def prmtop() -> str:
    """Return the topology as tleap writes it, with the sections that are read."""
    count, residues = len(NAMES), len(RESIDUE_NAMES)
    pointers = [0] * 31
    pointers[0], pointers[2], pointers[11], pointers[12], pointers[14], pointers[27] = count, 4, residues, 3, 1, 1

    def section(name: str, form: str, values: list[object], per_line: int, width: int, style: str) -> str:
        place = str.ljust if "a" in form else str.rjust
        texts = [place(style.format(value), width) for value in values]
        lines = ["".join(texts[i : i + per_line]) for i in range(0, len(texts), per_line)]
        return "\n".join([f"%FLAG {name}", f"%FORMAT({form})", *lines, *[""] * (not lines)])

    def integers(name: str, values: list[int]) -> str:
        return section(name, "10I8", list(values), 10, 8, "{}")

    def reals(name: str, values: list[float]) -> str:
        return section(name, "5E16.8", list(values), 5, 16, "{:.8E}")

    def words(name: str, values: list[str]) -> str:
        return section(name, "20a4", list(values), 20, 4, "{}")

    starts = [1 + RESIDUES.index(n) for n in range(residues)]
    return "\n".join([
        "%VERSION  VERSION_STAMP = V0001.000  DATE = 01/01/26  00:00:00", words("TITLE", ["small"]),
        integers("POINTERS", pointers), words("ATOM_NAME", NAMES), reals("CHARGE", [18.2223 * q for q in CHARGES]),
        integers("ATOMIC_NUMBER", [7, 6, 6, 8, 11, 8, 1, 1, 8, 1, 1]), reals("MASS", [12.01] * count),
        words("RESIDUE_LABEL", [name[:3] for name in RESIDUE_NAMES]), integers("RESIDUE_POINTER", starts),
        integers("BONDS_INC_HYDROGEN", [15, 18, 1, 15, 21, 1, 24, 27, 1, 24, 30, 1]),
        integers("BONDS_WITHOUT_HYDROGEN", [0, 3, 2, 3, 6, 2, 6, 9, 2]), integers("ANGLES_INC_HYDROGEN", []),
        integers("ANGLES_WITHOUT_HYDROGEN", []), integers("DIHEDRALS_INC_HYDROGEN", []),
        integers("DIHEDRALS_WITHOUT_HYDROGEN", [0, 3, 6, -9, 1]), words("AMBER_ATOM_TYPE", ["X"] * count),
        integers("RESIDUE_NUMBER", [1, 2, 3, 4]), words("RESIDUE_CHAINID", ["A", "W", "W", "W"]),
        reals("BOX_DIMENSIONS", [90, 20, 21, 22]),
    ]) + "\n"


def rst7() -> str:
    """Return coordinates and box as Amber writes them."""
    numbers = system().positions.ravel()
    lines = ["".join(f"{x:12.7f}" for x in numbers[i : i + 6]) for i in range(0, len(numbers), 6)]
    box = "".join(f"{x:12.7f}" for x in (20, 21, 22, 90, 90, 90))
    return "\n".join(["a small system", f"{len(NAMES):6d}", *lines, box]) + "\n"


def netcdf(positions: NDArray[np.float64], lengths: float = 20.0, moving: bool = False) -> bytes:
    """Return positions (N, 3) as an Amber restart, with velocities or not, or (frames, N, 3) as a trajectory."""
    from scipy.io import netcdf_file

    buffer = io.BytesIO()
    with netcdf_file(buffer, "w") as file:
        framed = positions.ndim == 3
        file.Conventions = b"AMBER" if framed else b"AMBERRESTART"
        for name, size in (("frame", None), ("atom", positions.shape[-2]), ("spatial", 3)):
            file.createDimension(name, size)
        for name, of, value in (("coordinates", ("atom", "spatial"), positions),
                                ("cell_lengths", ("spatial",), lengths), ("cell_angles", ("spatial",), 90.0),
                                *[("velocities", ("atom", "spatial"), positions)] * moving):
            variable = file.createVariable(name, "f4" if framed else "f8", (*("frame",) * framed, *of))
            if framed:
                for number, frame in enumerate(positions):
                    variable[number] = frame if name == "coordinates" else value
            else:
                variable[:] = value
        file.flush()
        return buffer.getvalue()


MOL2 = """@<TRIPOS>MOLECULE
small
 3 2 1 0 0
SMALL
USER_CHARGES
@<TRIPOS>ATOM
 1 O  0.000 0.000 0.000 O.3 1 HOH -0.834
 2 H1 0.957 0.000 0.000 H   1 HOH  0.417
 3 H2 -0.24 0.927 0.000 H   1 HOH  0.417
@<TRIPOS>BOND
 1 1 2 1
 2 1 3 1
"""
ITP = """[ moleculetype ]
SOL 2
[ atoms ]
1 OW 1 SOL OW 1 -0.834 16.0
2 HW 1 SOL HW1 1 0.417 1.008
3 HW 1 SOL HW2 1 0.417 1.008
[ bonds ]
1 2 1
1 3 1
"""
#: Of other programs: what their dialects have and ours lack.
AUTODOCK = ("GRID_PARAMETER_FILE a.gpf\nGRID_DATA_FILE a.maps.fld\nMACROMOLECULE a.pdbqt\nSPACING 0.375\n"
            "NELEMENTS 2 2 2\nCENTER 1.5 -2 3\n" + "0.125\n" * 27)
APBS = """# Data from APBS
# POTENTIAL (kT/e)
object 1 class gridpositions counts 2 2 2
origin -1.0e+00 0 0
delta 5.0e-01 0 0
delta 0 5.0e-01 0
delta 0 0 5.0e-01
object 2 class gridconnections counts 2 2 2
object 3 class array type double rank 0 items 8 data follows
1 2 3
4 5 6
7 8
attribute "dep" string "positions"
object "PME potential (kT/e, T=300K)" class field
"""
PSF_NAMD = """PSF NAMD

       1 !NTITLE
 REMARKS names that do not fit

       3 !NATOM
1 WATERSEG 1 TIP3LONG OH2 OT -0.834 15.9994 0
2 WATERSEG 1 TIP3LONG H1 HT 0.417 1.008 0
3 WATERSEG 1 TIP3LONG H2 HT 0.417 1.008 0

       2 !NBOND
1 2 1 3

       2 !NNB
2 3
0 0 2

       1       0 !NGRP NST2
0 1 0

       1       2 !NUMLP NUMLPH
 1 1 F 0.1 0.2 0.3
 1 2
"""


def seeds() -> dict[str, list[tuple[str, bytes]]]:
    """Return (suffix, content) by what reads them: ``structure``, ``topology``, ``frame``, ``map`` and ``ions``."""
    result: dict[str, list[tuple[str, bytes]]] = {"structure": [], "topology": [], "frame": [], "map": [], "ions": []}
    with tempfile.TemporaryDirectory() as folder:
        def written(suffix: str, write: object, value: object) -> bytes:
            path = Path(folder) / f"seed{suffix}"
            write(value, path)  # type: ignore[operator]
            return path.read_bytes()

        for suffix in (".pdb", ".cif", ".pqr"):
            result["structure"].append((suffix, written(suffix, write_structure, system())))
        result["topology"].append((".psf", written(".psf", write_structure, system())))
        for suffix in (".dx", ".dx.gz", ".mrc", ".ccp4", ".cube", ".npz"):
            result["map"].append((suffix, written(suffix, write_map, grid())))
    pdb = result["structure"][0][1]
    models = b"".join(b"MODEL     %4d\n%s\nENDMDL\n" % (n, pdb.replace(b"END", b"")) for n in (1, 2))
    result["structure"] += [(".pdb", models), (".gro", gro().encode()), (".mol2", MOL2.encode())]
    result["topology"] += [(".prmtop", prmtop().encode()), (".psf", PSF_NAMD.encode()), (".itp", ITP.encode()),
                          *result["structure"][:3]]
    result["map"] += [(".dx", APBS.encode()), (".dx", APBS.encode()), (".map", result["map"][2][1]),
                     (".map", AUTODOCK.encode())]
    values = np.arange(8, dtype=">f4").tobytes()
    binary = APBS.replace("items 8 data", "items 8 ieee msb binary data").replace("double", "float").encode()
    result["map"].append((".dx", binary.replace(b"1 2 3\n4 5 6\n7 8\n", values + b"\n")))
    plain = result["map"][2][1]
    swapped = bytearray(np.frombuffer(plain, "<i4").byteswap().tobytes())
    texts = 1024 + int.from_bytes(plain[92:96], "little")
    for start, stop in ((104, 108), (208, 212), (224, texts)):
        swapped[start:stop] = plain[start:stop]
    swapped[212:214] = b"\x11\x11"
    result["map"].append((".mrc", bytes(swapped)))
    result["frame"] += [(".rst7", rst7().encode()), (".pdb", pdb)]
    result["frame"] += [(".nc", netcdf(np.stack([system().positions] * 2))), (".ncrst", netcdf(system().positions))]
    row = ",".join(["SOD", "1", "", "0", "1", "1.5", "2.5", "3.5"][: len(PlacedIon.COLUMNS)])
    table = ",".join(PlacedIon.COLUMNS) + "\n" + row + "," * (len(PlacedIon.COLUMNS) - row.count(",") - 1) + "\n"
    result["ions"].append((".csv", table.encode() * 1))
    result["ions"].append((".csv", b"name,residue_id,charge,x_A,y_A,z_A\nSOD,5,1,1.5,2.5,3.5\nCLA,6,-1,4,5,6\n"))
    if importlib.util.find_spec("MDAnalysis"):
        result["frame"] += frames((".dcd", ".xtc", ".trr"))
    if importlib.util.find_spec("MDAnalysis") and (tests := importlib.util.find_spec("MDAnalysisTests")):
        # nothing but GROMACS writes these
        tpr = (Path(str(tests.origin)).parent / "data" / "tprs" / "all_bonded" / "dummy_2021.tpr").read_bytes()
        result["structure"].append((".tpr", tpr))
        result["topology"].append((".tpr", tpr))
    return result


def frames(suffixes: tuple[str, ...], positions: NDArray[np.float64] | None = None) -> list[tuple[str, bytes]]:
    """Return trajectories of two frames of the system, or of positions (N, 3), as MDAnalysis writes them."""
    import warnings

    import MDAnalysis

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        places = system().positions if positions is None else positions
        universe = MDAnalysis.Universe.empty(len(places), trajectory=True)
        universe.atoms.positions = places
        universe.dimensions = [20, 21, 22, 90, 90, 90]
        result = []
        for suffix in suffixes:
            path = Path(folder) / f"seed{suffix}"
            with MDAnalysis.Writer(str(path), len(places)) as writer:
                writer.write(universe.atoms)
                writer.write(universe.atoms)
            result.append((suffix, path.read_bytes()))
    return result
