"""Maps made slab by slab: equal to those made at once, in memory that does not grow with the map."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import relative_rms, water
from messages import naming

from vmdpotential import maps, progress, registry, write_structure
from vmdpotential.commands import map as map_command
from vmdpotential.errors import InputError, MemoryPlanError
from vmdpotential.frontend import cli
from vmdpotential.grid.lattice import Lattice
from vmdpotential.io.maps import open_map, read_map
from vmdpotential.maps import potential_map
from vmdpotential.molecule.cell import Cell
from vmdpotential.sums import ChargeStatistics, Request, accuracy
from vmdpotential.sums.slabs import LAYER, by_slabs

#: Relative rms difference that rounding in single precision may make: atoms are summed in another order.
ROUNDING = 1e-6

CELLS = {"cubic": Cell.from_parameters(14, 14, 14), "slanted": Cell.from_parameters(14, 14, 14, 70, 80, 100)}


class KeptMap:
    """A sink that keeps all."""

    def begin(self, lattice):
        self.maps = [[] for _ in range(4)]

    def put(self, start, slab):
        assert start == sum(part.shape[2] for part in self.maps[0])
        for kept, part in zip(self.maps, slab, strict=False):
            kept.append(part.copy())

    def values(self, n=0):
        return np.concatenate(self.maps[n], 2)


def in_slabs(monkeypatch):
    monkeypatch.setattr(maps.plan, "by_slabs", lambda request: replace(request, planes=LAYER))


@pytest.mark.parametrize(("cell", "options"), [
    (None, {"method": "direct", "field": True}),
    (None, {"method": "cutoff"}),
    (None, {"method": "pme"}),
    ("cubic", {"method": "cutoff", "cutoff": 8.0, "field": True}),
    ("cubic", {"method": "pme", "field": True}),
    ("slanted", {"method": "pme", "precision": "double"}),
    ("cubic", {"method": "msm"}),
], ids=str)
def test_slabs_make_the_same_map(monkeypatch, engine, cell, options):
    structure = water(14, CELLS.get(cell))
    common = {"spacing": 0.4, "padding": 2, "tolerance": 1e-3, "engine": engine.name} | options
    whole = potential_map(structure, **common)
    in_slabs(monkeypatch)
    sink, steps = KeptMap(), []
    with progress.listen_to_progress(lambda label, fraction: steps.append((label, fraction))):
        grid = potential_map(structure, sink=sink, **common)
    assert whole.lattice.shape[2] > 2 * LAYER
    assert whole.lattice.shape[2] % LAYER  # the last slab is thinner
    assert relative_rms(sink.values(), whole.values) < ROUNDING
    if options["method"] == "direct" and engine.name == "cpu":
        np.testing.assert_array_equal(sink.values(), whole.values)
    for n in range(3 if "field" in options else 0):
        assert relative_rms(sink.values(n + 1), whole.field[n].values) < 10 * ROUNDING
        assert grid.field[n].provenance.quantity == f"electric field along {'xyz'[n]}"
        assert grid.field[n].unit == "V/A"
    assert grid.extremes == (sink.values().min(), sink.values().max())
    actual, expected = grid.provenance, whole.provenance
    for name in ("error", "error_away", "error_field"):
        if getattr(expected, name) is None:  # exact, or without a field
            assert getattr(actual, name) is None
        else:
            assert getattr(actual, name) == pytest.approx(getattr(expected, name), rel=1e-2)
    assert replace(actual, **dict.fromkeys(("error", "error_away", "error_field", "error_field_away"))) == replace(
        expected, **dict.fromkeys(("error", "error_away", "error_field", "error_field_away")))
    done = [fraction for label, fraction in steps if label == "map in slabs"]
    assert set(done) == {0.0, 0.999, *(n / len(sink.maps[0]) for n in range(1, 1 + len(sink.maps[0])))} - {0.999}
    assert done[-1] == 1.0


def test_a_better_plan_makes_the_slabs_again(monkeypatch):
    """An error that is too large is found only when all slabs are there."""
    errors = accuracy.Sample.errors
    seen = []

    def worse_at_first(self, result):
        actual = errors(self, result)
        seen.append(actual)
        return actual if len(seen) > 1 else replace(actual, everywhere=2e-3)

    monkeypatch.setattr(accuracy.Sample, "errors", worse_at_first)
    in_slabs(monkeypatch)
    sink = KeptMap()
    structure = water(14, CELLS["cubic"])
    grid = potential_map(structure, method="pme", spacing=0.4, tolerance=1e-3, engine="cpu", sink=sink)
    assert len(seen) == 2
    assert sink.values().shape == grid.lattice.shape  # those of the first plan are gone
    assert grid.provenance.error < 1e-3


def test_how_thick_slabs_are(monkeypatch):
    """As thick as half of the memory takes, whole layers, and one layer at least, whose refusal comes later."""
    lattice = Lattice((0, 0, 0), 1.0, (200, 200, 300))
    charges = ChargeStatistics.of(np.zeros((1, 3)), np.ones(1))
    request = Request(lattice, None, registry.get("interaction", "coulomb").bind(), charges)
    for limit, planes in (("1G", None), ("288M", 144), ("100M", 48), ("1M", 16)):
        monkeypatch.setenv("VMDPOTENTIAL_MEMORY", limit)
        assert by_slabs(request).planes == planes


def test_the_refusal_of_a_map_names_formats_that_take_it(monkeypatch):
    structure = water(20)
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "1M")
    for method in ("direct", "cutoff", "pme", "msm"):
        with naming(MemoryPlanError, ".zarr or .mrc"):
            potential_map(structure, method=method, spacing=0.5, engine="cpu")
    with pytest.raises(MemoryPlanError) as caught:  # not where it was done so already
        potential_map(structure, method="direct", spacing=0.2, engine="cpu", sink=KeptMap())
    assert "zarr" not in str(caught.value)


@pytest.mark.parametrize("suffix", [".zarr", ".mrc"])
def test_the_command_writes_slabs_where_the_whole_does_not_fit(tmp_path, monkeypatch, capsys, suffix):
    monkeypatch.chdir(tmp_path)
    write_structure(water(20), "box.pqr")
    words = f"map box.pqr --method direct --spacing 0.5 --padding 6 --json -o big{suffix} --field f{suffix}".split()
    assert cli.main(words) == 0
    whole = json.loads(capsys.readouterr().out)
    expected = {name: read_map(name).values for name in (f"big{suffix}", f"f_y{suffix}")}
    layers = []
    sink = maps.plan._InUnits
    put = sink.put
    monkeypatch.setattr(sink, "put", lambda self, start, slab: [layers.append(start), put(self, start, slab)])
    in_slabs(monkeypatch)
    assert cli.main([*words, "--force"]) == 0
    actual = json.loads(capsys.readouterr().out)
    assert len(layers) > 3
    for name, values in expected.items():
        np.testing.assert_allclose(read_map(name).values, values, rtol=1e-5, atol=1e-4)
    assert read_map(f"f_y{suffix}").unit == "V/A"
    for key in ("minimum", "maximum", "display_limit", "shape", "origin", "spacing", "method", "field_files"):
        assert actual[key] == whole[key], key
    assert sorted(os.listdir()) == sorted(["box.pqr", f"big{suffix}", *(f"f_{axis}{suffix}" for axis in "xyz")])
    # and a format that cannot takes it whole, or not at all
    layers.clear()
    assert cli.main([*words[:-4], "-o", "map.dx"]) == 0
    assert not layers


@pytest.mark.parametrize("suffix", [".zarr", ".mrc"])
def test_a_run_that_ends_early_leaves_nothing(tmp_path, monkeypatch, suffix):
    monkeypatch.chdir(tmp_path)
    write_structure(water(20), "box.pqr")
    in_slabs(monkeypatch)

    def stop(label, fraction):
        if label == "map in slabs" and fraction > 0.5:
            assert len(os.listdir()) > 1
            raise KeyboardInterrupt

    with progress.listen_to_progress(stop), pytest.raises(KeyboardInterrupt):
        map_command.command(structure=Path("box.pqr"), method="direct", spacing=0.5, padding=6.0,
                            output=Path(f"big{suffix}"))
    assert os.listdir() == ["box.pqr"]


BIG = """
import resource, sys
from pathlib import Path
import numpy as np
from vmdpotential import Grid, Lattice, write_map
from vmdpotential.frontend import cli
import vmdpotential.sums.cpu.tiles, vmdpotential.sums.cpu.mesh, scipy.fft, gemmi

def make(spacing, name):
    return cli.main(f"map box.pqr --method METHOD --spacing {spacing} --padding 4 --tolerance 1e-2 --engine cpu "
                    f"-o {name}.SUFFIX".split())

assert make(1, "small") == 0
if "SUFFIX" == "zarr":  # whose threads have stacks
    noise = Grid(Lattice((0, 0, 0), 1.0, (512, 512, 16)), np.random.default_rng(1).normal(size=(512, 512, 16)))
    write_map(noise, Path("noise.zarr"))
    del noise
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
most = 1024 * int(status["VmData"].split()[0]) + ROOM
resource.setrlimit(resource.RLIMIT_DATA, (most, most))
sys.exit(make(SPACING, "big"))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("method", "suffix"), [
    ("pme", "zarr"), ("cutoff --cutoff 2", "mrc")])
def test_a_map_four_times_as_large_as_memory(tmp_path, method, suffix):
    """256 MB, where a limit of the process leaves 64 MB next to what the program itself takes."""
    write_structure(water(14), tmp_path / "box.pqr")
    # what memory.py keeps for libraries and kernels comes on top
    program = BIG.replace("ROOM", str(64_000_000 + 150_000_000)).replace("METHOD", method).replace("SUFFIX", suffix)
    program = program.replace("SPACING", str(22 / 410))
    run = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True,
                         env=os.environ | {"VMDPOTENTIAL_THREADS": "1"})
    assert run.returncode == 0, run.stderr
    grid = open_map(tmp_path / f"big.{suffix}")
    assert 4 * grid.lattice.size > 240_000_000
    part = grid.window((100, 100, 100), (104, 400, 300))
    assert np.isfinite(part.values).all()
    assert part.values.any()


def test_a_map_in_slabs_says_that_it_has_no_values(monkeypatch):
    in_slabs(monkeypatch)
    grid = potential_map(water(10), method="direct", spacing=0.5, padding=3, engine="cpu", sink=KeptMap())
    with pytest.raises(InputError):
        grid.values  # noqa: B018


def test_the_field_alone_in_slabs(tmp_path, monkeypatch):
    write_structure(water(10), tmp_path / "box.pqr")
    words = f"map {tmp_path / 'box.pqr'} --spacing 1 --padding 3 --engine cpu --boundary open --field".split()
    assert cli.main([*words, str(tmp_path / "whole.mrc")]) == 0
    in_slabs(monkeypatch)
    assert cli.main([*words, str(tmp_path / "f.mrc")]) == 0
    assert sorted(path.name for path in tmp_path.glob("f*")) == ["f_x.mrc", "f_y.mrc", "f_z.mrc"]
    for axis in "xyz":
        whole = read_map(tmp_path / f"whole_{axis}.mrc").values
        np.testing.assert_allclose(read_map(tmp_path / f"f_{axis}.mrc").values, whole, atol=1e-3 * np.abs(whole).max())
