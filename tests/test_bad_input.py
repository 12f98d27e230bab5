"""What goes wrong, through the shell program: exit code, one line with the cure, and nothing left behind or lost."""

import gzip
import importlib.util
import itertools
import os
import random
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from vmdpotential import progress, read_map, read_structure
from vmdpotential.frontend import cli
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
    put("skew.dx", DX.replace("delta 1 0 0", "delta 1 0.5 0"))
    put("more.dx", DX.replace("1 2 3\n", "1 2 3 4\n", 3))
    put("items.dx", DX.replace("items 27", "items 26"))
    put("nan.dx", DX.replace("1 2 3\n", "1 nan 3\n", 1))
    put("word.dx", DX.replace("1 2 3\n", "1 two 3\n", 1))
    put("huge.dx", DX.replace("3 3 3", "300000 300000 300000").replace("items 27", f"items {27 * 10**15}"))
    put("dx.mrc", DX + "#" * 2000)
    put("dx.npz", DX)
    put("mrc.dx", (folder / "good.mrc").read_bytes())
    put("words.txt", "no map\n" * 300)
    mrc = (folder / "good.mrc").read_bytes()
    for name, word, value in (
        ("mode", 4, struct.pack("<i", 4)), ("counts", 1, struct.pack("<i", 999)), ("angles", 14, struct.pack("<f", 80)),
        ("cell", 11, struct.pack("<f", 0)), ("nan", len(mrc) // 4, struct.pack("<f", np.nan)),
    ):
        put(f"{name}.mrc", mrc[: 4 * word - 4] + value + mrc[4 * word :])
    cube = (folder / "good.cube").read_text().splitlines(True)
    put("counts.cube", "".join([*cube[:3], cube[3].replace("9", "99", 1), *cube[4:]]))
    np.savez(folder / "lacks.npz", values=np.zeros((2, 2, 2)), origin=np.zeros(3))
    np.savez(folder / "objects.npz", values=np.array([{}]), origin=np.zeros(3), spacing=np.ones(3))
    np.savez(folder / "vector.npz", values=np.zeros((2, 2, 2)), origin=np.zeros(2), spacing=np.ones(3))
    np.savez(folder / "nan.npz", values=np.full((2, 2, 2), np.nan), origin=np.zeros(3), spacing=np.ones(3))


# ---- the table: exit code, command, what the line names, and the cure in it ------------------------------


class Case(NamedTuple):
    """One thing that goes wrong; files in `in/` are those of :func:`fill`, others are written where the test runs."""

    code: int
    command: str
    names: str
    cure: str


AGAIN = "write it again"
LONG = "a" * 300
WITH_PSF = "map in/box.pdb -o m.dx --topology"
TABLE = [
    # structures that cannot be read
    Case(2, "map in/missing.pdb -o m.dx", "in/missing.pdb", "check its name and folder"),
    Case(2, "map in/folder.pdb -o m.dx", "in/folder.pdb", "name a file"),
    Case(2, "map in/dangling.pdb -o m.dx", "in/dangling.pdb: is a link to nowhere.pdb", "link it to another"),
    Case(2, "map in/empty.pdb -o m.dx", "in/empty.pdb: is empty", "copy it again"),
    Case(2, "map in/blank.pdb -o m.dx", "in/blank.pdb: is empty", "copy it again"),
    Case(2, "map in/empty.pdb.gz -o m.dx", "in/empty.pdb.gz: is empty", "copy it again"),
    Case(2, "map in/empty.tpr -o m.dx", "in/empty.tpr: is empty", "copy it again"),
    Case(2, "map in/header.pdb -o m.dx", "in/header.pdb", AGAIN),
    Case(2, "map in/cut.pdb -o m.dx", "in/cut.pdb: line 51", AGAIN),
    Case(2, "map in/stars.pdb -o m.dx", "in/stars.pdb: line 191", AGAIN),
    Case(2, "map in/nan.pdb -o m.dx", "atom 190 (TIP364:OH2)", "repair or remove it"),
    Case(2, "map in/inf.pdb -o m.dx", "atom 190 (TIP364:OH2)", "repair or remove it"),
    Case(2, "map in/nan.cif -o m.dx", "atom 2 (HOH1:H1)", "repair or remove it"),
    Case(2, "map in/nan.gro -o m.dx", "atom 2 (SOL1:HW1)", "repair or remove it"),
    Case(2, "map in/nan.pqr -o m.dx", "atom 1 (X1:C) has a charge", "repair the topology"),
    Case(2, "map in/columns.cif -o m.dx", "_atom_site.Cartn_z", AGAIN),
    Case(2, "map in/cut.gro -o m.dx", "in/cut.gro", "cut short"),
    Case(2, "map in/pdb.cif -o m.dx", "in/pdb.cif", "give it the suffix of its format"),
    Case(2, "map in/pdb.gro -o m.dx", "in/pdb.gro: line 2", "give it the suffix of its format"),
    Case(2, "map in/plain.pdb.gz -o m.dx", "in/plain.pdb.gz: is not a gzip file", "rename it"),
    Case(2, "map in/cut.pdb.gz -o m.dx", "in/cut.pdb.gz: the gzip file", "copy it again"),
    Case(2, "map in/junk.bin -o m.dx", "in/junk.bin: its format is not recognised", "known are PDB"),
    *(Case(2, f"map in/junk.{suffix} -o m.dx", f"in/junk.{suffix}", cure) for suffix, cure in (
        ("pdb", AGAIN), ("cif", AGAIN), ("gro", AGAIN), ("pqr", AGAIN), ("tpr", AGAIN), ("pdb.gz", "rename it"))),
    Case(2, "map in/box.psf -o m.dx", "in/box.psf: a topology has no coordinates", "give the coordinate file"),
    Case(2, "map in/cut.nc -o m.dx", "in/cut.nc", "as --topology"),
    # cells
    Case(2, "map in/cell-zero.pdb --boundary periodic -o m.dx", "in/cell-zero.pdb", "use --boundary open"),
    Case(2, "map in/nocell.pdb --boundary periodic -o m.dx", "in/nocell.pdb", "use --boundary open"),
    Case(2, "map in/cell-negative.pdb -o m.dx", "line 1: the periodic cell -12.8", "lengths must be positive"),
    Case(2, "map in/cell-open.pdb -o m.dx", "angles 10 90 150 close no cell", "correct them"),
    Case(2, "map in/cell-flat.pdb -o m.dx", "in/cell-flat.pdb: line 1", "angles between 0 and 180"),
    Case(2, "map in/cell-tiny.pdb -o m.dx", "in/cell-tiny.pdb: 192 atoms do not fit", "correct the cell"),
    Case(2, "map in/cell-huge.pdb -o m.dx", "a lattice of 2e+300", "correct atoms or the cell"),
    Case(2, "map in/cell-words.pdb -o m.dx", "in/cell-words.pdb: line 1: CRYST1", AGAIN),
    Case(2, "map in/cell.gro -o m.dx", "in/cell.gro: line 6", AGAIN),
    Case(3, "ionize in/cell-tiny.pdb --ions SOD=1 -o i.pdb", "repeats every 0.0 A", "lower --between"),
    # topologies
    Case(2, f"{WITH_PSF} in/missing.psf", "in/missing.psf", "check its name and folder"),
    Case(2, f"{WITH_PSF} in/folder.pdb", "in/folder.pdb", "name a file"),
    Case(2, f"{WITH_PSF} in/other.psf", "in/box.pdb has 192 atoms, but in/other.psf has 375", "exactly these atoms"),
    Case(2, "map in/short.pdb --topology in/box.psf -o m.dx", "in/short.pdb has 189 atoms", "exactly these atoms"),
    Case(2, "map in/swapped.pdb --topology in/box.psf -o m.dx", "atom 1 is TIP31:H1", "that belongs to"),
    Case(2, f"{WITH_PSF} in/cut.psf", "in/cut.psf: line 6 promises 192 atoms", AGAIN),
    Case(2, f"{WITH_PSF} {FILES / 'adk_notop_BAD.psf'}", "adk_notop_BAD.psf: line 7 promises 3341", AGAIN),
    Case(2, f"{WITH_PSF} in/bonds.psf", "in/bonds.psf: section !NBOND", AGAIN),
    Case(2, f"{WITH_PSF} in/nan.psf", "in/nan.psf: atom 1 (TIP31:OH2)", "repair the topology"),
    Case(2, f"{WITH_PSF} in/word.psf", "in/word.psf: line 7: charge 'minus'", AGAIN),
    Case(2, f"{WITH_PSF} in/range.psf", "entry 1 names atom 999", AGAIN),
    Case(2, f"{WITH_PSF} in/junk.psf", "in/junk.psf: line 1: holds a NUL byte", AGAIN),
    Case(2, f"{WITH_PSF} in/junk.prmtop", "in/junk.prmtop: line 1: holds a NUL byte", AGAIN),
    Case(2, f"{WITH_PSF} in/cut.prmtop", "in/cut.prmtop: has no section", AGAIN),
    Case(2, f"{WITH_PSF} in/counts.prmtop", "in/counts.prmtop", AGAIN),
    Case(2, f"{WITH_PSF} in/cut.tpr", "in/cut.tpr: MDAnalysis cannot read it", AGAIN),
    Case(2, f"{WITH_PSF} in/junk.nc", "in/junk.nc: holds coordinates", "give a PSF"),
    Case(2, "map in/cut.nc --topology in/box.psf -o m.dx", "in/cut.nc: the NetCDF file", "copy it again"),
    Case(2, "map in/junk.rst7 --topology in/box.psf -o m.dx", "in/junk.rst7", AGAIN),
    Case(2, "map in/junk.xtc --topology in/box.psf -o m.dx", "in/junk.xtc", AGAIN),
    Case(2, "map in/other.xtc --topology in/box.psf -o m.dx", "in/other.xtc: has 10 atoms", "give files of one system"),
    Case(2, "map in/cut.dcd --topology in/other.psf -o m.dx", "in/cut.dcd", AGAIN),
    Case(2, "map in/junk.coor --topology in/box.psf -o m.dx", "in/junk.coor: has ", "give files of one system"),
    # charges
    Case(2, "map in/ligand.pdb -o m.dx", "L99L C1 (1)", "as --topology"),
    Case(2, "ionize in/ligand.pdb -o i.pdb", "L99L C1 (1)", "as --topology"),
    Case(2, "map in/bare.pdb -o m.dx", "TIP3 H (64)", "complete the residues"),
    Case(2, "ionize in/box.pdb --topology in/charged.psf -o i.pdb", "TIP31:OH2 with +0.500 e", "check the charges"),
    # maps
    Case(2, "slice in/missing.dx -o f.png", "in/missing.dx", "check its name and folder"),
    Case(2, "slice in/folder.dx -o f.png", "in/folder.dx", "name a file"),
    Case(2, "slice in/words.txt -o f.png", "in/words.txt", "choose one of .dx.gz, .dx"),
    *(Case(2, f"slice in/{state}.{suffix} -o f.png", f"in/{state}.{suffix}",
           "rename it" if (state, suffix) == ("junk", "dx.gz") else AGAIN)
      for suffix in MAPS for state in ("empty", "junk", "cut")),
    Case(2, "slice in/dx.mrc -o f.png", "in/dx.mrc", "give it the suffix of its format"),
    Case(2, "slice in/dx.npz -o f.png", "in/dx.npz", "give it the suffix of its format"),
    Case(2, "slice in/mrc.dx -o f.png", "in/mrc.dx: line 1", "give it the suffix of its format"),
    Case(2, "slice in/skew.dx -o f.png", "in/skew.dx: its axes (1 0.5 0;", "resample"),
    Case(2, "slice in/more.dx -o f.png", "more than the 27 values", AGAIN),
    Case(2, "slice in/items.dx -o f.png", "26 items do not fill 3 x 3 x 3 = 27 points", AGAIN),
    Case(2, "slice in/nan.dx -o f.png", "in/nan.dx: line 8: 'nan'", AGAIN),
    Case(2, "slice in/word.dx -o f.png", "in/word.dx: line 8: 'two'", AGAIN),
    Case(2, "slice in/huge.dx -o f.png", "ends after 27 of 27,000,000,000,000,000", "truncated"),
    Case(2, "slice in/mode.mrc -o f.png", "in/mode.mrc: holds values of mode 4", "write a real map (mode 2)"),
    Case(2, "slice in/counts.mrc -o f.png", "in/counts.mrc: is truncated: 999 x 9 x 9", AGAIN),
    Case(2, "slice in/angles.mrc -o f.png", "in/angles.mrc: its cell angles are 80 90 90", "resample"),
    Case(2, "slice in/cell.mrc -o f.png", "in/cell.mrc: its header states no cell", AGAIN),
    Case(2, "slice in/nan.mrc -o f.png", "in/nan.mrc: the value at", "needs finite numbers"),
    Case(2, "slice in/counts.cube -o f.png", "ends after 729 of 8,019 values", "truncated"),
    Case(2, "slice in/lacks.npz -o f.png", "in/lacks.npz: has no numbers called 'spacing'", "a map has values, "),
    Case(2, "slice in/objects.npz -o f.png", "in/objects.npz: the NumPy archive is damaged", AGAIN),
    Case(2, "slice in/vector.npz -o f.png", "in/vector.npz: its origin has shape (2,)", "three numbers are needed"),
    Case(2, "slice in/nan.npz -o f.png", "in/nan.npz: the value at 0 0 0 A", "needs finite numbers"),
    Case(2, "slice in/good.dx in/volt.dx -o f.png", "kT/e and V", "draw them apart"),
    Case(2, "slice in/good.dx --structure in/nan.pdb -o f.png", "atom 190 (TIP364:OH2)", "repair or remove it"),
    Case(2, "slice in/good.dx --topology in/box.psf -o f.png", "--topology", "give --structure too"),
    # outputs
    Case(2, "map in/ion.pqr", "--output", "such as --output map.dx"),
    Case(2, "ionize in/box.pdb", "--output: a file for the result is needed", "--dry-run"),
    Case(2, "map in/ion.pqr -o m.xyz", "m.xyz", "choose one of .dx.gz, .dx"),
    Case(2, "map in/ion.pqr -o .dx", ".dx: the suffix", "choose one of .dx.gz, .dx"),
    Case(2, "slice in/good.dx -o f.jpg", "f.jpg", "choose one of .png, .pdf, .svg"),
    Case(2, "ionize in/box.pdb -o i.gro", "i.gro", "name it .pdb, .cif, .psf or .pqr"),
    Case(2, "ionize in/box.pdb -o i.prmtop", "i.prmtop", "write .psf or .pdb"),
    Case(2, "ionize in/box.pdb -o i.pdb -o i.psf --ions SOD=1", "i.psf: a PSF needs bonds", "as --topology"),
    Case(2, "map in/ion.pqr -o in/precious.dx", "in/precious.dx: exists", "use --force"),
    Case(2, "ionize in/box.pdb -o i.pdb --table in/precious.dx", "in/precious.dx: exists", "use --force"),
    Case(2, "ionize in/box.pdb -o i.pdb -o ./i.pdb", "i.pdb: the same output file", "a name of its own"),
    Case(2, "ionize in/box.pdb -o i.pdb --table i.pdb", "i.pdb: the same output file", "a name of its own"),
    Case(2, "map in/ion.pqr -o a.dx -o b.dx", "-o: takes one file", "see 'vmdpotential map --help'"),
    Case(3, "map in/ion.pqr -o in/folder.dx", "in/folder.dx: is a folder", "name a file"),
    Case(3, "map in/ion.pqr -o in/folder.dx --force", "in/folder.dx: is a folder", "name a file"),
    Case(3, "map in/ion.pqr -o nowhere/m.dx", "nowhere/m.dx: the folder nowhere", "create it first"),
    Case(3, "slice in/good.dx -o nowhere/f.png", "nowhere/f.png: the folder nowhere", "create it first"),
    Case(3, "ionize in/box.pdb -o i.pdb --table nowhere/t.csv", "nowhere/t.csv: the folder nowhere", "create it first"),
    Case(3, "map in/ion.pqr -o in/ion.pqr/m.dx", "in/ion.pqr is no folder", "name one that is"),
    Case(3, f"map in/ion.pqr -o {LONG}.dx", f"{LONG}.dx: the name is too long", "use a shorter one"),
    # memory
    Case(3, "map in/ion.pqr -o m.dx --spacing 0.01 --padding 1000", "200001 x 200001 x 200001", "larger --spacing"),
    Case(3, "map in/box.pdb -o m.dx --method cutoff --cutoff 1000", "periodic images", "shorter --cutoff than 1000 A"),
    Case(2, "map in/far.pqr -o m.dx", "a lattice of 2e+300", "correct atoms"),
    Case(3, "benchmark --box 500 --spacing 0.1", "a map of 125000000000 points needs", "use a smaller --box"),
    # ions
    Case(2, "ionize in/box.pdb -o i.pdb --cation XX", "--cation XX: ", "known are Li, Na, K"),
    Case(2, "ionize in/box.pdb -o i.pdb --cation CLA", "--cation CLA: its charge is -1", "choose a positive ion"),
    Case(2, "ionize in/box.pdb -o i.pdb --anion Na+", "--anion Na+: its charge is +1", "choose a negative ion"),
    Case(2, "ionize in/box.pdb -o i.pdb --concentration -1", "--concentration -1", "must be at least 0 mol/L"),
    Case(2, "ionize in/box.pdb -o i.pdb --concentration salty", "--concentration salty: ", "a number is needed"),
    Case(2, "ionize in/box.pdb -o i.pdb --ions SOD", "--ions SOD: ", "write NAME=NUMBER"),
    Case(2, "ionize in/box.pdb -o i.pdb --ions SOD=-1", "--ions SOD=-1: ", "write NAME=NUMBER"),
    Case(2, "ionize in/box.pdb -o i.pdb --ions SOD=1,Na+=2", "--ions SOD,Na+", "name it once"),
    Case(2, "ionize in/box.pdb -o i.pdb --ions SOD=2 --concentration 1", "--ions", "leave out --concentration"),
    Case(2, "ionize in/box.pdb -o i.pdb --count sltcap --no-neutralize --concentration 1", "sltcap", "use --count add"),
    Case(2, "ionize in/box.pdb -o i.pdb --count split --concentration 1 --cation MG", "split", "use --count add"),
    Case(2, "ionize in/box.pdb -o i.pdb --keep //Q", "--keep //Q: selects no atoms", "choose all, solute"),
    Case(2, "ionize in/box.pdb -o i.pdb --keep water --ions SOD=1", "--keep water: ", "select fewer"),
    Case(2, "ionize in/ion.pqr -o i.pdb", "in/ion.pqr: has no waters", "solvate the structure first"),
    Case(3, "ionize in/box.pdb -o i.pdb --ions SOD=500", "0 of 500 ions placed", "use a larger box or fewer ions"),
    Case(3, "ionize in/box.pdb -o i.pdb --ions SOD=2 --between 50", "0 of 2 ions placed", "lower --between"),
    Case(3, "ionize in/box.pdb -o i.pdb -o i.cif --table t.csv --concentration 10 --between 6", "ions placed", "lower"),
    # options
    Case(2, "", "required: COMMAND", "see 'vmdpotential --help'"),
    Case(2, "nonsense", "'nonsense'", "choose from"),
    Case(2, "map in/ion.pqr -o m.dx --spacng 1", "--spacng", "see 'vmdpotential map --help'"),
    Case(2, "map in/ion.pqr in/box.pdb -o m.dx", "in/box.pdb", "see 'vmdpotential map --help'"),
    Case(2, "map in/ion.pqr -o -m.dx", "--output/-o", "is written after '=', a file also as ./-name"),
    Case(2, "slice -o f.png", "MAP", "see 'vmdpotential slice --help'"),
    Case(2, "map in/ion.pqr -o m.dx --spacing wide", "--spacing wide: ", "a number is needed"),
    Case(2, "map in/ion.pqr -o m.dx --spacing 0", "--spacing 0", "must be at least 0.01 A"),
    Case(2, "map in/ion.pqr -o m.dx --spacing inf", "--spacing inf", "a finite number is needed"),
    Case(2, "map in/ion.pqr -o m.dx --temperature -5", "--temperature -5", "must be above 0 K"),
    Case(2, "map in/ion.pqr -o m.dx --unit eV", "--unit eV: ", "choose one of kT/e, V, kcal/mol/e"),
    Case(2, "map in/ion.pqr -o m.dx --method magic", "--method magic: ", "choose one of auto, direct"),
    Case(2, "map in/box.pdb -o m.dx --method direct --boundary periodic", "--boundary periodic", "use --boundary open"),
    Case(2, "map in/ion.pqr -o m.dx --set debye_length=8",
         "debye_length: the interaction coulomb has no such parameter", "it has none"),
    Case(2, "map in/ion.pqr -o m.dx --set debye_length", "--set debye_length: ", "give NAME=NUMBER"),
    Case(2, "map in/ion.pqr -o m.dx --atoms protein", "--atoms protein: selects no atoms", "choose all, solute"),
    Case(2, "map in/ion.pqr -o m.dx --atoms (((", "--atoms '(((': is no selection", "choose all, solute"),
    Case(2, "slice in/good.dx -o f.png --plane w=3", "--plane w=3: ", "such as z=12.5"),
    Case(2, "slice in/good.dx -o f.png --plane z=99", "--plane z=99: misses the map", "covers z from -2 to 2 A"),
    Case(2, "slice in/good.dx in/good.npz -o f.png --plane x=-9",
         "--plane x=-9: misses the map", "from -2 to 2 A (good)"),
    Case(2, "slice in/good.dx -o f.png --normal 0,0,0", "--normal 0,0,0: ", "not all 0"),
    Case(2, "slice in/good.dx -o f.png --normal 1,1,1 --point 99,0,0", "through 99 0 0 A misses", "covers x -2 to 2"),
    Case(2, "slice in/good.dx -o f.png --point 1,1,1", "--point", "give --normal too"),
    Case(2, "slice in/good.dx -o f.png --range 5,-5", "--range 5,-5", "must be below the second"),
    Case(2, "slice in/good.dx -o f.png --range low,high", "--range low,high: ", "such as -20,20"),
    Case(2, "slice in/good.dx -o f.png --width wide", "--width wide", "say single (89 mm)"),
    Case(2, "slice in/good.dx -o f.png --dpi 99999", "--dpi 99999", "must be at most 2400"),
]


def test_the_table_is_long_and_has_no_case_twice():
    assert len(TABLE) >= 55
    assert len({case.command for case in TABLE}) == len(TABLE)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    fill(folder)
    # kernels are compiled and kept here, so that limits and full disks meet the outputs only
    for command, name, output in (("map", "box.pdb", "a.dx"), ("map", "ion.pqr", "b.dx"), ("ionize", "box.pdb", "")):
        options = ["-o", str(folder / output)] if output else ["--ions=SOD=1", "--dry-run"]
        assert cli.main([command, str(folder / name), *options]) == 0
    return folder


@pytest.fixture
def here(tmp_path, inputs, monkeypatch):
    """An empty working folder in which `in` is the folder of inputs; these must stay as they are."""
    (tmp_path / "in").symlink_to(inputs)
    monkeypatch.chdir(tmp_path)
    before = state(inputs)
    yield tmp_path
    assert state(inputs) == before


def state(folder):
    return {path.name: (path.lstat().st_size, path.lstat().st_mtime_ns) for path in folder.iterdir()}


def check(case, code, out, err):
    assert (code, out) == (case.code, ""), err
    line = one_line(err)
    assert case.names in line, line
    assert case.cure in line, line


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


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case.command.replace(LONG, "aaa")[:80] or "nothing")
def test_bad_input(case, here, capfd):
    words = shlex.split(case.command)
    check(case, cli.main(words), *capfd.readouterr())
    assert os.listdir(here) == ["in"]

    # the same with outputs that are there already, and may be replaced
    there = [path for path in outputs(words) if path.parent == Path() and len(path.name) < 100]
    if there and "exists" not in case.names:
        for path in there:
            path.write_text("precious")
        check(case, cli.main([*words, "--force"]), *capfd.readouterr())
        assert sorted(os.listdir(here)) == sorted({"in", *map(str, there)})
        assert all(path.read_text() == "precious" for path in there)


MAP_OF_ION = ["map", "in/ion.pqr", "-o", "m.dx"]


# ---- situations: memory, engines, packages, signals, disks, names ----------------------------------------


@pytest.mark.parametrize(("variable", "code", "cure"), [
    ("VMDPOTENTIAL_MEMORY=20k", 3, "use a larger --spacing"),
    ("VMDPOTENTIAL_MEMORY=lots", 2, "give bytes, such as 8G"),
    ("VMDPOTENTIAL_MEMORY=-5", 2, "give bytes, such as 8G"),
    ("VMDPOTENTIAL_MEMORY=infG", 2, "give bytes, such as 8G"),
    ("VMDPOTENTIAL_THREADS=0", 2, "a positive whole number"),
])
def test_bad_environment(variable, code, cure, here, monkeypatch, capfd):
    monkeypatch.setenv(*variable.split("="))
    case = Case(code, "map in/ion.pqr -o m.dx", "memory" if code == 3 else variable.partition("=")[0], cure)
    check(case, cli.main(case.command.split()), *capfd.readouterr())
    assert os.listdir(here) == ["in"]


def test_an_image_larger_than_memory(here, monkeypatch, capfd):
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "10M")
    case = Case(3, "slice in/good.dx -o f.png --width double --dpi 2400", "f.png: a figure of", "use a lower --dpi")
    check(case, cli.main(case.command.split()), *capfd.readouterr())
    assert os.listdir(here) == ["in"]


def test_a_cutoff_that_needs_more_bins_than_fit(here, monkeypatch, capfd):
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "1M")
    case = Case(3, "map in/box.pdb -o m.dx --method cutoff --cutoff 0.5 --spacing 3", "a cutoff of 0.5 A",
                "use a longer --cutoff")
    check(case, cli.main(case.command.split()), *capfd.readouterr())


def test_an_engine_that_is_not_there(here, capfd, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # where there is a GPU, it is hidden
    code = cli.main([*MAP_OF_ION, "--engine", "cuda"])
    out, err = capfd.readouterr()
    assert code in (2, 4)  # 4 where the engine is known
    assert out == ""
    assert "cuda" in one_line(err).lower()
    assert os.listdir(here) == ["in"]


WITHOUT = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "MDAnalysis":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocked())
from vmdpotential.frontend.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize("arguments", [
    "map in/cut.tpr -o m.dx", "map in/box.pdb --topology in/cut.tpr -o m.dx",
    "map in/other.xtc --topology in/box.psf -o m.dx",
])
def test_a_package_that_is_not_installed(arguments, here):
    done = subprocess.run([sys.executable, "-c", WITHOUT, *arguments.split()], capture_output=True, text=True)
    check(Case(4, arguments, "needs MDAnalysis", "pip install 'vmdpotential[traj]'"), *result(done))
    assert os.listdir(here) == ["in"]


def result(done):
    return done.returncode, done.stdout, done.stderr


def test_a_format_for_which_another_package_is_missing(here, capfd):
    (here / "a.h5md").write_text("something")
    if importlib.util.find_spec("h5py"):
        case = Case(2, "map a.h5md --topology in/box.psf -o m.dx", "a.h5md", AGAIN)
    else:
        case = Case(4, "map a.h5md --topology in/box.psf -o m.dx", "a.h5md: needs h5py", "pip install h5py")
    check(case, cli.main(case.command.split()), *capfd.readouterr())


@pytest.mark.slow
def test_other_packages_warn_nobody(here):
    command = [*PROGRAM, "map", FILES / "tip125_tric_C36.dcd", "--topology=in/other.psf", "-o", "m.dx", "--spacing=2"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr


@pytest.mark.parametrize(("command", "label"), [
    ("map in/ion.pqr -o out.dx", "direct sum"),
    ("map in/box.pdb -o out.mrc", "cutoff sum"),
    ("map in/ion.pqr -o out.dx", "writing the map"),
    ("map in/ion.pqr -o out.cube", "writing the map"),
    ("slice in/good.dx -o out.png", "reading the map"),
    ("ionize in/box.pdb --ions SOD=3 -o out.pdb -o out.cif --table out.csv", "placing ions"),
])
@pytest.mark.parametrize("existing", [False, True])
def test_interrupted_in_the_middle(command, label, existing, here, monkeypatch, capfd):
    class Interrupt(progress.Terminal):
        def __call__(self, what, fraction):
            seen.append(what)
            if label in what:
                raise KeyboardInterrupt

    seen = []
    monkeypatch.setattr(progress, "Terminal", Interrupt)
    words = command.split()
    if existing:
        for path in outputs(words):
            path.write_text("precious")
        words.append("--force")
    check(Case(130, command, "interrupted", ""), cli.main(words), *capfd.readouterr())
    assert sorted(os.listdir(here)) == sorted(["in", *(map(str, outputs(words)) if existing else [])]), seen
    assert all(path.read_text() == "precious" for path in outputs(words) if existing)


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_by_a_signal(sent, here):
    def handlers():
        # a shell's background jobs ignore SIGINT, and can be ended nevertheless
        signal.signal(signal.SIGINT, signal.SIG_DFL if sent == signal.SIGINT else signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which may be ignored, by nohup

    atoms = "".join(f"ATOM {n} C X {n} {n % 50}.1 {n // 50}.2 0.3 1.0 1.0\n" for n in range(2500))
    (here / "many.pqr").write_text(atoms)
    (here / "m.dx").write_text("precious")
    command = [*PROGRAM, *shlex.split("map many.pqr -o m.dx --force --method direct --spacing 0.15")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          preexec_fn=handlers) as process:
        assert process.stderr.readline().startswith("direct sum:")  # after two seconds of work
        process.send_signal(sent)
        start = time.monotonic()
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "vmdpotential: interrupted"
    assert time.monotonic() - start < 30
    assert (here / "m.dx").read_text() == "precious"
    assert sorted(os.listdir(here)) == ["in", "m.dx", "many.pqr"]


def test_a_hangup_that_is_ignored_stays_so(capsys):
    """As nohup asks."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert cli.main(["plugins"]) == 0
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
    assert "map" in capsys.readouterr().out


WRITERS = [
    *(f"map in/ion.pqr -o out.{suffix}" for suffix in ("dx", "dx.gz", "mrc", "ccp4", "cube", "npz")),
    *(f"slice in/good.dx -o out.{suffix}" for suffix in ("png", "pdf")),
    "ionize in/box.pdb --topology in/box.psf --ions SOD=2,CLA=2 -o out.pdb -o out.psf --table out.csv",
    "ionize in/box.pdb --topology in/box.psf --ions SOD=2,CLA=2 -o out.cif -o out.pqr.gz",
]


@pytest.mark.slow
@pytest.mark.parametrize("command", WRITERS)
def test_files_larger_than_allowed(command, here):
    """A limit on the size of files is a full disk that every user can make."""
    words = command.split()
    limit = 2048 if ".gz" in command else 8192
    script = (
        "import resource, sys; from vmdpotential.frontend import cli; "
        "sys.dont_write_bytecode = True; "  # it would be cut off, for all who import the same later
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit})); sys.exit(cli.main(sys.argv[1:]))"
    )
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True)
    check(Case(3, command, "out.", "nothing was written; see 'ulimit -f'"), *result(done))
    assert os.listdir(here) == ["in"]


@pytest.fixture(scope="session")
def mounting(tmp_path_factory):
    """Return a function that runs a shell script in a folder on a file system of its own: tmpfs with options."""
    folder = tmp_path_factory.mktemp("disk")
    tried = []
    for prefix in (["unshare", "--mount"], ["unshare", "--user", "--map-root-user", "--mount"]):
        if not shutil.which("unshare"):
            pytest.skip("a full disk needs the program unshare (util-linux), which is not installed")
        test = subprocess.run([*prefix, "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder],
                              capture_output=True, text=True)
        if test.returncode == 0:
            break
        tried.append(test.stderr.strip())
    else:
        pytest.skip(f"a full disk needs the right to mount a tmpfs, which is missing here: {'; '.join(tried)}")

    def run(options, script, inputs):
        whole = f'mount -t tmpfs -o {options} tmpfs "$0" && ln -s "$1" "$0/in"; cd "$0" && {script}'
        return subprocess.run([*prefix, "sh", "-c", whole, folder, inputs], capture_output=True, text=True)

    return run


@pytest.mark.slow
@pytest.mark.parametrize("command", WRITERS)
def test_full_disk(command, mounting, inputs):
    words = [*command.split(), "--force"]
    there = " ".join(map(str, outputs(words)))
    program = shlex.join([*PROGRAM, *words])
    # room for the outputs that exist, and little more
    size = "12k" if ".gz" in command else "24k"
    script = f"for f in {there}; do echo precious > $f; done; {program}; echo $?; ls -A; cat {there}"
    done = mounting(f"size={size}", script, inputs)
    lines = done.stdout.split()
    check(Case(3, command, "out.", "make room, or write to another disk"), int(lines[0]), "", done.stderr)
    files = [str(path) for path in outputs(words)]
    assert sorted(lines[1 : 2 + len(files)]) == sorted(["in", *files])
    assert lines[2 + len(files) :] == ["precious"] * len(files)


def test_a_disk_that_cannot_be_written(mounting, inputs):
    script = f"mount -o remount,ro . && {shlex.join([*PROGRAM, *MAP_OF_ION])}; echo $?; ls -A"
    done = mounting("size=64k", script, inputs)
    check(Case(3, "", "m.dx: no permission to write in .", "name another folder"), int(done.stdout.split()[0]), "",
          done.stderr)
    assert done.stdout.split()[1:] == ["in"]


def test_standard_output_on_a_full_disk(here):
    with open("/dev/full", "w") as full:
        done = subprocess.run([*PROGRAM, "plugins"], stdout=full, stderr=subprocess.PIPE, text=True)
    check(Case(3, "", "standard output", "send it elsewhere"), done.returncode, "", done.stderr)


def test_closed_streams(here):
    command = shlex.join([*PROGRAM, *MAP_OF_ION, "--padding", "1"])
    assert subprocess.run(f"{command} >&- 2>&-", shell=True).returncode == 0
    assert read_map("m.dx").lattice.shape == (5, 5, 5)
    assert subprocess.run(f"{command} >&- 2>&-", shell=True).returncode == 2  # it exists now


# ---- names that are unusual and must work ----------------------------------------------------------------

NAMES = [
    "with blanks  two", "it's \"quoted\"", "[x] {y} (z)", "$HOME `ls` \\ * ? ; | & # ~", "é ü 日本 🧂", "a;b%20=c|d",
    "-dash", "--force", "-1", ".hidden", "two\nlines", "many.dots.in.it", "n" * 230, os.fsdecode(b"bytes\xff\xfe"),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name)[1:21])
def test_unusual_names_work(name, here, capfd):
    """Files of every command under the name, given in the ways that a shell user has."""
    shutil.copy("in/ion.pqr", f"./{name}.pqr")
    shutil.copy("in/box.pdb", f"./{name}.pdb")
    shutil.copy("in/box.psf", f"./{name}.psf")
    safe = f"./{name}" if name.startswith("-") else name
    for suffix in ("dx", "mrc", "cube", "npz"):
        assert cli.main(["map", f"{safe}.pqr", f"-o={name}.{suffix}", "--padding", "1"]) == 0, capfd.readouterr()
        grid = read_map(Path(f"./{name}.{suffix}"))
        assert grid.lattice.shape == (5, 5, 5)
        if "|" not in name:  # which separates the names in a map
            assert grid.provenance.inputs == (f"{name}.pqr",)
    assert cli.main(["slice", f"{safe}.dx", "in/good.dx", f"--structure={name}.pdb", "-o", f"{safe}.svg"]) == 0
    assert cli.main(["ionize", f"--topology={name}.psf", "--ions=SOD=1", f"-o={name}-2.pdb", f"-o={name}-2.psf",
                     f"-o={name}-2.cif", f"--table={name}.csv", "--json", "--", f"{name}.pdb"]) == 0
    for suffix in ("pdb", "cif"):
        again = read_structure(Path(f"./{name}-2.{suffix}"), topology=Path(f"./{name}-2.psf"))
        assert again.net_charge == pytest.approx(1, abs=1e-6)
    err = capfd.readouterr().err
    assert "Traceback" not in err
    assert "Warning" not in err
    assert cli.main(["map", "--padding", "1", f"--output={name}.dx", "--", f"{name}.pqr"]) == 2
    line = one_line(capfd.readouterr().err)
    assert "exists; use --force" in line


def test_names_that_the_terminal_cannot_show(here):
    shutil.copy("in/ion.pqr", "é.pqr")
    done = subprocess.run([*PROGRAM, "map", "é.pqr", "-o", "日本.dx", "--padding", "1"], capture_output=True, text=True,
                          env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, without_progress(done.stderr)) == (0, "")
    assert done.stdout.splitlines()[-1] == "wrote \\u65e5\\u672c.dx"
    assert Path("日本.dx").exists()
