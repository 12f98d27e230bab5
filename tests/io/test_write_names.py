"""Names that other programs' libraries read: tleap's ions, OpenMM's force fields, CHARMM's parameters with a PSF."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import golden
import MDAnalysis
import numpy as np
import openmm
import parmed
import pytest
from helpers import water
from MDAnalysisTests import datafiles
from openmm import app, unit

from vmdpotential import io
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.names import ION_RESIDUES
from vmdpotential.molecule.structure import Structure, Topology
from vmdpotential.plugins.ions.counts import IonSpecies
from vmdpotential.plugins.ions.edit import name_ion
from vmdpotential.plugins.ions.place import place_ions
from vmdpotential.plugins.ions.salts import Salt, plan_mixture

AMBER = Path(datafiles.PDB).parent / "Amber"
OPENMM = Path(app.__file__).parent / "data"

pytestmark = pytest.mark.filterwarnings("ignore")  # the other programs warn

PARAMETERS = """ATOMS
MASS  -1  OT    15.9994
MASS  -1  HT     1.0080
MASS  -1  POT   39.0983
MASS  -1  CAL   40.0800
MASS  -1  CLA   35.4500

BONDS
HT OT 450.0 0.9572
HT HT 0.0 1.5139

ANGLES
HT OT HT 55.0 104.52

NONBONDED nbxmod  5 atom cdiel fshift vatom vdistance vfswitch -
cutnb 14.0 ctofnb 12.0 ctonnb 10.0 eps 1.0 e14fac 1.0 wmin 1.5
OT     0.0  -0.1521  1.7682
HT     0.0  -0.0460  0.2245
POT    0.0  -0.0870  1.76375
CAL    0.0  -0.1200  1.367
CLA    0.0  -0.1500  2.27

END
"""


def charge(system: openmm.System) -> float:
    """Return the net charge, e, of OpenMM's system."""
    force = next(force for force in system.getForces() if isinstance(force, openmm.NonbondedForce))
    return sum(force.getParticleParameters(i)[0].value_in_unit(unit.elementary_charge)
               for i in range(system.getNumParticles()))


@pytest.fixture
def charmm() -> Structure:
    """Return water as psfgen makes it."""
    box = water(16.0, Cell(np.diag([16.0, 16.0, 16.0])))
    oxygens = np.arange(0, len(box), 3)
    bonds = np.stack([np.repeat(oxygens, 2), (oxygens[:, None] + [1, 2]).reshape(-1)], axis=1)
    masses = np.tile([15.9994, 1.008, 1.008], len(oxygens))
    topology = Topology("psf", np.tile(["OT", "HT", "HT"], len(oxygens)), masses, bonds, oxygens[:, None] + [1, 0, 2])
    return Structure(**{**vars(box), "topology": topology, "segment_ids": np.full(len(box), "WT1")})


def test_tleap_has_the_amber_names_of_ions(charmm: Structure) -> None:
    """OpenMM's ions come from Amber's atomic_ions.lib, where sodium, potassium and chloride also have a sign."""
    library = {}
    for residue in ET.parse(OPENMM / "amber14" / "tip3p.xml").getroot().iter("Residue"):
        atoms = residue.findall("Atom")
        if len(atoms) == 1:
            symbol = "".join(letter for letter in atoms[0].get("type").rpartition("-")[2] if letter.isalpha())
            symbol = symbol or "".join(letter for letter in atoms[0].get("type").split("-")[1] if letter.isalpha())
            library[symbol, round(float(atoms[0].get("charge")))] = residue.get("name"), atoms[0].get("name")
    known = {("Na", 1): "Na+", ("K", 1): "K+", ("Cl", -1): "Cl-"}
    tested = 0
    for name, ion in ION_RESIDUES.items():
        names = name_ion(charmm, name, "cation", "amber")
        if (ion.element, ion.charge) in known:
            assert names[:2] == (known[ion.element, ion.charge],) * 2
        elif (ion.element, ion.charge) in library:
            assert names[:2] == library[ion.element, ion.charge], name
            tested += 1
    assert tested > 60


def test_openmm_makes_a_system_of_a_pdb_with_ambers_names(tmp_path: Path) -> None:
    structure = io.read_structure(AMBER / "parmed_ala2_solv.rst7", AMBER / "parmed_ala2_solv.parm7")
    field = app.ForceField("amber14/protein.ff14SB.xml", "amber14/tip3p.xml")
    result = place_ions(structure, cation="K", concentration=0.3, site="random", seed=1).structure
    assert {"K+", "Cl-"} <= set(result.residue_names)
    io.write_structure(result, tmp_path / "out.pdb")
    file = app.PDBFile(str(tmp_path / "out.pdb"))
    modeller = app.Modeller(file.topology, file.positions)
    assert modeller.topology.getNumAtoms() == len(result)
    system = field.createSystem(modeller.topology, nonbondedMethod=app.PME, nonbondedCutoff=0.8 * unit.nanometer)
    assert abs(charge(system)) < 1e-6


def test_openmm_makes_a_system_of_a_pdb_with_charmms_names(charmm: Structure, tmp_path: Path) -> None:
    result = place_ions(charmm, cation="K", concentration=1, site="random", seed=1).structure
    assert {"POT", "CLA"} <= set(result.residue_names)
    io.write_structure(result, tmp_path / "out.pdb")
    file = app.PDBFile(str(tmp_path / "out.pdb"))
    system = app.ForceField("charmm36/water.xml").createSystem(file.topology)
    assert system.getNumParticles() == len(result)
    assert abs(charge(system)) < 1e-6


def test_psf_has_charmms_names_and_types_for_its_parameters(charmm: Structure, tmp_path: Path) -> None:
    """NAMD, CHARMM and OpenMM look the ions' types up; all terms of the waters that are left stay."""
    placed = place_ions(charmm, cation="Ca2+", concentration=0.5, site="random", seed=1)
    result = placed.structure
    io.write_structures(result, [tmp_path / "out.psf", tmp_path / "out.pdb"])
    (tmp_path / "par.prm").write_text(PARAMETERS)
    psf = app.CharmmPsfFile(str(tmp_path / "out.psf"))
    system = psf.createSystem(app.CharmmParameterSet(str(tmp_path / "par.prm")))
    assert abs(charge(system)) < 1e-6
    force = next(force for force in system.getForces() if isinstance(force, openmm.NonbondedForce))
    last = force.getParticleParameters(len(result) - 1)
    assert last[2].value_in_unit(unit.kilocalorie_per_mole) == pytest.approx(0.15)

    other = parmed.charmm.CharmmPsfFile(str(tmp_path / "out.psf"))
    other.load_parameters(parmed.charmm.CharmmParameterSet(str(tmp_path / "par.prm")))
    waters = int((result.residue_names == "TIP3").sum()) // 3
    assert (len(other.bonds), len(other.angles)) == (2 * waters, waters)
    names = [(atom.residue.name, atom.name, atom.type) for atom in other.atoms[3 * waters:]]
    assert set(names) == {("CAL", "CAL", "CAL"), ("CLA", "CLA", "CLA")}
    universe = MDAnalysis.Universe(str(tmp_path / "out.psf"), str(tmp_path / "out.pdb"))
    assert universe.atoms.names.tolist() == result.atom_names.tolist()
    assert universe.select_atoms("segid ION").n_atoms == len(placed.ions)


def test_ions_that_are_there_are_counted_by_any_name() -> None:
    sodium, potassium, chloride = IonSpecies("SOD", 1), IonSpecies("POT", 1), IonSpecies("CLA", -1)
    salts = [Salt("NaCl", sodium, chloride, 0.5), Salt("KCl", potassium, chloride, 0.5)]
    complete = plan_mixture(0, 10_000, salts, sodium, chloride, concentration=0.15,
                            existing=[(sodium, 25), (potassium, 13), (chloride, 27)])
    assert (complete.added, complete.neutralizing, complete.salt) == ((), {}, {})
    options = {"concentration": 0.4, "salt": {"NaCl": 0.5, "KCl": 0.5}, "seed": 1, "site": "random", "from_solute": 4,
               "between": 4}
    first = place_ions(golden.structure(), **options)
    again = place_ions(first.structure, naming="amber", **options)
    assert again.counts.total < 0.2 * first.counts.total
    assert sum(again.counts.existing.values()) == first.counts.total
