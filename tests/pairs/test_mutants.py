"""Binding energies of mutants over frames: OpenMM's for the same atoms, published parameters, and paired errors."""

from dataclasses import replace

import MDAnalysis
import numpy as np
import openmm
import pytest
from MDAnalysisTests.datafiles import DCD, PSF, PDB_small
from openmm import app, unit
from openmm.app.internal import customgbforces
from scipy.spatial.distance import cdist

from vmdpotential import energy, nonbonded, prepare, progress, read_structure, select
from vmdpotential.errors import InputError, UsageError
from vmdpotential.execution import blocks
from vmdpotential.molecule.charges import charges_and_report
from vmdpotential.plugins.pairs.generalized_born import KAPPA_FACTOR
from vmdpotential.plugins.pairs.mutate import mutate_residue
from vmdpotential.units import coulomb_constant, debye_length

DOMAINS = ("resid 122-159", "resid 30-59")
OPTIONS = {"between": DOMAINS, "solvent": "gb"}  # OpenMM needs seconds to find Lennard-Jones parameters
#: Atoms of an arginine that an alanine keeps, by CHARMM's names, and the name in alanine of those that differ.
KEPT = {"N": "N", "HN": "H", "CA": "CA", "HA": "HA", "CB": "CB", "HB1": "HB1", "HB2": "HB2", "CG": "HB3", "C": "C",
        "O": "O"}

#: Amber's charges of an alanine, by the names of the atoms of an aspartate that it keeps (W. D. Cornell et al., J. Am.
#: Chem. Soc. 117 (1995) 5179).
AMBER_ALANINE = {"N": -0.4157, "H": 0.2719, "CA": 0.0337, "HA": 0.0823, "CB": -0.1825, "CG": 0.0603, "HB2": 0.0603,
                 "HB3": 0.0603, "C": 0.5973, "O": -0.5679}


@pytest.fixture(scope="module")
def kinase():
    return charges_and_report(read_structure(PDB_small, topology=PSF))


def alanine_charges():
    """Return the charges of alanine by OpenMM's CHARMM36."""
    template = app.ForceField("charmm36.xml")._templates["ALA"]
    return {atom.name: atom.parameters["charge"] for atom in template.atoms}


@pytest.mark.slow
def test_mutant_is_as_by_openmm():
    """Its Coulomb and polar energies, from atoms, charges and radii that are written down here."""
    table = energy(PSF, DCD, frames="0:30:25", mutate=("36/ALA",), **OPTIONS).table()
    universe = MDAnalysis.Universe(PSF, DCD)
    atoms = universe.atoms
    own = atoms.resids == 36
    kept = np.flatnonzero(~own | np.isin(atoms.names, list(KEPT)))
    charges, known = atoms.charges.astype(float), alanine_charges()
    kind = customgbforces.GBSAOBC2Force
    parameters = np.array(kind.getStandardParameters(app.CharmmPsfFile(PSF).topology))
    for n in np.flatnonzero(own):
        if atoms.names[n] in KEPT:
            charges[n] = known.get(KEPT[atoms.names[n]], known.get(atoms.names[n]))
    carbon, gamma = (int(np.flatnonzero(own & (atoms.names == name))[0]) for name in ("CB", "CG"))
    parameters[gamma] = 0.12, 0.85  # a hydrogen's radius, nm, and its scale
    masks = [np.isin(atoms.resids, np.arange(first, last + 1)) for first, last in ((122, 159), (30, 59))]

    def solvation(chosen, positions):
        force = kind(kappa=10 * KAPPA_FACTOR / debye_length(0.15, 298.15, 78.5))
        system = openmm.System()
        for n in kept[chosen[kept]]:
            system.addParticle(1)
            force.addParticle([charges[n], *parameters[n]])
        force.finalize()
        system.addForce(force)
        context = openmm.Context(system, openmm.VerletIntegrator(1), openmm.Platform.getPlatformByName("Reference"))
        context.setPositions(positions[kept[chosen[kept]]] / 10)
        return context.getState(getEnergy=True).getPotentialEnergy().value_in_unit(unit.kilocalorie_per_mole)

    constant = 138.935485 / 0.4184 / coulomb_constant("kcal/mol/e")
    assert table["mutant"] == ["", "", "ARG36ALA", "ARG36ALA"]
    for row in (2, 3):
        positions = universe.trajectory[table["frame"][row]].positions.astype(float)
        bond = positions[gamma] - positions[carbon]
        positions[gamma] = positions[carbon] + 1.09 / np.linalg.norm(bond) * bond
        first, second = (kept[mask[kept]] for mask in masks)
        coulomb = coulomb_constant("kcal/mol/e") * (
            charges[first] @ (1 / cdist(positions[first], positions[second])) @ charges[second])
        assert table["coulomb"][row] == pytest.approx(coulomb, abs=1e-5)
        both, a, b = (solvation(chosen, positions) for chosen in (masks[0] | masks[1], *masks))
        polar = sum(table[name][row] for name in ("screening", "desolvation_1", "desolvation_2"))
        assert constant * polar == pytest.approx(both - a - b, abs=2e-4)


def test_parameters_of_alanine_are_charmms(kinase):
    """Lennard-Jones well depths, kcal/mol, and half the distances of minima, A, of CT3 and HA3 (CHARMM36)."""
    structure, report = kinase
    mutant = mutate_residue(structure, "36/ALA", report)
    terms = mutant.terms(nonbonded(structure, ["charmm36.xml"]))
    residue = mutant.structure.residue_ids == 36
    names = mutant.structure.atom_names[residue].tolist()
    assert sorted(names) == ["C", "CA", "CB", "HA", "HB1", "HB2", "HB3", "HN", "N", "O"]
    for name, depth, half in (("CB", 0.078, 2.04), ("HB1", 0.024, 1.34), ("HB2", 0.024, 1.34), ("HB3", 0.024, 1.34)):
        kind = terms.types[np.flatnonzero(residue)[names.index(name)]]
        assert terms.epsilon[kind] == pytest.approx(depth, rel=1e-3)
        assert terms.sigma[kind] * 2 ** (1 / 6) / 2 == pytest.approx(half, rel=1e-3)
    assert mutant.structure.net_charge == pytest.approx(structure.net_charge - 1, abs=1e-5)
    assert mutant.structure.elements[residue].tolist().count("H") == 5


@pytest.mark.parametrize(("text", "root", "count"), [("36/ALA", "CB", 3), ("57/GLY", "CA", 2), ("3/ALA", "CB", 3)])
def test_hydrogens_are_where_the_side_chain_was(kinase, text, root, count):
    structure, report = kinase
    mutant = mutate_residue(structure, text, report)
    made, number = mutant.structure, int(text.split("/")[0])
    part = made.take(np.flatnonzero(made.residue_ids == number))
    carbon = part.positions[part.atom_names == root][0]
    hydrogens = part.positions[(part.elements == "H") & (np.linalg.norm(part.positions - carbon, axis=1) < 1.3)]
    assert len(hydrogens) == count
    bonds = hydrogens - carbon
    assert np.linalg.norm(bonds, axis=1) == pytest.approx(1.1, abs=0.04)
    cosines = (bonds @ bonds.T)[np.triu_indices(count, 1)] / 1.1**2
    assert cosines == pytest.approx(-1 / 3, abs=0.12)
    moved = structure.positions + np.random.default_rng(1).normal(size=3)
    assert mutant(moved) - made.positions == pytest.approx(moved[:1] - structure.positions[:1] + 0 * made.positions)


@pytest.mark.nightly
def test_changes_are_differences_in_the_same_frames(tmp_path, monkeypatch):
    """With any number of workers, and after a stop."""
    monkeypatch.setattr(blocks, "DISK", 1e12)  # blocks are kept that are soon computed again

    def run(name, **more):
        return energy(PSF, DCD, frames="::4", mutate=("36/ALA", "123/GLY"), output=tmp_path / name,
                      parameters=["charmm36.xml"], **OPTIONS, **more)

    def stop(label, fraction):
        if label == "25 frames" and fraction > 0.6:
            raise KeyboardInterrupt

    result = run("whole.csv")
    run("parallel.csv", workers=2)
    with pytest.raises(KeyboardInterrupt), progress.listen_to_progress(stop):
        run("stopped.csv")
    assert list(tmp_path.glob("stopped.csv.blocks/block-*.npz"))
    run("stopped.csv", resume=True)
    assert len({(tmp_path / f"{name}.csv").read_bytes() for name in ("whole", "parallel", "stopped")}) == 1
    table, wild = result.to_dataframe(), result.data["solvent"][0]
    assert [each["name"] for each in result.data["mutants"]] == ["ARG36ALA", "ARG123GLY"]
    for each in result.data["mutants"]:
        rows = table[table.mutant == each["name"]]
        change = each["change"]["total"]
        assert change["mean"] == pytest.approx(each["total"] - wild["total"], abs=1e-9)
        assert change["mean"] == pytest.approx((rows.total.values - table[table.mutant == ""].total.values).mean())
        assert each["electrostatic"] == pytest.approx(rows.electrostatic.mean())
    text = "\n".join(result.lines)
    assert "ARG36ALA" in text


@pytest.mark.slow
def test_charges_of_templates():
    """A structure without charges, of two chains with the same numbers; an aspartate gets the charges of an alanine."""
    result = energy("data/1hvr.pdb.gz", between=("//A", "//B"), solvent="gb", mutate=("A/29/ALA",)).data
    assert result["mutants"][0]["name"] == "A/ASP29ALA"
    complete = prepare("data/1hvr.pdb.gz").structure
    own, first, second = (select(complete, name) for name in ("//A/29", "//A", "//B"))
    names, charges, positions = complete.atom_names, complete.known_charges.copy(), complete.positions.copy()

    def coulomb():
        return coulomb_constant("kcal/mol/e") * (
            charges[first] @ (1 / cdist(positions[first], positions[second])) @ charges[second])

    before = coulomb()
    charges[own] = [AMBER_ALANINE.get(name, 0.0) for name in names[own]]
    carbon, gamma = (int(np.flatnonzero(own & (names == name))[0]) for name in ("CB", "CG"))
    bond = positions[gamma] - positions[carbon]
    positions[gamma] = positions[carbon] + 1.09 / np.linalg.norm(bond) * bond
    assert abs(coulomb() - before) > 20
    assert result["mutants"][0]["change"]["coulomb"]["mean"] == pytest.approx(coulomb() - before, abs=1e-5)
    assert result["mutants"][0]["lennard_jones"] is None
    with pytest.raises(UsageError) as caught:
        energy("data/1hvr.pdb.gz", between=("//A", "//B"), solvent="gb", mutate=("29/ALA",))
    assert caught.value.parameter == "mutate"


def test_a_membrane_is_found_once(kinase, caplog):
    """For the wild type and its mutants, which are in the same membrane."""
    marked = replace(kinase[0], planes=(-15.0, 15.0))
    options = {"between": DOMAINS, "solvent": "pb", "spacing": 2.0, "mutate": ("36/ALA",)}
    found = energy(marked, set={"membrane": "auto"}, **options)
    assert sum("membrane between" in record.getMessage() for record in caplog.records) == 1
    given = energy(marked, set={"membrane": 30.0}, **options)
    assert found.table() == given.table()


@pytest.mark.parametrize("text", ["", "36", "36/ARG", "999/ALA", "X/36/ALA", "8/ALA", "7/ALA", "9/PRO/ALA", "2//ALA"])
def test_residues_that_cannot_be_mutated(kinase, text):
    """Without a residue or a kind, one that does not exist, an alanine (8), a glycine (7)."""
    with pytest.raises(UsageError) as caught:
        mutate_residue(*kinase[:1], text, kinase[1])
    assert caught.value.parameter == "mutate"


def test_what_is_wrong(kinase):
    structure, report = kinase
    proline = int(structure.residue_ids[structure.residue_names == "PRO"][0])
    with pytest.raises(UsageError):
        mutate_residue(structure, f"{proline}/ALA", report)
    with pytest.raises(InputError):  # MET1, with three hydrogens on N
        mutate_residue(structure, "1/ALA", report)
    for options in ({"mutate": ("200/ALA",)}, {"mutate": ("36/ALA",), "by": "residue"}):
        with pytest.raises(UsageError) as caught:
            energy(PSF, DCD, frames="0:2", **OPTIONS, **options)
        assert caught.value.parameter == "mutate"
