"""A small kernel file, for tests of how compiled kernels are kept."""

from numba import njit

#: Number of weights.
ORDER: int

FAST = {"fastmath": True, "error_model": "numpy", "boundscheck": False, "nogil": True}


@njit(**FAST)
def bspline(t, w):
    """Write the weights of the ORDER nodes around a point, a fraction t above the node below it."""
    w[0] = 1 - t
    w[1] = t
    for k in range(3, ORDER + 1):  # noqa: F821, set by build.load
        d = 1.0 / (k - 1)
        w[k - 1] = d * t * w[k - 2]
        for j in range(1, k - 1):
            w[k - 1 - j] = d * ((t + j) * w[k - 2 - j] + (k - j - t) * w[k - 1 - j])
        w[0] = d * (1 - t) * w[0]


@njit(**FAST)
def table(places, weights):
    """Write the weights at places."""
    for i in range(len(places)):
        bspline(places[i], weights[i])
