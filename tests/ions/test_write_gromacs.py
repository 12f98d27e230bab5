"""GROMACS' files of ionized systems: grompp, MDAnalysis and ParmEd read them, and molecules agree."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import MDAnalysis
import numpy as np
import parmed
import pytest
from MDAnalysisTests import datafiles
from messages import naming
from numpy.testing import assert_allclose, assert_array_equal

from vmdpotential import io
from vmdpotential.errors import InputError, UsageError
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.samples import water_box
from vmdpotential.molecule.structure import Structure
from vmdpotential.plugins.ions.command import command
from vmdpotential.plugins.ions.place import place_ions

pytestmark = pytest.mark.filterwarnings("ignore")  # the other programs warn

FIELD = """[ defaults ]
1 2 yes 0.5 0.8333
[ atomtypes ]
OW 8 15.9994 -0.834 A 0.315 0.636
HW 1  1.008   0.417 A 0.0   0.0
Na 11 22.99   1.0   A 0.333 0.0116
Cl 17 35.45  -1.0   A 0.44  0.4184
"""
WATER = """[ moleculetype ]
SOL 2
[ atoms ]
1 OW 1 SOL OW  1 -0.834 15.9994
2 HW 1 SOL HW1 1  0.417 1.008
3 HW 1 SOL HW2 1  0.417 1.008
[ settles ]
1 1 0.09572 0.15139
"""
IONS = """[ moleculetype ]
NAplus 1
[ atoms ]
1 Na 1 NAI NA 1 1.0 22.99

[ moleculetype ]
CL 1
[ atoms ]
1 Cl 1 CL CLM 1 -1.0
"""
#: A solute in the middle: two methanes in one molecule are between two blocks of water.
TOP = """; made by hand\t: ä
#include "mine.ff/forcefield.itp"
#include "mine.ff/water.itp"
#include "solute.itp"
#ifdef POSRES
#include "posre.itp" ; restraints
#endif

[ system ]
A solute in water

[ molecules ]
; Compound        #mols
SOL {first} ; crystal water
Solute    1
SOL        {second}
"""
SOLUTE = """[ moleculetype ]
Solute 3
[ atoms ]
1 OW 1 LIG C1 1 1.0 12.0
2 OW 1 LIG C2 1 1.0 12.0
[ bonds ]
1 2 1 0.15 1000
"""


def ionize(structure, topology, **options):
    return command(structure=structure, topology=topology, **options)


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """Make system.gro, with velocities, and system.top, of a force field with ions that the .top does not include."""
    positions, _ = water_box(15.0)
    waters = len(positions) // 3
    first = 20
    positions = np.insert(positions, 3 * first, [[0.7, 0.1, 0.2], [2.1, 0.3, 0.2]], axis=0)
    count = len(positions)
    rng = np.random.default_rng(1)
    names = np.insert(np.tile(["OW", "HW1", "HW2"], waters), 3 * first, ["C1", "C2"])
    residues = np.insert(np.repeat(np.arange(waters), 3), 3 * first, [-1, -1])
    structure = Structure(
        positions=np.round(positions, 2), atom_names=names, residue_names=np.where(residues < 0, "LIG", "SOL"),
        residue_index=np.cumsum(np.diff(residues, prepend=0) != 0), residue_ids=residues + 2,
        velocities=np.round(rng.normal(size=(count, 3)), 3), cell=Cell(np.diag([15.0, 15.0, 15.0])), title="waters")
    io.write_structure(structure, tmp_path / "system.gro")
    (tmp_path / "mine.ff").mkdir()
    for name, text in (("forcefield.itp", FIELD), ("water.itp", WATER), ("ions.itp", IONS)):
        (tmp_path / "mine.ff" / name).write_text(text)
    (tmp_path / "solute.itp").write_text(SOLUTE)
    (tmp_path / "system.top").write_text(TOP.format(first=first, second=waters - first), encoding="utf-8")
    return tmp_path


def test_gro_keeps_velocities_and_box(system: Path) -> None:
    structure = io.read_structure(system / "system.gro")
    text = (system / "system.gro").read_text().splitlines()
    assert text[1].strip() == str(len(structure))
    assert len(text[2]) == 20 + 24 + 24
    assert text[-1] == "   1.50000   1.50000   1.50000"
    theirs = MDAnalysis.Universe(str(system / "system.gro")).atoms
    assert_allclose(structure.positions, theirs.positions, atol=1e-4)
    assert_allclose(structure.velocities, theirs.velocities, atol=1e-4)
    assert theirs.velocities.std() > 0.5
    other = parmed.load_file(str(system / "system.gro"))
    assert_allclose(other.coordinates, structure.positions, atol=1e-6)
    assert [atom.name for atom in other.atoms] == structure.atom_names.tolist()
    assert_allclose(other.box, [15, 15, 15, 90, 90, 90])


def test_gro_of_large_and_of_skewed_systems(tmp_path: Path) -> None:
    count = 100_003
    cell = Cell.from_parameters(500, 510, 520, 70, 80, 100)
    structure = Structure(
        positions=np.random.default_rng(0).uniform(-99, 99, (count, 3)), atom_names=np.full(count, "AR"),
        residue_names=np.full(count, "ARGON"), residue_ids=np.arange(1, count + 1), residue_index=np.arange(count),
        cell=cell)
    io.write_structure(structure, tmp_path / "out.gro")
    lines = (tmp_path / "out.gro").read_text().splitlines()
    assert lines[1] == "100003"
    assert [lines[n + 1][:20] for n in (1, 99_999, 100_000, 100_001)] == [
        "    1ARGON   AR    1", "99999ARGON   AR99999", "    0ARGON   AR    0", "    1ARGON   AR    1"]
    again = io.read_structure(tmp_path / "out.gro")
    assert again.velocities is None
    assert again.residue_count == count
    assert_allclose(again.positions, structure.positions, atol=0.0051)
    assert_allclose(again.cell.vectors, cell.vectors, atol=1e-4)
    few = structure.take(np.arange(4))
    io.write_structure(replace(few, sources=("fine.gro",)), tmp_path / "fine.gro")  # keeps the decimals of its input
    assert_allclose(io.read_structure(tmp_path / "fine.gro").positions, few.positions, atol=6e-6)
    with naming(UsageError, "no.gro: ", "'ABCDEF'"):
        io.write_structure(replace(few, atom_names=np.full(4, "ABCDEF")), tmp_path / "no.gro")
    with naming(UsageError, "no.gro: the cell "):
        io.write_structure(replace(few, cell=Cell(cell.vectors[:, ::-1])), tmp_path / "no.gro")
    with naming(UsageError, "no.gro: atom 1 "):
        io.write_structure(replace(few, positions=few.positions + 1e5), tmp_path / "no.gro")
    assert not (tmp_path / "no.gro").exists()


def test_velocities_that_are_incomplete_are_left_out(system: Path, caplog: pytest.LogCaptureFixture) -> None:
    lines = (system / "system.gro").read_text().splitlines()
    lines[7] = lines[7][:44]
    (system / "part.gro").write_text("\n".join(lines))
    structure = io.read_structure(system / "part.gro")
    assert structure.velocities is None
    assert "not all atoms have velocities" in caplog.text


def test_molecules_of_the_top_agree_with_the_gro(system: Path) -> None:
    """Waters of two blocks are replaced; ions get the force field's names, and its file is included."""
    before = io.read_structure(system / "system.gro", system / "system.top")
    assert before.topology.source == "top"
    (system / "out").mkdir()
    output = (system / "out" / "ions.gro", system / "out" / "ions.top")
    report = ionize(system / "system.gro", system / "system.top", ions={"SOD": 3, "CLA": 5}, from_solute=0, between=0,
                    site="random", seed=4, output=output)
    placed = report.objects["placement"]
    old, new = ((path).read_text(encoding="utf-8").splitlines() for path in (system / "system.top", output[1]))
    kept = [line for line in old if line and (not line.startswith(("SOL", "#include")) or "posre" in line)]
    assert [line for line in new if line in kept] == kept
    assert '#include "../solute.itp"' in new  # next to the .top that was read
    assert new.index('#include "../mine.ff/water.itp"') < new.index('#include "../mine.ff/ions.itp"') < new.index(
        "[ system ]")
    gone = int((placed.replaced < 20).sum())
    assert 0 < gone < 8
    assert new[-5:] == [f"SOL {20 - gone} ; crystal water", "Solute    1", f"SOL        {105 - 8 + gone}",
                        "NAplus              3", "CL                  5"]

    theirs = MDAnalysis.Universe(str(output[0])).atoms
    other = MDAnalysis.Universe(str(output[1]), topology_format="ITP", infer_system=True).atoms
    assert_array_equal(theirs.names, other.names)
    assert_array_equal(theirs.resnames, other.resnames)
    assert theirs.names[-8:].tolist() == ["NA"] * 3 + ["CLM"] * 5
    assert theirs.resnames[-8:].tolist() == ["NAI"] * 3 + ["CL"] * 5
    assert other.charges.sum() == pytest.approx(0, abs=1e-4)
    # an ion is where its water was, and moves as its oxygen did
    before_, after = (MDAnalysis.Universe(str(path)).atoms for path in (system / "system.gro", output[0]))
    ions = [int(np.flatnonzero(np.abs(before_.positions - place).max(1) < 1e-3)[0]) for place in after.positions[-8:]]
    assert set(before_.names[ions]) == {"OW"}
    assert_allclose(after.velocities[-8:], before_.velocities[ions], atol=1e-4)
    assert_allclose(after.velocities[:-8], before_.velocities[placed.kept_atoms], atol=1e-4)

    # what was written is read and ionized again: now the ions are included, and have lines of their own
    again = system / "again.top"
    ionize(*output, ions={"NA": 1, "CL": 1}, from_solute=0, between=0, site="random", seed=1, output=(again,))
    lines = again.read_text(encoding="utf-8").splitlines()
    assert lines.count('#include "mine.ff/ions.itp"') == 1
    assert '#include "solute.itp"' in lines
    assert [line.split() for line in lines[-4:]] == [["NAplus", "3"], ["CL", "5"], ["NAplus", "1"], ["CL", "1"]]


def test_block_without_molecules_left_and_what_cannot_be_written(system: Path) -> None:
    top, gro = system / "system.top", system / "system.gro"
    structure = io.read_structure(gro, top)
    io.write_structure(structure.take(structure.residue_index >= 20), system / "less.top")
    assert "SOL 20" not in (system / "less.top").read_text(encoding="utf-8")
    assert (system / "less.top").read_text(encoding="utf-8").splitlines()[-2:] == ["Solute    1", "SOL        105"]
    output = system / "out.top"
    arguments = {"site": "random", "seed": 1, "from_solute": 0, "between": 0}
    with pytest.raises(InputError, match=r"ions.itp .* residue K, atom K.* "
                                         r"(NAplus, CL|CL, NAplus); use one of them"):
        ionize(gro, top, ions={"POT": 1, "CLA": 1}, output=(output, system / "out.gro"), **arguments)
    with pytest.raises(InputError):
        io.write_structure(structure.take(np.arange(1, 40)), output)
    with naming(UsageError, ".top", " as topology"):
        io.write_structure(io.read_structure(gro), output)
    top.write_text(top.read_text(encoding="utf-8") + "[ intermolecular_interactions ]\n", encoding="utf-8")
    structure = io.read_structure(gro, top)  # for maps it is good enough
    with naming(InputError, "system.top: line "):
        io.write_structure(structure, output)
    assert not output.exists()
    assert not (system / "out.gro").exists()


@pytest.fixture
def grompp(tmp_path: Path):
    """Return what runs a command of gmx, which must find nothing to note."""
    program = shutil.which("gmx")
    if program is None:
        pytest.skip("needs GROMACS' program gmx")
    (tmp_path / "em.mdp").write_text("integrator = steep\nemstep = 0.01\nnsteps = 1\ncoulombtype = PME\n")

    def run(*words: str) -> str:
        result = subprocess.run([program, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr[-2000:]
        return result.stdout + result.stderr

    def check(*words: str) -> str:
        text = run(*words)
        assert "NOTE" not in text
        assert "WARNING" not in text
        return text

    return run, check


@pytest.mark.slow
def test_grompp_reads_an_ionized_protein(grompp, tmp_path: Path) -> None:
    run, check = grompp
    data = Path(datafiles.PDB).parent
    run("pdb2gmx", "-f", str(data / "adk_open_10res.pdb"), "-o", "p.gro", "-p", "topol.top", "-ff", "charmm27",
        "-water", "tip3p", "-ignh")
    run("editconf", "-f", "p.gro", "-o", "box.gro", "-box", "3.2", "3.2", "3.2", "-bt", "dodecahedron")
    run("solvate", "-cp", "box.gro", "-cs", "spc216.gro", "-o", "solvated.gro", "-p", "topol.top")
    output = (tmp_path / "ions.gro", tmp_path / "ions.top")
    report = ionize(tmp_path / "solvated.gro", tmp_path / "topol.top", cation="K", concentration=0.2, site="random",
                    seed=1, output=output)
    text = check("grompp", "-f", "em.mdp", "-c", "ions.gro", "-p", "ions.top", "-r", "ions.gro", "-o", "out.tpr")
    assert "Ion residues" in text
    universe = MDAnalysis.Universe(str(tmp_path / "out.tpr"))
    placed = report.objects["placement"].structure
    assert_array_equal(universe.atoms.names, placed.atom_names)
    terms = io.read_topology(tmp_path / "out.tpr").topology
    assert len(terms.cross_terms) == 8
    for name in ("bonds", "dihedrals", "impropers", "cross_terms"):
        mine, theirs = (set(map(tuple, getattr(result, name).tolist())) for result in (placed.topology, terms))
        assert theirs <= mine, name
        assert theirs == mine or name in ("dihedrals", "impropers")  # grompp drops those of no force
    assert universe.atoms.charges.sum() == pytest.approx(0, abs=1e-3)
    assert set(universe.atoms.names[-4:]) <= {"K", "CL"}

    # a TPR gives names and charges for a .gro, and no .top
    again = tmp_path / "again.gro"
    ionize(output[0], tmp_path / "out.tpr", ions={"NA": 1}, site="random", seed=1, output=(again,))
    assert again.read_text().splitlines()[-2].split()[1] == "NA"
    with naming(UsageError, "no.top"):
        ionize(output[0], tmp_path / "out.tpr", ions={"NA": 1}, output=(tmp_path / "no.top",))


def test_of_two_ions_that_are_the_same_the_one_of_the_system_is_counted(system: Path) -> None:
    ions = system / "mine.ff" / "ions.itp"
    twice = IONS.replace("NAplus 1", "OTHER 1").partition("\n\n")[0] + "\n" + IONS
    ions.write_text(twice)
    top = (system / "system.top").read_text(encoding="utf-8").replace(
        '#include "solute.itp"', '#include "mine.ff/ions.itp"\n#include "solute.itp"')
    for name in ("NAplus", "OTHER"):
        (system / "two.top").write_text(f"{top.rstrip()}\n{name} 0\n", encoding="utf-8")
        structure = io.read_structure(system / "system.gro", system / "two.top")
        placed = place_ions(structure, ions={"NA": 3}, site="random", seed=1, from_solute=0, between=2)
        io.write_structure(placed.structure, system / f"{name}-out.top")
        assert (system / f"{name}-out.top").read_text(encoding="utf-8").split()[-2:] == [name, "3"]
