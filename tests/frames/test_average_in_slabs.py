"""Averages of maps whose sums do not fit into memory: slab after slab, equal to those made at once."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from MDAnalysisTests import datafiles

from vmdpotential.frames import average
from vmdpotential.frontend.cli import main
from vmdpotential.io.maps import open_map, read_map
from vmdpotential.sums import slabs

#: Adenylate kinase in water, whose cell changes; and a bilayer.
SYSTEMS = {
    "npt": [datafiles.GRO, datafiles.XTC, "--topology", datafiles.TPR, "--atoms", "protein", "--spacing", "2"],
    "open": [datafiles.PQR_icodes, "", "--spacing", "2", "--padding", "8"],
}


def thin(request, needed):
    return slabs.LAYER


@pytest.fixture
def words(request, tmp_path):
    """Return the words of an average of all statistics."""
    if request.param == "npt":
        return ["average", *SYSTEMS["npt"], "--fit", "none", "--frames", "::3"]
    import MDAnalysis

    system = SYSTEMS["open"]
    universe = MDAnalysis.Universe(system[0])
    random, path = np.random.default_rng(5), tmp_path / "frames.dcd"
    with MDAnalysis.Writer(str(path), len(universe.atoms)) as writer:
        start = universe.atoms.positions.copy()
        for _ in range(80):
            universe.atoms.positions = start + random.normal(0, 0.3, start.shape)
            writer.write(universe.atoms)
    return ["average", system[0], str(path), *system[2:]]


@pytest.mark.slow
@pytest.mark.parametrize(("words", "suffix"), [("npt", ".zarr"), ("open", ".mrc")], indirect=["words"])
def test_an_average_in_slabs_is_the_same(words, suffix, tmp_path, monkeypatch, capsys):
    words = [*words, "--tolerance", "1e-3", "--stat", "mean,std,sem", "--engine", "cpu", "--json"]
    assert main([*words, "-o", str(tmp_path / f"whole{suffix}")]) == 0
    whole = json.loads(capsys.readouterr().out)
    monkeypatch.setattr(average, "planes_at_once", thin)
    assert main([*words, "-o", str(tmp_path / f"slabs{suffix}")]) == 0
    actual = json.loads(capsys.readouterr().out)
    assert len(actual["files"]) == len(whole["files"])
    for path, reference in zip(actual["files"], whole["files"], strict=True):
        made, expected = read_map(path), read_map(reference)
        np.testing.assert_allclose(made.lattice.origin, expected.lattice.origin, atol=1e-6)
        assert made.lattice.shape == expected.lattice.shape
        assert made.lattice.shape[2] > slabs.LAYER
        scale = np.sqrt(np.mean(expected.values**2))
        assert np.sqrt(np.mean((made.values - expected.values) ** 2)) < 1e-3 * scale
    for key in ("frames", "blocks", "block_frames", "shape", "cell"):
        assert actual[key] == whole[key]
    for key in ("standard_error", "interval", "standard_deviation", "inefficiency", "minimum", "maximum"):
        assert actual[key] == (whole[key] if whole[key] is None else pytest.approx(whole[key], rel=1e-3))
    assert sorted(name for name in os.listdir(tmp_path) if "." + suffix[1:] in name and "blocks" in name) == []


BIG = """
import os, resource, sys
from vmdpotential.frontend.cli import main
words = sys.argv[1:]
coarse = words.index("--spacing")
del words[coarse:coarse + 2]
assert main([*words, "--spacing", "2", "-o", "small.zarr"]) == 0
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
most = 1024 * int(status["VmData"].split()[0]) + ROOM
resource.setrlimit(resource.RLIMIT_DATA, (most, most))
sys.exit(main([*words, "--spacing", "SPACING", "-o", "big.zarr"]))
"""


@pytest.mark.nightly
@pytest.mark.parametrize("words", ["open"], indirect=True)
def test_sums_that_are_larger_than_memory(words, tmp_path):
    """Sums of 550 MB, where 256 MB are left besides what libraries and compiling take."""
    program = BIG.replace("ROOM", str(256_000_000 + 200_000_000)).replace("SPACING", "0.25")
    words = [*words, "--frames", ":2", "--stat", "mean,std", "--engine", "cpu", "--method", "pme", "--tolerance",
             "1e-2"]
    run = subprocess.run([sys.executable, "-c", program, *words], cwd=tmp_path, capture_output=True, text=True,
                         env=os.environ | {"VMDPOTENTIAL_THREADS": "1"})
    assert run.returncode == 0, run.stderr
    grid = open_map(tmp_path / "big.zarr")
    assert 40 * grid.lattice.size > 1.15 * 456_000_000
    assert np.isfinite(grid.window((0, 0, 0), (50, 60, 20)).values).all()
