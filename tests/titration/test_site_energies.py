"""Energies of sites against closed forms: Kirkwood's sphere, Born's ion."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.polynomial import legendre

from vmdpotential.engines import get_engine
from vmdpotential.errors import MemoryPlanError
from vmdpotential.plugins.titration.energies import ChargeChange, Solvent, site_energies

RADIUS, ATOM = 10.0, 1.5
PLACES = np.array([[7.9, 0.0, 0.0], [0.0, 6.1, 0.3], [-1.0, -2.0, 2.5], [5.5, 0.5, 5.5]])


def kirkwood(a, b, solvent):
    """Return the reaction potential at a, kT/e, of a unit charge at b in a sphere.

    J. G. Kirkwood, J. Chem. Phys. 2 (1934) 351; C. Tanford, J. G. Kirkwood, J. Am. Chem. Soc. 79 (1957) 5333.
    """
    n, inside, outside = np.arange(120), solvent.inside, solvent.outside
    r, s = np.linalg.norm(a), np.linalg.norm(b)
    terms = (n + 1) * (inside - outside) / (inside * (n * inside + (n + 1) * outside)) * (r * s / RADIUS**2) ** n
    return solvent.constant / RADIUS * legendre.legval(a @ b / (r * s), terms)


def sites_in_a_sphere(solvent, charges):
    """Return the energies of sites at PLACES in a sphere, and charges next to each that do not change."""
    permanent = 0.8 * PLACES
    positions = np.concatenate([np.zeros((1, 3)), PLACES, permanent])
    radii = np.array([RADIUS, *[ATOM] * 4, *[0.0] * 4])
    neutral = np.array([0.0, *[0.0] * 4, 0.3, -0.2, 0.1, -0.4])
    changes = [ChargeChange(n, np.array([1 + n]), np.array([charge]), np.array([1 + n]))
               for n, charge in enumerate(charges)]
    return site_energies(positions, radii, neutral, changes, solvent, get_engine("cpu")), permanent, neutral[5:]


@pytest.mark.parametrize(("inside", "spacing"), [
    (4.0, 1.0), (20.0, 1.0), pytest.param(4.0, 0.5, marks=pytest.mark.slow)])
def test_sites_in_a_sphere(inside, spacing):
    solvent, charges = Solvent(inside=inside, salt=0.0, spacing=spacing), (1.0, -1.0, 1.0, -1.0)
    found, permanent, neutral = sites_in_a_sphere(solvent, charges)
    tolerance = 0.02 * spacing**2  # of the largest, by the second order
    born = 0.5 * solvent.constant / ATOM * (1 / solvent.outside - 1 / inside)
    exact = np.array([0.5 * kirkwood(a, a, solvent) - born for a in PLACES])
    assert found.desolvation == pytest.approx(exact, abs=tolerance * abs(born))
    assert found.errors.max() < 3 * tolerance * abs(born)

    places = list(PLACES)

    def pair(a, b):
        return solvent.constant / (inside * np.linalg.norm(a - b)) + kirkwood(a, b, solvent)

    exact = np.array([[q * p * pair(a, b) if b is not a else 0.0 for b, p in zip(places, charges, strict=True)]
                      for a, q in zip(places, charges, strict=True)])
    assert found.between == pytest.approx(exact, abs=tolerance * abs(exact).max())
    assert np.array_equal(found.between, found.between.T)
    assert found.asymmetry <= tolerance * abs(exact).max()
    exact = np.array([q * sum(p * pair(a, b) for b, p in zip(permanent, neutral, strict=True))
                      for a, q in zip(PLACES, charges, strict=True)])
    assert found.background == pytest.approx(exact, abs=tolerance * abs(exact).max())


def test_salt_screens_sites():
    """More salt, smaller interactions between sites; desolvation hardly changes."""
    found = [sites_in_a_sphere(Solvent(inside=4.0, salt=salt), (1.0, 1.0, 1.0, 1.0))[0] for salt in (0.0, 0.1, 1.0)]
    for less, more in pairwise(found):
        assert (more.between <= less.between).all()
        assert more.between[0, 1] < 0.98 * less.between[0, 1]


def test_a_residue_alone_has_no_shift():
    """All its atoms are those of the model compound, whose lattice has the same nodes."""
    rng = np.random.default_rng(3)
    positions, charges = 2.0 * rng.normal(size=(8, 3)), np.array([0.1, -0.3, 0.2, 0.4, -0.6, 0.3, -0.2, 0.1])
    rows = np.arange(8)
    found = site_energies(positions, np.full(8, 1.6), charges, [ChargeChange(0, rows[:2], np.array([0.6, 0.4]), rows)],
                          Solvent(), get_engine("cpu"))
    assert found.desolvation == pytest.approx([0.0], abs=1e-4)
    assert found.background == pytest.approx([0.0], abs=1e-12)
    assert found.errors == pytest.approx([0.0], abs=1e-4)


def test_a_lattice_that_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "50M")
    far = np.array([[0.0, 0.0, 0.0], [0.0, 6e4, 0.0]])
    change = ChargeChange(0, np.array([0]), np.array([1.0]), np.array([0]))
    with pytest.raises(MemoryPlanError):
        site_energies(far, np.full(2, 2.0), np.zeros(2), [change], Solvent(), get_engine("cpu"))
