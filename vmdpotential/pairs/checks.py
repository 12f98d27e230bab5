"""Checks of pairs for `verify`: documented values of energies, and forces against an explicit sum."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from vmdpotential import registry
from vmdpotential.engines import Engine
from vmdpotential.engines.pairs import Atoms, PairSum
from vmdpotential.interactions import Interaction
from vmdpotential.interactions.pairs import PairPotential, Term, table
from vmdpotential.interactions.program import evaluate_all
from vmdpotential.pairs import samples


def check_pairs(backend: Engine) -> Iterator[tuple[str, Callable[[], list[tuple[str, float, float]]]]]:
    """Yield checks of pairs: documented values of energies, and forces within a cutoff."""
    for name in registry.available("pair"):
        page: Interaction = registry.get("pair", name)
        if page.checks:
            yield name, partial(_check_energies, backend, page)
    for name in ("rf", "ewald"):
        yield f"pairs, {name}", partial(_check_forces, backend, name)


def _check_energies(backend: Engine, page: Interaction) -> list[tuple[str, float, float]]:
    """Compare the energy of two atoms."""
    own = {q.name for q in page.quantities}
    worst = 0.0
    for check in page.checks:
        bound = page.bind(**{n: v for n, v in check.parameters.items() if n in own})
        bound = bound if bound.cutoff is not None else bound.truncated(2 * check.r)
        tables = {n: np.full((1, 1), float(check.parameters[n])) for n in page.pair}
        atoms = Atoms(np.array([[0.0, 0.0, 0.0], [check.r, 0.0, 0.0]]), types=np.zeros(2, np.int64), tables=tables)
        work = PairSum(PairPotential((Term(page.name, bound, table(page)),)), precision="double", energy=True)
        energies = backend.prepare_pairs(work).run(atoms).energies
        assert energies is not None
        worst = max(worst, abs(float(energies.sum()) - check.value) / (abs(check.value) or 1.0))
    return [(f"{page.name} of two atoms, the values on its page", worst, 1e-9)]


def _check_forces(backend: Engine, name: str) -> list[tuple[str, float, float]]:
    """Compare forces in a box of water with an explicit sum over all pairs in their nearest images."""
    water, cutoff = samples.water(18.6), 9.0
    atoms, potential = water.atoms, samples.potential(name, cutoff)
    result = backend.prepare_pairs(PairSum(potential, water.cell)).run(atoms).forces
    d = water.cell.minimum_image((atoms.positions[:, None] - atoms.positions).reshape(-1, 3))
    d = d.reshape(len(atoms), len(atoms), 3)
    r2 = (d * d).sum(2)
    included = np.ones(r2.shape, bool)
    assert atoms.exclusions is not None
    included[tuple(atoms.exclusions.T)] = included[tuple(atoms.exclusions.T[::-1])] = False
    np.fill_diagonal(r2, np.inf)
    total = np.zeros_like(r2)
    for excluded, mask in ((False, included), (True, ~included)):
        scaled = potential.scaled(excluded=excluded)
        inputs: dict[str, Any] = {f"{side}.{n}": values[index] for n, values in atoms.parameters.items()
                  for side, index in (("i", (slice(None), None)), ("j", (None, slice(None))))}
        inputs |= dict(zip(scaled.program.parameters, scaled.values, strict=True))
        within = mask & (r2 < cutoff**2)
        r2_safe = np.where(within, r2, 1.0)
        slope = evaluate_all(scaled.program, inputs | {"r2": r2_safe, "rinv": 1 / np.sqrt(r2_safe)})[0]
        total += np.where(within, slope, 0.0)
    exact = (total[..., None] * d).sum(1)
    error = float(np.sqrt(((result - exact) ** 2).mean() / (exact**2).mean()))
    return [(f"forces of pairs in range, {name}", error, 5e-6)]
