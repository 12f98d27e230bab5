"""Limits on what files of topologies and parameters may ask for, and numbers that are too long or too large."""

import numpy as np
import pytest
from fuzz.kinds import PARAMETERS
from fuzz.seeds import system
from openmm import app

from vmdpotential.errors import InputError, MemoryPlanError
from vmdpotential.molecule.structure import Structure
from vmdpotential.plugins.forcefields import charmm, gromacs_folder, ion_parameters
from vmdpotential.plugins.forcefields.forcefield import nonbonded

FIELD = """<ForceField>
 <AtomTypes><Type name="na" class="na" element="Na" mass="22.99"/></AtomTypes>
 <Residues><Residue name="NA"><Atom name="NA" type="na"/></Residue></Residues>
 <NonbondedForce coulomb14scale="1" lj14scale="1">
  <Atom type="na" charge="1" sigma="0.2" epsilon="0.1"/>
 </NonbondedForce>
</ForceField>"""


def lines(path):
    return [line.text for line in gromacs_folder.read_lines(path)]


def test_files_that_include_each_other_twice(tmp_path):
    """45 files of two lines, of which the last would be read 2^44 times."""
    for n in range(44):
        (tmp_path / f"{n}.top").write_text(f'#include "{n + 1}.top"\n' * 2)
    (tmp_path / "44.top").write_text("a line\n")
    with pytest.raises(InputError):
        lines(tmp_path / "0.top")
    assert lines(tmp_path / "36.top") == ["a line"] * 2**8


def test_a_long_file_that_is_included_often(tmp_path, monkeypatch):
    monkeypatch.setattr(gromacs_folder, "MOST_LINES", 5000)
    (tmp_path / "long.itp").write_text("a b c\n" * 600)
    (tmp_path / "a.top").write_text('#include "long.itp"\n' * 5)
    assert len(lines(tmp_path / "a.top")) == 3000
    (tmp_path / "a.top").write_text('#include "long.itp"\n' * 10)
    with pytest.raises(InputError):
        lines(tmp_path / "a.top")


@pytest.mark.parametrize("text", ["a \\\n" * 100_000, f"#define A {'b' * 5000}\nA A A A\n"])
def test_a_line_that_grows(tmp_path, text):
    (tmp_path / "a.top").write_text(text)
    with pytest.raises(InputError):
        lines(tmp_path / "a.top")


@pytest.mark.slow
def test_charmm_parameters_of_many_digits(tmp_path):
    for name in ("a.str", "a.prm"):
        path = tmp_path / name
        path.write_text("* title\n*\nread para card\nATOMS\nMASS -1 NA 22.99\nNONBONDED\n"
                        f"NA 0.0 {'9' * 70_000} 1.4\nEND\n")
        with pytest.raises(InputError) as caught:
            charmm.ion_parameters(path, None, ["NA"])
        assert len(str(caught.value)) < 400


def test_amber_parameters_of_many_digits(tmp_path):
    """They took minutes."""
    path = tmp_path / "a.frcmod"
    path.write_text(f"ions\nNONBON\nNa+ 1.369 0.0874\nCl- {'9' * 200_000}\nK+ {'9' * 200_000}x 1\n\n")
    assert list(ion_parameters._of_amber(path)) == ["Na+"]


def test_a_system_that_openmm_has_no_memory_for(tmp_path, monkeypatch):
    """Refused before OpenMM begins."""
    count = 10_000
    names = np.full(count, "NA")
    numbers = np.arange(count)
    ions = Structure(np.stack([5.0 * numbers, 0 * numbers, 0 * numbers], axis=1), names, names, numbers + 1, numbers)
    path = tmp_path / "own.xml"
    path.write_text(FIELD)

    def create(*_, **__):
        raise AssertionError("it has begun")

    monkeypatch.setattr(app.ForceField, "createSystem", create)
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "15M")
    with pytest.raises(MemoryPlanError):
        nonbonded(ions, [path])


@pytest.mark.slow
@pytest.mark.parametrize(("old", "new"), [
    ("SOD O -0.075 3.2", "SOD O -0.1 1e308"), ("SOD O -0.075 3.2", "SOD O -1e308 30.0"),
    ("SOD 0.0 -0.5 1.4", "SOD 0.0 -0.5 1e308"), ("SOD 0.0 -0.5 1.4", "SOD 0.0 -1e308 1.4")])
def test_charmm_parameters_that_overflow(tmp_path, recwarn, old, new):
    path = tmp_path / "a.prm"
    path.write_text(PARAMETERS.replace(old, new))
    with pytest.raises(InputError) as caught:
        nonbonded(system(), [path])
    assert "a.prm" in str(caught.value)
    assert not recwarn.list
