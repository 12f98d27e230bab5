"""The CUDA engine's mesh sums at points without a GPU: kernels compile, and do on the host what the CPU engine does."""


import numpy as np
import pytest
from cuda_kernels import ARCHITECTURES, compile_for_all
from helpers import interaction, relative_rms
from test_cuda_mesh import CHARGES, MESHES, POSITIONS

from vmdpotential.engines import get_engine
from vmdpotential.engines.cuda import CudaEngine, build
from vmdpotential.grid.lattice import Points
from vmdpotential.molecule.cell import Cell
from vmdpotential.sums import cpu
from vmdpotential.sums.cuda import KERNEL_FOLDER
from vmdpotential.sums.cuda.anywhere import AtPoints
from vmdpotential.sums.cuda.points import PairsAtPoints
from vmdpotential.sums.ewald.waves import structure_factors
from vmdpotential.sums.potential_sum import PotentialSum

#: In the box that open meshes are planned for, some on atoms, and far outside of periodic cells.
POINTS = np.concatenate([np.random.default_rng(4).uniform([-1, 2, 1], [7, 10, 9], (40, 3)), POSITIONS[:5]])


@pytest.mark.parametrize(("name", "order"), [("open", 6), ("periodic", 4), ("triclinic", 8), ("rotated", 6),
                                             ("screened open", 4), ("screened", 6)])
def test_potential_and_field_are_those_of_the_cpu_engine(gpu, name, order):
    mesh = MESHES[name](order)
    points = POINTS + 0.0
    if mesh.periodic:
        points[::2] += [[70.0, -90.0, 10.0]] @ np.eye(3)
    for pairs in (False, True):
        work = PotentialSum.split(Points(points), mesh, "double", True, pairs)
        actual, expected = (prepare(work).run(POSITIONS, CHARGES) for prepare in (AtPoints, cpu.prepare))
        assert relative_rms(actual.values(), expected.values()) < 1e-6
        assert relative_rms(actual.field(), expected.field()) < 1e-6
    alone = AtPoints(PotentialSum.split(Points(points), mesh)).run(POSITIONS, CHARGES)
    np.testing.assert_array_equal(alone.values(), actual.values())
    assert alone.field() is None


def test_none_of_either(gpu):
    sums = AtPoints(PotentialSum.split(Points(POINTS), MESHES["periodic"](4), field=True))
    assert sums.run(POSITIONS, CHARGES, Points(POINTS[:0])).field().shape == (3, 0)
    assert not sums.run(POSITIONS[:0], CHARGES[:0]).field().any()


@pytest.mark.parametrize("cell", [None, Cell.from_parameters(30, 31, 32, 80, 95, 105), Cell.from_parameters(6, 7, 200)],
                         ids=["open", "triclinic", "thin"])
@pytest.mark.parametrize("field", [False, True], ids=["potential", "field"])
def test_pairs_are_those_of_the_cpu_engine(gpu, cell, field):
    bound = interaction("screened_coulomb").truncated(9.0)
    for summed in (bound, interaction("coulomb")) if cell is None else (bound,):
        work = PotentialSum(Points(POINTS), summed, cell, field=field, distances=True)
        actual, expected = (prepare(work).run(POSITIONS, CHARGES)
                            for prepare in (PairsAtPoints, cpu.prepare))
        np.testing.assert_allclose(actual.values(), expected.values(), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(actual.distances, expected.distances, rtol=1e-9, atol=1e-9)
        assert (actual.field() is None) == (expected.field() is None) == (not field)
        if field:
            np.testing.assert_allclose(actual.field(), expected.field(), rtol=1e-8, atol=1e-8)
    assert actual.values().any()
    assert not PairsAtPoints(PotentialSum(Points(POINTS[:3]), bound, cell, field=field)).run(
        POSITIONS[:0], CHARGES[:0]).values().any()


@pytest.mark.slow
def test_the_kernel_of_pairs_compiles(tmp_path):
    sums = AtPoints(PotentialSum.split(Points(POINTS), MESHES["screened"](6)))
    macros = {"REAL": "double"}
    compile_for_all(build.source(KERNEL_FOLDER / "near.cu", macros, sums.radial), macros, tmp_path,
                    architectures=ARCHITECTURES)


@pytest.mark.parametrize("counts", [(2, 1, 3), (0, 0, 0), (1, 0, 9)])
@pytest.mark.parametrize("atoms", [0, 1, 700])
def test_structure_factors_are_sums_over_atoms(gpu, counts, atoms):
    rng = np.random.default_rng(7)
    fraction, charges = rng.uniform(-3, 3, (atoms, 3)), rng.normal(size=atoms)
    indices = np.stack(np.meshgrid(*(np.arange(-n, n + 1) for n in counts), indexing="ij"), -1)
    expected = np.exp(-2j * np.pi * (indices @ fraction.T)) @ charges
    for engine in (get_engine("cpu"), CudaEngine()):
        actual = structure_factors(fraction, charges, np.array(counts), engine)
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12)
    assert "sum_waves" in gpu.used
