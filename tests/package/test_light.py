"""Commands import little before they compute, and what they have instead of heavy modules gives the same."""

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy import fft
from scipy.interpolate import pchip_interpolate
from scipy.spatial import cKDTree

from vmdpotential.figures.atoms import _bonds
from vmdpotential.grid.lattice import Lattice
from vmdpotential.grid.planes import _monotone_cubic
from vmdpotential.molecule.cell import Cell
from vmdpotential.splitting.mesh import fast_length, over_cell
from vmdpotential.sums.cpu import mesh as cpu_mesh
from vmdpotential.surfaces.region import Surface

MAP = """
import numpy as np, vmdpotential as vp
rng = np.random.default_rng(1)
names = np.full(60, "C"), np.full(60, "LIG"), np.ones(60, int), np.zeros(60, int)
made = vp.Structure(rng.random((60, 3)) * 25, *names, charges=rng.standard_normal(60), cell=vp.Cell(np.eye(3) * 25))
found = vp.potential_map(made, spacing=0.5, medium="explicit")
assert (found.provenance.method, found.provenance.boundary) == ("pme", "periodic")
"""

SLICE = """
import numpy as np, vmdpotential as vp
from vmdpotential.frontend.cli import main
lattice = vp.Lattice((0, 0, 0), (1, 1, 1), (12, 12, 12))
vp.write_map(vp.Grid(lattice, np.arange(1728, dtype="f4").reshape(12, 12, 12) - 800, "kT/e"), "m.dx")
open("s.pdb", "w").write("".join(
    f"HETATM{n:5d}  C   LIG A   1    {n:8.3f}{5:8.3f}{5.5:8.3f}  1.00  0.00           C\\n" for n in range(2, 9)))
assert main(["slice", "m.dx", "--structure", "s.pdb", "--contours", "4", "--dpi", "60", "-o", "m.png"]) == 0
"""

HELP = """
import contextlib
from vmdpotential.frontend.cli import main
with contextlib.suppress(SystemExit):
    main(["--help"])
"""


@pytest.mark.parametrize(("code", "heavy"), [
    (MAP, {"scipy.fft", "scipy.special", "scipy.spatial", "scipy.sparse", "matplotlib", "MDAnalysis", "pandas"}),
    (SLICE, {"scipy", "MDAnalysis", "pandas"}),
    (HELP, {"numpy", "gemmi"}),
])
def test_what_a_command_does_without_is_not_imported(code, heavy, tmp_path):
    code += "\nimport sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert "vmdpotential" in loaded
    assert not loaded & heavy


def test_fast_lengths_are_those_of_scipy():
    assert [fast_length(n) for n in range(1, 1500)] == [fft.next_fast_len(n, True) for n in range(1, 1500)]


def test_a_small_mesh_is_solved_as_a_large_one():
    mesh = over_cell(Cell(np.diag([20.0, 22.0, 25.0])), 1.0, 6, 4.0)
    basis = cpu_mesh.Basis(6, double=False)
    nodes = np.random.default_rng(2).standard_normal(mesh.shape).astype(np.float32)
    actual, expected = (cpu_mesh.solve(basis, mesh, nodes.copy(), None, small) for small in (True, False))
    assert actual.dtype == expected.dtype == np.float32
    np.testing.assert_allclose(actual, expected, rtol=0, atol=2e-6 * np.abs(expected).max())
    fine, coarse = (Lattice((0, 0, 0), (h, h, h), (int(20 / h),) * 3) for h in (0.4, 1.0))
    assert [cpu_mesh.MeshSum(mesh, lattice, "single").small for lattice in (fine, coarse)] == [True, False]


@pytest.mark.parametrize("count", [2, 3, 4, 40])
def test_slices_are_pchip(count):
    rng = np.random.default_rng(count)
    for values in (rng.standard_normal((count, 30)), rng.integers(-2, 3, (count, 30)).astype(float),
                   np.exp(5 * rng.standard_normal((count, 30)))):
        expected = pchip_interpolate(np.arange(count), values, np.linspace(0, count - 1, 4 * (count - 1) + 1), axis=0)
        np.testing.assert_allclose(_monotone_cubic(values, 4), expected, rtol=0, atol=1e-13 * np.abs(values).max())


@pytest.mark.parametrize(("count", "box"), [(1, (9, 9, 3)), (40, (3, 9, 9)), (300, (40, 3, 40)), (6, (1, 1, 1))])
def test_bonds_are_all_close_pairs(count, box):
    rng = np.random.default_rng(count)
    positions, radii = rng.random((count, 3)) * box, rng.choice([1.5, 1.8], count)
    pairs = cKDTree(positions).query_pairs(2.2, output_type="ndarray")
    length = np.linalg.norm(positions[pairs[:, 0]] - positions[pairs[:, 1]], axis=1)
    expected = pairs[length < np.where((radii[pairs] > 1.75).any(1), 2.2, 1.7)]
    assert {tuple(pair) for pair in _bonds(positions, radii).tolist()} == {
        tuple(sorted(pair)) for pair in expected.tolist()}


def test_distances_to_spheres_are_those_of_the_deepest():
    rng = np.random.default_rng(4)
    centres, radii, spacing = rng.random((40, 3)) * 8, rng.choice([2.6, 3.1, 3.4], 40), 0.6
    lattice = Lattice.around(centres, spacing, 5.0)
    result = Surface(centres, radii, 0.0).distances(lattice).ravel()
    expected = (np.linalg.norm(lattice.points().reshape(-1, 1, 3) - centres, axis=2) - radii).min(1)
    sure = expected < spacing
    np.testing.assert_allclose(result[sure], expected[sure], atol=2e-6)
    assert (result[~sure] >= spacing - 1e-5).all()


def test_distances_on_a_lattice_with_few_nodes_along_z_are_those_of_a_larger_one():
    centres, radii = np.random.default_rng(4).random((20, 3)) * 6, np.full(20, 1.6)
    large = Lattice.around(centres, 0.5, 4.0)
    middle = Lattice(large.origin + np.array([0, 0, 3.5]), large.spacing, (*large.shape[:2], 3))
    surface = Surface(centres, radii, 1.4)
    for part, whole in zip(surface.with_ions(middle, 2.0), surface.with_ions(large, 2.0), strict=True):
        near = abs(surface.distances(middle)) < 0.5
        np.testing.assert_allclose(part[near], whole[..., 7:10][near], atol=2e-6)
