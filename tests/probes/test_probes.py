"""Energies of probe atoms against OpenMM; types of a receptor; the command `probe`."""

import csv
import json
import shutil

import numpy as np
import openmm
import pytest
import sums
from helpers import shell
from probe_systems import PEPTIDE, peptide_and_terms

import vmdpotential as vp
from vmdpotential import io
from vmdpotential.errors import UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.plugins.formats.autodock import write_autodock
from vmdpotential.plugins.probes import autodock
from vmdpotential.plugins.probes import interactions as pages
from vmdpotential.plugins.probes.energies import probe_sum, type_sum


@pytest.mark.parametrize("page", [pages.DISPERSION, pages.GAUSSIAN, pages.SCREENED, pages.FAR],
                         ids=lambda page: page.name)
def test_pages_state_their_values(page, engine):
    for check in page.checks:
        bound = page.bind(**check.parameters)
        assert bound(check.r) == pytest.approx(check.value, rel=1e-9)
        result = sums.at_points(engine, np.array([[check.r, 0, 0]]), np.zeros((1, 3)), np.ones(1), bound)
        assert result[0] == pytest.approx(check.value, rel=1e-9)


@pytest.mark.slow
def test_a_test_particle_of_openmm(engine):
    structure, terms = peptide_and_terms()
    sigma, epsilon = 3.02, 0.0974
    lattice = Lattice.over_cell(structure.cell, 1.0, structure.positions.min(0))
    ours = probe_sum(terms, sigma, epsilon, 10.0).energies(engine, lattice, structure.positions, structure.cell).ravel()
    system = openmm.System()
    force = openmm.CustomNonbondedForce("4*sqrt(e1*e2)*((s/r)^12-(s/r)^6); s=(s1+s2)/2")
    force.addPerParticleParameter("s")
    force.addPerParticleParameter("e")
    for kind in terms.types:
        system.addParticle(1.0)
        force.addParticle([terms.sigma[kind], terms.epsilon[kind]])
    system.addParticle(1.0)
    force.addParticle([sigma, epsilon])
    force.addInteractionGroup([len(structure)], range(len(structure)))
    force.setNonbondedMethod(openmm.CustomNonbondedForce.CutoffPeriodic)
    force.setCutoffDistance(10.0)  # lengths in A stand for nm, and kcal/mol for kJ/mol
    system.addForce(force)
    system.setDefaultPeriodicBoxVectors(*np.diag(np.diagonal(structure.cell.vectors)))
    context = openmm.Context(system, openmm.VerletIntegrator(1), openmm.Platform.getPlatformByName("CPU"))
    points = lattice.points()
    chosen = np.random.default_rng(0).choice(np.flatnonzero(ours < 100), 200, replace=False)
    for node in chosen:
        context.setPositions(np.concatenate([structure.positions, points[node : node + 1]]))
        theirs = context.getState(getEnergy=True).getPotentialEnergy()._value
        assert ours[node] == pytest.approx(theirs, abs=1e-3)


def test_a_type_of_the_force_field_has_the_pairs_of_its_table(engine):
    structure, terms = peptide_and_terms()
    name = terms.names[int(terms.types[-3])]
    own = type_sum(terms, name, 9.0)
    row = terms.names.index(name)
    lattice = Lattice(structure.positions[0] + 0.7, np.full(3, 1.7), (6, 5, 7))
    actual = own.energies(engine, lattice, structure.positions, None).ravel()
    for point, value in zip(lattice.points(), actual, strict=True):
        r = np.linalg.norm(structure.positions - point, axis=1)
        r, kinds = r[r < 9], terms.types[r < 9]
        expected = (terms.c12[row, kinds] / r**12 - terms.c6[row, kinds] / r**6).sum()
        assert value == pytest.approx(expected, rel=1e-3, abs=1e-4)
    with pytest.raises(UsageError):
        type_sum(terms, "no such type", 9.0)


def test_types_of_a_receptor(tpr):
    protein = tpr.part(np.arange(60))
    atoms = autodock.receptor(protein)
    assert atoms.charges.sum() == pytest.approx(protein.known_charges.sum())
    assert set(atoms.kinds) <= set(autodock.KINDS)
    polar = [n for n, name in enumerate(protein.atom_names) if name in ("H", "H1", "H2", "H3")]
    assert (atoms.kinds == "HD").sum() >= len(polar) > 0
    assert not (atoms.kinds == "H").any()  # all others are on carbons


def test_the_command_with_a_molecule(tmp_path, capsys):
    out, table = tmp_path / "xe.npz", tmp_path / "minima.csv"
    words = ["probe", PEPTIDE / "alanine-dipeptide.crd", "--topology", PEPTIDE / "alanine-dipeptide.prmtop", "--ligand",
             "xe", "--spacing", 2, "--places", 1, "--cutoff", 8, "--paths", table, "-o", out, "--json"]
    code, text, err = shell(capsys, *words)
    assert code == 0, err
    data = json.loads(text)
    grid = io.read_map(out)
    assert (data["ligand"], data["unit"], grid.unit) == ("Xe", "kcal/mol", "kcal/mol")
    assert grid.values.min() == pytest.approx(data["minimum"], rel=1e-5)
    with table.open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == len(data["minima"]) > 1
    assert float(rows[0]["free energy (kcal/mol)"]) == pytest.approx(data["minimum"], abs=1e-3)


@pytest.mark.slow
def test_the_grid_of_a_molecule_has_a_padding_around_the_fitted_atoms():
    options = {"structure": PEPTIDE / "alanine-dipeptide.crd", "topology": PEPTIDE / "alanine-dipeptide.prmtop",
               "ligand": "Xe", "spacing": 2.0, "places": 1, "cutoff": 8.0}
    margins = {"padding": 3.0}, {"padding": 3.0, "fit": "none"}, {}
    fitted, everything, cell = (vp.probe(**options, **margin).grid.lattice for margin in margins)
    structure = io.read_structure(options["structure"], topology=options["topology"])
    protein = structure.positions[vp.select(structure, "protein")]
    assert fitted.origin == pytest.approx(protein.min(0) - 3, abs=2)
    assert fitted.last == pytest.approx(protein.max(0) + 3, abs=2)
    assert fitted.size < cell.size < everything.size


def test_the_command_with_probes(tmp_path, capsys):
    out = tmp_path / "receptor.map"
    words = ["probe", PEPTIDE / "alanine-dipeptide.crd", "--topology", PEPTIDE / "alanine-dipeptide.prmtop", "--atoms",
             "solute", "--spacing", 1, "--probe", "C", "e", "-o", out, "--json"]
    code, text, err = shell(capsys, *words)
    assert code == 0, err
    data = json.loads(text)
    for name in ("C", "e"):
        lines = (tmp_path / f"receptor.{name}.map").read_text().splitlines()
        counts = [int(word) + 1 for word in lines[4].split()[1:]]
        assert lines[3:5] == ["SPACING 1", "NELEMENTS " + " ".join(str(n - 1) for n in data["shape"])]
        assert all(n % 2 for n in counts)
        values = np.array(lines[6:], float)
        assert len(values) == np.prod(counts)
        assert values.min() == pytest.approx(data["probes"][name]["minimum"], abs=1e-3)
        grid = io.read_map(tmp_path / f"receptor.{name}.map")
        assert (grid.unit, list(grid.lattice.shape)) == ("kcal/mol", data["shape"])
        assert grid.lattice.origin == pytest.approx(data["origin"], abs=1e-6)
        assert np.array_equal(grid.values.ravel(order="F"), values.astype(np.float32))
        again = tmp_path / "again.map"
        write_autodock(again, grid, "receptor")
        assert again.read_text() == (tmp_path / f"receptor.{name}.map").read_text()
    shutil.copy(tmp_path / "receptor.C.map", tmp_path / "unnamed")
    assert io.read_map(tmp_path / "unnamed").lattice.shape == tuple(data["shape"])


@pytest.mark.parametrize(("words", "parameter"), [
    ([], "probe"), (["--probe", "C", "--ligand", "O2"], "probe"), (["--probe", "Q"], "probe"),
    (["--probe", "X=1"], "probe"), (["--probe", "X=1,2,3"], "probe"), (["--probe", "X=-1,2"], "probe"),
    (["--probe", "C", "C"], "probe"), (["--ligand", "O7"], "ligand"), (["--ligand", "O2", "--stat", "std"], "stat"),
    (["--probe", "C", "--frames", "0:1"], "ligand"), (["--ligand", "O2", "--around", "nucleic"], "around"),
])
def test_options_that_do_not_fit(words, parameter, tmp_path, capsys):
    code, _, err = shell(capsys, "probe", PEPTIDE / "alanine-dipeptide.crd", "--topology",
                         PEPTIDE / "alanine-dipeptide.prmtop", "--atoms", "solute", *words, "-o", tmp_path / "out.dx")
    assert code == 2
    assert f"--{parameter}" in err
    assert not list(tmp_path.iterdir())
