"""The methods of 2007 and 2008: kernels compiled for a GPU and the host, bins, what they refuse, their papers."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cuda_kernels import ARCHITECTURES, compile_for_all
from helpers import EVERYTHING, definition, refused
from historical_sums import CASES, LATTICE, atoms, request, run, shifted
from messages import naming

from vmdpotential import registry
from vmdpotential.engines.cuda import build, radial
from vmdpotential.errors import MemoryPlanError, UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.samples import water_box
from vmdpotential.plugins.historical import METHODS, bins, cutoff, direct


def test_what_does_not_fit_together_is_refused(monkeypatch):
    cpu, cuda = registry.get("engine", "cpu"), registry.get("engine", "cuda")
    coulomb = registry.get("interaction", "coulomb").bind()
    largebin, overlap, simple = (registry.get("method", name) for name in ("largebin", "overlap", "simple"))
    for method, bound in ((largebin, shifted(5.0)), (simple, coulomb)):
        with naming(UsageError, f"{method.name}: ", "engine=cuda"):
            method.plan(request(method, bound), cpu)
        with refused("method"):
            method.plan(request(method, bound, precision="double"), cuda)
    with refused("method"):
        overlap.plan(request(overlap, coulomb), cuda)
    with refused("method"):
        simple.plan(request(simple, coulomb, cell=Cell.from_parameters(7, 8, 9)), cuda)
    with refused("method"):
        simple.plan(request(simple, shifted(5.0)), cuda)
    assert not run("overlap", LATTICE, np.zeros((0, 3)), np.zeros(0), shifted(5.0)).any()
    plan = overlap.plan(request(overlap, shifted(5.0)), cuda)
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "1k")
    with naming(MemoryPlanError, "bins"):
        plan.run(np.zeros((2, 3)), np.ones(2))


@pytest.mark.parametrize("precision", ["single", "compensated"])
@pytest.mark.parametrize("edge", [10.0, 30.0, 100.0])
@pytest.mark.parametrize("periodic", [False, True])
def test_auto_takes_todays_kernels(precision, edge, periodic):
    cuda, cell = registry.get("engine", "cuda"), Cell.from_parameters(edge, edge, edge) if periodic else None
    positions, charges = water_box(edge)
    lattice = Lattice(np.zeros(3), 0.5, (round(2 * edge),) * 3)
    for ours, bound in (("direct", registry.get("interaction", "coulomb").bind()), ("cutoff", shifted(12.0))):
        for name in METHODS[ours]:
            method = registry.get("method", name)
            expected = request(method, bound, lattice, precision, cell, positions, charges)
            if method.refusal(expected) is None:
                least = registry.get("method", ours).estimate(expected, cuda).seconds
                assert least < method.estimate(expected, cuda).seconds < 20 * least + 10


@pytest.mark.slow
def test_the_script_of_the_paper_refuses_too_small_a_volume():
    """All it does: tests/nightly/test_cutoff_paper.py."""
    script = Path(__file__).parents[2] / "scripts" / "reproduce_cutoff_paper"
    done = subprocess.run([sys.executable, script, "--largest", "5"], capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize(("spacing", "side", "reach"), [
    (0.5, 4.0, 12.0), ([0.5, 0.7, 0.9], 4.0, 9.0), (0.5, 2.9, 7.0), (2.0, 4.0, 3.0), (0.2, 4.0, 0.7)])
def test_the_list_reaches_all_that_is_in_range_of_a_region(spacing, side, reach):
    lattice = Lattice(np.array([-3.0, 1.7, 2.2]), spacing, (33, 20, 9))
    result, homes, steps = bins.small_bins(lattice, reach, side)
    positions = np.random.default_rng(1).uniform(lattice.origin - reach, lattice.last + reach, (400, 3))
    number = result.numbers(positions)
    assert (number >= 0).all()
    for region in np.ndindex(*(len(h) for h in homes)):
        first = 8 * np.array(region)
        last = np.minimum(first + 7, np.array(lattice.shape) - 1)
        low, high = lattice.origin + first * lattice.spacing, lattice.origin + last * lattice.spacing
        gap = np.maximum(0, np.maximum(low - positions, positions - high))
        x, y, z = (homes[d][region[d]] for d in range(3))
        home = (x * result.shape[1] + y) * result.shape[2] + z
        listed = set((home + steps).tolist())
        assert min(listed) >= 0
        assert max(listed) < result.size
        assert {int(n) for n in number[(gap**2).sum(1) < reach**2]} <= listed


def test_bins_hold_every_atom_once_or_leave_it_over():
    positions, charges = atoms(6000)
    charges[::5] = 0
    four = np.column_stack([positions, charges]).astype(np.float32)
    actual = bins.small_bins(LATTICE, 6.0, 4.0)[0]
    filled, overflow = bins.fill(actual, positions, four)
    number = actual.numbers(positions)
    expected = np.flatnonzero((number >= 0) & (charges != 0))
    counts = np.bincount(number[expected], minlength=actual.size)
    assert len(overflow) == np.maximum(counts - bins.CAPACITY, 0).sum() > 0
    full = filled[..., 3] != 0
    np.testing.assert_array_equal(full.sum(1), np.minimum(counts, bins.CAPACITY))
    assert (np.diff(full.astype(int), axis=1) <= 0).all()  # from the front
    kept = np.setdiff1d(expected, overflow)
    np.testing.assert_array_equal(np.sort(filled[full], axis=0), np.sort(four[kept], axis=0))


@pytest.mark.nightly
@pytest.mark.parametrize("variant", direct.POINTS)
def test_direct_sums_compile(variant, tmp_path):
    macros = {"REAL": "float", "BATCH": direct.BATCH.get(variant, 0)}
    arch = ARCHITECTURES[list(direct.POINTS).index(variant) % 3]  # each in turn, as all read the same lines
    compile_for_all(build.source(direct.HERE / f"direct_{variant}.cu", macros), macros, tmp_path, architectures=(arch,))


@pytest.mark.parametrize("compensated", [pytest.param(0, marks=pytest.mark.nightly), 1])
@pytest.mark.parametrize("bound", [
    pytest.param(shifted(12.0), marks=pytest.mark.nightly), EVERYTHING.bind().truncated(9.0)], ids=str)
@pytest.mark.slow
def test_cutoff_sums_compile(bound, compensated, tmp_path):
    macros = {"REAL": "float", "COMPENSATED": compensated, "CAPACITY": bins.CAPACITY, "LISTED": cutoff.LISTED}
    task = cutoff.LIST_TASK
    same = "".join(f"static_assert({actual} == {expected});\n" for actual, expected in (
        ("sizeof(ListTask)", task.itemsize),
        *((f"__builtin_offsetof(ListTask, {name})", task.fields[name][1]) for name in task.names)))
    for turn, (name, layout) in enumerate((("largebin", ""), ("smallbin", same))):
        text = build.source(cutoff.HERE / f"cutoff_{name}.cu", macros,
                            radial.radial_source(bound.scaled(16.0), "float"))
        architecture = ARCHITECTURES[(turn + compensated + (bound.cutoff == 9.0)) % 3]
        compile_for_all(text + layout, macros, tmp_path, architectures=(architecture,))


def test_every_kernel_file_is_compiled():
    """Here, those of levels and bodies in test_cuda_msm.py and test_cuda_pairs.py; ``msm.cu`` is for CPUs only."""
    assert {path.name for path in direct.HERE.glob("*.cu")} == {
        "levels.cu", "msm.cu", "nbody.cu", "cutoff_largebin.cu", "cutoff_smallbin.cu",
        *(f"direct_{name}.cu" for name in direct.POINTS)}


@pytest.mark.slow
@pytest.mark.parametrize(("variant", "precision"), CASES)
def test_kernels_on_the_host_equal_the_definition(gpu, variant, precision):
    lattice = Lattice(LATTICE.origin, LATTICE.spacing, (9, 5, 9))
    positions, charges = atoms(2000)
    truncated = registry.get("interaction", "screened_coulomb").bind().truncated(5.0)
    for bound in (shifted(2.3), shifted(30.0), truncated):  # the second has a list of several launches
        values = run(variant, lattice, positions, charges, bound, precision)
        reference = definition(lattice.points(), positions, charges, bound, None).reshape(lattice.shape)
        assert np.abs(values - reference).max() < 5e-6 * np.abs(reference).max()
    cell = Cell.from_parameters(7, 8, 9, 70, 80, 110)
    values = run(variant, lattice, positions[:100], charges[:100], shifted(7.0), precision, cell)
    reference = definition(lattice.points(), positions[:100], charges[:100], shifted(7.0), cell).reshape(lattice.shape)
    assert np.abs(values - reference).max() < 2e-5 * np.abs(reference).max()
