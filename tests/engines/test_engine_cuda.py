"""The CUDA engine without a GPU: functions as they are traced, plans, cells, and what verify says of an engine."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from cuda_kernels import INTERACTIONS, traced_on_the_host, work
from messages import naming

from vmdpotential import registry, sums
from vmdpotential.engines import get_engine
from vmdpotential.engines.cuda import radial
from vmdpotential.errors import MemoryPlanError
from vmdpotential.frontend import cli
from vmdpotential.grid.lattice import Lattice
from vmdpotential.sums.cuda import KERNEL_FOLDER, cells, maps
from vmdpotential.sums.potential_sum import prepare_sum
from vmdpotential.sums.result import HostResult


@pytest.mark.parametrize("interaction", INTERACTIONS, ids=lambda i: i.name)
@pytest.mark.parametrize("real", ["float", "double"])
@pytest.mark.parametrize("field", [False, True], ids=["potential", "slope"])
def test_the_traced_function_computes_what_numpy_does(interaction, real, field):
    bound = interaction.bind()
    unit = 2.0 * (bound.cutoff or 8.0)
    r = np.linspace(0.02, 1.2, 60) * (bound.cutoff or 20.0)
    actual = traced_on_the_host(bound, unit, real, field, r)
    reference = bound.derivative(r) / (2 * r) * unit**2 if field else bound(r)
    np.testing.assert_allclose(actual, reference, rtol={"float": 2e-5, "double": 1e-12}[real],
                               atol=1e-6 * abs(reference[0]) if real == "float" else 1e-14)


@pytest.mark.parametrize("nx", [1, 7, 8, 9, 64, 65])
@pytest.mark.parametrize("room", [1, 2, 3, 100])
@pytest.mark.parametrize("parts", [1, 3, 8])
def test_slabs_cover_the_map_once_in_whole_layers_that_fit(nx, room, parts):
    layer = 4 * 8 * 5 * 6
    result = maps.slabs((nx, 5, 6), room * layer, parts)
    assert [i for slab in result for i in range(slab.start, slab.stop)] == list(range(nx))
    assert all(slab.start % 8 == 0 for slab in result)
    assert all(-(-(slab.stop - slab.start) // 8) <= room for slab in result)
    assert len(result) >= min(parts, -(-nx // 8)) // 2


def test_a_layer_that_does_not_fit_is_refused_with_the_bytes():
    with naming(MemoryPlanError, "320 MB ", " 1 kB"):
        maps.slabs((2000, 1000, 10000), 1000)


@pytest.mark.parametrize("spacing", [0.1, 0.5, 3.0])
@pytest.mark.parametrize("cutoff", [0.5, 12.0, 40.0])
def test_cells_hold_all_that_a_tile_reaches_in_rows_the_kernel_has_room_for(spacing, cutoff):
    bound = registry.get("interaction", "shifted_coulomb").bind(cutoff=cutoff)
    lattice = Lattice(np.zeros(3), np.array([spacing, spacing * 0.3, spacing]), (200, 11, 30))
    task = work(bound, lattice=lattice).task
    # the most rows that a tile can touch, and the cells reach as far as the cutoff
    rows = np.floor(2 * (task["cutoff"] + 3.5 * task["spacing"]) / task["cell_size"])[:2] + 2
    assert rows.prod() <= 256
    extent = (task["shape"] - 1) * task["spacing"] + 2 * task["cutoff"]
    assert (task["low"] + task["cells"] * task["cell_size"] >= task["low"] + extent).all()


def test_cells_get_larger_before_there_are_too_many():
    bound = registry.get("interaction", "shifted_coulomb").bind(cutoff=1.0)
    lattice = Lattice(np.zeros(3), np.full(3, 0.5), (2000, 2000, 2000))
    assert work(bound, lattice=lattice).starts <= 1.05 * cells.MOST_CELLS




def test_the_software_root_is_good_to_a_millionth():
    """The kernel's arithmetic in float32, with its constants read from the kernel."""
    text = (KERNEL_FOLDER / "direct.cu").read_text()
    magic = int(text.split("__int_as_float(")[1].split(" ")[0], 16)
    first, second = (float(part.split("f)")[0]) for part in text.split("fmaf(-x * y, y, ")[1:])
    x = np.geomspace(1e-4, 1e8, 200_001).astype(np.float32)
    y = (magic - (x.view(np.int32) >> 1)).astype(np.int32).view(np.float32).astype(np.float64)
    for constant in (first, second):
        y = np.float32(y * (constant - x.astype(float) * y * y)).astype(np.float64)
    assert np.abs(y / radial.SOFTWARE_SCALE * np.sqrt(x.astype(float)) - 1).max() < 1e-6


@pytest.mark.slow
def test_verify_passes_on_the_cpu_and_fails_on_a_wrong_engine(monkeypatch, capsys):
    from vmdpotential.maps import checks
    from vmdpotential.plugins.probes import energies
    from vmdpotential.plugins.probes.check import check_probes


    def wrong(engine, work):
        """Periodic sums of pairs that are a thousandth too large."""
        prepared = prepare_sum(engine, work)
        factor = np.float32(1.001 if work.cell is not None and work.smooth is None else 1)
        return SimpleNamespace(run=lambda *atoms: HostResult(prepared.run(*atoms).maps * factor))

    monkeypatch.setattr(checks, "EDGE", 24.0)
    report = registry.get("command", "verify")(engine="cpu", points=40)
    assert report.data["passed"]
    rows = [row["what"] for row in report.data["rows"]]
    for name in registry.available("interaction"):
        assert any(row.startswith(f"{name}, the values on its page") for row in rows)
    for name in ("direct", "cutoff", "pme", "msm"):  # those of the historical plugin need a GPU
        for boundary in registry.get("method", name).boundaries:
            results = [row for row in rows if row.startswith(f"{name}, {boundary}, single precision")]
            assert len(results) == 2  # potential and field
    for module in (sums, energies):
        monkeypatch.setattr(module, "prepare_sum", wrong)
    assert cli.main(["verify", "--engine", "cpu", "--points", "40", "--method", "cutoff", "--verbose"]) == 3
    said = capsys.readouterr()
    checked = {line.split()[2].rstrip(",") for line in said.out.splitlines() if line.startswith(("PASS", "FAIL"))}
    assert checked == {"cutoff", "shifted_coulomb"}  # what was named, and its interaction
    failed = re.findall("^FAIL +cpu +(.*shifted_coulomb)", said.out, re.MULTILINE)
    assert failed == ["cutoff, periodic, single precision, shifted_coulomb",
                      "cutoff, periodic, single precision, field of shifted_coulomb"]
    assert len(re.findall("^FAIL", said.out, re.MULTILINE)) == 2
    # a Lennard-Jones map is a periodic sum of pairs, too
    _, error, limit = check_probes(get_engine("cpu"), 1)[0]
    assert error > limit
