"""Good and broken inputs of the program, and the form of its one line."""

import importlib.util
import itertools
import random
import re
import sys
from pathlib import Path

import numpy as np

from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.io import write_map


def package(name):
    return Path(importlib.util.find_spec(name).origin).parent


FILES = package("MDAnalysisTests") / "data"
PROGRAM = [sys.executable, "-m", "vmdpotential"]
MAP_OF_ION = ["map", "in/ion.pqr", "-o", "m.dx"]


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
    put("junk.coor", random.Random(1).randbytes(5000))
    put("empty.pdb", "")
    put("cut.pdb", pdb[: pdb.index("ATOM     50") + 40])
    for name, cell in {
        "zero": "    0.000   12.800   12.800  90.00  90.00  90.00",
        "tiny": "    0.010    0.010    0.010  90.00  90.00  90.00",
        "none": "",
    }.items():
        put(f"cell-{name}.pdb", water_pdb(cell))
    put("far.pqr", ION + ION.replace("0.0 0.0 0.0", "1e7 0.0 0.0"))
    put("endless.pqr", ION + ION.replace("0.0 0.0 0.0", "1e300 0.0 0.0"))
    put("ligand.pdb", pdb.replace("END\n", LIGAND + "END\n"))
    put("charged.psf", psf.replace("-0.834000", "-0.334000", 1))
    for name, source, size in (
        ("cut.tpr", FILES / "281_small.tpr", 100_000), ("other.psf", FILES / "tip125_tric_C36.psf", None),
        ("other.xtc", FILES / "xtc_test_only_10_frame_10_atoms.xtc", None),
    ):
        put(name, source.read_bytes()[:size])
    values = np.arange(729.0).reshape(9, 9, 9)
    write_map(Grid(Lattice(np.full(3, -2.0), np.full(3, 0.5), (9, 9, 9)), values, "kT/e", 298.15), folder / "good.dx")


# ---- what is said --------------------------------------------------------------------------------------


def state(folder):
    return {path.name: (path.lstat().st_size, path.lstat().st_mtime_ns) for path in folder.iterdir()}


def check(code, names, actual, out, err):
    """Check the exit code and the one line on stderr, which names the file or the parameter."""
    assert (actual, out) == (code, ""), err
    assert names in one_line(err)


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
