"""What goes wrong, through the shell program: exit code, one line with the hint, and nothing left behind or lost."""

import os
import shlex
from pathlib import Path

import pytest
from broken_inputs import AGAIN, FILES, MAPS, Case, check, outputs

from vmdpotential.frontend import cli

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
    Case(2, "map in/junk.bin -o m.dx", "in/junk.bin: its format is not recognised", "convert it to PDB"),
    *(Case(2, f"map in/junk.{suffix} -o m.dx", f"in/junk.{suffix}", hint) for suffix, hint in (
        ("pdb", AGAIN), ("cif", AGAIN), ("gro", AGAIN), ("pqr", AGAIN), ("tpr", AGAIN), ("pdb.gz", "rename it"))),
    Case(2, "map in/box.psf -o m.dx", "in/box.psf: a topology has no coordinates", "give the coordinate file"),
    Case(2, "map in/cut.nc -o m.dx", "in/cut.nc", "as --topology"),
    # cells
    Case(2, "map in/cell-zero.pdb --boundary periodic -o m.dx", "in/cell-zero.pdb", "use --boundary open"),
    Case(2, "map in/nocell.pdb --boundary periodic -o m.dx", "in/nocell.pdb", "use --boundary open"),
    Case(2, "map in/cell-negative.pdb -o m.dx", "line 1: the periodic cell -12.8", "lengths must be positive"),
    Case(2, "map in/cell-open.pdb -o m.dx", "the angles 10 90 150 do not define a periodic cell", "correct"),
    Case(2, "map in/cell-flat.pdb -o m.dx", "in/cell-flat.pdb: line 1", "angles between 0 and 180"),
    Case(2, "map in/cell-tiny.pdb -o m.dx", "in/cell-tiny.pdb: the periodic cell", "correct the cell"),
    Case(2, "map in/cell-huge.pdb -o m.dx", "in/cell-huge.pdb: line 1", "correct it"),
    Case(2, "map in/cell-words.pdb -o m.dx", "in/cell-words.pdb: line 1: CRYST1", AGAIN),
    Case(2, "map in/cell.gro -o m.dx", "in/cell.gro: line 6", AGAIN),
    Case(2, "ionize in/cell-tiny.pdb --ions SOD=1 -o i.pdb", "in/cell-tiny.pdb: the periodic cell", "correct the cell"),
    # topologies
    Case(2, f"{WITH_PSF} in/missing.psf", "in/missing.psf", "check its name and folder"),
    Case(2, f"{WITH_PSF} in/folder.pdb", "in/folder.pdb", "name a file"),
    Case(2, f"{WITH_PSF} in/other.psf", "in/box.pdb has 192 atoms, but in/other.psf has 375", "exactly these atoms"),
    Case(2, "map in/short.pdb --topology in/box.psf -o m.dx", "in/short.pdb has 189 atoms", "exactly these atoms"),
    Case(2, "map in/swapped.pdb --topology in/box.psf -o m.dx", "atom 1 is TIP31:H1", "that belongs to"),
    Case(2, f"{WITH_PSF} in/cut.psf", "in/cut.psf: line 6 states 192 atoms", AGAIN),
    Case(2, f"{WITH_PSF} {FILES / 'adk_notop_BAD.psf'}", "adk_notop_BAD.psf: line 7 states 3341", AGAIN),
    Case(2, f"{WITH_PSF} in/bonds.psf", "in/bonds.psf: section !NBOND", AGAIN),
    Case(2, f"{WITH_PSF} in/nan.psf", "in/nan.psf: atom 1 (TIP31:OH2)", "repair the topology"),
    Case(2, f"{WITH_PSF} in/word.psf", "in/word.psf: line 7: charge 'minus'", AGAIN),
    Case(2, f"{WITH_PSF} in/range.psf", "entry 1 lists atom 999", AGAIN),
    Case(2, f"{WITH_PSF} in/junk.psf", "in/junk.psf: line 1: holds a NUL byte", AGAIN),
    Case(2, f"{WITH_PSF} in/junk.prmtop", "in/junk.prmtop: line 1: holds a NUL byte", AGAIN),
    Case(2, f"{WITH_PSF} in/cut.prmtop", "in/cut.prmtop: has no section", AGAIN),
    Case(2, f"{WITH_PSF} in/counts.prmtop", "in/counts.prmtop", AGAIN),
    Case(2, f"{WITH_PSF} in/cut.tpr", "in/cut.tpr: MDAnalysis cannot read it", AGAIN),
    Case(2, f"{WITH_PSF} in/junk.nc", "in/junk.nc: has coordinates only", "give a PSF"),
    Case(2, "map in/cut.nc --topology in/box.psf -o m.dx", "in/cut.nc: the NetCDF file", "copy it again"),
    Case(2, "map in/junk.rst7 --topology in/box.psf -o m.dx", "in/junk.rst7", AGAIN),
    Case(2, "map in/junk.xtc --topology in/box.psf -o m.dx", "in/junk.xtc", AGAIN),
    Case(2, "map in/other.xtc --topology in/box.psf -o m.dx", "in/other.xtc: has 10 atoms", "give files of one system"),
    Case(2, "map in/cut.dcd --topology in/other.psf -o m.dx", "in/cut.dcd", AGAIN),
    Case(2, "map in/junk.coor --topology in/box.psf -o m.dx", "in/junk.coor: has ", "give files of one system"),
    # charges
    Case(3, "map in/ligand.pdb -o m.dx", "L99L (1)", "--charges"),
    Case(2, "map in/ligand.pdb --prepare never -o m.dx", "L99L C1 (1)", "as --topology"),
    Case(2, "ionize in/ligand.pdb -o i.pdb", "L99L C1 (1)", "as --topology"),
    Case(2, "map in/bare.pdb --prepare never -o m.dx", "no hydrogens", "by the command prepare"),
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
    Case(2, "slice in/good.dx --structure in/nan.pdb -o f.png", "atom 190 (TIP364:OH2)", "repair or remove it"),
    Case(2, "slice in/good.dx --topology in/box.psf -o f.png", "--topology", "give --structure too"),
    # outputs
    Case(2, "map in/ion.pqr", "--output", "such as --output map.dx"),
    Case(2, "ionize in/box.pdb", "--output: a file for the result is needed", "--dry-run"),
    Case(2, "map in/ion.pqr -o m.xyz", "m.xyz", "choose one of .dx.gz, .dx"),
    Case(2, "map in/ion.pqr -o .dx", ".dx: the suffix", "choose one of .dx.gz, .dx"),
    Case(2, "slice in/good.dx -o f.jpg", "f.jpg", "choose one of .png, .pdf, .svg"),
    Case(2, "ionize in/box.pdb -o i.mol2", "i.mol2", "name it .pdb, .cif, .psf, .pqr, .gro, .top, .prmtop or .rst7"),
    Case(2, "ionize in/box.pdb -o i.top", "i.top: a .top is written from the input's", "give it as --topology"),
    Case(2, "ionize in/box.pdb -o i.prmtop", "i.prmtop", "write .psf or .pdb"),
    Case(2, "ionize in/box.pdb -o i.pdb -o i.psf --ions SOD=1", "i.psf: a PSF needs bonds", "as --topology"),
    Case(2, "map in/ion.pqr -o in/precious.dx", "in/precious.dx: exists", "use --force"),
    Case(2, "ionize in/box.pdb -o i.pdb --table in/precious.dx", "in/precious.dx: exists", "use --force"),
    Case(2, "ionize in/box.pdb -o i.pdb -o ./i.pdb", "i.pdb: the same output file", "a name of its own"),
    Case(2, "ionize in/box.pdb -o i.pdb --table i.pdb", "i.pdb: the same output file", "a name of its own"),
    Case(2, "map in/ion.pqr -o a.dx -o b.dx", "-o: one file is expected", "see 'vmdpotential map --help'"),
    Case(3, "map in/ion.pqr -o in/folder.dx", "in/folder.dx: is a folder", "name a file"),
    Case(3, "map in/ion.pqr -o in/folder.dx --force", "in/folder.dx: is a folder", "name a file"),
    Case(3, "map in/ion.pqr -o nowhere/m.dx", "nowhere/m.dx: the folder nowhere", "create it first"),
    Case(3, "slice in/good.dx -o nowhere/f.png", "nowhere/f.png: the folder nowhere", "create it first"),
    Case(3, "ionize in/box.pdb -o i.pdb --table nowhere/t.csv", "nowhere/t.csv: the folder nowhere", "create it first"),
    Case(3, "map in/ion.pqr -o in/ion.pqr/m.dx", "in/ion.pqr is not a folder", "name one that is"),
    Case(3, f"map in/ion.pqr -o {LONG}.dx", f"{LONG}.dx: the name is too long", "use a shorter one"),
    # memory
    Case(3, "map in/ion.pqr -o m.dx --spacing 0.01 --padding 1000", "200001 x 200001 x 200001", "larger --spacing"),
    Case(3, "map in/box.pdb -o m.dx --method cutoff --cutoff 1000", "periodic images", "shorter --cutoff than 1000 A"),
    Case(2, "map in/far.pqr -o m.dx", "a lattice of 2e+300", "correct coordinates"),
    Case(3, "benchmark --box 500 --spacing 0.1", "a map of 125000000000 points needs", "use a smaller --box"),
    # ions
    Case(2, "ionize in/box.pdb -o i.pdb --cation XX", "--cation XX: ", "choose one of Li, Na, K"),
    Case(2, "ionize in/box.pdb -o i.pdb --cation CLA", "--cation CLA: its charge is -1", "choose a positive ion"),
    Case(2, "ionize in/box.pdb -o i.pdb --anion Na+", "--anion Na+: its charge is +1", "choose a negative ion"),
    Case(2, "ionize in/box.pdb -o i.pdb --concentration -1", "--concentration -1", "must be at least 0 mol/L"),
    Case(2, "ionize in/box.pdb -o i.pdb --concentration salty", "--concentration salty: ", "a number is needed"),
    Case(2, "ionize in/box.pdb -o i.pdb --ions SOD", "--ions SOD: ", "write NAME=NUMBER"),
    Case(2, "ionize in/box.pdb -o i.pdb --ions SOD=-1", "--ions SOD=-1: ", "write NAME=NUMBER"),
    Case(2, "ionize in/box.pdb -o i.pdb --ions SOD=1,Na+=2", "--ions SOD,Na+", "list it once"),
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
    Case(2, "nonsense", "nonsense", "choose one of map"),
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
    Case(2, "map in/ion.pqr -o m.dx --atoms (((", "--atoms '(((': is not a valid selection", "choose all, solute"),
    Case(2, "slice in/good.dx in/good.npz -o f.png --plane x=-9",
         "--plane x=-9: misses the map", "from -2 to 2 A (good)"),
    Case(2, "slice in/good.dx -o f.png --range 5,-5", "--range 5,-5", "must be below the second"),
]


def test_the_table_is_long_and_has_no_case_twice():
    assert len(TABLE) >= 55
    assert len({case.command for case in TABLE}) == len(TABLE)


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
