"""Checks of pairs for `verify`: documented values of energies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from vmdpotential import registry
from vmdpotential.engines import Engine
from vmdpotential.engines.pairs import Atoms, PairSum
from vmdpotential.interactions import Interaction
from vmdpotential.interactions.pairs import PairPotential, PairTerm, table_rule


def check_pairs(backend: Engine) -> Iterator[tuple[str, Callable[[], list[tuple[str, float, float]]]]]:
    """Yield checks of pairs: documented values of energies."""
    for name in registry.available("pair"):
        page: Interaction = registry.get("pair", name)
        if page.checks:
            yield name, partial(_check_energies, backend, page)


def _check_energies(backend: Engine, page: Interaction) -> list[tuple[str, float, float]]:
    """Compare the energy of two atoms."""
    own = {q.name for q in page.quantities}
    worst = 0.0
    for check in page.checks:
        bound = page.bind(**{n: v for n, v in check.parameters.items() if n in own})
        bound = bound if bound.cutoff is not None else bound.truncated(2 * check.r)
        tables = {n: np.full((1, 1), float(check.parameters[n])) for n in page.pair}
        atoms = Atoms(np.array([[0.0, 0.0, 0.0], [check.r, 0.0, 0.0]]), types=np.zeros(2, np.int64), tables=tables)
        work = PairSum(PairPotential((PairTerm(page.name, bound, table_rule(page)),)), precision="double", energy=True)
        energies = backend.prepare_pairs(work).run(atoms).energies
        assert energies is not None
        worst = max(worst, abs(float(energies.sum()) - check.value) / (abs(check.value) or 1.0))
    return [(f"{page.name} of two atoms, the values on its page", worst, 1e-9)]
