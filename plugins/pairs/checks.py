"""Checks of pairs for `verify`: documented values of energies, Generalized Born by its definition, binding of ions."""

from __future__ import annotations

import numpy as np

from vmdpotential import registry
from vmdpotential.engines import Engine
from vmdpotential.interactions import Interaction
from vmdpotential.molecule.structure import Structure
from vmdpotential.units import coulomb_constant, debye_length

from .binding import binding_energy
from .generalized_born import MODELS, GeneralizedBorn
from .in_range import Atoms, PairsInRange
from .pair_terms import PairPotential, PairTerm, table_rule


def check_pairs(backend: Engine, seed: int) -> list[tuple[str, float, float]]:
    """Return what was compared, the relative errors and their limits; random atoms are the same for any seed."""
    pages: list[Interaction] = [registry.get("pair", name) for name in registry.available("pair")]
    return [*_check_born(backend), *_check_binding(backend),
            *(row for page in pages if page.checks for row in _check_energies(backend, page))]


def _check_energies(backend: Engine, page: Interaction) -> list[tuple[str, float, float]]:
    """Compare the energy of two atoms."""
    own = {q.name for q in page.quantities}
    worst = 0.0
    for check in page.checks:
        bound = page.bind(**{n: v for n, v in check.parameters.items() if n in own})
        bound = bound if bound.cutoff is not None else bound.truncated(2 * check.r)
        tables = {n: np.full((1, 1), float(check.parameters[n])) for n in page.pair}
        atoms = Atoms(np.array([[0.0, 0.0, 0.0], [check.r, 0.0, 0.0]]), types=np.zeros(2, np.int64), tables=tables)
        potential = PairPotential((PairTerm(page.name, bound, table_rule(page)),))
        energies = PairsInRange(backend, potential).run(atoms).energies
        assert energies is not None
        worst = max(worst, abs(float(energies.sum()) - check.value) / (abs(check.value) or 1.0))
    return [(f"{page.name} of two atoms, the values on its page", worst, 1e-9)]


def _check_born(backend: Engine) -> list[tuple[str, float, float]]:
    """Compare the energies of random atoms with sums in numpy."""
    rng, count = np.random.default_rng(1990), 150
    positions = 2.0 * np.argwhere(np.ones((5, 6, 5))) + rng.uniform(-0.3, 0.3, (count, 3))
    radii, scales = rng.uniform(1.2, 1.9, count), rng.uniform(0.7, 1.0, count)
    shapes = np.tile([1.0, 0.8, 4.85], (count, 1))
    born = GeneralizedBorn(MODELS["obc2"], rng.normal(size=count), radii, scales, shapes, np.zeros(count, np.int64),
                           np.zeros((2, 1, 1)), 1.0, 78.5, 0.1, backend.name)
    r = np.sqrt(((positions[:, None] - positions) ** 2).sum(2))
    np.fill_diagonal(r, 1.0)
    own, other = (radii - born.model.offset)[:, None], ((radii - born.model.offset) * scales)[None]
    low, high = np.maximum(own, abs(r - other)), r + other
    integrals = 0.5 * (
        1 / low - 1 / high + 0.25 * (r - other**2 / r) * (high**-2 - low**-2) + 0.5 * np.log(low / high) / r)
    integrals[(own >= high) | np.eye(count, dtype=bool)] = 0.0
    product = np.outer(*[born.born_radii(integrals.sum(1))] * 2)
    np.fill_diagonal(r, 0.0)
    f = np.sqrt(r**2 + product * np.exp(-(r**2) / (4 * product)))
    exact = -0.5 * coulomb_constant("kcal/mol/e") * (
        np.outer(born.charges, born.charges) * (1 / born.inside - np.exp(-born.kappa * f) / born.outside) / f).sum(1)
    error = float(np.abs(born.energies(positions) - exact).max() / np.abs(exact).max())
    return [("Generalized Born energies of 150 atoms, their definition", error, 1e-7)]


def _check_binding(backend: Engine) -> list[tuple[str, float, float]]:
    """Compare an ion that enters the centre of a charged ball with Born's closed form in a solution of ions."""
    radii, charges, names = np.array([6.0, 2.0]), np.array([0.7, 1.0]), np.array(["A", "B"])
    inside, outside, salt, temperature = 2.0, 78.5, 0.15, 298.15
    ions = Structure(np.zeros((2, 3)), names, names, np.arange(2), np.arange(2), charges=charges, radii=radii)
    bound = binding_energy(ions, np.array([0]), np.array([1]), parameters={"inside": inside, "salt": salt},
                           dielectric=outside, temperature=temperature, engine=backend.name)
    kappa, reach = 1 / debye_length(salt, temperature, outside), radii + 2.0  # of the ions' centres
    potentials = coulomb_constant("kcal/mol/e") * (
        (1 / outside - 1 / inside) / radii - kappa / (1 + kappa * reach) / outside)  # of 1 e, in each ball
    exact = np.array([charges.prod() * potentials[0], 0.5 * charges[1] ** 2 * (potentials[0] - potentials[1])])
    errors = np.array([bound.screening, bound.desolvation[1]]) / exact - 1
    return [("binding of an ion in a ball by pb, closed form", float(np.abs(errors).max()), 2e-2)]
