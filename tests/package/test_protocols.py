"""Each implementation has all that the interfaces of engines, methods, plans, results, frames and works declare."""

import ast
import inspect
import itertools
import typing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import water

import vmdpotential
from vmdpotential import engines, registry
from vmdpotential.engines import cpu, cuda, get_engine
from vmdpotential.engines.cuda import device
from vmdpotential.frames import average, task
from vmdpotential.frames.statistics import BlockMean, FrameMean, Moments
from vmdpotential.frames.sums import FrameRows, FrameSum, TotalOverFrames
from vmdpotential.grid.lattice import Points
from vmdpotential.io.trajectories.frames import Frames, LoadedFrames, Trajectory
from vmdpotential.maps.solver import ContinuumSolver, SolventRequest, in_solution
from vmdpotential.plugins import historical
from vmdpotential.plugins.continuum import pb
from vmdpotential.plugins.densities import over_frames
from vmdpotential.plugins.fields import field, waves
from vmdpotential.plugins.historical import early, levels, msm_cuda
from vmdpotential.plugins.pairs import over_frames as pairs_over_frames
from vmdpotential.plugins.probes import insertions
from vmdpotential.splitting.mesh import Mesh
from vmdpotential.sums import (
    ChargeStatistics,
    Estimate,
    Method,
    Plan,
    Refusal,
    Request,
    SumPlan,
    ewald,
    pme,
    potential_sum,
    result,
    smooth,
)
from vmdpotential.sums.cpu import at_points as cpu_points
from vmdpotential.sums.cpu import nodes as cpu_sums
from vmdpotential.sums.cuda import anywhere, kernels, maps, mean, mesh, points
from vmdpotential.sums.cuda import result as cuda_result
from vmdpotential.sums.slabs import SlabResult

IMPLEMENTATIONS = {
    engines.Engine: [cpu.CpuEngine, cuda.CudaEngine],
    engines.Device: [device.Gpu],
    potential_sum.Prepared: [cpu_sums.CpuSum, cpu_sums.CpuMeshSum, maps.Sum, mesh.MeshSum, msm_cuda.LevelSum,
                       cpu_points.CpuPoints, points.PairsAtPoints, anywhere.AtPoints, ewald.EwaldSum],
    Plan: [SumPlan, pme.MeshPlan, ewald.EwaldPlan, pb.PbPlan, pb.PbPointPlan, early.EarlyPlan],
    smooth.NodesOfMesh: [levels.Levels, Mesh],
    smooth.SmoothPart: [levels.Levels],
    result.Result: [result.HostResult, cuda_result.DeviceResult, SlabResult, early.TimedResult, pb.ContinuumResult],
    result.Sums: [result.HostSums, cuda_result.DeviceSums],
    result.RunningMean: [result.MeanOfResults, cpu_sums.MeshMean, mean.MeshMean],
    Frames: [Trajectory, LoadedFrames],
    task.FrameTask: [average.MeanMap, over_frames.Densities, field.Fields, insertions.Insertions,
                     pairs_over_frames.PairEnergies, pairs_over_frames.PairCounts, waves.Profiles],
    FrameSum: [BlockMean, FrameMean, Moments, FrameRows, TotalOverFrames, over_frames.NodeSums],
}

METHODS = [*(("method", name) for name in sorted({*registry.available("method"),
                                                  *itertools.chain(*historical.METHODS.values())})),
           *(("solver", name) for name in registry.available("solver"))]


def members(declaration):
    """Return what a protocol, or an abstract class, declares."""
    return {name: value for name, value in vars(declaration).items()
            if not name.startswith("_") and (callable(value) or isinstance(value, property))}


def attributes(kind):
    """Return the names that instances have: of classes, and those that their methods set."""
    names = set(dir(kind)) | {name for base in kind.__mro__ for name in vars(base).get("__annotations__", {})}
    for base in kind.__mro__[:-1]:
        if base.__module__.startswith("vmdpotential"):
            tree = ast.parse(inspect.getsource(base))
            names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)
                      and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name)
                      and node.value.id == "self"}
    return names


@pytest.mark.parametrize(("declaration", "kind"), [
    (declaration, kind) for declaration, kinds in IMPLEMENTATIONS.items() for kind in kinds],
    ids=lambda kind: f"{kind.__module__.removeprefix('vmdpotential.')}.{kind.__name__}")
def test_implementation_has_what_is_declared(declaration, kind):
    present = attributes(kind)
    assert set(typing.get_type_hints(declaration)) | set(members(declaration)) <= present
    for name, declared in members(declaration).items():
        if isinstance(declared, property):
            continue
        implemented = getattr(kind, name)
        ours, theirs = ([value for value in inspect.signature(each).parameters.values() if value.name != "self"]
                        for each in (declared, implemented))
        assert [each.name for each in theirs[: len(ours)]] == [each.name for each in ours], name
        assert all(each.default is not each.empty for each in theirs[len(ours):]), name
        assert [each.default for each in theirs[: len(ours)]] == [each.default for each in ours], name


@pytest.mark.parametrize(("kind", "name"), METHODS)
def test_method_plans_what_it_declares(kind, name):
    """Each target that a method declares gives a plan, or a refusal, and each plan has all that is declared."""
    method, engine, structure = registry.get(kind, name), get_engine("cpu"), water(12)
    assert isinstance(method, Method if kind == "method" else ContinuumSolver)
    assert {"name", "summary"} <= attributes(type(method))
    assert set(method.targets) <= {"grid", "points"}
    for boundary in method.boundaries:
        cell = structure.cell if boundary == "periodic" else None
        lattice = vmdpotential.Lattice(structure.positions.min(0), np.ones(3), (9, 10, 11))
        own = method.interaction if kind == "method" else method.interactions[0]
        bound = registry.get("interaction", own).bind()
        charges = ChargeStatistics.of(structure.positions, structure.charges, cell)
        for target in method.targets:
            where = lattice if target == "grid" else Points(structure.positions[:20])
            request = Request(where, cell, bound, charges, error=1e-3)
            if kind == "solver":
                request = in_solution(request, SolventRequest(method.parameters({}), np.ones(len(structure)), "", 78.5,
                                                              298.15, "kT/e", 1.0))
            elif method.cutoff and bound.cutoff is None:
                request = replace(request, interaction=bound.truncated(8.0))
            answer = method.refusal(request) or method.estimate(request, engine)
            assert isinstance(answer, Estimate | Refusal)
            if isinstance(answer, Refusal):
                continue
            plan = method.plan(request, engine)
            assert isinstance(plan, Plan)
            assert (plan.method, plan.estimate.seconds > 0) == (name, True)
            assert str(plan)


def test_the_gpu_kernels_of_plugins_use_what_is_declared_for_them():
    folder = Path(historical.__file__).parent
    used = set()
    for path in folder.glob("*.py"):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
                    ("vmdpotential.engines.cuda", "vmdpotential.sums.cuda")):
                assert [each.name for each in node.names] == ["kernels"], path.name
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "kernels":
                used.add(node.attr)
    assert used
    assert used <= set(kernels.__all__)


@pytest.mark.parametrize("folder", ["engines", "sums", "frames", "maps", "execution"])
def test_no_feature_is_looked_for_by_its_name(folder):
    """A feature is declared, not discovered; the parts of dataclasses and of foreign arrays are another matter."""
    calls = []
    for path in (Path(vmdpotential.__file__).parent / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("hasattr", "cast"):
                calls.append(f"{path.name}:{node.lineno}")
    assert not calls
