"""Ions of several atoms: where their atoms are, what they cost, which waters go, and what files hold of them."""

import itertools
from dataclasses import replace

import ewald
import golden
import numpy as np
import pytest
from helpers import refused
from messages import naming

from vmdpotential import place_ions, read_structure
from vmdpotential.errors import InputError, NoRoomError, UsageError
from vmdpotential.molecule.structure import Structure, Topology
from vmdpotential.plugins.ions.command import command
from vmdpotential.plugins.ions.templates import template_of
from vmdpotential.units import coulomb_constant

_CORNERS = np.array([(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)]) / np.sqrt(3)


def tetrahedron(name, elements, length, charges):
    """Return an ion with bonds: an atom and four around it, not at the origin; the charges miss an integer by 4e-4."""
    atoms = [elements[0], *(f"{elements[1]}{n}" for n in range(1, 5))]
    topology = Topology("mdanalysis", np.array(["X", *["Y"] * 4]), np.zeros(5), np.array([(0, n) for n in range(1, 5)]))
    places = np.concatenate([[(0, 0, 0)], _CORNERS * length]) + np.array([3, 4, 5])
    return Structure(places, atoms, [name] * 5, [7] * 5, [0] * 5,
                     elements=[elements[0], *[elements[1]] * 4], charges=[charges[0] + 4e-4, *[charges[1]] * 4],
                     topology=topology)


AMMONIUM = tetrahedron("AMM", "NH", 1.01, (-0.4, 0.35))
SULFATE = tetrahedron("S", "SO", 1.49, (2.0, -1.0))
TEMPLATES = {"NH4": AMMONIUM, "SO4": SULFATE}
OPTIONS = {"templates": TEMPLATES, "concentration": 0.3, "salt": {"(NH4)2SO4": 0.6, "NaCl": 0.4}, "from_solute": 4,
           "between": 3.5, "sweeps": 20, "seed": 1}


@pytest.fixture(scope="module", params=["potential", "random", "monte-carlo"])
def placement(request):
    return place_ions(golden.structure(), site=request.param, **OPTIONS)


def atoms_of(placement):
    """Return the positions and charges of the atoms of each ion, in the order they were placed."""
    structure, first = placement.structure, len(placement.kept_atoms)
    ends = np.cumsum([first, *(ion.atoms for ion in placement.ions)])
    assert ends[-1] == len(structure)
    parts = [slice(a, b) for a, b in itertools.pairwise(ends)]
    order = np.argsort([ion.order for ion in placement.ions])
    return [(structure.positions[parts[n]], structure.charges[parts[n]], placement.ions[n]) for n in order]


def test_atoms_keep_their_distances_and_the_waters_in_their_way_are_gone(placement):
    before, after = placement.original, placement.structure
    assert abs(after.net_charge) < 1e-9
    solute = before.residue_names == "ANI"
    placed = atoms_of(placement)
    assert {ion.name for _, _, ion in placed} == {"NH4", "SO4", "SOD", "CLA"} - (
        {"CLA"} if not any(ion.name == "CLA" for _, _, ion in placed) else set())
    water = np.flatnonzero(before.atom_names == "OH2")
    kept = np.isin(water, placement.kept_atoms)
    removed = np.zeros(len(water), bool)
    for positions, charges, ion in placed:
        others = np.concatenate([each for each, _, other in placed if other is not ion])
        vectors = before.cell.vectors
        to_solute = ewald.shortest(positions[:, None] - before.positions[solute], vectors).min()
        to_ions = ewald.shortest(positions[:, None] - others, vectors).min()
        assert ion.solute_distance == pytest.approx(to_solute)
        assert ion.ion_distance == pytest.approx(to_ions)
        assert to_solute >= 4
        assert to_ions >= 3.5
        assert charges.sum() == pytest.approx(ion.charge, abs=1e-12)
        np.testing.assert_allclose(positions.mean(0), ion.position, atol=1e-9)
        removed |= (before.positions[water] == ion.position).all(1)
        if ion.atoms > 1:
            length = np.linalg.norm(positions[1:] - positions[0], axis=1)
            assert length == pytest.approx({"NH4": 1.01, "SO4": 1.49}[ion.name])
            limits = np.where(np.arange(5) > 0, 2.4 if ion.name == "SO4" else 1.5, 2.4)
            near = ewald.shortest(before.positions[water][:, None] - positions, vectors) < limits
            removed |= near.any(1)
    np.testing.assert_array_equal(kept, ~removed)
    assert placement.waters_removed == removed.sum() > len(placed)
    assert f"removed {removed.sum() - len(placed)} more water" in "\n".join(placement.lines)


def test_energies_are_sums_over_all_atoms(placement):
    before = placement.original
    solute = before.residue_names == "ANI"
    factor = coulomb_constant("kT/e", 298.15, placement.dielectric)
    assert placement.dielectric == (78.5 if placement.site == "monte-carlo" else 1)
    charged = before.positions[solute], before.charges[solute]
    for n, (positions, charges, ion) in enumerate(atoms_of(placement)):
        result = factor * charges @ ewald.potential(positions, *charged, before.cell.vectors)
        assert ion.energy_kt == pytest.approx(result, abs=2e-3)
        charged = np.concatenate([charged[0], positions]), np.concatenate([charged[1], charges])
        if n == 5:
            break


def test_the_best_of_the_turns_is_taken_and_random_ones_differ():
    structure = golden.structure()
    options = {"templates": TEMPLATES, "ions": {"SO4": 1}, "from_solute": 3}
    best = place_ions(structure, **options)
    energies = [place_ions(structure, site="random", seed=seed, **options).ions[0].energy for seed in range(4)]
    assert len(set(energies)) == 4
    assert best.ions == place_ions(structure, **options).ions
    # no other turn at its site is better by more than the coarseness of 48 tries
    (positions, charges, ion), = atoms_of(best)
    random = np.random.default_rng(3)
    turns = np.linalg.qr(random.normal(size=(40, 3, 3)))[0]
    points = np.concatenate([np.array(ion.position) + (positions - ion.position) @ turn for turn in turns])
    solute = structure.residue_names == "ANI"
    potential = ewald.potential(points, structure.positions[solute], structure.charges[solute], structure.cell.vectors)
    others = coulomb_constant("kcal/mol/e") * potential.reshape(40, 5) @ charges
    assert ion.energy < np.quantile(others, 0.15)


def test_ions_of_a_template_that_are_there_count():
    once = place_ions(golden.structure(), templates=TEMPLATES, cation="NH4", from_solute=3)
    assert [ion.name for ion in once.ions] == ["NH4"] * 3
    again = place_ions(once.structure, templates=TEMPLATES, cation="NH4", from_solute=3)
    assert (again.counts.total, again.counts.existing) == (0, {"NH4": 3})


def write_pqr(path, ion):
    path.write_text("".join(
        f"ATOM {n} {name} UNL 1 {x:.3f} {y:.3f} {z:.3f} {charge:.4f} 1.5\n" for n, (name, (x, y, z), charge) in
        enumerate(zip(ion.atom_names, ion.positions, ion.charges, strict=True), 1)))
    return path


def test_files_hold_the_ions_or_say_why_not(tmp_path):
    file = write_pqr(tmp_path / "so4.pqr", SULFATE)
    options = {"structure": golden.structure(), "ions": "SO4=2,NH4=7", "between": 3, "from_solute": 3,
               "ion_template": f"SO4={file},NH4={write_pqr(tmp_path / 'nh4.pqr', AMMONIUM)}"}
    outputs = [tmp_path / "out.pdb", tmp_path / "out.cif", tmp_path / "out.pqr"]
    after = command(output=outputs, **options).objects["structure"]
    for path in outputs:
        result = read_structure(path)
        np.testing.assert_allclose(result.positions, after.positions, atol=6e-4)
        assert result.residue_names[-45:].tolist() == after.residue_names[-45:].tolist()
        assert result.residue_names[-45:].tolist() == ["SO4"] * 10 + ["NH4"] * 35
        assert result.elements[-45:].tolist() == (["S"] + ["O"] * 4) * 2 + (["N"] + ["H"] * 4) * 7
    assert read_structure(outputs[2]).net_charge == pytest.approx(0, abs=1e-3)
    with refused("ion_template"):
        command(output=[tmp_path / "out.psf"], **options)
    with naming(UsageError, file):
        command(output=[file], force=True, **options)


def test_a_psf_gets_bonds_angles_and_types_of_a_mol2(tmp_path):
    pytest.importorskip("MDAnalysis")
    types = ["S.o2", *["O.co2"] * 4]
    rows = zip(range(1, 6), SULFATE.atom_names, SULFATE.positions, types, SULFATE.charges, strict=True)
    atoms = "".join(f"{n} {name} {x:.4f} {y:.4f} {z:.4f} {kind} 1 UNL {charge:.4f}\n"
                    for n, name, (x, y, z), kind, charge in rows)
    bonds = "".join(f"{n} 1 {n + 1} 1\n" for n in (1, 2, 3, 4))
    (tmp_path / "so4.mol2").write_text("@<TRIPOS>MOLECULE\nUNL\n 5 4 1 0 0\nSMALL\nUSER_CHARGES\n\n@<TRIPOS>ATOM\n"
                                       f"{atoms}@<TRIPOS>BOND\n{bonds}")
    command(structure=golden.structure(), ion_template=f"SO4={tmp_path / 'so4.mol2'}", ions="SO4=3,SOD=9",
            output=[tmp_path / "a.psf", tmp_path / "a.pdb"], from_solute=3, between=3)
    again = read_structure(tmp_path / "a.pdb", topology=tmp_path / "a.psf")
    first = int(np.flatnonzero(again.residue_names == "SO4")[0])
    bonds, angles = again.topology.bonds, again.topology.angles
    assert (bonds[(bonds >= first).any(1)] - first).tolist() == [
        [5 * k, 5 * k + n] for k in range(3) for n in (1, 2, 3, 4)]
    assert (angles >= first).any(1).sum() == 18
    assert again.topology.types[first : first + 15].tolist() == types * 3
    assert again.topology.masses[first] == pytest.approx(32.06, abs=0.02)
    assert again.net_charge == pytest.approx(0, abs=1e-6)


def test_what_is_no_ion_is_refused():
    neutral = SULFATE.with_charges(np.zeros(5))
    for name, ion, message in (
        ("SO4", neutral, "charge of an ion"), ("SO4", SULFATE.with_charges([2.3, -1, -1, -1, -1]), "charge of an ion"),
        ("SO4", replace(SULFATE, positions=np.zeros((5, 3))), "same position"),
        ("SO4", replace(SULFATE, charges=None), "no charges"), ("SOD", AMMONIUM, "valid name"),
        ("A-B", AMMONIUM, "valid name"),
    ):
        with pytest.raises((UsageError, InputError), match=message):
            template_of(name, ion)
    with refused("cation"):
        place_ions(golden.structure(), templates=TEMPLATES, cation="SO4")
    with naming(NoRoomError, "21.49 A"):
        place_ions(golden.structure(), templates=TEMPLATES, ions={"SO4": 1}, from_solute=20)
    for text in ("NH4", "NH4=", "=a.pqr", "NH4=a,NH4=b"):
        with refused("ion_template"):
            command(structure=golden.structure(), ion_template=text)
