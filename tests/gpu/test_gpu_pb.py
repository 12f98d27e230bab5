"""Poisson-Boltzmann on a GPU, against the CPU engine and Born's closed form."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import charges_at, relative_rms

from vmdpotential import binding_energy, potential_map, read_structure, registry
from vmdpotential.engines import get_engine
from vmdpotential.grid.lattice import Lattice
from vmdpotential.plugins.pores.check import ATOM, tube
from vmdpotential.plugins.titration.energies import ChargeChange, Solvent, site_energies
from vmdpotential.surfaces.region import Surface

pytestmark = pytest.mark.gpu

DATA = Path(__file__).parents[2] / "data"


@pytest.mark.parametrize("nonlinear", [0, 1])
def test_map_is_that_of_the_cpu(engine, nonlinear):
    rng = np.random.default_rng(8)
    places = rng.uniform(-6, 6, (60, 3))
    molecule = replace(charges_at(places, rng.normal(size=60)), radii=np.full(60, 1.7))
    actual, expected = (potential_map(molecule, method="pb", spacing=0.4, engine=name,
                                     parameters={"nonlinear": nonlinear}) for name in (engine.name, "cpu"))
    assert actual.provenance.engine == engine.name
    assert relative_rms(actual.values, expected.values) < 1e-5


@pytest.mark.parametrize("probe", [0.0, 1.4])
def test_distances_to_the_surface_of_a_protein_are_those_of_the_cpu(engine, probe):
    structure = read_structure(DATA / "dhfr.pdb.gz")
    positions, elements = structure.positions[:2489], structure.elements[:2489]
    radii = np.array([{"H": 1.2, "C": 1.7, "N": 1.55, "O": 1.52, "S": 1.8}[element] for element in elements])
    surface = Surface(positions, radii, probe)
    for spacing in (0.5, 1.3):  # neighbours and arcs stay on the GPU
        lattice = Lattice.around(positions, spacing, 6.0)
        actual, shares = surface.with_ions(lattice, 2.0, engine=engine)
        expected, others = surface.with_ions(lattice, 2.0)
        near = abs(expected) < spacing
        np.testing.assert_allclose(actual[near], expected[near], rtol=0, atol=1e-5)
        assert (abs(actual[~near]) >= spacing - 1e-5).all()
        np.testing.assert_allclose(shares, others, rtol=0, atol=1e-5)
        again, _ = surface.with_ions(lattice, 2.0, engine=engine)
        np.testing.assert_array_equal(again, actual)


@pytest.mark.parametrize("parameters", [{}, {"membrane": 20.0, "membrane_centre": 30.0}, {"gaussian": 0.93}])
def test_map_of_a_protein_is_that_of_the_cpu(engine, parameters):
    protein = read_structure(DATA / "dhfr.pdb.gz", topology=DATA / "dhfr.psf.gz")
    actual, expected = (potential_map(protein, atoms="protein", method="pb", radii="bondi", spacing=1.5,
                                     padding=8.0, engine=name, parameters=parameters)
                        for name in (engine.name, "cpu"))
    assert relative_rms(actual.values, expected.values) < 1e-5


def test_binding_energy_of_domains_is_that_of_the_cpu(engine):
    """The domain of DHFR that binds adenosine, and the other one."""
    protein = read_structure(DATA / "dhfr.pdb.gz", topology=DATA / "dhfr.psf.gz").take(np.arange(2489))
    domain = (protein.residue_ids >= 38) & (protein.residue_ids <= 88)
    actual, expected = (binding_energy(protein, domain, ~domain, spacing=1.0, radii="bondi", engine=name)
                        for name in (engine.name, "cpu"))
    for name, (value,) in expected.table().items():
        assert actual.table()[name][0] == pytest.approx(value, rel=1e-4, abs=0.01), name


def test_site_energies_are_those_of_the_cpu(engine):
    protein = read_structure(DATA / "dhfr.pdb.gz", topology=DATA / "dhfr.psf.gz")
    protein = protein.take(np.arange(2489))
    radii = np.array([{"H": 1.2, "C": 1.7, "N": 1.55, "O": 1.52, "S": 1.8}[name] for name in protein.elements])
    acids = [protein.residue_index == n for n in np.unique(protein.residue_index[protein.residue_names == "ASP"])]
    changes = [ChargeChange(n, np.flatnonzero(acid & np.isin(protein.atom_names, ["OD1", "OD2"])), np.full(2, -0.5),
                            np.flatnonzero(acid)) for n, acid in enumerate(acids)]
    actual, expected = (site_energies(protein.positions, radii, protein.known_charges, changes, Solvent(spacing=1.5),
                                      each) for each in (engine, get_engine("cpu")))
    for name in ("desolvation", "background", "between", "errors"):
        np.testing.assert_allclose(getattr(actual, name), getattr(expected, name), rtol=1e-3, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("salt", [0.0, 0.15])
def test_pore_under_a_voltage_is_that_of_the_cpu(engine, salt):
    wall = tube(4.0, 26.0, 1.5)
    charges = np.zeros(len(wall))
    charges[::31] = 0.2
    channel = replace(charges_at(wall, charges), radii=np.full(len(wall), ATOM))
    actual, expected = (potential_map(channel, method="pb", spacing=1.0, engine=name, parameters={
        "membrane": 20.0, "voltage": 0.1, "salt": salt}) for name in (engine.name, "cpu"))
    assert relative_rms(actual.values, expected.values) < 1e-5


@pytest.mark.parametrize("name", registry.available("check"))
def test_what_verify_checks_of_each_feature(engine, name):
    for what, error, limit in registry.get("check", name)(engine, 4):
        assert error <= limit, what
