"""What the page of `view` contains: values of maps, atoms, the surface, ions."""

import dataclasses

import numpy as np
import pytest
from pages import check_values, random_grid, small_molecule, unpacked, words_of

from vmdpotential.errors import InputError
from vmdpotential.figures.colours import reading_distance
from vmdpotential.grid.lattice import Grid, Lattice, Provenance
from vmdpotential.molecule.selection import is_water
from vmdpotential.plugins.ions.placement import PlacedIon
from vmdpotential.plugins.web.atoms import structure_content, surface_content, surface_depth
from vmdpotential.plugins.web.content import downsampled, ion_content, map_content, values_on_surface
from vmdpotential.plugins.web.document import title_of
from vmdpotential.surfaces import molecular_surface


@pytest.fixture
def molecule():
    return small_molecule()


@pytest.fixture
def grid():
    return random_grid()


@pytest.mark.parametrize("factor", [1e-7, 1e9])
def test_values_keep_eleven_bits_whatever_their_size(grid, factor):
    scaled = grid.with_values(grid.values * np.float32(factor))
    content = map_content(scaled, "m", grid.lattice.points([[0, 0, 0]]), 1e3, 10**6)
    check_values(content, scaled.values)


def test_a_map_is_cut_to_the_atoms_on_its_own_points(grid):
    around = np.array([[10.0, 10.0, 10.0], [12.0, 13.0, 14.0]])
    content = map_content(grid, "m", around, 2.0, 10**6)
    origin, spacing, shape = (np.array(content[key]) for key in ("origin", "spacing", "shape"))
    assert (origin <= 8).all()
    assert (origin > 8 - spacing).all()
    assert (origin + spacing * (shape - 1) >= [14, 15, 16]).all()
    first = np.rint((origin - grid.lattice.origin) / spacing).astype(int)
    np.testing.assert_allclose(first * spacing + grid.lattice.origin, origin, atol=1e-12)
    part = grid.values[tuple(slice(a, a + n) for a, n in zip(first, shape, strict=True))]
    check_values(content, part)
    assert not content["thinned"]


def test_a_large_map_is_thinned_by_interpolation(grid):
    coarse = downsampled(grid, 5000)
    assert 4000 < coarse.lattice.size <= 5000
    np.testing.assert_allclose(coarse.lattice.last, grid.lattice.last)
    expected = grid.sample(coarse.lattice.points())
    # in single precision: neighbours of either sign may nearly cancel
    np.testing.assert_allclose(coarse.values.ravel(), expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max())
    content = map_content(grid, "m", grid.lattice.points([[0, 0, 0]]), 1e3, 5000)
    assert content["thinned"]
    assert f"{' × '.join(map(str, coarse.lattice.shape))} points" in dict(content["about"])["In this page"]


def test_atoms_keep_names_numbers_and_kinds_of_any_length(molecule):
    long = dataclasses.replace(
        molecule, residue_names=np.where(molecule.residue_names == "GLY", "POPC", molecule.residue_names),
        residue_ids=molecule.residue_ids + 123_456, insertion_codes=np.where(molecule.residue_ids == 2, "B", ""),
        segment_ids=np.full(12, "MEMBRANE"), chain_ids=np.where(molecule.residue_ids == 1, "A", ""))
    content = structure_content(long)
    residues = content["residues"]
    assert words_of(residues["names"]).tolist() == ["ALA", "POPC", "SOL", "NA"]
    assert words_of(residues["numbers"]).tolist() == ["123457", "123458B", "123459", "123460"]
    assert words_of(residues["chains"]).tolist() == ["A", "MEMBRANE", "MEMBRANE", "MEMBRANE"]
    assert unpacked(residues["lengths"], "<u4").tolist() == [4, 4, 3, 1]
    assert unpacked(residues["kinds"], "u1").tolist() == [1, 0, 2, 0]  # polymer, other, water
    radius = dict(zip(content["elements"]["words"], content["elements"]["radii"], strict=True))
    assert radius["C"] == pytest.approx(1.7)


def test_depth_in_a_molecule_of_one_sphere_is_the_distance_to_it(molecule):
    carbon = molecule.take([1])
    content = surface_content(surface_depth(carbon, np.ones(1, bool)))
    spacing, step = content["spacing"][0], content["step"]
    depth = unpacked(content["data"], "i1").astype(float) * step
    lattice = Lattice(content["origin"], content["spacing"], tuple(content["shape"]))
    expected = 1.7 - np.linalg.norm(lattice.points() - carbon.positions[0], axis=1)
    near = np.abs(expected) < 1.5 * spacing
    assert near.sum() > 500
    # the edges of the lattice cross the accessible surface, 3.1 A around, at most half a diagonal away
    assert np.abs(depth - expected)[near].max() < spacing**2 / (2 * 1.4) + step
    assert ((depth > 0) == (expected > 0))[~near].all()


def table(tmp_path, ions):
    path = tmp_path / "ions.csv"
    lines = [",".join(PlacedIon.COLUMNS), *(",".join(map(str, ion.row)) for ion in ions)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_ions_of_a_table_are_those_of_the_placement(tmp_path, molecule):
    ions = [
        PlacedIon("SOD", 1, 2, 1, (1.25, -2.5, 3.0), "HOH 77", "WAT", 5.25, None, -10.5, -17.5, -8.25, -14.0),
        PlacedIon("NA", 2, 1, 1, (20.0, 3.5, 4.25), "HOH 78", "", 6.0, 7.0, -11.5, -18.5, -9.25, -15.0),
    ]
    direct = ion_content(ions, molecule)
    assert direct == ion_content(table(tmp_path, ions), molecule)
    assert len(direct) == 2  # the second is the structure's own
    assert direct[0] == {"name": "SOD", "number": 1, "element": "Na", "charge": 1, "colour": "#2f6db5",
                         "position": [1.25, -2.5, 3.0], "water": "HOH 77 WAT", "solute": 5.25, "ion": None,
                         "energy": -10.5, "final": -8.25}
    (alone,) = ion_content(None, molecule)
    assert (alone["name"], alone["charge"], alone["energy"]) == ("NA", 1, None)
    assert len(ion_content(ions[:1], molecule)) == 2


@pytest.mark.parametrize(("text", "message"), [
    ("a,b\n1,2\n", "no column name"),
    ("name,x_A,y_A,z_A\nSOD,1,two,3\n", "line 2: y_A 'two' is not a number"),
    ("name,x_A,y_A,z_A\nSOD,1,nan,3\n", "line 2: y_A 'nan' is not a number"),
    ("name,x_A,y_A,z_A\nSOD,1,2,3\nSOD,1,2\n", "line 3: has no position"),
    (b"\xffe\x80", "cannot be read as a table"),
])
def test_a_bad_table_is_named_with_its_line(tmp_path, molecule, text, message):
    path = tmp_path / "bad.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=message) as caught:
        ion_content(path, molecule)
    assert str(path) in str(caught.value)


def test_the_surface_has_the_values_of_the_whole_map(molecule):
    """The page has only every few points of a large map, whose values next to a surface are far off."""
    molecule = molecule.take(~is_water(molecule))
    lattice = Lattice.around(molecule.positions, 0.25, 6.0)
    wave = np.sin(lattice.points() @ np.array([1.2, 0.6, 0.3])).reshape(lattice.shape)
    grid = Grid(lattice, wave, "kT/e", provenance=Provenance(medium="water (Poisson-Boltzmann)", medium_kind="water"))
    content = values_on_surface(grid, surface_depth(molecule, np.ones(len(molecule), bool)))
    values = unpacked(content["data"], "<f2").reshape(content["shape"]).astype(float) * content["scale"]
    kept = Grid(Lattice(content["origin"], content["spacing"], tuple(content["shape"])), values)
    surface = molecular_surface(molecule, atoms="all", spacing=0.3)
    expected = surface.sample(grid, reading_distance(grid))

    def error(found):
        return np.sqrt(np.mean((found - expected) ** 2))

    thinned = downsampled(grid, lattice.size // 1000)
    assert error(kept.sample(surface.vertices)) < 0.3 * error(surface.sample(thinned, reading_distance(grid)))


@pytest.mark.parametrize(("title", "shown"), [
    ("Crystal structure of a protein", "Crystal structure of a protein"), ("A BOX  WITHOUT IONS", "entry.pdb"),
    ("", "entry.pdb")])
def test_a_title_in_capitals_is_replaced_by_the_name_of_the_file(molecule, title, shown):
    structure = dataclasses.replace(molecule, title=title, sources=("folder/entry.pdb",))
    assert title_of(structure, "none") == shown
    assert title_of(dataclasses.replace(molecule, title="", sources=()), "none") == "none"
