"""Good and broken inputs of the program, and what its one line must say of them."""

import gzip
import importlib.util
import itertools
import random
import re
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.io import write_map


def package(name):
    return Path(importlib.util.find_spec(name).origin).parent


FILES = package("MDAnalysisTests") / "data"
TOOLS = package("openmmtools") / "data"
PROGRAM = [sys.executable, "-m", "vmdpotential"]


# ---- the inputs: a box of 64 waters, an ion, a map, and what can be wrong with each ----------------------

EDGE = 4
WATER = (("OH2", -0.834, (0.0, 0.0, 0.0)), ("H1", 0.417, (0.957, 0.0, 0.0)), ("H2", 0.417, (-0.24, 0.927, 0.0)))
CELL = "   12.800   12.800   12.800  90.00  90.00  90.00"
ION = "ATOM 1 C X 1 0.0 0.0 0.0 1.0 1.0\n"
LIGAND = "HETATM  900  C1  L99L   1       6.100   6.100   6.100  1.00  0.00\n"


def water_atoms():
    """Yield serial, name, residue number, charge and position."""
    for residue in range(EDGE**3):
        corner = 3.2 * np.array([residue // EDGE**2, residue // EDGE % EDGE, residue % EDGE])
        for place, (name, charge, shift) in enumerate(WATER):
            yield 3 * residue + place + 1, name, residue + 1, charge, corner + shift


def water_pdb(cell=CELL):
    lines = [f"CRYST1{cell} P 1           1\n"] if cell else []
    for serial, name, residue, _, (x, y, z) in water_atoms():
        lines.append(f"ATOM  {serial:5d}  {name:<3} TIP3W{residue:4d}    {x:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00\n")
    return "".join(lines) + "END\n"


def water_psf():
    lines = ["PSF", "", "       1 !NTITLE", " REMARKS waters", "", f"{3 * EDGE**3:8d} !NATOM"]
    for serial, name, residue, charge, _ in water_atoms():
        kind, mass = ("OT", 15.9994) if name == "OH2" else ("HT", 1.008)
        lines.append(f"{serial:8d} W    {residue:<4d} TIP3 {name:<4} {kind:<4} {charge:10.6f} {mass:13.4f}           0")
    bonds = [f"{3 * i + 1:8d}{3 * i + k:8d}" for i in range(EDGE**3) for k in (2, 3)]
    lines += ["", f"{len(bonds):8d} !NBOND: bonds", *("".join(bonds[i : i + 4]) for i in range(0, len(bonds), 4)), ""]
    return "\n".join(lines) + "\n"


CIF = """data_x
loop_
_atom_site.id
_atom_site.type_symbol
_atom_site.label_atom_id
_atom_site.label_comp_id
_atom_site.label_asym_id
_atom_site.label_seq_id
_atom_site.Cartn_x
_atom_site.Cartn_y
_atom_site.Cartn_z
1 O O HOH A 1 0.0 0.0 0.0
2 H H1 HOH A 1 NaN 0.0 0.0
"""
GRO = "waters\n    3\n" + "".join(
    f"    1SOL  {name:>5}{n:5d}   0.{n}00   0.000   0.000\n" for n, name in enumerate(("OW", "HW1", "HW2"), 1))
DX = """object 1 class gridpositions counts 3 3 3
origin 0 0 0
delta 1 0 0
delta 0 1 0
delta 0 0 1
object 2 class gridconnections counts 3 3 3
object 3 class array type double rank 0 items 27 data follows
""" + "1 2 3\n" * 9
STRUCTURES = ("bin", "pdb", "cif", "gro", "pqr", "psf", "prmtop", "rst7", "nc", "tpr", "xtc", "dcd", "coor", "pdb.gz")
MAPS = ("dx", "dx.gz", "mrc", "ccp4", "cube", "npz")


def fill(folder):
    """Write good and broken inputs."""
    def put(name, content):
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    pdb, psf = water_pdb(), water_psf()
    put("box.pdb", pdb)
    put("box.psf", psf)
    put("ion.pqr", ION)
    put("precious.dx", "a precious file")
    (folder / "folder.pdb").mkdir()
    (folder / "folder.dx").mkdir()
    (folder / "dangling.pdb").symlink_to("nowhere.pdb")
    junk = random.Random(1).randbytes(5000)
    for suffix in (*STRUCTURES, *MAPS):
        put(f"junk.{suffix}", junk)
        put(f"empty.{suffix}", "")
    put("blank.pdb", "\n \n")
    put("header.pdb", "HEADER    nothing else\nEND\n")
    put("cut.pdb", pdb[: pdb.index("ATOM     50") + 40])
    for word in ("nan", "inf"):
        put(f"{word}.pdb", pdb.replace("   9.600   9.600   9.600", f"     {word}   9.600   9.600"))
    put("stars.pdb", pdb.replace("   9.600   9.600   9.600", "********   9.600   9.600"))
    for name, cell in {
        "zero": "    0.000   12.800   12.800  90.00  90.00  90.00",
        "negative": "  -12.800   12.800   12.800  90.00  90.00  90.00",
        "open": "   12.800   12.800   12.800  10.00  90.00 150.00",
        "flat": "   12.800   12.800   12.800  90.00  90.00   0.00",
        "tiny": "    0.010    0.010    0.010  90.00  90.00  90.00",
        "huge": "  1e+300   12.800   12.800  90.00  90.00  90.00",
        "words": "   twelve point eight",
    }.items():
        put(f"cell-{name}.pdb", water_pdb(cell))
    put("nocell.pdb", water_pdb(""))
    put("pdb.cif", pdb)
    put("pdb.gro", pdb)
    put("nan.cif", CIF)
    put("columns.cif", CIF.replace("_atom_site.Cartn_z\n", "").replace(" 0.0\n", "\n"))
    put("cut.gro", GRO)
    put("nan.gro", GRO.replace("0.200", "  nan") + "   1.0 1.0 1.0\n")
    put("cell.gro", GRO + "   1.0 1.0 0.0\n")
    put("nan.pqr", ION.replace("1.0 1.0\n", "nan 1.0\n"))
    put("far.pqr", ION + ION.replace("0.0 0.0 0.0", "1e300 0.0 0.0"))
    put("cut.pdb.gz", gzip.compress(pdb.encode())[:-200])
    put("plain.pdb.gz", pdb)
    put("ligand.pdb", pdb.replace("END\n", LIGAND + "END\n"))
    put("bare.pdb", "".join(line for line in pdb.splitlines(True) if " H1 " not in line))
    lines = pdb.splitlines(True)
    put("short.pdb", "".join(lines[:-4]))
    put("swapped.pdb", "".join([lines[0], lines[2], lines[1], *lines[3:]]))

    put("cut.psf", psf[: len(psf) // 2])
    put("bonds.psf", psf[:-60])
    put("nan.psf", psf.replace("-0.834000", "      nan", 1))
    put("word.psf", psf.replace("-0.834000", "  minus  ", 1))
    put("range.psf", psf.replace("       1       2", "     999       2", 1))
    put("charged.psf", psf.replace("-0.834000", "-0.334000", 1))
    prmtop = (FILES / "Amber" / "bala.prmtop").read_bytes()
    put("cut.prmtop", prmtop[: len(prmtop) // 2])
    put("counts.prmtop", prmtop.replace(b"\n%FLAG CHARGE ", b"\n  1.0E+00\n%FLAG CHARGE ").replace(
        b"%FLAG CHARGE ", b"%FLAG CHARGES"))
    for name, source, size in (
        ("cut.nc", TOOLS / "dhfr" / "JAC.inpcrd", 200_000), ("cut.tpr", FILES / "281_small.tpr", 100_000),
        ("other.xtc", FILES / "xtc_test_only_10_frame_10_atoms.xtc", None),
        ("cut.dcd", FILES / "tip125_tric_C36.dcd", 300), ("other.psf", FILES / "tip125_tric_C36.psf", None),
    ):
        put(name, source.read_bytes()[:size])

    values = np.arange(729.0).reshape(9, 9, 9)
    grid = Grid(Lattice(np.full(3, -2.0), np.full(3, 0.5), (9, 9, 9)), values, "kT/e", 298.15)
    for suffix in MAPS:
        write_map(grid, folder / f"good.{suffix}")
        data = (folder / f"good.{suffix}").read_bytes()
        put(f"cut.{suffix}", data[: len(data) * 2 // 3])
    write_map(Grid(grid.lattice, values, "V"), folder / "volt.dx")
    put("dx.mrc", DX + "#" * 2000)
    put("dx.npz", DX)
    put("mrc.dx", (folder / "good.mrc").read_bytes())
    put("words.txt", "no map\n" * 300)


# ---- what goes wrong, and what is said of it -----------------------------------------------------------


class Case(NamedTuple):
    """One thing that goes wrong; files in `in/` are those of :func:`fill`, others are written where the test runs."""

    code: int
    command: str
    names: str
    hint: str


AGAIN = "write it again"
MAP_OF_ION = ["map", "in/ion.pqr", "-o", "m.dx"]


def state(folder):
    return {path.name: (path.lstat().st_size, path.lstat().st_mtime_ns) for path in folder.iterdir()}


def check(case, code, out, err):
    assert (code, out) == (case.code, ""), err
    line = one_line(err)
    assert case.names in line, line
    assert case.hint in line, line


def without_progress(err):
    """Return stderr without the progress of work longer than two seconds."""
    return re.sub(r"^[a-z ()]+( \.\.\.|: +(\d+ %, .* left|[\d.]+ s))\n", "", err, flags=re.MULTILINE)


def one_line(err):
    """Return the one line on stderr, after a look at its form."""
    err = without_progress(err)
    assert err.startswith("vmdpotential: "), err
    assert err.endswith("\n")
    line = err[:-1]
    assert line.isprintable()
    assert line == " ".join(line.split())
    return line


def outputs(words):
    """Return the files that a command would write."""
    return [Path(word) for option, word in itertools.pairwise(words) if option in ("-o", "--table")]


def result(done):
    return done.returncode, done.stdout, done.stderr
