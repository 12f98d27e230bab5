"""What many tests need: engines, errors, charges here and there, and the definition of a sum."""

import contextlib
import importlib.machinery
import importlib.util
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from vmdpotential import registry
from vmdpotential.engines import get_engine
from vmdpotential.errors import BackendError, UsageError
from vmdpotential.frontend import cli
from vmdpotential.interactions import Interaction, Quantity
from vmdpotential.interactions.tracing import erfc, exp, fma, less, maximum, minimum, select, sqrt
from vmdpotential.molecule.samples import water_box
from vmdpotential.molecule.structure import Structure

#: Files of openmmtools, whose import takes almost a second. On machines with a GPU it need not be installed.
TOOLS = Path(getattr(importlib.util.find_spec("openmmtools"), "origin", "openmmtools is not installed")).parent / "data"


def script_module(name):
    """Return a program of the folder scripts, imported as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(Path(__file__).resolve().parents[2] / "scripts" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.modules[name] = module  # dataclasses look it up there
    loader.exec_module(module)
    return module


@contextlib.contextmanager
def refused(parameter, value=""):
    """Assert that a parameter is refused, whatever the words; with a value also that the message repeats it."""
    with pytest.raises(UsageError) as error:
        yield error
    assert error.value.parameter == parameter, str(error.value)
    assert not value or error.value.value == value, str(error.value)


def working(name):
    """Return an engine; one that does not work here is a skip that says why.

    With VMDPOTENTIAL_REQUIRE_GPU=1 in the environment it is a failure.
    """
    try:
        return get_engine(name)
    except BackendError as error:
        if os.environ.get("VMDPOTENTIAL_REQUIRE_GPU", "") not in ("", "0"):
            raise
        pytest.skip(f"no GPU: {error}" if name == "cuda" else str(error))


def slow(cases, which):
    """Return parameters of a test, of which `scripts/test --quick` leaves some out."""
    return [pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=[pytest.mark.slow] * (case in which))
            for case in cases]


def shell(capsys, *words):
    """Run the program: return its exit code, and what it wrote to standard output and to stderr."""
    code = cli.main([str(word) for word in words])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def rms(values):
    return np.sqrt(np.mean(np.square(values, dtype=np.float64)))


def relative_rms(values, reference):
    """Return the error of a map: its rms over that of the reference."""
    reference = np.asarray(reference, np.float64)
    assert np.shape(values) == reference.shape
    return rms(values - reference) / rms(reference)


def relative_errors(values, reference):
    """Return the errors of the potential, and of the field as a vector, of maps (4, ...)."""
    return relative_rms(values[0], reference[0]), relative_rms(values[1:], reference[1:])


def interaction(name, **values):
    return registry.get("interaction", name).bind(**values)


def random_charges(count, low, high, seed=0):
    """Return positions (count, 3) between low and high, and charges (count,) without a sum."""
    rng = np.random.default_rng(seed)
    charges = rng.normal(size=count)
    return rng.uniform(low, high, (count, 3)), charges - charges.mean()


def charges_at(positions, charges, cell=None):
    """Return a structure of atoms of which nothing but places and charges is known."""
    count = len(positions)
    return Structure(np.array(positions, float), np.full(count, "C"), np.full(count, "MOL"), np.ones(count, int),
                     np.zeros(count, int), charges=np.array(charges, float), cell=cell)


def water(edge, cell=None):
    """Return a box of water as a structure."""
    positions, charges = water_box(edge)
    residues = np.arange(len(charges)) // 3
    return Structure(positions, np.tile(["OH2", "H1", "H2"], len(charges) // 3), np.full(len(charges), "TIP3"),
                     residues + 1, residues, charges=charges, cell=cell)


def definition(points, positions, charges, bound, cell=None, field=False):
    """Return the sum at points (P, 3) written out in float64: the potential (P,), or with `field` both (4, P).

    With a cell, every image within the cutoff counts. An atom nearer than 0.01 A makes no field.
    """
    if cell is not None:
        positions, index = cell.images_in_box(positions, points.min(0) - bound.cutoff, points.max(0) + bound.cutoff)
        charges = charges[index]
    result = np.zeros((4, len(points)))
    block = 1 + 100_000 // (len(positions) + 1)  # points at a time, whose pairs stay in a cache
    for part in (slice(first, first + block) for first in range(0, len(points), block)):
        d = [points[part, None, k] - positions[:, k] for k in range(3)]
        r = np.sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2])
        row, atom = np.nonzero(r < (np.inf if bound.cutoff is None else bound.cutoff))
        r, q = r[row, atom], charges[atom]
        far, count = np.maximum(r, 0.01), len(points[part])
        result[0, part] = np.bincount(row, bound(far) * q, count)
        if field:
            slope = np.where(r < 0.01, 0.0, -bound.derivative(far) / far * q)
            for k in range(3):
                result[1 + k, part] = np.bincount(row, slope * d[k][row, atom], count)
    return result if field else result[0]


def _everything(r2, rinv, p):
    """Use every operation, each with both arguments varying and with one; no physics."""
    r = r2 * rinv
    x = r / p.length
    a = fma(r, rinv, -1.0) + minimum(r, p.length) / maximum(sqrt(r2), 0.25 * p.length) - fma(rinv, p.length, x)
    b = select(less(r, p.length), exp(-x), erfc(x) ** 3)
    c = minimum(p.length, 0.5 * r) * maximum(rinv, 1.0 / p.length) - (2.0 - sqrt(x))
    return (a * b - (b - 2.0) / (1.0 + a * a) + c) * rinv


#: Interactions as other packages may bring them: one that uses every operation, and two of the literature.
EVERYTHING = Interaction("everything", _everything, [Quantity("length", "A", 5.0, 0.1, 100, "any")])
FOREIGN = [
    EVERYTHING.bind(),
    Interaction("ewald", lambda r2, rinv, p: erfc(r2 * rinv * p.alpha) * rinv,
                [Quantity("alpha", "1/A", 0.35, 0.01, 10, "splitting")]).bind(),
    Interaction("cubic", lambda r2, rinv, p: rinv - (1.5 - 0.5 * r2 / p.cutoff**2) / p.cutoff,
                [Quantity("cutoff", "A", 6.0, 0.1, 100, "end", ends=True)]).bind(),
]
OURS = [interaction(name) for name in registry.available("interaction")]
