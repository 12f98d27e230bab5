"""Kernels of sums at arbitrary points, in float64, over the nearest image of every atom.

This module is compiled as a copy, see :mod:`vmdpotential.engines.cpu.build`.
"""

# numba's kernels have no annotations that mypy could check
# mypy: ignore-errors

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from vmdpotential.engines.cpu.current import MASKED, PRECISION, PROGRAM
from vmdpotential.engines.cpu.simd import Vector, constant, pointer
from vmdpotential.interactions.tracing import run as run_program

assert PRECISION == "double"
BLOCK = 64  # points whose sums are carried through all atoms together

FAST = {"fastmath": True, "error_model": "numpy", "boundscheck": False, "nogil": True, "cache": True}


@intrinsic
def radial(typing, r2, rinv, values):
    """Return the traced potential at one distance; the loop around it is vectorised by LLVM."""
    signature = types.float64(types.float64, types.float64, values)

    def codegen(context, builder, sig, arguments):
        v = Vector(builder, 64, 1)
        p_values = pointer(context, builder, sig.args[2], arguments[2], v.element)
        inputs = {"r2": arguments[0], "rinv": arguments[1]}
        for k, name in enumerate(PROGRAM.parameters):
            inputs[name] = v.load_one(p_values, constant(k))
        return run_program(PROGRAM, v, inputs)[len(PROGRAM.steps) - 1]

    return signature, codegen


@njit(**FAST)
def run(px, py, pz, x, y, z, q, basis, inverse, shifts, values, soft2, cutoff2, out, first_block, last_block):
    """Sum all atoms at the points of some blocks.

    basis (3, 3): lattice vectors as rows, inverse its inverse (zeros: not periodic). shifts (S, 3):
    displacements to images that may be nearer than the rounded one, none for an orthogonal cell.
    """
    dx, dy, dz = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    r2, sums = np.empty(BLOCK), np.empty(BLOCK)
    orthogonal = len(shifts) == 0
    for block in range(first_block, last_block):
        first = block * BLOCK
        count = min(BLOCK, len(px) - first)
        bx, by, bz = px[first : first + count], py[first : first + count], pz[first : first + count]
        for i in range(BLOCK):
            sums[i] = 0
        for j in range(len(x)):
            xj, yj, zj, qj = x[j], y[j], z[j], q[j]
            if orthogonal:
                for i in range(count):
                    a, b, c = bx[i] - xj, by[i] - yj, bz[i] - zj
                    a -= np.rint(a * inverse[0, 0]) * basis[0, 0]
                    b -= np.rint(b * inverse[1, 1]) * basis[1, 1]
                    c -= np.rint(c * inverse[2, 2]) * basis[2, 2]
                    r2[i] = a * a + b * b + c * c
            else:
                for i in range(count):
                    a, b, c = bx[i] - xj, by[i] - yj, bz[i] - zj
                    u = np.rint(a * inverse[0, 0] + b * inverse[1, 0] + c * inverse[2, 0])
                    v = np.rint(a * inverse[0, 1] + b * inverse[1, 1] + c * inverse[2, 1])
                    w = np.rint(a * inverse[0, 2] + b * inverse[1, 2] + c * inverse[2, 2])
                    a -= u * basis[0, 0] + v * basis[1, 0] + w * basis[2, 0]
                    b -= u * basis[0, 1] + v * basis[1, 1] + w * basis[2, 1]
                    c -= u * basis[0, 2] + v * basis[1, 2] + w * basis[2, 2]
                    dx[i], dy[i], dz[i] = a, b, c
                    r2[i] = a * a + b * b + c * c
                for k in range(len(shifts)):
                    sx, sy, sz = shifts[k, 0], shifts[k, 1], shifts[k, 2]
                    for i in range(count):
                        a, b, c = dx[i] + sx, dy[i] + sy, dz[i] + sz
                        r2[i] = min(r2[i], a * a + b * b + c * c)
            for i in range(count):
                s = max(r2[i], soft2)
                term = qj * radial(s, 1 / np.sqrt(s), values)
                if MASKED:
                    term = term if s < cutoff2 else 0.0
                sums[i] += term
        for i in range(count):
            out[first + i] = sums[i]
