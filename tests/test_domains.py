"""exp and erfc of radial functions, at the ends of what single precision holds: numpy, C and vector code agree."""

import numpy as np
import pytest
from cuda_kernels import traced_on_the_host
from scipy import special

from vmdpotential.engines import LatticeSum, get_engine
from vmdpotential.grid.lattice import Lattice
from vmdpotential.interactions import Interaction, Quantity, tracing
from vmdpotential.interactions.tracing import erfc, exp

#: Where the argument of the function is zero.
MIDDLE = {"exp": 14.0, "erfc": 14.0}
FUNCTIONS = {
    "exp": lambda r2, rinv, p: exp((r2 - p.middle**2) / p.width**2) * rinv * 1e-19,  # 1e38 charges would not fit
    "erfc": lambda r2, rinv, p: erfc((r2 * rinv - p.middle) / p.width) * rinv,
}
#: Distances at and around the ends of the domain of exp, and far beyond.
ENDS = np.sqrt(MIDDLE["exp"] ** 2 + np.array([-195.9, -88.0, -87.01, -87.0, -86.5, -1.0, 0.0, 1.0, 86.9, 87.99, 88.0,
                                              88.2, 89.2, 100.0, 1e4]))
DISTANCES = {"exp": ENDS, "erfc": np.array([0.05, 1.0, 4.6, 4.8, 9.0, 13.9, 14.0, 14.1, 20.0, 23.2, 23.4, 30.0, 1e4])}
#: Of the values; in single precision the arguments are rounded.
TOLERANCE = {"float": 2e-5, "double": 1e-11}


def bound(name):
    return Interaction(name, FUNCTIONS[name], [
        Quantity("middle", "A", MIDDLE[name], 0.1, 1000, "any"), Quantity("width", "A", 1.0, 0.1, 10, "any")]).bind()


def expected(name, r):
    if name == "exp":
        return np.exp(np.clip(r * r - MIDDLE[name] ** 2, *tracing.EXP_DOMAIN)) / r * 1e-19
    return special.erfc(r - MIDDLE[name]) / r


@pytest.mark.parametrize("name", FUNCTIONS)
def test_numpy(name):
    np.testing.assert_allclose(bound(name)(DISTANCES[name]), expected(name, DISTANCES[name]), rtol=1e-11)


@pytest.mark.parametrize("real", ["float", "double"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_c_on_the_host(name, real):
    r = DISTANCES[name]
    zero = 1e-6 if name == "erfc" else 0.0  # in single precision its tail is not held
    np.testing.assert_allclose(traced_on_the_host(bound(name), 1.0, real, False, r), expected(name, r),
                               rtol=TOLERANCE[real], atol=zero)
    slopes = traced_on_the_host(bound(name), 1.0, real, True, r)
    assert np.isfinite(slopes).all()
    inside = np.abs((r * r)[:, None] - MIDDLE[name] ** 2 - tracing.EXP_DOMAIN).min(1) > 0.1  # ends have no derivative
    np.testing.assert_allclose(slopes[inside], (bound(name).derivative(r) / (2 * r))[inside],
                               rtol=2 * TOLERANCE[real], atol=max(zero, 1e-39))


@pytest.mark.slow
@pytest.mark.parametrize(("precision", "field"), [("single", True), ("double", False)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_cpu_engine(name, precision, field):
    """One atom, and points along x."""
    lattice = Lattice(np.array([0.5, 0.0, 0.0]), np.array([0.25, 8.0, 8.0]), (100, 1, 1))
    of = bound(name)
    r = lattice.points()[:, 0]
    result = get_engine("cpu").prepare(LatticeSum(lattice, of, precision=precision, field=field)).run(
        np.zeros((1, 3)), np.ones(1))
    np.testing.assert_allclose(result.values()[:, 0, 0], expected(name, r), rtol=2e-5, atol=1e-6)
    if field:
        assert np.isfinite(result.field()).all()
