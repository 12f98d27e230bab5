"""Commands that make models of ChimeraX, or read their coordinate sets: placed ions, values, live maps."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
from messages import naming
from numpy.testing import assert_allclose, assert_array_equal
from salt import IONS, state

import vmdpotential as vp
from vmdpotential.figures.colours import SIGN_COLOURS
from vmdpotential.parameters import Report

DATA = Path(__file__).resolve().parents[2] / "data"


def test_ionize(dhfr, do, log, protein):
    dhfr.display = False
    before = state(dhfr)
    dhfr.display = True
    new = do(f'potential ionize #1 topology "{DATA / "dhfr.psf.gz"}" concentration 0.15 name salty')
    assert state(dhfr) == before
    placement = vp.place_ions(protein, concentration=0.15)
    expected = placement.structure
    assert (new.id_string, new.name, new.num_atoms) == ("2", "salty", len(expected))
    atoms = new.atoms[len(expected) - len(placement.ions):]
    assert_allclose(atoms.coords, [ion.position for ion in placement.ions], atol=1e-3)
    # a PDB file has no type names: ions are named as the model names what it has, by the same rule as from a file
    assert_array_equal(atoms.residues.names, [ion.name for ion in placement.ions])
    assert (atoms.draw_modes == atoms[0].SPHERE_STYLE).all()
    positive = np.array([ion.charge > 0 for ion in placement.ions])
    for sign, these in ((-1, ~positive), (1, positive)):
        colour = [*bytes.fromhex(SIGN_COLOURS[sign + 1][1:]), 255]
        assert_array_equal(atoms.colors[these], [colour] * these.sum())
    # read again it is what the package made, with its charges and its cell
    from chimerax.vmdpotential.convert import read_atoms

    again = read_atoms(new.atoms).structure
    for name in ("atom_names", "residue_names", "residue_ids", "residue_index", "elements"):
        assert_array_equal(getattr(again, name), getattr(expected, name), err_msg=name)
    assert_allclose(again.positions, expected.positions, atol=1e-3)
    assert_allclose(again.charges, expected.charges, atol=1e-6)
    assert abs(again.net_charge) < 1e-3
    assert_allclose(again.cell.vectors, expected.cell.vectors, atol=1e-3)
    # bonds go with their atoms, and no water has lost one
    assert new.num_bonds == dhfr.num_bonds - 2 * len(placement.ions)
    assert f"model #2 salty: {len(expected) - len(placement.ions)} atoms kept, {len(placement.ions)} ions" in log.text
    for ion in placement.ions[:3]:
        x, y, z = ion.position
        assert re.search(rf"{ion.name} +{x:.3f} +{y:.3f} +{z:.3f} +{ion.water}", log.text)


def test_ionize_of_a_part_of_a_moved_model(dhfr, do):
    from chimerax.geometry import translation

    dhfr.position = translation((0, 0, 50))
    new = do("potential ionize #1 ions NA=3,CL=2")
    assert new.scene_position.same(dhfr.scene_position)
    ions = new.atoms[-5:]
    assert_array_equal(ions.element_names, ["Na"] * 3 + ["Cl"] * 2)
    # an ion is where a water oxygen is seen
    distance = np.linalg.norm(dhfr.atoms.scene_coords[None] - ions.scene_coords[:, None], axis=2).min(1)
    assert_allclose(distance, 0, atol=1e-9)
    # without a topology no charges are set: templates give them again
    assert not [atom for atom in new.atoms.instances(instantiate=False) if hasattr(atom, "charge")]
    part = do("potential ionize #1/A,W:1-4000 ions NA=3 name part")
    assert part.num_atoms == (dhfr.atoms.residues.chain_ids == "A").sum() + 3 * 4000 - 3 * 3 + 3


def test_several_models_are_ionized_only_when_combined(ions, opened, do, tmp_path):
    from chimerax.core.errors import UserError
    from chimerax.geometry import translation

    (tmp_path / "two.pdb").write_text(IONS)
    opened(tmp_path / "two.pdb").position = translation((0, 10, 0))
    with naming(UserError, "combine #1,#2"):
        do("potential ionize #1,2 ions NA=1 fromSolute 0 between 0")


def test_values_colour_a_copy(session, ions):
    from chimerax.vmdpotential.convert import read_atoms
    from chimerax.vmdpotential.show import show

    selected = read_atoms(ions.atoms[:3])
    before = state(ions)
    values = replace(selected.structure, b_factors=np.array([-3.0, 0.0, 2.0]))
    (copy,), (line,) = show(session, Report([], {}, {"values": values}), "energy", selected, {})
    assert line.startswith(f"model #{copy.id_string} energy: a copy with the values as B factors, coloured from -3")
    assert_allclose(copy.atoms.bfactors, [-3, 0, 2, 0, 0])
    assert_array_equal(copy.atoms.colors[:2, :3], [[0, 0, 255], [255, 255, 255]])
    assert state(ions) == before


def with_coordsets(model):
    """Three coordinate sets: in the second and third the second ion is 1 and 2 A farther from the first."""
    first = model.atoms.coords
    sets = np.stack([first + np.outer([0, 1, 0, 0, 0], [n, 0, 0]) for n in range(3)])
    model.add_coordsets(sets, replace=True)
    return sets


def test_loaded_coordinate_sets(ions, do, log):
    from chimerax.core.errors import UserError

    with_coordsets(ions)
    do("potential rdf #1 //A/1,//A/2 range 8 bins 8 frames 0:3:2")
    assert "2 frames in" in log.text
    with naming(UserError, "selected"):
        do("potential rdf #1 //A/1,//A/2 range 8 bins 8 frames 5:")


def test_atoms_that_are_elsewhere_in_a_live_map_are_told_once(ions, do, log):
    """Two ions in contact, of which one is moved by the cell."""
    do("potential live #1/A padding 6 spacing 2 medium water")
    do("potential live wait")
    words = "moving 1 atom across the periodic cell"
    assert words not in log.text
    for shift in ([40, 0, 0], [0, 0.5, 0]):
        ions.atoms[1].coord += shift
        do("potential live wait")
        assert log.text.count(words) == 1
    do("potential live off")


def test_live(session, ions, do, log):
    from chimerax.core.errors import UserError

    sets = with_coordsets(ions)
    ions.active_coordset_id = 1
    volume = do("potential live #1/A padding 6 boundary open medium explicit")
    assert volume in session.models.list()

    def check(positions):
        values = volume.data.full_matrix()
        nodes = np.random.default_rng(1).integers(0, values.shape, (40, 3))
        points = np.array(volume.data.origin) + nodes[:, ::-1] * volume.data.step
        distances = np.linalg.norm(points[:, None] - positions, axis=2).clip(0.01)
        exact = vp.units.coulomb_constant("kT/e") * (1 / distances[:, 0] - 1 / distances[:, 1])
        assert np.sqrt(np.mean((values[tuple(nodes.T)] - exact) ** 2)) < 2e-3 * np.sqrt(np.mean(exact**2))

    check(sets[0][:2])
    volume.set_parameters(surface_levels=[-33, 33])
    ions.active_coordset_id = 3
    do("potential live wait")
    check(sets[2][:2])
    assert list(volume.surfaces and [s.level for s in volume.surfaces]) == [-33, 33]
    ions.atoms[1].coord += [3, 9, 0]  # out of the box that was planned
    do("potential live wait")
    check(ions.atoms.coords[:2])
    do("potential live off")
    assert "ended after 2 maps" in log.text
    with naming(UserError, "live"):
        do("potential live off")
    do("potential live #1/A name other")
    session.models.close([m for m in session.models.list() if m.name == "other"])
    do("potential live wait")
    assert "ended: the map was closed" in log.text
    do("potential live off")
