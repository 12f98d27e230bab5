"""Movies of slices of several maps, and of a surface that turns."""

import sys
from pathlib import Path

import numpy as np
import pytest
from drawn import make, protein_like
from PIL import Image

import vmdpotential as vp
from vmdpotential.commands.slice import command
from vmdpotential.errors import BackendError, UsageError
from vmdpotential.figures import surfaces
from vmdpotential.figures.movies import check_movie
from vmdpotential.grid.lattice import Grid, Lattice, Provenance
from vmdpotential.surfaces import molecular_surface

DATA = Path(__file__).parents[2] / "data"


def frames_of(path):
    with Image.open(path) as movie:
        frames = []
        for n in range(movie.n_frames):
            movie.seek(n)
            frames.append(np.asarray(movie.convert("RGB")).astype(int))
        return frames, movie.info


def three_maps():
    return [make().with_values(factor * make().values) for factor in (1.0, 0.0, -1.0)]


def test_maps_follow_each_other_on_one_scale(tmp_path):
    report = command(maps=three_maps(), plane=["z=15", "x=5"], output=tmp_path / "m.gif", dpi=80, rate=5, width="80mm",
                     caption=tmp_path / "m.txt")
    frames, info = frames_of(tmp_path / "m.gif")
    assert len(frames) == 3
    assert info["duration"] == 200
    assert info["comment"].decode() == (tmp_path / "m.txt").read_text(encoding="utf-8").strip()
    assert frames[0].shape[1] == pytest.approx(80 / 25.4 * 80, abs=2)
    blue, white, red = ((frame[..., 2] - frame[..., 0]).clip(0).sum() for frame in frames)
    assert white < 0.6 * blue  # the bar is in all of them
    assert (frames[2][..., 0] - frames[2][..., 2]).clip(0).sum() > 1.5 * (frames[1][..., 0] - frames[1][..., 2]).clip(
        0).sum()
    assert red > white
    assert len(report.data["panels"]) == 6
    assert len({tuple(panel["range"]) for panel in report.data["panels"]}) == 1


@pytest.mark.parametrize(("rate", "duration"), [(0.1, 10_000), (30, 30), (50, 20)])
def test_a_gif_has_whole_hundredths_of_a_second(tmp_path, rate, duration):
    command(maps=three_maps(), plane="z=15", output=tmp_path / "m.gif", dpi=50, rate=rate)
    assert frames_of(tmp_path / "m.gif")[1]["duration"] == duration


@pytest.mark.parametrize("rate", [0.001, 60])
def test_rates_that_a_gif_does_not_have_are_refused(tmp_path, rate):
    with pytest.raises(UsageError) as caught:
        command(maps=three_maps(), plane="z=15", output=tmp_path / "m.gif", rate=rate)
    assert caught.value.parameter == "rate"


def test_an_mp4_has_as_many_frames(tmp_path):
    ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="MP4 needs imageio-ffmpeg")
    command(maps=three_maps(), plane="z=15", output=tmp_path / "m.mp4", dpi=80)
    count, seconds = ffmpeg.count_frames_and_secs(str(tmp_path / "m.mp4"))
    assert count == 3
    assert seconds == pytest.approx(0.3, abs=0.05)


def test_without_its_package_an_mp4_is_refused_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(BackendError):
        command(maps=three_maps(), plane="z=15", output=tmp_path / "m.mp4")
    check_movie(tmp_path / "m.gif", tmp_path / "m.gif")
    assert not list(tmp_path.iterdir())
    with pytest.raises(UsageError) as caught:
        command(maps=three_maps(), plane="z=15", output="-", format="gif")
    assert caught.value.parameter == ""


def test_a_surface_turns_about_what_is_up():
    mesh = molecular_surface(protein_like(), atoms="all", spacing=0.6)
    turns = list(surfaces.turntable(mesh, mesh.vertices[:, 0], ["y"], 4))
    towards = [np.cross(panel.right, panel.up) for panel, in turns]
    for n, direction in enumerate(([0, 1, 0], [-1, 0, 0], [0, -1, 0], [1, 0, 0])):
        assert towards[n] == pytest.approx(direction, abs=1e-9)
    assert np.ptp([panel.extent for panel, in turns], axis=0) == pytest.approx(0)  # one size
    for panel, in turns:
        assert not panel.title  # it would name a direction that is no longer that of the viewer
        flat = mesh.vertices @ np.stack([panel.right, panel.up], 1)
        assert (flat.min(0) >= panel.limits[0] - 1e-9).all()
        assert (flat.max(0) <= panel.limits[1] + 1e-9).all()


def test_the_command_writes_a_turn(tmp_path, monkeypatch):
    from vmdpotential.commands import on_surface as module

    monkeypatch.setattr(module, "_TURN", 3)
    vp.surface(protein_like(), make(), atoms="all", mesh_spacing=1.0, view=["x"], figure=tmp_path / "turn.gif", dpi=60,
               width="50mm")
    frames, _ = frames_of(tmp_path / "turn.gif")
    assert len(frames) == 3
    assert all(np.abs(frames[0] - frame).max() > 50 for frame in frames[1:])


def test_maps_on_a_surface_follow_each_other_on_one_scale(tmp_path):
    structure = vp.read_structure(DATA / "1aki.pdb.gz")
    lattice = Lattice.around(structure.positions, 4.0, 8.0)
    middle = structure.positions[:, 0].mean()
    ramp = ((lattice.points()[:, 0] - middle) / 4).reshape(lattice.shape)
    files = [tmp_path / f"maps-ph{ph}.dx" for ph in (4, 7, 10)]
    for file, ph, factor in zip(files, (4, 7, 10), (1.0, 0.0, -0.5), strict=True):  # ends that vanish and are reversed
        vp.write_map(Grid(lattice, factor * ramp, unit="kT/e", provenance=Provenance(state=f"pH {ph}")), file)
    made = vp.surface(structure, files, atoms="protein", mesh_spacing=1.2, view=["y"], up="z", prepare="never",
                      figure=tmp_path / "m.gif", dpi=80, rate=2)
    frames, info = frames_of(tmp_path / "m.gif")
    assert len(frames) == 3
    assert info["duration"] == 500
    assert info["comment"].decode() == made.caption
    assert made.caption.endswith("Frames: pH 4, pH 7, pH 10.")
    assert made.caption.count("pH 4") == 1
    assert [figure.axes[0].get_title().split("\n")[0] for figure in made.turning()] == ["pH 4", "pH 7", "pH 10"]
    panels = command(maps=files[:2], plane=f"y={structure.positions[:, 1].mean():.0f}").page.axes
    assert [ax.get_title().split("\n")[0] for ax in panels[:2]] == ["pH 4", "pH 7"]
    assert made.span[1] == pytest.approx(-made.span[0])
    # seen from y with z up, x points to the left: blue is positive, red negative; the lowest quarter has the bar
    picture = [frame[: 3 * len(frame) // 4] for frame in frames]
    half = picture[0].shape[1] // 2
    left, right = ([float((each[..., 2] - each[..., 0])[:, part].sum()) for each in picture]
                   for part in (slice(None, half), slice(half, None)))
    assert left[0] > 0 > right[0]
    assert max(abs(left[1]), abs(right[1])) < 0.05 * left[0]
    assert left[2] < 0 < right[2]
    assert right[2] < 0.8 * left[0]  # half the values on the same scale are paler
    alone = vp.surface(structure, files[0], atoms="protein", mesh_spacing=1.2, prepare="never")
    assert alone.rows == made.rows  # the report is that of the first


@pytest.mark.parametrize(("settings", "parameter"), [
    ({}, "map"), ({"figure": "m.png"}, "map"), ({"figure": "m.gif", "patches": 1.0}, "patches")])
def test_several_maps_on_a_surface_need_a_movie_without_patches(settings, parameter):
    with pytest.raises(UsageError) as caught:
        vp.surface(protein_like(), three_maps(), atoms="all", **settings)
    assert caught.value.parameter == parameter


def test_maps_in_different_units_do_not_share_a_movie(tmp_path):
    with pytest.raises(UsageError) as caught:
        vp.surface(protein_like(), [make(), make(unit="V", temperature=None)], atoms="all", figure=tmp_path / "m.gif")
    assert caught.value.parameter == "map"
