"""The commands in PyMOL give what the package gives: the solvated protein of data/ through both."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal

import vmdpotential as vp
from vmdpotential import registry
from vmdpotential.figures.colours import rgb_of, sign_colour
from vmdpotential.parameters import Report
from vmdpotential.plugins.pymol.convert import read_selection
from vmdpotential.plugins.pymol.show import Results
from vmdpotential.surfaces import Surface
from vmdpotential.surfaces.drawn import DrawnSurface

ROOT = Path(__file__).resolve().parents[2]
PDB, PSF = ROOT / "data" / "dhfr.pdb.gz", ROOT / "data" / "dhfr.psf.gz"


@pytest.fixture(scope="module")
def structure():
    return vp.read_structure(PDB, topology=PSF)


@pytest.fixture
def dhfr(cmd):
    cmd.load(str(PDB), "dhfr")
    return cmd


@pytest.fixture(scope="module")
def placement(structure):
    return vp.place_ions(structure, concentration=0.15)


def test_ionize(dhfr, do, placement):
    before = dhfr.get_coords("dhfr")
    output = do(f"potential_ionize dhfr, new, '{PSF}', concentration=0.15")
    assert f"object new: {len(placement.structure) - len(placement.ions)} atoms kept" in output
    assert "Error" not in output
    assert_array_equal(dhfr.get_coords("dhfr"), before)
    assert set(dhfr.get_names()) == {"dhfr", "new", "new_ions", "new_group"}

    ions = read_selection(dhfr, "new_ions").structure
    assert_allclose(ions.positions, [ion.position for ion in placement.ions], atol=1e-4)
    assert_array_equal(ions.residue_names, [ion.name for ion in placement.ions])
    assert_allclose(ions.charges, [ion.charge for ion in placement.ions])
    assert dhfr.count_atoms("new_ions and rep spheres") == len(placement.ions)
    colours = {}
    dhfr.iterate("new_ions", "colours.setdefault(formal_charge, set()).add(color)", space={"colours": colours})
    assert colours == {sign: {dhfr.get_color_index(sign_colour(sign).replace("#", "0x"))} for sign in (1, -1)}

    # the new object, read again, is the structure that the package made
    new = read_selection(dhfr, "new").structure
    for name in ("atom_names", "residue_ids", "residue_index", "elements"):
        assert_array_equal(getattr(new, name), getattr(placement.structure, name), err_msg=name)
    assert_allclose(new.positions, placement.structure.positions, atol=1e-4)
    assert_allclose(new.charges, placement.structure.charges, atol=1e-6)
    assert abs(new.net_charge) < 1e-3
    assert_allclose(new.cell.vectors, placement.structure.cell.vectors, atol=1e-4)
    # bonds go with their atoms, and no water has lost one
    assert len(dhfr.get_bonds("new")) == len(dhfr.get_bonds("dhfr")) - 2 * len(placement.ions)


def test_ionize_of_a_moved_object_puts_the_ions_where_its_waters_are(dhfr, do, placement):
    dhfr.translate([100, 0, 0], object="dhfr")
    do(f"potential_ionize dhfr, new, '{PSF}', concentration=0.15")
    shifted = np.array([ion.position for ion in placement.ions]) + np.array([100, 0, 0])
    assert_allclose(dhfr.get_coords("new_ions"), read_selection(dhfr, "new_ions").structure.positions, atol=1e-4)
    assert_allclose(read_selection(dhfr, "new_ions").structure.positions, shifted, atol=1e-3)
    assert_allclose(dhfr.get_extent("new")[0][0], dhfr.get_coords("dhfr")[:, 0].min(), atol=0.5)


def test_ionize_without_topology_takes_templates(dhfr, do, placement):
    assert "Error" not in do("potential_ionize dhfr, neutral")
    assert dhfr.count_atoms("neutral_ions") == 11
    assert abs(read_selection(dhfr, "neutral").structure.net_charge) < 1e-3


@pytest.mark.parametrize(("line", "message"), [
    ("potential_ionize polymer", "has no waters that ions could replace"),
    ("potential_ionize dhfr, from_solute=far", "from_solute=far"),
    ("potential_ionize dhfr, topology=no/such.psf", "no/such.psf"),
    ("potential_map dhfr, spacing=0", "spacing=0: must be"),
    ("potential_map dhfr, cell=[30,30]", "cell=30,30"),
    ("potential_slice dhfr", "object 'dhfr' is not a map"),
    ("potential_map dhfr, m, spacng=3", "spacng=3"),
    ("potential_map dhfr, m, range=5,-5", "range=5,-5"),
])
def test_wrong_use_is_one_line(dhfr, do, line, message):
    output = do(line)
    (error,) = [text for text in output.splitlines() if "Error" in text]
    assert message in error
    assert "--" not in error
    assert "Traceback" not in output
    assert dhfr.get_names() == ["dhfr"]


def test_map_of_part_of_an_object(dhfr, do, structure):
    output = do(f"potential_map dhfr and resi 1-60 and polymer, part, '{PSF}', spacing=2, method=direct, "
                "boundary=open, medium=vacuum")
    part = structure.take((structure.residue_ids <= 60) & (structure.segment_ids == "DHFR"))
    expected = vp.potential_map(part, spacing=2.0, method="direct", boundary="open")
    assert "kT/e at 298.15 K, vacuum, no screening" in output
    values = dhfr.get_volume_field("part")
    assert values.shape == expected.lattice.shape
    rms = np.sqrt((expected.values**2).mean())
    # coordinates are rounded to float32 in PyMOL, which moves a point close to an atom a little
    assert np.sqrt(((values - expected.values) ** 2).mean()) < 1e-4 * rms
    assert_allclose(dhfr.get_extent("part"), [expected.lattice.origin, expected.lattice.last], atol=1e-4)
    assert dhfr.get_type("part_ramp") == "object:ramp"


def test_charges_of_a_part_are_those_of_the_whole(dhfr):
    whole = vp.assign_charges(read_selection(dhfr, "dhfr").structure)
    for selection in ("polymer and resi 1-30", "solvent"):
        part = read_selection(dhfr, selection).structure
        rows = np.flatnonzero((whole.positions[:, None, 0] == part.positions[None, :1, 0]).any(1))
        charges = vp.assign_charges(part).charges
        assert_array_equal(charges, whole.charges[rows[0]:rows[0] + len(part)])


def test_map_with_charges_of_a_pqr_file(cmd, do, tmp_path, structure):
    protein = structure.take(structure.segment_ids == "DHFR")
    vp.write_structure(protein, tmp_path / "it's a protein.pqr")
    cmd.load(str(tmp_path / "it's a protein.pqr"), "protein")
    do("potential_map protein, m, spacing=4, method=direct, boundary=open, unit=V, medium=explicit")
    expected = vp.potential_map(protein, spacing=4.0, method="direct", boundary="open", unit="V", medium="explicit")
    values = cmd.get_volume_field("m")
    assert np.sqrt(((values - expected.values) ** 2).mean()) < 1e-3 * np.sqrt((expected.values**2).mean())


@pytest.mark.parametrize(("typed", "medium"), [
    ("", "water (Poisson-Boltzmann), 0.15 M, ion radius 2 A, dielectric 78.5, 2 inside"),
    ("medium=screened", "screened, 0.15 M, dielectric 78.5"),
    ("medium=vacuum", "vacuum, no screening"),
    ("medium=explicit", "explicit water"),
    ("atoms=all", "explicit water"),
    ("screened=0.5", "screened, 0.5 M, dielectric 78.5"),
    ("medium=water, screened=0.5", "water (Poisson-Boltzmann), 0.5 M, ion radius 2 A, dielectric 78.5, 2 inside"),
    ("method=pme", "explicit water"),
    ("smear=1, atoms=polymer", "vacuum, no screening"),
])
def test_the_first_picture_is_of_the_solute_in_water_and_others_are_one_word_away(dhfr, do, typed, medium):
    water = "dhfr and solvent and rep lines+nonbonded"
    assert dhfr.count_atoms(water)
    output = do(f"potential_map dhfr, m, '{PSF}', spacing=3, {typed}".rstrip(", "))
    (low, high) = re.search(rf"m_ramp: (\S+) to (\S+) kT/e at 298.15 K, {re.escape(medium)};", output).groups()
    assert ((float(low), float(high)) == (-5, 5)) == medium.startswith(("screened", "water"))
    assert not dhfr.count_atoms(water)
    assert dhfr.count_atoms("dhfr and polymer and rep lines+nonbonded+cartoon")
    dhfr.show("lines", "dhfr and solvent")
    do(f"potential_map dhfr, m, '{PSF}', spacing=3")
    assert dhfr.count_atoms(water)  # shown again by the user


def test_both_limits_of_a_range_need_no_brackets(dhfr, do):
    output = do(f"potential_map dhfr and polymer, m, '{PSF}', spacing=4, range=-3,3")
    assert "m_ramp: -3 to 3 kT/e" in output


def test_colour_ramp_is_symmetric_and_states_the_unit(dhfr, do):
    output = do(f"potential_map dhfr and polymer, m, '{PSF}', spacing=4, unit=V, medium=vacuum")
    (low, high) = re.search(r"m_ramp: (\S+) to (\S+) V, vacuum, no screening;", output).groups()
    assert float(low) == -float(high) < 0
    dhfr.pseudoatom("probe", pos=dhfr.get_extent("m")[0])
    assert "Error" not in do("set surface_color, m_ramp, dhfr")
    do("color m_ramp, probe")
    colours = []
    dhfr.iterate("probe", "colours.append(color)", space={"colours": colours})
    assert dhfr.get_color_index("m_ramp") in colours


def test_slice_of_map_objects_and_files(dhfr, do, tmp_path):
    do(f"potential_map dhfr and polymer, m, '{PSF}', spacing=4")
    figure = tmp_path / "it's a slice.png"
    output = do(f'potential_slice m, selection=dhfr and polymer, plane=z=25, range=[-100,100], output="{figure}"')
    assert "Error" not in output
    assert str(figure) in output
    assert figure.read_bytes().startswith(b"\x89PNG")
    first = figure.read_bytes()
    assert "exists" in do(f'potential_slice m, output="{figure}"')
    assert figure.read_bytes() == first
    assert "Error" not in do(f'potential_slice m, plane=x=20, output="{figure}", force=yes')
    assert figure.read_bytes() != first
    path = tmp_path / "a map.dx"
    grid = vp.potential_map(read_selection(dhfr, "dhfr and polymer").structure.with_charges(np.ones(2489)), spacing=4.0,
        medium="explicit")
    vp.write_map(grid, path)
    assert "Error" not in do(f'potential_slice m "{path}", output="{tmp_path / "two.pdf"}"')
    assert (tmp_path / "two.pdf").read_bytes().startswith(b"%PDF")


def test_slice_without_a_file_is_shown(dhfr, do, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    do(f"potential_map dhfr and polymer, m, '{PSF}', spacing=4")
    assert "Error" not in do("potential_slice m")
    assert list(tmp_path.iterdir()) == []
    dhfr.png(str(tmp_path / "window.png"), prior=1)  # what PyMOL's window shows now
    assert (tmp_path / "window.png").stat().st_size > 1000


@pytest.mark.parametrize("document", ["scripts/tutorials/pymol.md", "plugins/pymol/README.md"])
def test_what_the_documents_show(cmd, do, document, tmp_path, monkeypatch):
    shutil.copytree(ROOT / "data", tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```pymol\n(.*?)^```", (ROOT / document).read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        for line in block.splitlines():
            output = do(line)
            assert "Error" not in output, (line, output)
            assert "Traceback" not in output, (line, output)


def test_values_colour_a_copy(dhfr):
    atoms = read_selection(dhfr, "dhfr and resi 10-20 and polymer")
    values = np.linspace(-3, 2, len(atoms.structure))
    before = []
    dhfr.iterate("dhfr", "before.append((b, color))", space={"before": before})
    report = Report([], {}, {"values": replace(atoms.structure, b_factors=values)})
    lines = Results(dhfr, registry.get("command", "energy"), "", {}).show(report, atoms)
    (line,) = lines
    assert line.startswith("object energy: ")
    assert line.endswith("from -3 (blue) to 3 (red)")
    copy = read_selection(dhfr, "energy").structure
    assert_allclose(copy.b_factors, values, atol=1e-5)
    assert_array_equal(copy.atom_names, atoms.structure.atom_names)
    colours, after = [], []
    dhfr.iterate("energy", "colours.append((b, color))", space={"colours": colours})
    assert dhfr.get_color_tuple(min(colours)[1])[2] > 0.9 > dhfr.get_color_tuple(min(colours)[1])[0]
    dhfr.iterate("dhfr", "after.append((b, color))", space={"after": after})
    assert after == before


def test_a_mesh_has_the_colours_of_its_values_and_names(dhfr):
    """Values of -2 are red, of 2 blue, others white, and where there is none, grey; the next run replaces it."""
    places = np.array([[3.5, 0.1, 0.2], [0.1, 3.5, 0.3], [0.4, 0.1, 3.5], [-3.5, 0.1, 0.1]])
    made = Surface(places, np.array([[0, 1, 2], [0, 2, 3]]), np.zeros(4, np.int64), np.ones(4), "molecular",
                   np.zeros(4, np.int64))
    values = np.array([-2.0, 2.0, 0.0, np.nan])
    drawn = DrawnSurface(made, values, (-2.0, 2.0), "kT/e", "kT/e", [("+1", np.array([1.0, 2.0, 3.0]))])
    for _ in range(2):
        report = Report([], {}, {"mesh": drawn, "figure": Figure()})  # a picture of it would hide the mesh
        lines = Results(dhfr, registry.get("command", "surface"), "", {}).show(report, read_selection(dhfr, "dhfr"))
        assert dhfr.get_type("surface") == "object:cgo"
        labels = []
        dhfr.iterate_state(1, "surface_labels", "labels.append((label, x, y, z))", space={"labels": labels})
        assert labels == [("+1", 1.0, 2.0, 3.0)]
    assert "-2 to 2 kT/e" in lines[0]
    saved = dhfr.get_session("surface", partial=1, quiet=1)["names"][0][5][2][0][0]
    numbers = np.array(saved[1] if isinstance(saved[0], int) else saved[0], float)
    for place, rgb in zip(places, rgb_of(values, (-2.0, 2.0)) / 255, strict=True):
        at = [n for n in range(len(numbers) - 2) if np.allclose(numbers[n : n + 3], place)]
        assert at
        for n in at:  # COLOR r g b NORMAL x y z VERTEX x y z
            assert_allclose(numbers[n - 8 : n - 5], rgb, atol=1e-5)


def test_loaded_states_are_frames(dhfr, do):
    """A state that is compressed has its neighbours nearer; the mean is of both, and the shown one stays alone."""
    dhfr.create("box", "dhfr and resn HOH and name O and index 1-9000")
    dhfr.load_coordset(0.9 * dhfr.get_coordset("box", 1), "box", 2)

    def peak(frames):
        output = do(f"potential_rdf box, between=all all, range=6, bins=60{frames}")
        return re.search(r"(\d+) frames? in", output)[1], float(re.search(r"at ([\d.]+) A", output)[1])

    first, both, second = peak(""), peak(", frames=:"), peak(", frames=1")
    assert (first[0], both[0], second[0]) == ("1", "2", "1")
    assert second[1] == pytest.approx(0.9 * first[1], abs=0.15)
    assert "none is selected" in do("potential_rdf box, between=all all, range=6, frames=7:")


def test_aliases_are_arguments(do, cmd):
    cmd.fragment("ala")
    run = cmd.keyword["potential_map"][0]
    expected, other = (run("ala", name, spacing=2, boundary="open", _self=cmd, **inputs) for name, inputs in (
        ("a", {"screened": 0.3}), ("b", {"ionic_strength": 0.3})))
    assert_array_equal(other.objects["grid"].values, expected.objects["grid"].values)
    assert "Error" not in do("potential_map ala, c, spacing=2, ionic_strength=0.3")
    assert "Error: screened: " in do("potential_map ala, d, screened=0.2, ionic_strength=0.3")
    assert "d" not in cmd.get_names()


def test_the_ramp_has_images_where_a_surface_leaves_the_periodic_cell(cmd, do):
    for n, charge in enumerate((1.0, -1.0)):
        cmd.pseudoatom("pair", name=f"C{n}", elem="C", pos=[11.0 * n, 5.0 * n, 0.5])
        cmd.alter(f"pair and name C{n}", f"partial_charge={charge}")
    cmd.set_symmetry("pair", 12, 14, 16, 90, 90, 90, "P 1")
    do("potential_map pair, m, spacing=1, boundary=periodic, medium=explicit")
    values, images = cmd.get_volume_field("m"), cmd.get_volume_field("m_images")
    assert values.shape == (12, 14, 16)  # the map itself is that of the cell
    low, high = np.array(cmd.get_extent("m_images"))
    assert (low <= cmd.get_coords("pair").min(0) - 4).all()
    assert (high >= cmd.get_coords("pair").max(0) + 4).all()
    first = np.rint(low - cmd.get_extent("m")[0]).astype(int)
    indices = np.indices(images.shape).reshape(3, -1).T + first
    assert_array_equal(images.ravel(), values[tuple((indices % values.shape).T)])
    ramp, = (entry for entry in cmd.get_session("m_ramp")["names"] if entry and entry[0] == "m_ramp")
    assert "m_images" in str(ramp)
    do("potential_map pair, m, spacing=1, boundary=open, medium=vacuum")
    assert "m_images" not in cmd.get_names("objects")


def test_maps_at_several_values_of_ph_are_a_series(cmd, do):
    """The first one has the ramp; the net charge of the beginning of lysozyme falls with the pH, and so do the maps."""
    cmd.load(str(PSF.parent / "1aki.pdb.gz"), "lysozyme")
    output = do("potential_titrate lysozyme and polymer and resi 1-8, spacing=2, map_ph='3,8,12'")
    assert "Error" not in output
    series = ["titrate", "titrate_ph8", "titrate_ph12"]
    assert [cmd.get_type(name) for name in series] == ["object:map"] * 3
    assert cmd.get_type("titrate_ramp") == "object:ramp"
    means = [np.mean(cmd.get_volume_field(name)) for name in series]
    assert means[0] > means[1] > means[2]
    assert "pH 8" in output


def test_a_pymol_compiled_for_another_numpy_says_so(cmd, do, monkeypatch):
    def get_coords(*arguments):
        raise SystemError("<built-in function get_coords> returned a result with an exception set")

    cmd.fragment("ala", "peptide")
    monkeypatch.setattr(cmd, "get_coords", get_coords, raising=False)
    output = do("potential_map peptide")
    assert np.__version__ in output
    assert "Traceback" not in output
    assert cmd.get_names() == ["peptide"]
