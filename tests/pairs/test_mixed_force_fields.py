"""Energies of charges and Lennard-Jones that are of two force fields come with a warning."""

from dataclasses import replace

import golden
import numpy as np
import pytest
from helpers import TOOLS

from vmdpotential.frontend.cli import main
from vmdpotential.molecule.charges import ChargeReport
from vmdpotential.molecule.nonbonded import Nonbonded
from vmdpotential.plugins.forcefields import forcefield
from vmdpotential.plugins.pairs.between import warn_of_mixture

NONE = np.zeros((0, 2), np.int64)
PLAIN = Nonbonded("", ("A",), np.zeros(1, np.int64), np.zeros((1, 1)), np.zeros((1, 1)), NONE, NONE, np.zeros(0),
                  np.zeros(0), np.zeros(0))


@pytest.mark.parametrize(("charges", "parameters", "differ"), [
    ("charmm36", "OpenMM amber14-all.xml, amber14/tip3p.xml", True),
    ("amber14", "CHARMM par_all36m_prot.prm", True),
    ("prmtop topology", "OpenMM charmm36.xml", True),
    ("charmm36", "prmtop", True),
    ("charmm36", "CHARMM par_all36m_prot.prm", False),
    ("amber14", "OpenMM amber14-all.xml", False),
    ("psf topology", "OpenMM amber14-all.xml", False),  # of no known force field
    ("OpenMM System system.xml", "OpenMM amber14-all.xml", False),
])
def test_what_is_known_and_differs_is_told(charges, parameters, differ, caplog):
    report = ChargeReport(charges, 0.0, {"ALA": 3, "TIP3P": 9} if "1" in charges or "36" in charges else {},
                          waters={"TIP3P": "by its name"})
    warn_of_mixture(golden.structure(), report, replace(PLAIN, source=parameters))
    assert len(caplog.records) == differ
    assert all(name in caplog.text for name in (charges, parameters) if differ)


def test_waters_and_ions_have_the_same_charges_in_both(caplog):
    report = ChargeReport("charmm36", 0.0, {"SOD": 3, "TIP3P": 9}, waters={"TIP3P": "by its name"})
    warn_of_mixture(golden.structure(), report, replace(PLAIN, source="OpenMM amber14/tip3p.xml"))
    assert not caplog.records


def test_the_warning_is_one_line_of_the_shell(monkeypatch, capsys):
    alanine = TOOLS / "alanine-dipeptide-gbsa" / "alanine-dipeptide.crd"
    plain = forcefield.nonbonded
    monkeypatch.setattr(forcefield, "nonbonded", lambda *given: replace(plain(*given), source="CHARMM a.prm"))
    code = main(["energy", str(alanine), "--topology", str(alanine.with_suffix(".prmtop")), "--between", "all", "all"])
    err = capsys.readouterr().err
    assert code == 0, err
    (line,) = [line for line in err.splitlines() if "not compatible" in line]
    assert "--force-field" in line
