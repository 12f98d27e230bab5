"""Synchronisation of threads within compiled code: shared counters that threads can wait for, and arrays by address.

Python's locks are too slow for a sum of a few milliseconds, as waiting threads sleep and are woken late. Here threads
stay awake while they wait.
"""

# numba's intrinsics have no annotations that mypy could check
# mypy: ignore-errors

import os

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from vmdpotential.compiling.threads import LINE, STOP

I64 = ir.IntType(64)


def _place(context, builder, sig, arguments):
    """Return the address of an element of an array of counters."""
    return builder.gep(context.make_array(sig.args[0])(context, builder, arguments[0]).data, [arguments[1]])


@intrinsic
def _look(typing, counters, index):
    """Return a number that other threads may write."""

    def codegen(context, builder, sig, arguments):
        return builder.load_atomic(_place(context, builder, sig, arguments), "seq_cst", 8)

    return types.int64(counters, types.int64), codegen


@intrinsic
def _count(typing, counters, index):
    """Add 1 to a number that other threads may write; return what it was."""

    def codegen(context, builder, sig, arguments):
        return builder.atomic_rmw("add", _place(context, builder, sig, arguments), ir.Constant(I64, 1), "seq_cst")

    return types.int64(counters, types.int64), codegen


@intrinsic
def address(typing, number):
    """Return a number as a pointer, of which ``numba.carray`` makes an array."""

    def codegen(context, builder, sig, arguments):
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), codegen


if os.name == "posix":
    _yield = types.ExternalFunction("sched_yield", types.intc())
else:

    @njit
    def _yield():
        return 0


@njit(nogil=True)
def take(counters, counter):
    """Return the number of a counter and increment it: each call takes the next part of some work."""
    return _count(counters, counter * LINE)


@njit(nogil=True)
def stop(counters):
    """Make all threads stop."""
    _count(counters, STOP)


@njit(nogil=True)
def wait(counters, counter, number):
    """Wait until a counter has reached a number; return False if the threads have to stop."""
    while _look(counters, counter * LINE) < number and not _look(counters, STOP):
        _yield()  # to threads that wait for a processor
    return _look(counters, STOP) == 0
