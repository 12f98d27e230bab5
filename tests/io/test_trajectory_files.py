"""Trajectories as people have them: several frames or models in a file, cut and damaged files, topologies alone."""

import gc
import gzip
import pickle
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from fuzz.seeds import frames, system
from messages import naming
from scipy.io import netcdf_file

import vmdpotential as vp
from vmdpotential import write_structure
from vmdpotential.commands import structures
from vmdpotential.errors import InputError, UsageError
from vmdpotential.io import read_structure
from vmdpotential.io.structures import pdb
from vmdpotential.io.trajectories import dcd
from vmdpotential.io.trajectories.frames import Trajectory, open_frames, read_frame
from vmdpotential.plugins.formats.amber_coordinates import netcdf_frames

FILES = Path(pytest.importorskip("MDAnalysisTests").__file__).parent / "data"

WATER = """\
Water in a box, t= {time}
    3
    1SOL     OW    1   0.230   0.628   {z:.3f}
    1SOL    HW1    2   0.137   0.626   {z:.3f}
    1SOL    HW2    3   0.231   0.589   {z:.3f}
   {edge:.5f}   {edge:.5f}   {edge:.5f}
"""


def test_gro_files_of_several_frames(tmp_path):
    path = tmp_path / "water.gro"
    path.write_text("".join(WATER.format(time=f"{2.5 * n:.5f} step= {n}", z=n, edge=3 + n) for n in range(4)) + "\n")
    whole = Trajectory(path, 3)
    assert whole.numbers() == range(4)
    for chosen in (whole, whole.part(range(1, 4, 2))):
        for frame in chosen:
            assert frame.positions[:, 2].tolist() == [10.0 * frame.number] * 3
            assert frame.positions[0, :2].tolist() == pytest.approx([2.3, 6.28])
            assert np.diag(frame.cell.vectors).tolist() == pytest.approx([30 + 10 * frame.number] * 3)
            assert frame.time == 2.5 * frame.number
    assert [frame.number for frame in whole.part(range(1, 4, 2))] == [1, 3]
    text = path.read_text()
    for wrong, message in (
        (text[: text.rindex("    1SOL    HW2")], "frame 3 is cut short"),
        (text.replace("    3\n", "    2\n"), "has 2 atoms"),
        (text.rstrip() + "\nmore\nof it\n", "frame 4 states no number of atoms"),
        (text.replace("0.628", "0.6x8"), "line 3 lacks"),
    ):
        path.write_text(wrong)
        with pytest.raises(InputError, match=message):
            list(Trajectory(path, 3))


def test_parts_of_a_file_of_models_share_what_was_read(tmp_path, monkeypatch):
    path, read = tmp_path / "models.pdb", []
    path.write_text("".join(f"ATOM      1  O   HOH     1    {n:8.3f}   0.000   0.000\nENDMDL\n" for n in range(4)))
    monkeypatch.setattr(pdb, "read_models", lambda path, original=pdb.read_models: read.append(path) or original(path))
    whole = Trajectory(path, 1)
    parts = [whole.part(whole.numbers()[n : n + 2]) for n in (0, 2)]
    assert [frame.positions[0, 0] for part in (*parts, pickle.loads(pickle.dumps(parts[1]))) for frame in part] \
        == [0, 1, 2, 3, 2, 3]
    assert len(read) == 1


def test_models_of_an_mmcif_file_are_frames(tmp_path, caplog):
    atom = "ATOM {n} C C{n} MOL A 1 {x} 2.0 3.0 {model}\n"
    names = ("group_PDB", "id", "type_symbol", "label_atom_id", "label_comp_id", "label_asym_id", "label_seq_id",
             "Cartn_x", "Cartn_y", "Cartn_z", "pdbx_PDB_model_num")
    path = tmp_path / "models.cif"
    path.write_text("data_x\nloop_\n" + "".join(f"_atom_site.{name}\n" for name in names)
                    + "".join(atom.format(n=n, x=10 * model + n, model=model) for model in (1, 2, 5) for n in (1, 2)))
    assert Trajectory(path, 2).numbers() == range(3)
    assert [frame.positions[:, 0].tolist() for frame in Trajectory(path, 2, slice(1, None))] == [[21, 22], [51, 52]]
    with naming(InputError, "2 atoms ", " 3"):
        list(Trajectory(path, 3))
    assert not caplog.records  # that the first one is used
    assert len(read_structure(path)) == 2
    assert "contains several models; the first one (2 atoms) is used" in caplog.text


def test_a_chosen_model_is_used_without_a_word_on_the_first(tmp_path, caplog):
    from vmdpotential.commands.map import command

    path = tmp_path / "models.pdb"
    path.write_text("".join(
        f"MODEL     {model:4d}\n"
        f"ATOM      1 SOD  SOD A   1    {x:8.3f}   2.000   3.000  1.00  0.00          NA\nENDMDL\n"
        for model, x in ((1, 0.0), (2, 6.0))) + "END\n")
    options = {"spacing": 2.0, "padding": 4.0, "boundary": "open", "engine": "cpu", "force": True,
               "output": tmp_path / "map.dx"}
    first = command(structure=path, **options).objects["grid"]
    assert "first one" in caplog.text
    caplog.clear()
    second = command(structure=path, frame=1, **options).objects["grid"]
    assert "first one" not in caplog.text
    assert second.lattice.origin[0] - first.lattice.origin[0] == pytest.approx(6)


def test_a_dcd_that_ends_within_a_frame_is_told_of(tmp_path, caplog):
    for name in ("tip125_tric_C36", "adk_dims2", "coordinates/test"):  # whole ones, also by an odd header
        open_frames(FILES / f"{name}.dcd", {"a": 3341, "t": 375, "c": 5}[name[0]], None)
    assert not caplog.records
    path = tmp_path / "cut.dcd"
    path.write_bytes((FILES / "tip125_tric_C36.dcd").read_bytes()[:-1000])
    assert open_frames(path, 375, None).numbers() == range(9)
    assert "cut.dcd: ends within a frame" in caplog.text


@pytest.mark.parametrize("name", ["Amber/ace_tip3p.nc", "cobrotoxin.h5md"])
def test_files_that_cannot_be_opened_print_nothing(tmp_path, monkeypatch, name):
    if name.endswith(".h5md"):
        pytest.importorskip("h5py")
    printed = []
    monkeypatch.setattr(sys, "unraisablehook", printed.append)
    content = (FILES / name).read_bytes()
    path = tmp_path / Path(name).name
    path.write_bytes(content[: len(content) * 7 // 10])
    with pytest.raises(InputError, match=r"cannot be read|is damaged"):
        Trajectory(path, 100).numbers()
    gc.collect()
    assert not printed


def test_a_topology_takes_the_first_frame():
    names, frames = FILES / "tip125_tric_C36.psf", FILES / "tip125_tric_C36.dcd"
    result = structures.read_source(names, None, trajectory=frames)
    first = next(iter(Trajectory(frames, 375)))
    np.testing.assert_array_equal(result.positions, first.positions)
    assert result.cell.parameters == pytest.approx(first.cell.parameters)
    assert result.charges is not None
    assert result.where == str(frames)
    with pytest.raises(InputError):
        structures.read_source(names, None)


def test_numbers_that_are_none_are_those_of_a_frame(tmp_path):
    path = tmp_path / "nan.dcd"
    content = bytearray((FILES / "tip125_tric_C36.dcd").read_bytes())
    content[-8:-4] = np.array([np.nan], "<f4").tobytes()  # the last atom's z
    path.write_bytes(content)
    with naming(InputError, "frame 9 atom 375 "):
        list(Trajectory(path, 375))


pytest.importorskip("MDAnalysis")


def write(path, atoms, count=10):
    """Write frames whose first coordinate is their number."""
    import MDAnalysis

    universe = MDAnalysis.Universe.empty(atoms, trajectory=True)
    places = np.random.default_rng(1).uniform(0, 20, (atoms, 3))
    with warnings.catch_warnings(), MDAnalysis.Writer(str(path), atoms) as writer:
        warnings.simplefilter("ignore")
        for number in range(count):
            places[0, 0] = number
            universe.atoms.positions = places
            universe.dimensions = [20, 20, 20, 90, 90, 90]
            writer.write(universe.atoms)
    return path


@pytest.mark.parametrize("atoms", [5, 40])  # XTC packs those of more than nine
@pytest.mark.parametrize(("suffix", "left"), [
    *((suffix, left) for suffix in (".xtc", ".trr") for left in (4, 79, -1)), (".dcd", 0.5), (".dcd", -1)])
def test_whole_frames_of_a_cut_file_are_read(tmp_path, caplog, suffix, atoms, left):
    """Cut within the header of the last frame, in its middle, and a byte before its end."""
    path = write(tmp_path / f"a{suffix}", atoms)
    data = path.read_bytes()
    last = write(tmp_path / f"nine{suffix}", atoms, 9).stat().st_size
    frame = len(data) - last
    stop = last + (left if left > 1 else frame + left if left < 0 else int(frame * left))
    path.write_bytes(data[: int(stop)])
    for slices in (slice(None), slice(0, 9), slice(2, 7, 2), slice(-1, None)):
        results = [(frame.number, round(frame.positions[0, 0], 3)) for frame in Trajectory(path, atoms, slices)]
        assert results == [(n, n) for n in range(9)[slices]]
    if suffix != ".dcd":  # of which a command warns
        assert path.name in caplog.text
    path.write_bytes(data[:100])
    with pytest.raises(InputError):  # not one whole frame
        list(Trajectory(path, atoms))


@pytest.mark.slow
def test_a_damaged_trr_does_not_end_the_process(tmp_path):
    """Its library divides by the number of atoms before it can be asked."""
    data = bytearray(dict(frames((".trr",)))[".trr"])
    data[64:68] = bytes(4)
    (tmp_path / "a.trr").write_bytes(data)
    write_structure(system(), tmp_path / "a.pdb")
    write_structure(system(), tmp_path / "a.psf")
    done = subprocess.run([sys.executable, "-m", "vmdpotential", "map", "a.pdb", "--topology", "a.psf", "--trajectory",
                           "a.trr", "--frame", "0", "-o", "a.dx"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "a.trr" in done.stderr
    assert not (tmp_path / "a.dx").exists()


CUT_WHILE_READ = """
import os, sys
from pathlib import Path
from vmdpotential.errors import InputError
from vmdpotential.io.trajectories.frames import Trajectory
from vmdpotential.kernels import threads
for path, part in zip(sys.argv[1::2], map(float, sys.argv[2::2])):
    try:
        with threads.sharing(1):
            for frame in Trajectory(Path(path), 40):
                if frame.number == 3:
                    os.truncate(path, int(os.stat(path).st_size * part))
    except InputError as error:
        print(error)
"""


@pytest.mark.slow
def test_files_that_are_cut_while_they_are_read(tmp_path):
    """None of them ends the process; the models of a PDB file are read at once, before it is cut."""
    parts = {".xtc": 0.51, ".trr": 0.0, ".dcd": 0.51, ".ncdf": 0.51, ".pdb": 0.51}
    paths = [write(tmp_path / f"a{suffix}", 40, 100) for suffix in parts]
    paths.insert(0, tmp_path / "a.gro")
    paths[0].write_text(write(tmp_path / "one.gro", 40, 1).read_text() * 100)
    words = [str(word) for pair in zip(paths, (0.51, *parts.values()), strict=True) for word in pair]
    done = subprocess.run([sys.executable, "-c", CUT_WHILE_READ, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [line.partition(": ")[0] for line in done.stdout.splitlines()] == [str(path) for path in paths[:-1]]
    assert "changed while it was read" in done.stdout.splitlines()[0]
    assert not done.stderr


DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize(("name", "cell", "times"), [
    ("charmm_slightly_triclinic.dcd", (20, 21, 22, 88, 91, 87), None),
    ("lammps_time_in_fs.nc", (20, 20, 20, 90, 90, 90), [0.0, 1e-3]),
    ("cell_of_1A.dcd", None, None)])
def test_cells_and_times_of_other_programs(name, cell, times):
    frames = list(Trajectory(DATA / name, 24))
    position, first_cell = read_frame(DATA / name, 24)
    np.testing.assert_array_equal(position, frames[0].positions)
    for each in (first_cell, *(frame.cell for frame in frames)):
        if cell is None:
            assert each is None
        else:
            np.testing.assert_allclose(each.parameters, cell, atol=1e-3)
    if times:
        assert [frame.time for frame in frames] == pytest.approx(times)


@pytest.mark.parametrize(("version", "values", "expected"), [
    (24, (20, 0.0, 21, 0.0, 0.0, 22), (20, 21, 22, 90, 90, 90)),  # cosines of NAMD
    (24, (20, 0.05, 21, 0.0, 0.0, 22), (20, 21, 22, 90, 90, 87.134)),
    (24, (20, 87, 21, 91, 88, 22), (20, 21, 22, 88, 91, 87)),
    (25, (20, 87, 21, 91, 88, 22), (20, 21, 22, 88, 91, 87)),  # no matrix of a cell
    (46, (20, 0.0, 20, 10.0, 0.0, 30), (22.361, 20, 31.623, 90, 45, 90))])
def test_the_version_of_a_dcd_decides_what_its_cell_is(version, values, expected):
    np.testing.assert_allclose(dcd.cell_of(np.array(values, float), version), expected, atol=2e-2)


def test_frames_that_end_with_end_alone(tmp_path):
    frames = list(Trajectory(DATA / "frames_end_only.pdb", 94))
    text = (DATA / "frames_end_only.pdb").read_text()
    assert len(frames) == 2
    for frame, part in zip(frames, text.split("END\n"), strict=False):
        (tmp_path / "one.pdb").write_text(part)
        np.testing.assert_array_equal(frame.positions, read_structure(tmp_path / "one.pdb").positions)
    packed = tmp_path / "packed.pdb.gz"
    packed.write_bytes(gzip.compress(text.replace("END\n", "ENDMDL\n").encode()))
    assert len(Trajectory(packed, 94).numbers()) == 2
    with naming(InputError, "2 frames, ", " 0 to 1"):
        list(Trajectory(packed, 94, slice(5, 6)))


def test_each_model_of_a_pdb_file_has_the_cell_stated_last(tmp_path):
    atom = "ATOM      1  O   HOH A   1       1.000   2.000   3.000  1.00  0.00           O\n"
    cells = [f"CRYST1{a:9.3f}{a:9.3f}{a:9.3f}  90.00  90.00  90.00 P 1           1\n" for a in (20, 30)]
    (tmp_path / "m.pdb").write_text("".join(
        f"{cell}MODEL        {n}\n{atom}ENDMDL\n" for n, cell in enumerate([cells[0], "", cells[1]], 1)))
    assert [frame.cell.vectors[0, 0] for frame in Trajectory(tmp_path / "m.pdb", 1)] == [20, 20, 30]


@pytest.mark.parametrize("suffix", [".netcdf", ".ncrst"])
def test_suffixes_of_netcdf(tmp_path, suffix):
    shutil.copy(DATA / "lammps_time_in_fs.nc", tmp_path / f"t{suffix}")
    assert len(list(Trajectory(tmp_path / f"t{suffix}", 24))) == 2


def test_netcdf_files_are_unmapped_when_they_are_closed(monkeypatch):
    from MDAnalysisTests.datafiles import NCDF

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "simplefilter", lambda *_: None)  # as if another thread changed the filters
        with netcdf_frames(Path(NCDF)) as trajectory:
            positions = trajectory.read(1)[0]
        assert np.array_equal(read_frame(Path(NCDF), len(positions), 1)[0], positions)
        monkeypatch.undo()
    assert not caught


def test_netcdf_of_64_bit_data_and_other_units_are_told_apart(tmp_path):
    raw = (DATA / "lammps_time_in_fs.nc").read_bytes()
    (tmp_path / "five.nc").write_bytes(b"CDF\x05" + raw[4:])
    (tmp_path / "lj.nc").write_bytes(raw.replace(b"angstrom", b"sigmasig", 1))
    for name, word in (("five.nc", "CDF-5"), ("lj.nc", "sigmasig")):
        with naming(InputError, name, word):
            list(Trajectory(tmp_path / name, 24))


LENGTHS = {"angstrom": 1.0, "nm": 10.0, "bohr": 0.529177210544}  # A


def test_netcdf_without_units_is_read_by_the_conventions_that_it_names(tmp_path):
    raw = (DATA / "lammps_time_in_fs.nc").read_bytes()
    (tmp_path / "bare.nc").write_bytes(raw.replace(b"units", b"label"))
    bare, stated = (list(Trajectory(path, 24)) for path in (tmp_path / "bare.nc", DATA / "lammps_time_in_fs.nc"))
    np.testing.assert_array_equal(bare[0].positions, stated[0].positions)
    assert bare[-1].time == pytest.approx(1000 * stated[-1].time)  # its numbers are of fs


@pytest.fixture(params=["bare.nc", "bare.h5md", "bare.lammpsdump"])
def without_unit(request, tmp_path):
    """A trajectory of three atoms that states no unit, its positions and lengths of its cell, as numbers."""
    path, cell = tmp_path / request.param, [30.0, 31.0, 32.0]
    positions = np.random.default_rng(3).uniform(0, 20, (2, 3, 3)).round(3).astype(np.float32)
    if path.suffix == ".nc":
        with netcdf_file(path, "w") as file:
            file.Conventions = "none"
            for name, size in (("frame", None), ("atom", 3), ("spatial", 3)):
                file.createDimension(name, size)
            file.createVariable("coordinates", "f4", ("frame", "atom", "spatial"))[:] = positions
            file.createVariable("time", "f4", ("frame",))[:] = [0, 5]
            file.createVariable("cell_lengths", "f8", ("frame", "spatial"))[:] = [cell, cell]
            file.createVariable("cell_angles", "f8", ("frame", "spatial"))[:] = np.full((2, 3), 90)
    elif path.suffix == ".h5md":
        h5py = pytest.importorskip("h5py")
        with h5py.File(path, "w") as file:
            file.create_group("h5md").attrs["version"] = [1, 1]
            box = file.create_group("particles/trajectory/box")
            box.attrs["dimension"], box.attrs["boundary"] = 3, ["periodic"] * 3
            for name, values in (("position", positions), ("box/edges", np.array([np.diag(cell)] * 2))):
                part = file.create_group(f"particles/trajectory/{name}")
                part["step"], part["time"], part["value"] = [0, 1], [0.0, 5.0], values
    else:
        path.write_text("".join(
            f"ITEM: TIMESTEP\n{step}\nITEM: NUMBER OF ATOMS\n3\nITEM: BOX BOUNDS pp pp pp\n"
            + "".join(f"0 {length}\n" for length in cell) + "ITEM: ATOMS id type x y z\n"
            + "".join(f"{n} 1 {x} {y} {z}\n" for n, (x, y, z) in enumerate(frame.tolist(), 1))
            for step, frame in enumerate(positions)))
    return path, positions, cell


@pytest.mark.parametrize("unit", LENGTHS)
def test_the_unit_of_lengths_is_given_where_the_file_states_none(without_unit, unit):
    path, positions, cell = without_unit
    frames = list(Trajectory(path, 3, length_unit=unit))
    np.testing.assert_allclose([frame.positions for frame in frames], LENGTHS[unit] * positions, rtol=1e-6)
    np.testing.assert_allclose(frames[0].cell.parameters[:3], LENGTHS[unit] * np.array(cell), rtol=1e-6)
    assert frames[1].time is None


def test_a_unit_that_nobody_states_is_asked_for(without_unit, tmp_path):
    path, *_ = without_unit
    with pytest.raises(InputError) as error:
        list(Trajectory(path, 3))
    assert "{length_unit}" in error.value.hint
    with pytest.raises(UsageError) as error:
        list(Trajectory(path, 3, length_unit="inch"))
    assert error.value.parameter == "length_unit"
    names = tmp_path / "names.pdb"
    names.write_text("".join(f"ATOM  {n:5d}  NA   NA A{n:4d}    {n:8.3f}{0:8.3f}{0:8.3f}  1.00  0.00          NA\n"
                             for n in (1, 2, 3)))
    if path.suffix == ".nc":  # also where it is the structure
        with naming(InputError, path.name):
            read_structure(path, topology=names)
    result = vp.rdf(names, path, between=["all", "all"], range=5, length_unit="nm")
    assert result.frames == 2
    for wrong in ({"trajectory": path}, {"length_unit": "nm"}):
        with pytest.raises((InputError, UsageError)):
            vp.rdf(names, between=["all", "all"], range=5, **wrong)


@pytest.mark.parametrize(("path", "atoms", "unit"), [
    (FILES / "tip125_tric_C36.dcd", 375, "nm"), (FILES / "adk_oplsaa.xtc", 47681, "bohr"),
    (DATA / "lammps_time_in_fs.nc", 24, "nm"), (FILES / "cobrotoxin.h5md", 19385, "bohr")])
def test_a_unit_that_differs_from_that_of_the_file_is_refused(path, atoms, unit):
    if path.suffix == ".h5md":
        pytest.importorskip("h5py")
    with pytest.raises(UsageError) as error:
        list(Trajectory(path, atoms, slice(1), length_unit=unit))
    assert (error.value.parameter, error.value.value) == ("length_unit", unit)
    own = "nm" if path.suffix in (".xtc", ".h5md") else "angstrom"
    assert len(list(Trajectory(path, atoms, slice(1), length_unit=own))) == 1


@pytest.mark.parametrize("order", ["little", "big"])
def test_a_dcd_with_64_bit_markers_is_refused_in_our_words(tmp_path, order):
    raw, made, at = (DATA / "cell_of_1A.dcd").read_bytes(), b"", 0
    while at < len(raw):
        size = int.from_bytes(raw[at : at + 4], "little")
        marker = size.to_bytes(8, order)
        made += marker + raw[at + 4 : at + 4 + size] + marker
        at += 8 + size
    (tmp_path / "wide.dcd").write_bytes(made)
    for use in (list, Trajectory.numbers):
        with naming(InputError, "wide.dcd: ", "64 bits", " 32"):
            use(Trajectory(tmp_path / "wide.dcd", 24))


def test_an_h5md_file_without_units_is_told_in_our_words():
    pytest.importorskip("h5py")
    with naming(InputError, "no_units.h5md") as error:
        list(Trajectory(DATA / "no_units.h5md", 24))
    assert "convert_units" not in str(error.value)


@pytest.mark.parametrize("number", [5, -3])
def test_a_frame_that_a_file_does_not_have_is_named_by_its_option(number):
    path = DATA / "caps_amber.pdb"
    structure = read_structure(path)
    with pytest.raises(UsageError) as error:
        structures.at_frame(structure, path, None, number, None)
    assert (error.value.parameter, error.value.value) == ("frame", str(number))
    for known in (0, -1):
        assert len(structures.at_frame(structure, path, None, known, None)) == len(structure)
