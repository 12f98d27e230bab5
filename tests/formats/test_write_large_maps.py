"""Maps in Zarr and MRC that are written: in slabs, by several processes, interrupted, replaced."""

import errno
import os
import subprocess
import sys

import numpy as np
import pytest
from map_files import PROVENANCE, make
from messages import naming

from vmdpotential import progress, write_structure
from vmdpotential.errors import InputError, OutputError, UsageError
from vmdpotential.frontend import cli
from vmdpotential.grid.lattice import Grid
from vmdpotential.io.files import hidden
from vmdpotential.io.maps import MapWriters, read_map, write_map
from vmdpotential.plugins.formats import omezarr

LARGE = [".zarr", ".mrc"]


@pytest.mark.parametrize("suffix", LARGE)
def test_slabs_in_any_order_and_a_second_begin(tmp_path, suffix):
    grid = make(shape=(9, 10, 50))
    path = tmp_path / f"m{suffix}"
    with MapWriters([path], [0], False, [path]) as writers:
        assert not os.listdir(tmp_path)
        writers.begin(grid.lattice)
        writers.put(0, np.full((1, 9, 10, 16), 3e9, np.float32))
        writers.begin(grid.lattice)
        for start in (32, 0, 16, 48):
            writers.put(start, grid.values[None, :, :, start : start + 16])
        assert not path.exists()
        writers.finish(grid)
    back = read_map(path)
    np.testing.assert_array_equal(back.values, grid.values)
    assert back.provenance == PROVENANCE
    if suffix == ".mrc":
        words = np.frombuffer(path.read_bytes()[:1024], "<f4")
        np.testing.assert_allclose(words[[19, 20, 21, 54]], [
            grid.values.min(), grid.values.max(), grid.values.mean(), grid.values.std()], rtol=1e-5)
        assert words.view("<i4")[22] == 1  # a volume, as crystallographers' programs want it


@pytest.mark.slow
def test_processes_write_different_shards_at_once(tmp_path):
    grid = make(shape=(30, 40, 64))
    np.save(tmp_path / "values.npy", grid.values)
    path = tmp_path / "m.zarr"
    writer = omezarr.ZarrWriter(path)
    writer.begin(grid.lattice)
    program = ("import sys, numpy as np; from pathlib import Path; "
               "from vmdpotential.plugins.formats.omezarr import ZarrWriter; "
               "values, start = np.load('values.npy'), int(sys.argv[1]); "
               "ZarrWriter(Path('m.zarr')).put(start, values[:, :, start:start + 32])")
    running = [subprocess.Popen([sys.executable, "-c", program, start], cwd=tmp_path) for start in ("0", "32")]
    assert [process.wait() for process in running] == [0, 0]
    writer.finish(grid)
    np.testing.assert_array_equal(read_map(path).values, grid.values)
    with naming(ValueError, "16"):
        writer.put(8, grid.values[:, :, :16])


def test_values_that_are_not_finite_are_not_written_in_slabs(tmp_path):
    grid = make(shape=(9, 10, 50))
    values = grid.values.copy()
    values[1, 2, 33] = np.inf
    path = tmp_path / "m.mrc"
    with MapWriters([path], [0], False, [path]) as writers:
        writers.begin(grid.lattice)
        writers.put(0, values[None, :, :, :16])
        with naming(InputError, "m.mrc: ", " at -2.5 5.5 48.75 A") as caught:
            writers.put(32, values[None, :, :, 32:])
        writers.__exit__(type(caught.value), caught.value, None)
    assert not os.listdir(tmp_path)


def test_force_replaces_a_zarr_map_and_no_other_folder(tmp_path):
    path = tmp_path / "m.zarr"
    grid = make()
    write_map(make(seed=2), path)
    mode = path.stat().st_mode
    with naming(UsageError, path):
        write_map(grid, path)
    write_map(grid, path, force=True)
    np.testing.assert_array_equal(read_map(path).values, grid.values)
    assert path.stat().st_mode == mode
    (path / "notes.txt").write_text("precious")
    for place in (path, tmp_path / "mine.zarr"):
        place.mkdir(exist_ok=True)
        (place / "notes.txt").write_text("precious")
        with pytest.raises(OutputError):
            write_map(grid, place, force=True)
        assert (place / "notes.txt").read_text() == "precious"
    with pytest.raises(OutputError):  # a folder is no place for a file
        write_map(grid, path.rename(tmp_path / "m.dx"), force=True)
    assert sorted(os.listdir(tmp_path)) == ["m.dx", "mine.zarr"]


def test_a_zarr_map_goes_to_no_stream(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    from helpers import water

    write_structure(water(6), "box.pqr")
    command = "map box.pqr --method direct --spacing 1 --padding 1"
    assert cli.main(f"{command} -o - --format zarr".split()) == 3
    assert "is a file, and a Zarr map is a folder" in capsys.readouterr().err
    assert cli.main(f"{command} -o box.pqr --format zarr --force".split()) == 2
    assert cli.main(f"{command} -o named --format zarr".split()) == 0
    assert isinstance(read_map("named"), Grid)
    assert cli.main(f"{command} -o named --format zarr --force".split()) == 0


def test_an_interrupted_write_leaves_the_old_map(tmp_path):
    for suffix in (".zarr", ".mrc"):
        path = tmp_path / f"m{suffix}"
        old = make(seed=2)
        write_map(old, path)

        def interrupt(label, fraction):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt), progress.listen_to_progress(interrupt):
            write_map(make(), path, force=True)
        np.testing.assert_array_equal(read_map(path).values, old.values)
    assert sorted(os.listdir(tmp_path)) == ["m.mrc", "m.zarr"]


def fail(*_):
    raise OSError(errno.EIO, "broken")


def unable(*_):
    raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


@pytest.mark.parametrize(("exchange", "failing"), [(hidden.exchange, "sync"), (unable, "sync"), (unable, "replace")])
def test_a_zarr_map_is_put_back_when_renaming_fails(exchange, failing, tmp_path, monkeypatch):
    """On systems that exchange two names in one step, and on others."""
    path, old, new = tmp_path / "m.zarr", make(seed=2), make(seed=3)
    write_map(old, path)
    sync, replace, failed = hidden.sync, os.replace, []

    def rename(source, target):
        if target == path and not failed:
            failed.append(source)
            fail()
        replace(source, target)

    monkeypatch.setattr(hidden, "exchange", exchange)
    if failing == "sync":
        monkeypatch.setattr(hidden, "sync", lambda name, like=None: fail() if name == tmp_path else sync(name, like))
    else:
        monkeypatch.setattr(os, "replace", rename)
    with naming(OutputError, "broken"):
        write_map(new, path, force=True)
    monkeypatch.setattr(hidden, "sync", sync)
    np.testing.assert_array_equal(read_map(path).values, old.values)
    assert os.listdir(tmp_path) == ["m.zarr"]
    write_map(new, path, force=True)
    np.testing.assert_array_equal(read_map(path).values, new.values)
    assert os.listdir(tmp_path) == ["m.zarr"]


@pytest.mark.slow
@pytest.mark.parametrize(("step", "left"), [
    ("hidden.exchange = stop", {"m.zarr": "old"}),
    ("exchange = hidden.exchange; hidden.exchange = lambda *names: stop(exchange(*names))", {"m.zarr": "new"}),
    ("hidden.exchange = unable; move = os.replace\n"
     "os.replace = lambda a, b: stop(move(a, b)) if str(a).endswith('/m.zarr') else move(a, b)",
     {"m.zarr.former": "old"}),
    ("omezarr.ZarrWriter.finish = stop", {"m.zarr": "old"}),
])
def test_a_killed_run_leaves_a_whole_zarr_map(step, left, tmp_path):
    maps = {"old": make(seed=2), "new": make(seed=3)}
    write_map(maps["old"], tmp_path / "m.zarr")
    np.save(tmp_path / "new.npy", maps["new"].values)
    program = (
        "import errno, os, signal, numpy as np\nfrom pathlib import Path\n"
        "from vmdpotential import write_map, read_map\n"
        "from vmdpotential.io.files import hidden\nfrom vmdpotential.plugins.formats import omezarr\n"
        "def stop(*_): os.kill(os.getpid(), signal.SIGKILL)\n"
        "def unable(*_): raise OSError(errno.EINVAL, '')\n"
        f"{step}\n"
        "write_map(read_map('m.zarr').with_values(np.load('new.npy')), Path('m.zarr').resolve(), force=True)\n")
    assert subprocess.run([sys.executable, "-c", program], cwd=tmp_path).returncode == -9
    assert list(tmp_path.glob(".vmdpotential-*"))
    hidden.remove_abandoned(tmp_path)  # as the next run in the folder does
    (tmp_path / "new.npy").unlink()
    result = {path.name[: path.name.find("-")] if "-" in path.name else path.name: path for path in tmp_path.iterdir()}
    assert result.keys() == left.keys()
    for name, which in left.items():
        kept = result[name].rename(tmp_path / "kept.zarr")
        np.testing.assert_array_equal(read_map(kept).values, maps[which].values)
