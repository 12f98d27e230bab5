"""The kernels of 2007 and 2008 compiled, for a GPU and for the host."""


import numpy as np
import pytest
from cuda_kernels import ARCHITECTURES, compile_for_all
from helpers import EVERYTHING, definition
from historical_sums import CASES, LATTICE, atoms, run, shifted

from vmdpotential import registry
from vmdpotential.engines.cuda import build, radial
from vmdpotential.grid.lattice import Lattice
from vmdpotential.molecule.cell import Cell
from vmdpotential.plugins.historical import bins, cutoff, direct


@pytest.mark.slow
@pytest.mark.parametrize("variant", direct.POINTS)
def test_direct_sums_compile(variant, tmp_path):
    macros = {"REAL": "float", "BATCH": direct.BATCH.get(variant, 0)}
    arch = ARCHITECTURES[list(direct.POINTS).index(variant) % 3]  # each in turn, as all read the same lines
    compile_for_all(build.source(direct.HERE / f"direct_{variant}.cu", macros), macros, tmp_path, architectures=(arch,))


@pytest.mark.slow
@pytest.mark.parametrize("compensated", [0, 1])
@pytest.mark.parametrize("bound", [shifted(12.0), EVERYTHING.bind().truncated(9.0)], ids=str)
def test_cutoff_sums_compile(bound, compensated, tmp_path):
    macros = {"REAL": "float", "COMPENSATED": compensated, "CAPACITY": bins.CAPACITY, "LISTED": cutoff.LISTED}
    task = cutoff.LIST_TASK
    same = "".join(f"static_assert({actual} == {expected});\n" for actual, expected in (
        ("sizeof(ListTask)", task.itemsize),
        *((f"__builtin_offsetof(ListTask, {name})", task.fields[name][1]) for name in task.names)))
    for turn, (name, layout) in enumerate((("largebin", ""), ("smallbin", same))):
        text = build.source(cutoff.HERE / f"cutoff_{name}.cu", macros, radial.source(bound.scaled(16.0), "float"))
        architecture = ARCHITECTURES[(turn + compensated + (bound.cutoff == 9.0)) % 3]
        compile_for_all(text + layout, macros, tmp_path, architectures=(architecture,))


def test_every_kernel_file_is_compiled():
    """Here, and that of levels in test_cuda_msm.py."""
    assert {path.name for path in direct.HERE.glob("*.cu")} == {
        "levels.cu", "cutoff_largebin.cu", "cutoff_smallbin.cu", *(f"direct_{name}.cu" for name in direct.POINTS)}


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
