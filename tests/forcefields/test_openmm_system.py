"""Charges and Lennard-Jones of a whole system as OpenMM writes it, by the order of its atoms."""

import json
from dataclasses import replace

import numpy as np
import openmm
import pytest
from messages import naming
from openmm import app, unit

from vmdpotential.errors import InputError, UsageError
from vmdpotential.frontend.cli import main
from vmdpotential.io import read_structure
from vmdpotential.plugins.forcefields.forcefield import nonbonded
from vmdpotential.plugins.forcefields.residue_charges import read_residue_charges
from vmdpotential.preparation.charged import charge_structure


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A salt in waters of four sites: its system, with heavy hydrogens, and a structure of the same."""
    folder = tmp_path_factory.mktemp("system")
    field = app.ForceField("amber14-all.xml", "amber14/tip4pew.xml")
    topology, positions = app.Topology(), []
    chain = topology.addChain()
    for name, step in (("Na+", 0), ("Cl-", 8)):
        residue = topology.addResidue(name[:2].upper(), chain)
        topology.addAtom(name[:2].upper(), app.Element.getBySymbol(name[:2]), residue)
        positions.append(openmm.Vec3(step / 10, 0.1, 0.1))
    model = app.Modeller(topology, positions * unit.nanometer)
    model.addSolvent(field, model="tip4pew", boxSize=openmm.Vec3(1.6, 1.6, 1.6) * unit.nanometer)
    system = field.createSystem(model.topology, nonbondedMethod=app.PME, nonbondedCutoff=0.7 * unit.nanometer,
                                hydrogenMass=1.5)
    system.addForce(openmm.MonteCarloBarostat(1, 300))
    (folder / "system.xml").write_text(openmm.XmlSerializer.serialize(system))
    with (folder / "system.pdb").open("w") as stream:
        app.PDBFile.writeFile(model.topology, model.positions, stream)
    return folder, system


def test_charges_are_those_of_the_particles(made, capsys):
    folder, system = made
    structure = read_structure(folder / "system.pdb")
    force = next(force for force in system.getForces() if isinstance(force, openmm.NonbondedForce))
    expected = [force.getParticleParameters(n)[0]._value for n in range(len(structure))]
    actual, report = charge_structure(structure, "auto", "auto", [folder / "system.xml"])
    waters = (structure.residue_count - 2)
    assert np.array_equal(actual.charges, expected)
    assert str(report) == f"charges from the OpenMM System system.xml, {waters} virtual sites; net charge 0 e"
    # those of a viewer's selection are found among all
    chosen = np.arange(3, 9)
    part = replace(structure.take(chosen), whole=structure, whole_rows=chosen)
    assert np.array_equal(charge_structure(part, "auto", "auto", [folder / "system.xml"])[0].charges,
                          actual.charges[chosen])
    assert main(["energy", str(folder / "system.pdb"), "--charges", str(folder / "system.xml"), "--parameters",
                 str(folder / "system.xml"), "--between", "all", "all", "--cutoff", "7", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["parameters"].startswith("OpenMM System ")
    (row,) = printed["pairs"]
    for force in system.getForces():
        force.setForceGroup(int(isinstance(force, openmm.NonbondedForce)))
    nonbonded_force = next(force for force in system.getForces() if isinstance(force, openmm.NonbondedForce))
    nonbonded_force.setUseDispersionCorrection(False)
    nonbonded_force.setEwaldErrorTolerance(1e-6)
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(structure.positions / 10)
    energy = context.getState(getEnergy=True, groups={1}).getPotentialEnergy() / unit.kilocalorie_per_mole
    assert row["total"] == pytest.approx(energy, rel=1e-4)


def test_parameters_of_a_system_are_those_of_its_force_field(made):
    folder, _ = made
    structure = read_structure(folder / "system.pdb")
    result = nonbonded(structure, [folder / "system.xml"])
    same = nonbonded(structure, ["amber14-all.xml", "amber14/tip4pew.xml"])
    assert np.array_equal(result.exclusions, same.exclusions)
    np.testing.assert_allclose(result.c12[np.ix_(result.types, result.types)], same.c12[np.ix_(same.types, same.types)],
                               rtol=1e-12)
    with pytest.raises(InputError):
        nonbonded(structure, [folder / "system.xml", "amber14-all.xml"])


def test_systems_that_do_not_fit_are_refused_in_a_line(made, tmp_path):
    folder, _ = made
    structure = read_structure(folder / "system.pdb")
    text = (folder / "system.xml").read_text()
    waters = structure.residue_count - 2
    sites = structure.atom_names == "M"

    def refused(atoms, written, said, kind=InputError, others=()):
        path = tmp_path / "system.xml"
        path.write_text(written)
        with pytest.raises(kind, match=said) as caught:
            charge_structure(atoms, "auto", "auto", [path, *others])
        assert "\n" not in str(caught.value)

    refused(structure.take(~sites), text, rf"{len(structure)} particles, {waters} of them virtual")
    refused(structure.take(np.concatenate([np.arange(2, len(structure)), [0, 1]])), text, "another order")
    refused(structure, text.replace('type="NonbondedForce"', 'type="DrudeForce"'), "has a DrudeForce")
    refused(structure, text.replace('type="NonbondedForce"', 'type="CustomNonbondedForce"'), "has 0 NonbondedForces")
    refused(structure, text.replace("<ParticleOffsets/>", '<ParticleOffsets><Offset eps="0" parameter="l" particle="0" '
                                    'q="-1" sig="0"/></ParticleOffsets>'), "1 of its charges change with a parameter")
    refused(structure, text[:-20], "is not XML")
    refused(structure, text.replace(' mass="', ' m="', 1), r"line \d+: a particle without its mass")
    refused(structure, text, "cannot be combined with other files", UsageError, [folder / "other.csv"])
    refused(structure.with_charges(np.zeros(len(structure))), text, "already have charges", UsageError)
    refused(structure, "<ForceField/>", "has no charges")
    (tmp_path / "other.xml").write_text("<Other/>")
    with naming(InputError, "<Other>"):
        read_residue_charges(tmp_path / "other.xml")
