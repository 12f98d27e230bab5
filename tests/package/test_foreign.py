"""Methods and an interaction of another package, installed next to ours: by name, by auto, and by verify."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from test_registry import install

FOREIGN = '''
import dataclasses

from vmdpotential import registry
from vmdpotential.sums.potential_sum import PotentialSum
from vmdpotential.interactions import Check, Interaction, Quantity
from vmdpotential.interactions.tracing import exp
from vmdpotential.sums import Estimate, Method, Plan, SumPlan


def radial(r2, rinv, p):
    return rinv * exp(-r2 * rinv / p.length)


FADING = Interaction("fading", radial, [Quantity("length", "A", 3.0, 0.1, 100, "in which it falls to 1/e")],
                     checks=[Check(3.0, 0.36787944117144233 / 3)])


def repulsion(r2, rinv, p):
    return p.a * rinv**9 - p.b * rinv**6


NINE_SIX = Interaction("nine_six", repulsion, pair={"a": 9, "b": 6},
                       checks=[Check(2.0, 2.0 - 1.0, {"a": 1024, "b": 64})])


class Pairs(Method):
    """The sum over all pairs, on any engine, and said to take no time at all."""

    name, summary, boundaries = "pairs", "all pairs", ("open",)

    def estimate(self, request, engine):
        return Estimate(0.0, 0)

    def plan(self, request, engine):
        work = PotentialSum(request.lattice, request.interaction, request.cell, request.precision, request.field)
        return SumPlan(self.name, engine.name, work, self.require(request, engine))


class Near(Pairs):
    """The sum over those within a cutoff."""

    name, boundaries, interaction, cutoff = "near", ("open", "periodic"), "fading", True


class Wrong(Pairs):
    """A sum that forgets a charge."""

    name, field = "wrong", False

    def plan(self, request, engine):
        @dataclasses.dataclass
        class Less(Plan):
            plan: Plan
            error = None
            method, engine, estimate = "wrong", "cpu", Estimate(0.0, 0)

            def run(self, positions, charges, target=None):
                return self.plan.run(positions[1:], charges[1:], target)

        return Less(super().plan(request, engine))


def add():
    registry.register("interaction", "fading", "foreign_sums:FADING")
    registry.register("pair", "nine_six", "foreign_sums:NINE_SIX")
    registry.register("method", "pairs", Pairs())
    registry.register("method", "near", Near())
    registry.register("method", "wrong", Wrong())
'''

MAPS = '''
import sys
import numpy as np
from vmdpotential.maps import potential_map
from vmdpotential.molecule.structure import Structure

rng = np.random.default_rng(5)
positions, charges = rng.uniform(0, 20, (60, 3)), rng.normal(size=60)
made = {"positions": positions, "charges": charges}
for key, method, more in (
    ("auto", "auto", {"medium": "vacuum"}),
    ("field", "pairs", {"field": True, "interaction": "fading"}),
    ("own", "near", {"cutoff": 7.0, "field": True}),
    ("ours", "cutoff", {"interaction": "fading", "cutoff": 7.0, "field": True}),
):
    structure = Structure(positions, np.full(60, "C"), np.full(60, "MOL"), np.ones(60, int), np.zeros(60, int),
                          charges=charges)
    grid = potential_map(structure, method=method, unit="V", spacing=1.7, padding=2, engine="cpu", precision="double",
                         **more)
    made[key] = np.stack([grid.values, *(part.values for part in grid.field or ())])
    made[f"{key} lattice"] = np.stack([grid.lattice.origin, grid.lattice.spacing])
    made[f"{key} is"] = f"{grid.provenance.method} {grid.provenance.interaction}"
from vmdpotential import registry
from vmdpotential.engines import get_engine
from vmdpotential.plugins.pairs.pair_terms import CHARGES_RULE, PairPotential, PairTerm
from vmdpotential.plugins.pairs.in_range import Atoms, PairsInRange

page = registry.get("interaction", "fading").bind().truncated(100.0)
work = PairsInRange(get_engine("cpu"), PairPotential((PairTerm("fading", page, CHARGES_RULE),)))
pairs = work.run(Atoms(positions, {"charge": charges}))
made["forces"], made["energies"] = pairs.forces, pairs.energies
np.savez(sys.argv[1], **made)
'''


@pytest.fixture(scope="module")
def in_other_environment(tmp_path_factory):
    """Run Python with the foreign package installed next to ours."""
    folder = tmp_path_factory.mktemp("foreign")
    install(folder, "foreign_sums", FOREIGN)
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])

    def run(*arguments):
        return subprocess.run([sys.executable, *arguments], capture_output=True, text=True,
                              env=os.environ | {"PYTHONPATH": path})
    return run


@pytest.mark.slow
def test_maps_by_name_by_auto_with_a_cutoff_and_with_a_field(in_other_environment, tmp_path):
    done = in_other_environment("-c", MAPS, str(tmp_path / "maps.npz"))
    assert done.returncode == 0, done.stderr
    made = np.load(tmp_path / "maps.npz")
    ended = "fading (length 3 A, truncated at 7 A)"
    assert {key: str(made[f"{key} is"]) for key in ("auto", "field", "own", "ours")} == {
        "auto": "pairs coulomb", "field": "pairs fading (length 3 A)", "own": f"near {ended}",
        "ours": f"cutoff {ended}"}

    def written_out(key, radial, slope=None):
        """Return the sums of radial(r), and with dV/dr those of the field, in V and V/A."""
        origin, spacing = made[f"{key} lattice"]
        points = origin + np.moveaxis(np.indices(made[key].shape[1:]), 0, -1) * spacing
        d = points[..., None, :] - made["positions"]
        r = np.sqrt((d * d).sum(-1))
        maps = [radial(r) @ made["charges"]]
        if slope is not None:
            maps += list(np.moveaxis(np.einsum("...j,...jx->...x", -slope(r) / r * made["charges"], d), -1, 0))
        return 14.399645 * np.stack(maps)

    def fading(r):
        return np.exp(-r / 3) / r

    def fading_slope(r):
        return -fading(r) * (1 / r + 1 / 3)

    for key, radial, slope in (
            ("auto", lambda r: 1 / r, None), ("field", fading, fading_slope),
            ("own", lambda r: np.where(r < 7, fading(r), 0), lambda r: np.where(r < 7, fading_slope(r), 0))):
        expected = written_out(key, radial, slope)
        np.testing.assert_allclose(made[key], expected, atol=2e-6 * np.abs(expected).max(), err_msg=key)
    np.testing.assert_array_equal(made["own"], made["ours"])
    # the same page in sums over pairs
    d = made["positions"][:, None] - made["positions"]
    r = np.sqrt((d * d).sum(-1)) + np.diag(np.full(60, np.inf))
    both = made["charges"][:, None] * made["charges"]
    np.testing.assert_allclose(made["energies"][:, 0], (both * fading(r)).sum(1) / 2, rtol=1e-11)
    np.testing.assert_allclose(made["forces"], np.einsum("ij,ijx->ix", -both * fading_slope(r) / r, d), rtol=1e-10)


@pytest.mark.slow
def test_verify_checks_them_and_finds_one_that_is_wrong(in_other_environment):
    done = in_other_environment("-m", "vmdpotential", "verify", "--engine", "cpu", "--method", "near", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [row["what"] for row in json.loads(done.stdout)["rows"]]
    assert "fading, the values on its page" in rows
    assert not any(row.startswith(("coulomb,", "probes", "forces", "nine_six")) for row in rows)  # what was named
    assert "near, periodic, single precision, field of fading" in rows
    done = in_other_environment("-m", "vmdpotential", "verify", "--engine", "cpu", "--method", "wrong")
    assert done.returncode == 3
    assert "FAIL  cpu   wrong, open, single precision, coulomb" in done.stdout
