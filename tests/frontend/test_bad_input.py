"""What goes wrong, through the shell program: exit code, one line with the hint, and nothing left behind or lost."""

import builtins
import os
import shlex
import subprocess
from pathlib import Path

import pytest
from broken_inputs import FILES, PROGRAM, check, outputs

from vmdpotential.extras import install_command
from vmdpotential.frontend import cli

LONG = "a" * 300
BOX = "ionize in/box.pdb -o i.pdb"
#: Exit code; the file or the parameter that the line names; the command, after variables of the environment.
TABLE = [
    # structures, cells, topologies, charges
    (2, "in/missing.pdb", "map in/missing.pdb -o m.dx"),
    (2, "in/folder.pdb", "map in/folder.pdb -o m.dx"),
    (2, "in/dangling.pdb", "map in/dangling.pdb -o m.dx"),
    (2, "in/empty.pdb", "map in/empty.pdb -o m.dx"),
    (2, "in/cut.pdb: line 51", "map in/cut.pdb -o m.dx"),
    (2, "--boundary open", "map in/cell-zero.pdb --boundary periodic -o m.dx"),
    (2, "--boundary open", "map in/cell-none.pdb --boundary periodic -o m.dx"),
    (2, "in/cell-tiny.pdb", "map in/cell-tiny.pdb -o m.dx"),
    (2, "in/cell-tiny.pdb", "ionize in/cell-tiny.pdb --ions SOD=1 -o i.pdb"),
    (2, "in/other.psf", "map in/box.pdb -o m.dx --topology in/other.psf"),
    (2, "in/cut.tpr", "map in/box.pdb -o m.dx --topology in/cut.tpr"),
    (2, "in/junk.coor", "map in/junk.coor --topology in/box.psf -o m.dx"),
    (2, "L99L C1 (1)", "ionize in/ligand.pdb -o i.pdb"),
    (2, "TIP31:OH2 with +0.500 e", f"{BOX} --topology in/charged.psf"),
    # maps
    (2, "in/missing.dx", "slice in/missing.dx -o f.png"),
    (2, "in/folder.dx", "slice in/folder.dx -o f.png"),
    (2, "--topology", "slice in/good.dx --topology in/box.psf -o f.png"),
    (2, "--plane x=-9", "slice in/good.dx -o f.png --plane x=-9"),
    (2, "--range 5,-5", "slice in/good.dx -o f.png --range 5,-5"),
    # outputs
    (2, "--output", "map in/ion.pqr"),
    (2, "--output", "ionize in/box.pdb"),
    (2, "m.xyz", "map in/ion.pqr -o m.xyz"),
    (2, "f.jpg", "slice in/good.dx -o f.jpg"),
    (2, "i.mol2", "ionize in/box.pdb -o i.mol2"),
    (2, "in/precious.dx: exists; use --force", "map in/ion.pqr -o in/precious.dx"),
    (2, "in/precious.dx: exists; use --force", f"{BOX} --table in/precious.dx"),
    (2, "i.pdb", f"{BOX} --table ./i.pdb"),
    (2, "-o", "map in/ion.pqr -o a.dx -o b.dx"),
    (2, "--output/-o", "map in/ion.pqr -o -m.dx"),
    (3, "in/folder.dx", "map in/ion.pqr -o in/folder.dx --force"),
    (3, "nowhere/m.dx", "map in/ion.pqr -o nowhere/m.dx"),
    (3, "nowhere/t.csv", f"{BOX} --table nowhere/t.csv"),
    (3, "in/ion.pqr", "map in/ion.pqr -o in/ion.pqr/m.dx"),
    (3, f"{LONG}.dx", f"map in/ion.pqr -o {LONG}.dx"),
    # memory and the environment
    (3, "--spacing", "map in/ion.pqr -o m.dx --spacing 0.01 --padding 1000"),
    (3, "--cutoff", "map in/box.pdb -o m.dx --method cutoff --cutoff 1000"),
    (3, "--spacing", "map in/far.pqr -o m.dx"),
    (2, "in/endless.pqr", "map in/endless.pqr -o m.dx"),
    (3, "--box", "benchmark --box 500 --spacing 0.1"),
    (3, "--spacing", "VMDPOTENTIAL_MEMORY=20k map in/ion.pqr -o m.dx"),
    (3, "--dpi", "VMDPOTENTIAL_MEMORY=10M slice in/good.dx -o f.png --width double --dpi 2400"),
    (3, "--cutoff", "VMDPOTENTIAL_MEMORY=1M map in/box.pdb -o m.dx --method cutoff --cutoff 0.5 --spacing 3"),
    (2, "VMDPOTENTIAL_MEMORY", "VMDPOTENTIAL_MEMORY=-5 map in/ion.pqr -o m.dx"),
    (2, "VMDPOTENTIAL_MEMORY", "VMDPOTENTIAL_MEMORY=infG map in/ion.pqr -o m.dx"),
    (2, "VMDPOTENTIAL_THREADS", "VMDPOTENTIAL_THREADS=0 map in/ion.pqr -o m.dx"),
    (4, "CUDA", "CUDA_VISIBLE_DEVICES= map in/ion.pqr -o m.dx --engine cuda"),
    # ions
    (2, "--cation XX", f"{BOX} --cation XX"),
    (2, "--cation CLA", f"{BOX} --cation CLA"),
    (2, "--ions SOD=-1", f"{BOX} --ions SOD=-1"),
    (2, "--ions SOD,Na+", f"{BOX} --ions SOD=1,Na+=2"),
    (2, "--concentration", f"{BOX} --ions SOD=2 --concentration 1"),
    (2, "--count add", f"{BOX} --count sltcap --no-neutralize --concentration 1"),
    (2, "--count add", f"{BOX} --count split --concentration 1 --cation MG"),
    (2, "--keep //Q", f"{BOX} --keep //Q"),
    (2, "--keep water", f"{BOX} --keep water --ions SOD=1"),
    (2, "in/ion.pqr", "ionize in/ion.pqr -o i.pdb"),
    (3, "0 of 500 ions", f"{BOX} --ions SOD=500"),
    (3, "--between", f"{BOX} -o i.cif --table t.csv --ions SOD=2 --between 50"),
    # answers from potentials
    (2, "in/missing.pdb", "titrate in/missing.pdb -o p.csv"),
    (2, "in/empty.pdb", "titrate in/empty.pdb -o p.csv --curves c.csv"),
    (2, "in/cut.pdb: line 51", "titrate in/cut.pdb -o p.csv"),
    (2, "in/box.pdb", "titrate in/box.pdb -o p.csv"),
    (3, "in/ion.pqr", "titrate in/ion.pqr -o p.csv"),
    (2, "in/missing.xtc", "titrate in/ion.pqr in/missing.xtc -o p.csv"),
    (2, "in/missing.sdf", "titrate in/ion.pqr --charges in/missing.sdf --model-pka LIG=4 -o p.csv"),
    (2, "--model-pka LIG", "titrate in/ion.pqr --model-pka LIG=4 -o p.csv"),
    (2, "--model-pka", "titrate in/box.pdb --model-pka LIG -o p.csv"),
    (2, "--ph 7:1", "titrate in/box.pdb --ph 7:1 -o p.csv"),
    (2, "--map-ph", "titrate in/box.pdb --maps m.dx -o p.csv"),
    (2, "--map-ph 4,99", "titrate in/box.pdb --map-ph 4,99 --maps m.dx"),
    (2, "m-ph4.xyz", "titrate in/box.pdb --map-ph 4 --maps m.xyz"),
    (2, "in/missing.pdb", "patches in/missing.pdb -o p.csv"),
    (2, "in/empty.pdb", "patches in/empty.pdb -o p.csv --figure p.png"),
    (2, "in/cut.pdb: line 51", "patches in/cut.pdb -o p.csv"),
    (2, "--threshold 0", "patches in/ion.pqr --threshold 0 -o p.csv"),
    (2, "in/missing.pdb", "patches in/ion.pqr --others in/missing.pdb -o p.csv"),
    (2, "in/other.xtc", "patches in/ion.pqr in/other.xtc -o p.csv"),
    (2, "--atoms //Q", "patches in/box.pdb --atoms //Q -o p.csv"),
    (2, "in/empty.pdb", "complementarity in/empty.pdb --between //A //B -o f.csv"),
    (2, "in/cut.pdb: line 51", "complementarity in/cut.pdb --between //A //B -o f.csv"),
    (2, "--between", "complementarity in/box.pdb --between //W/1 -o f.csv"),
    (2, "--between //Q", "complementarity in/box.pdb --between //W/1 //Q -o f.csv"),
    (2, "--between", "complementarity in/box.pdb --topology in/box.psf --between //W/1 //W/1 -o f.csv"),
    (2, "f.xyz", "complementarity in/box.pdb --between //W/1 //W/2 -o f.xyz"),
    # options
    (2, "COMMAND", ""),
    (2, "'ionize'", "ionise"),
    (2, "'--spacing'", "map in/ion.pqr -o m.dx --spacng 1"),
    (2, "in/box.pdb", "map in/ion.pqr in/box.pdb -o m.dx"),
    (2, "MAP", "slice -o f.png"),
    (2, "--spacing 0: ", "map in/ion.pqr -o m.dx --spacing 0"),
    (2, "--spacing nan: ", "map in/ion.pqr -o m.dx --spacing nan"),
    (2, "--padding -3: ", "map in/ion.pqr -o m.dx --padding -3"),
    (2, "--repeats 1.5: ", "benchmark --repeats 1.5"),
    (2, "'pme'", "map in/ion.pqr -o m.dx --method pm"),
    (2, "https://x.org/a.pdb", "map https://x.org/a.pdb -o m.dx"),
    (2, "--boundary periodic", "map in/box.pdb -o m.dx --method direct --boundary periodic"),
    (2, "debye_length", "map in/ion.pqr -o m.dx --set debye_length=8"),
    (2, "--set debye_length: ", "map in/ion.pqr -o m.dx --set debye_length"),
    # an empty value is not none
    (2, "structure", "map '' -o m.dx"),
    (2, "--topology", "map in/ion.pqr -o m.dx --topology="),
    (2, "--output", "map in/ion.pqr -o="),
    (2, "--cutoff", "map in/ion.pqr -o m.dx --cutoff="),
    (2, "--atoms", "map in/ion.pqr -o m.dx --atoms="),
    (2, "--ions", "ionize in/box.pdb --dry-run --ions="),
    (2, "--plane", "slice in/good.dx -o f.png --plane="),
]


@pytest.mark.parametrize(("code", "names", "command"), TABLE,
                         ids=[command.replace(LONG, "aaa")[:80] or "nothing" for *_, command in TABLE])
def test_bad_input(code, names, command, here, capfd, monkeypatch):
    words = shlex.split(command)
    while words and words[0].partition("=")[0].isupper():
        monkeypatch.setenv(*words.pop(0).split("="))
    check(code, names, cli.main(words), *capfd.readouterr())
    assert os.listdir(here) == ["in"]

    # the same with outputs that are there already, and may be replaced
    there = [path for path in outputs(words) if path.parent == Path() and len(path.name) < 100]
    if there and "exists" not in names:
        for path in there:
            path.write_text("precious")
        check(code, names, cli.main([*words, "--force"]), *capfd.readouterr())
        assert sorted(os.listdir(here)) == sorted({"in", *map(str, there)})
        assert all(path.read_text() == "precious" for path in there)


@pytest.mark.parametrize("words", [
    "map in/cut.tpr -o m.dx", "map in/box.pdb --topology in/cut.tpr -o m.dx",
])
def test_a_package_that_is_not_installed(words, here, capfd, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name.partition(".")[0] == "MDAnalysis":
            raise ImportError(name, name=name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    check(4, install_command("traj"), cli.main(words.split()), *capfd.readouterr())
    assert os.listdir(here) == ["in"]


@pytest.mark.slow
def test_other_packages_warn_nobody(here):
    command = [*PROGRAM, "map", FILES / "tip125_tric_C36.dcd", "--topology=in/other.psf", "-o", "m.dx",
               "--spacing=4", "--method=direct", "--boundary=open"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
