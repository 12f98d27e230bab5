"""Force fields of OpenMM that hold programs: nothing runs unless it is allowed by the option named for it."""

import pickle
from dataclasses import replace

import numpy as np
import openmm
import pytest
from structure_files import OPENMM

from vmdpotential.errors import InputError
from vmdpotential.frontend.cli import main
from vmdpotential.io import read_structure
from vmdpotential.plugins.forcefields.forcefield import nonbonded

FIELD = """<ForceField>
 <AtomTypes><Type name="na" class="na" element="Na" mass="22.99"/></AtomTypes>
 <Residues><Residue name="NA"><Atom name="NA" type="na"/></Residue></Residues>
 <NonbondedForce coulomb14scale="1" lj14scale="1"{attribute}>
  <Atom type="na" charge="1" sigma="0.2" epsilon="0.1"/>
 </NonbondedForce>
 {more}
</ForceField>"""


@pytest.fixture
def ions(tmp_path):
    path = tmp_path / "ions.pdb"
    path.write_text("CRYST1   30.000   30.000   30.000  90.00  90.00  90.00 P 1           1\n"
                    "HETATM    1 NA    NA A   1       1.000   1.000   1.000  1.00  0.00          NA\n"
                    "HETATM    2 NA    NA A   2       5.000   1.000   1.000  1.00  0.00          NA\nEND\n")
    return path


def code(tmp_path):
    return f"open({str(tmp_path / 'ran')!r}, 'w').close()"


def run(ions, *files, **options):
    more = [f"--{name.replace('_', '-')}" for name in options]
    return main(["energy", str(ions), "--charges", str(ions.parent / "charges.txt"), "--parameters", *map(str, files),
                 "--between", "all", "all", *more])


@pytest.fixture(autouse=True)
def _charges(tmp_path):
    (tmp_path / "charges.txt").write_text("NA NA 1\n")


@pytest.mark.parametrize("tag", ["Script", "InitializationScript"])
@pytest.mark.parametrize("included", [False, True])
def test_scripts_run_where_they_are_allowed_only(ions, tmp_path, capsys, tag, included):
    script = f"<{tag}>{code(tmp_path)}</{tag}>"
    path = tmp_path / "own.xml"
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.xml").write_text(f"<ForceField>{script}</ForceField>")
    (tmp_path / "a.xml").write_text('<ForceField><Include file="deep/b.xml"/></ForceField>')
    path.write_text(FIELD.format(attribute="", more='<Include file="a.xml"/>' if included else script))
    assert run(ions, path) == 2
    where = tmp_path / "deep" / "b.xml" if included else path
    error = capsys.readouterr().err
    assert str(where.name) in error
    assert "--allow-scripts" in error
    assert not (tmp_path / "ran").exists()
    assert run(ions, path, allow_scripts=True) == 0
    assert (tmp_path / "ran").exists()


def test_an_attribute_that_openmm_evaluates(ions, tmp_path):
    path = tmp_path / "own.xml"
    path.write_text(FIELD.format(attribute=f' useDispersionCorrection="{code(tmp_path)}"', more=""))
    assert run(ions, path) == 2
    assert not (tmp_path / "ran").exists()
    path.write_text(FIELD.format(attribute=' useDispersionCorrection="False"', more=""))
    assert run(ions, path) == 0


class _Runs:
    def __init__(self, what):
        self.what = what

    def __reduce__(self):
        return exec, (self.what,)


@pytest.mark.parametrize("spelling", ['type="PythonForce"', "type = 'PythonForce'", 'type=x"PythonForce"',
                                      '--> type="PythonForce"'])
def test_a_pickled_function_in_a_system(ions, tmp_path, spelling):
    system = openmm.System()
    system.addParticle(22.99)
    system.addParticle(22.99)
    force = openmm.NonbondedForce()
    for _ in range(2):
        force.addParticle(1, 0.2, 0.1)
    system.addForce(force)
    path = tmp_path / "system.xml"
    text = openmm.XmlSerializer.serialize(system)
    path.write_text(text)
    assert run(ions, path) == 0
    packed = pickle.dumps(_Runs(code(tmp_path))).hex()
    evil = f'<Force forceGroup="0" function="{packed}" name="x" usesPeriodic="0" version="2" {spelling}>' \
           "<GlobalParameters/><Particles/></Force></Forces>"
    path.write_text(text.replace("</Forces>", evil))
    with pytest.raises(InputError):
        nonbonded(read_structure(ions), [path])
    assert not (tmp_path / "ran").exists()


def test_includes_without_end(ions, tmp_path):
    for n in range(400):
        (tmp_path / f"{n}.xml").write_text(f'<ForceField><Include file="{n + 1}.xml"/></ForceField>')
    (tmp_path / "400.xml").write_text(FIELD.format(attribute="", more=""))
    assert run(ions, tmp_path / "0.xml") == 2
    assert run(ions, tmp_path / "390.xml") == 0
    (tmp_path / "a.xml").write_text(FIELD.format(attribute="", more='<Include file="a.xml"/>'))  # itself
    assert run(ions, tmp_path / "a.xml") == 0


def test_scripts_of_files_that_come_with_openmm(ions):
    """Those are a part of the program."""
    path = OPENMM / "charmm36.xml"
    assert "<InitializationScript>" in path.read_text()
    structure = replace(read_structure(ions), atom_names=np.array(["SOD", "SOD"]), residue_names=np.array(["SOD"] * 2))
    assert len(nonbonded(structure, ["charmm36.xml", "charmm36/water.xml"])) == 2
    assert len(nonbonded(structure, [path, path.parent / "charmm36" / "water.xml"])) == 2
