"""The CUDA engine's mesh sum without a GPU: its kernels compile, and do on the host what the CPU engine does."""

import ctypes
import sys
from functools import partial

import numpy as np
import pytest
import sums
from cuda_kernels import ARCHITECTURES, compile_for_all
from helpers import relative_rms
from messages import Words, naming

from vmdpotential.engines.cuda import ENGINE as CUDA
from vmdpotential.engines.cuda import build, device, fft
from vmdpotential.errors import BackendError, InputError, TaskError
from vmdpotential.extras import install_command
from vmdpotential.grid.lattice import Lattice
from vmdpotential.molecule.cell import Cell
from vmdpotential.splitting.gaussian import gaussian_on_mesh
from vmdpotential.splitting.mesh import over_cell
from vmdpotential.splitting.screened import optimal_for_screened
from vmdpotential.splitting.shifted import optimal_for_cutoff
from vmdpotential.sums.cpu import mesh as cpu
from vmdpotential.sums.cuda import KERNEL_FOLDER, maps, nodes
from vmdpotential.sums.cuda.mean import MeshMean
from vmdpotential.sums.cuda.mesh import MeshSum
from vmdpotential.sums.potential_sum import PotentialSum, prepare_sum
from vmdpotential.sums.result import HostResult

LATTICE = Lattice(np.array([-1.0, 2.0, 0.3]), np.array([0.5, 0.6, 0.7]), (17, 9, 20))
TRICLINIC = Cell.from_parameters(20, 21, 22, 70, 80, 110)
ROTATED = Cell(TRICLINIC.vectors @ np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0])


def random_charges(count=200):
    rng = np.random.default_rng(3)
    charges = rng.normal(size=count)
    return rng.uniform(-3, 17, (count, 3)), charges - charges.mean()


POSITIONS, CHARGES = random_charges()

SCREENED = partial(optimal_for_screened, 7.85)

MESHES = {
    "open": lambda order: sums.mesh_around(LATTICE, POSITIONS, 1.25, order, 3.0),
    "ending": lambda order: sums.mesh_around(LATTICE, POSITIONS, 1.25, order, 3.0, partial(optimal_for_cutoff, 9.0)),
    "periodic": lambda order: over_cell(Cell.from_parameters(20, 21, 22), 1.3, order, 3.0),
    "triclinic": lambda order: over_cell(TRICLINIC, 1.3, order, 3.0),
    "smeared open": lambda order: sums.mesh_around(LATTICE, POSITIONS, 1.25, order, 0.0,
                                                   partial(gaussian_on_mesh, 1.7)),
    "smeared": lambda order: over_cell(TRICLINIC, 1.3, order, 0.0, partial(gaussian_on_mesh, 1.7)),
    "screened open": lambda order: sums.mesh_around(LATTICE, POSITIONS, 1.25, order, 3.0, SCREENED),
    "screened": lambda order: over_cell(Cell.from_parameters(20, 21, 22), 1.3, order, 3.0, SCREENED),
    "rotated": lambda order: over_cell(ROTATED, 1.3, order, 3.0),
}


@pytest.fixture(autouse=True)
def without_pairs(monkeypatch):
    for name in ("sort", "launch"):
        monkeypatch.setattr(maps.Sum, name, lambda *_: None)


def nodes_of(gpu, mesh, precision="single", positions=POSITIONS, charges=CHARGES, lattice=LATTICE, field=False):
    """Return a sum and its job, with the potential on the nodes."""
    work = MeshSum(PotentialSum.split(lattice, mesh, precision, field))
    job = work.prepare(gpu, positions, charges)
    work.sort(job)
    return work, job


def smooth_part(gpu, lattice, mesh, precision, parts=2, field=False):
    """Return a sum, and its maps without the pairs."""
    work, job = nodes_of(gpu, mesh, precision, lattice=lattice, field=field)
    out = np.full((work.maps, *lattice.shape), np.nan, np.float32)
    for slab in maps.slabs(lattice.shape, 2**30, parts, work.maps):
        work.launch(job, slab, out[0, slab.start :].ctypes.data, lattice.size)
    return work, out if field else out[0]


def on_the_cpu(lattice, mesh):
    return cpu.MeshSum(mesh, lattice, "double").maps(POSITIONS, CHARGES, False)


@pytest.mark.slow
@pytest.mark.parametrize("name", MESHES)
@pytest.mark.parametrize(("order", "precision", "accuracy"), [(6, "single", 1e-6), (8, "double", 1e-7)])
def test_the_smooth_part_is_that_of_the_cpu_engine(gpu, name, order, precision, accuracy):
    mesh = MESHES[name](order)
    work, values = smooth_part(gpu, LATTICE, mesh, precision)
    # float64 nodes of a slanted tile are more than a block has room for
    slanted = name in ("triclinic", "smeared")
    assert work.tiled == (name != "rotated" and (slanted, precision) != (True, "double"))
    assert ("interpolate" if work.tiled else "gather") in gpu.used
    assert relative_rms(values, on_the_cpu(LATTICE, mesh)) < accuracy
    taken = sum(array.nbytes for array in (*gpu.buffers.values(), *gpu.kept.values()))
    assert taken <= work.fixed_bytes(len(CHARGES))
    assert np.array_equal(smooth_part(gpu, LATTICE, mesh, precision, 1)[1], values)


@pytest.mark.slow
@pytest.mark.parametrize("name", MESHES)
def test_the_smooth_field_is_that_of_the_cpu_engine(gpu, name):
    mesh = MESHES[name](6)
    _, values = smooth_part(gpu, LATTICE, mesh, "single", field=True)
    expected = cpu.MeshSum(mesh, LATTICE, "double").maps(POSITIONS, CHARGES, True)
    for actual, required in zip(values, expected, strict=True):
        assert relative_rms(actual, required) < 3e-6


@pytest.mark.parametrize(("name", "field"), [
    ("smeared", False), pytest.param("smeared open", True, marks=pytest.mark.slow), ("periodic", True)])
def test_a_mean_is_made_of_charges_on_the_nodes_and_pairs_in_maps(gpu, monkeypatch, name, field):

    def launch(work, job, slab, out, size, stream=None):  # adds the first charge to every map
        if work.work.pairs is not None:
            values = np.ctypeslib.as_array(ctypes.cast(out, ctypes.POINTER(ctypes.c_float)), (work.maps, size))
            values += np.float32(job.charges[0])

    monkeypatch.setattr(maps.Sum, "launch", launch)
    mesh = MESHES[name](6)
    work = MeshSum(PotentialSum.split(LATTICE, mesh, "single", field))
    mean = MeshMean(work, gpu)
    with naming(InputError, Words.NO_FRAMES):
        mean.result()
    expected = np.zeros((work.maps, *LATTICE.shape))
    for number, share in enumerate((1.0, 30.0, 1e-3), 1):
        positions, charges = np.roll(POSITIONS, number, 0), CHARGES * share
        mean.add(positions, charges)
        maps_of_frame = cpu.MeshSum(mesh, LATTICE, "double").maps(positions, charges, field)
        expected += maps_of_frame.reshape(expected.shape) + (charges[0] if mesh.short is not None else 0.0)
        block = mean.result().block
        actual = gpu.kept[block.address][: 4 * expected.size].view(np.float32).reshape(expected.shape)
        for part, required in zip(actual, expected / number, strict=True):
            assert relative_rms(part, required) < 3e-6
    mean.add(np.zeros((0, 3)), np.zeros(0))
    assert mean.count == 4


def test_a_mean_that_does_not_fit_on_the_gpu_is_that_of_maps(gpu, monkeypatch):
    monkeypatch.setattr(gpu, "free", lambda: 1000)
    monkeypatch.setattr(device, "LITTLE", 0)
    work = MeshSum(PotentialSum.split(LATTICE, MESHES["smeared"](6)))
    monkeypatch.setattr(work, "run", lambda positions, charges: HostResult(
        np.full((1, *LATTICE.shape), charges.sum(), np.float32)))
    mean = MeshMean(work, gpu)
    for charge in (1.0, 2.0):
        mean.add(np.ones((1, 3)), np.array([charge]))
    np.testing.assert_array_equal(mean.result().values(), 1.5)


def test_a_lattice_coarser_than_the_mesh_is_gathered_point_by_point(gpu):
    lattice = Lattice(np.array([-1.0, 2.0, 0.3]), 3.0, (5, 4, 3))
    mesh = sums.mesh_around(lattice, POSITIONS, 1.0, 6, 3.0)
    assert relative_rms(smooth_part(gpu, lattice, mesh, "single")[1], on_the_cpu(lattice, mesh)) < 1e-6
    assert "gather" in gpu.used


def test_charges_on_the_nodes_have_the_sum_of_all_whatever_their_order(gpu):
    mesh = MESHES["open"](4)
    _, job = nodes_of(gpu, mesh, "double")
    fixed = gpu.buffers["fixed"].view(np.int64).copy()
    np.testing.assert_allclose(fixed.reshape(mesh.shape) * job.nodes["unit"],
                               cpu.spread(cpu.Basis(mesh.order, True), mesh, POSITIONS, CHARGES), atol=1e-14)
    nodes_of(gpu, mesh, "double", POSITIONS[::-1].copy(), CHARGES[::-1].copy())
    np.testing.assert_array_equal(gpu.buffers["fixed"].view(np.int64), fixed)


@pytest.mark.parametrize("charge", [1e3, -1e-3, 0.0])
def test_fixed_point_holds_all_charges_on_one_node(gpu, charge):
    positions, charges = np.tile(LATTICE.points([[3, 3, 3]]), (200, 1)), np.full(200, charge)
    mesh = sums.mesh_around(LATTICE, positions, 1.0, 4, 3.0)
    _, job = nodes_of(gpu, mesh, "single", positions, charges)
    total = gpu.buffers["fixed"].view(np.int64).sum(dtype=float) * job.nodes["unit"]
    assert total == pytest.approx(charges.sum(), rel=1e-6)


def test_equal_charges_are_not_all_rounded_the_same_way(gpu):
    """In single precision 0.3 and 0.45 are off by different parts of them; a charge left over would shift the map."""
    charges = np.repeat([0.3, -0.45], [1500, 1000])
    positions = np.random.default_rng(5).uniform(0, 15, (2500, 3))
    _, job = nodes_of(gpu, sums.mesh_around(LATTICE, positions, 1.25, 6, 3.0), "single", positions, charges)
    total = gpu.buffers["fixed"].view(np.int64).sum() * job.nodes["unit"]
    assert abs(total) < 6e-9 * np.abs(charges).sum()


@pytest.mark.slow
@pytest.mark.parametrize(("real", "order", "nodal", "architecture"), list(zip(
    ("float", "float", "double"), (4, 8, 6), (0, 1, 0), ARCHITECTURES, strict=True)))
def test_mesh_kernels_compile(real, order, nodal, architecture, tmp_path):
    macros = {"REAL": real, "ORDER": order, "NODAL": nodal}
    same = "".join(f"static_assert({actual} == {expected});\n" for actual, expected in (
        ("sizeof(MeshTask)", nodes.TASK.itemsize), ("TILE", nodes.TILE), ("ATOMS", nodes.ATOMS),
        *((f"__builtin_offsetof(MeshTask, {name})", nodes.TASK.fields[name][1]) for name in nodes.TASK.names)))
    compile_for_all(build.source(KERNEL_FOLDER / "mesh.cu", macros) + same, macros, tmp_path,
                    architectures=(architecture,))


def test_a_mesh_longer_than_a_grid_of_blocks_is_refused():
    far = np.append(POSITIONS[:-1], [[60_000.0, 5, 5]], axis=0)
    mesh = sums.mesh_around(LATTICE, far, 1.25, 6, 3.0)
    with naming(TaskError, "along x "):
        MeshSum(PotentialSum.split(LATTICE, mesh))


def test_what_pyvkfft_lacks_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(fft, "cuda_driver", lambda: None)
    monkeypatch.setitem(sys.modules, "pyvkfft", None)
    with naming(BackendError, "pyvkfft ", install_command("cuda")):
        prepare_sum(CUDA, PotentialSum.split(LATTICE, MESHES["open"](4)))
    assert not CUDA.has_transforms
    monkeypatch.delitem(sys.modules, "pyvkfft")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "pyvkfft").mkdir()
    (tmp_path / "pyvkfft" / "__init__.py").write_text("")
    for text, message in (("raise OSError('libnvrtc.so.13: cannot open')", r"does not work \(libnvrtc.so.13.*build"),
                          ("def VkFFTApp(*a, **k): raise RuntimeError('VkFFT error 4034')",
                           r"transform of 12 x 14 x 15 points fails \(VkFFT error 4034\)")):
        (tmp_path / "pyvkfft" / "cuda.py").write_text(text)
        with pytest.raises(BackendError, match=message) as caught:
            fft.Transform((12, 14, 15), np.dtype(np.float32), None)
        assert "engine=cpu" in str(caught.value)
        for name in ("pyvkfft", "pyvkfft.cuda"):
            monkeypatch.delitem(sys.modules, name, raising=False)
