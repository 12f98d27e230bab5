"""Implicit ligand sampling: insertions by definition, parameters of molecules, orientations, minima and barriers."""

import pickle
from dataclasses import replace
from importlib import resources
from xml.etree import ElementTree

import numpy as np
import pytest
from probe_systems import peptide_and_terms

from vmdpotential.errors import InputError
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.io.trajectories.frames import LoadedFrames
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.nonbonded import Nonbonded, lorentz_berthelot
from vmdpotential.molecule.structure import Structure
from vmdpotential.plugins.probes.energies import probe_sum
from vmdpotential.plugins.probes.insertions import plan_insertions
from vmdpotential.plugins.probes.ligands import KELVIN, LIGANDS, Ligand, read_ligand
from vmdpotential.plugins.probes.options import InsertionOptions
from vmdpotential.plugins.probes.paths import minima_and_barriers

O2 = LIGANDS["O2"]


def spheres(count, cell, sigma, epsilon, seed=0):
    """Return spheres at random places of a cell, and their Lennard-Jones."""
    positions = np.random.default_rng(seed).uniform(size=(count, 3)) @ cell.vectors
    structure = Structure(positions, np.full(count, "NE"), np.full(count, "NE"), np.arange(count), np.arange(count),
                          elements=np.full(count, "Ne"), cell=cell)
    c6, c12 = lorentz_berthelot(np.array([sigma]), np.array([epsilon]))
    none = np.zeros((0, 2), np.int64)
    return structure, Nonbonded("spheres", ("NE",), np.zeros(count, np.int64), c6, c12, none, none, np.zeros(0),
                                np.zeros(0), np.zeros(0))


def insertion(structure, terms, ligand, point, cell, turns, kt, cutoff):
    """Return the mean Boltzmann factor of a ligand at a point over orientations, written out."""
    factors = []
    for places in turns:
        energy = 0.0
        for place, sigma, epsilon in zip(places, ligand.sigma, ligand.epsilon, strict=True):
            d = structure.positions - (point + place)
            if cell is not None:
                d = cell.minimum_image(d)
            r2 = (d * d).sum(1)
            near = r2 < cutoff**2
            kinds = terms.types[near]
            s, e = (terms.sigma[kinds] + sigma) / 2, np.sqrt(terms.epsilon[kinds] * epsilon)
            six = (s * s / r2[near]) ** 3
            energy += (4 * e * (six * six - six)).sum()
        factors.append(np.exp(-energy / kt))
    return np.mean(factors)


def free_energy(structure, frames, ligand, terms, *, cutoff=10.0, spacing=1.0, lattice=None, orientations=12, parts=2,
                temperature=300.0, boundary="auto", engine="cpu", size=0):
    sites = zip(ligand.sigma.tolist(), ligand.epsilon.tolist(), strict=True)
    sums = tuple(probe_sum(terms, sigma, epsilon, cutoff) for sigma, epsilon in sites)
    planning = plan_insertions(
        structure, LoadedFrames("frames", frames), ligand, sums, InsertionOptions(
            fit="none", orientations=orientations, places=parts, temperature=temperature, boundary=boundary),
        lattice=lattice, spacing=spacing, padding=None, engine=engine, fixed_cell=False)
    return planning, planning.merge(replace(planning, size=size or planning.size).run())


BENT = Ligand("bent", np.array([[0.0, 0, 0], [1.0, 0.2, 0], [-0.4, 0.9, 0.1]]), np.array([3.0, 2.5, 2.6]),
              np.array([0.2, 0.1, 0.15]), "test")


@pytest.mark.parametrize(("system", "ligand"), [("peptide", O2), ("triclinic", LIGANDS["CO"]), ("open", BENT)])
def test_every_node_is_the_mean_of_insertions(system, ligand, engine):
    if system == "peptide":
        structure, terms = peptide_and_terms()
        boundary, lattice = "periodic", Lattice(structure.positions[9] - 2, np.full(3, 1.5), (4, 3, 4))
    else:
        structure, terms = spheres(60, Cell.from_parameters(21, 22, 23, 80, 75, 85), 3.1, 0.15)
        boundary = "periodic" if system == "triclinic" else "open"
        lattice = Lattice(np.full(3, 4.0), np.full(3, 1.5), (4, 3, 4))
    cell = structure.cell if boundary == "periodic" else None
    planning, actual = free_energy(structure, [(structure.positions, structure.cell)], ligand, terms, cutoff=9.0,
                                  lattice=lattice, orientations=5, boundary=boundary, engine=engine.name)
    work = planning.work
    factors = np.exp(-actual.grids["mean"].values.ravel().astype(float) / work.kt)
    for point, factor in zip(lattice.points(), factors, strict=True):
        places = point + lattice.spacing * (np.indices((2, 2, 2)).reshape(3, -1).T * 0.5 - 0.25)
        expected = np.mean([insertion(structure, terms, ligand, place, cell, work.orientations, work.kt, 9.0)
                            for place in places])
        assert factor == pytest.approx(max(expected, np.exp(-20 / work.kt)), rel=3e-4)


def test_the_chemical_potential_in_a_gas_of_spheres(engine):
    """Spheres at independent places: <exp(-E/kT)> is (1 + B/V)^N with the integral B of Mayer's function."""
    cell, count, kt, cutoff = Cell.from_parameters(22, 22, 22), 40, 300 * KELVIN, 9.0
    neon = LIGANDS["Ne"]
    sigma, epsilon = float(neon.sigma[0]), 4 * float(neon.epsilon[0])  # deeper, so that it is not an ideal gas
    frames = [(spheres(count, cell, sigma, epsilon, seed)[0].positions, cell) for seed in range(40)]
    structure, terms = spheres(count, cell, sigma, epsilon)
    sphere = Ligand("X", np.zeros((1, 3)), np.array([sigma]), np.array([epsilon]), "")
    _, result = free_energy(structure, frames, sphere, terms, cutoff=cutoff, parts=1, boundary="periodic",
                           engine=engine.name, size=1)
    r = np.linspace(1e-3, cutoff, 20001)
    mayer = np.expm1(-np.minimum(4 * epsilon * ((sigma / r) ** 12 - (sigma / r) ** 6) / kt, 700))
    exact = -kt * count * np.log1p(np.trapezoid(4 * np.pi * r**2 * mayer, r) / cell.volume)
    assert result.solvation_error is not None
    assert abs(result.solvation - exact) < 4 * result.solvation_error
    assert result.solvation_error < 0.05 * abs(exact)


def test_oxygen_is_that_of_charmm():
    data = ElementTree.parse(resources.files("openmm.app.data") / "charmm36.xml").getroot()
    kind = data.find("./Residues/Residue[@name='O2']/Atom").get("type")
    atom = data.find(f"./LennardJonesForce/Atom[@type='{kind}']")
    bond = data.find(f"./HarmonicBondForce/Bond[@type1='{kind}'][@type2='{kind}']")
    for site, place in zip(range(2), (-0.5, 0.5), strict=True):
        assert O2.sigma[site] == pytest.approx(10 * float(atom.get("sigma")), rel=1e-6)
        assert O2.epsilon[site] == pytest.approx(float(atom.get("epsilon")) / 4.184, rel=1e-6)
        assert O2.positions[site] == pytest.approx([10 * place * float(bond.get("length")), 0, 0])


@pytest.mark.parametrize(("name", "length"), [("N2", 1.0977), ("CO2", 1.1614), ("CO", 1.1283)])
def test_bonds_are_those_of_experiments(name, length):
    """CO2 as in Landolt-Boernstein II/28B, N2 and CO as Huber and Herzberg (1979) are quoted; models round them."""
    apart = np.diff(LIGANDS[name].positions[:, 0])
    assert apart == pytest.approx(length, abs=0.003)


def test_orientations_are_spread_evenly():
    for name, count, halved in (("O2", 12, 6), ("CO", 12, 12), ("CO2", 30, 15), ("Xe", 12, 1)):
        turns = LIGANDS[name].orientations(count)
        assert len(turns) == halved
    for ligand, count in ((O2, 12), (LIGANDS["CO"], 50), (BENT, 400)):
        turns = np.array(ligand.orientations(count))
        for turn in turns:
            assert np.allclose(np.linalg.norm(turn, axis=1), np.linalg.norm(ligand.positions, axis=1))
        atom = turns[:, -1]
        second = np.einsum("ni,nj->ij", atom, atom) / len(atom) / (atom[0] @ atom[0])
        assert np.abs(second - np.eye(3) / 3).max() < 0.02


def test_minima_and_barriers_of_two_wells():
    lattice = Lattice(np.array([-3.0, -2.0, -2.0]), np.full(3, 0.5), (13, 9, 9))
    x, y, z = np.moveaxis(lattice.points().reshape(13, 9, 9, 3), 3, 0)
    values = (x * x - 4) ** 2 / 4 + 0.3 * x + y * y + z * z  # minima near -2 and 2, 4 between them
    result = minima_and_barriers(Grid(lattice, values), below=10.0, least=0.5, wraps=False)
    assert len(result) == 2
    low, high = result
    assert low.position == pytest.approx([-2, 0, 0])
    assert high.position == pytest.approx([2, 0, 0])
    assert (low.barrier, low.lower, high.lower) == (None, None, 0)
    assert high.barrier == pytest.approx(values[:, 4, 4][4:9].max(), rel=1e-6)
    assert not minima_and_barriers(Grid(lattice, values), below=3.0, least=0.5, wraps=False)[1].barrier
    assert len(minima_and_barriers(Grid(lattice, values), below=10.0, least=6.0, wraps=False)) == 1


@pytest.mark.parametrize("text", ["", "# nothing\n", "C 0 0 0 3.4\n", "C 0 0 0 3.4 x\n", "C 0 0 0 -3.4 0.1\n",
                                  "C 0 0 0 nan 0.1\n", "C 1e9 0 0 3.4 0.1\n", "C 0 0 0 3.4 0.1\n" * 60])
def test_ligands_that_cannot_be_read(text, tmp_path):
    path = tmp_path / "ligand.txt"
    path.write_text(text)
    with pytest.raises(InputError):
        read_ligand(path)


def test_a_ligand_of_a_file(tmp_path):
    path = tmp_path / "methane.txt"
    path.write_text("# united atom\nCH4 0 0 0 3.73 0.294\n")
    ligand = read_ligand(path)
    assert (ligand.name, ligand.sigma.tolist(), ligand.epsilon.tolist()) == ("methane", [3.73], [0.294])
    assert len(ligand.orientations(12)) == 1


def test_sums_are_kept_where_the_cell_stays():
    cell, other = Cell.from_parameters(16, 17, 18), Cell.from_parameters(16.2, 17.1, 17.8)
    structure, terms = spheres(30, cell, 3.1, 0.15)
    frames = [(spheres(30, box, 3.1, 0.15, seed)[0].positions, box)
              for seed, box in enumerate((cell, other, cell, cell))]
    work = free_energy(structure, frames, O2, terms, cutoff=7.0, parts=1, boundary="periodic", size=4)[0].work
    singly = [free_energy(structure, [(frames[0][0], cell), frame], O2, terms, cutoff=7.0, parts=1,
                          boundary="periodic")[0].work.block(range(1, 2))["factors.mean"] for frame in frames]
    assert np.array_equal(work.block(range(4))["factors.mean"], sum(singly) / 4)
    assert len(work._prepared_sums) == len(work.orientations)
    assert not pickle.loads(pickle.dumps(work))._prepared_sums
    cost = work._cost()
    assert min(cost.seconds, cost.reading) > 0
    assert cost.size == work.block(range(1))["factors.mean"].nbytes
