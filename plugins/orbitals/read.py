"""Wave functions from files of quantum chemistry programs (Molden, FCHK, WFN, WFX, Molekel ...), read by iodata."""

from __future__ import annotations

import contextlib
import logging
import re
import threading
import warnings
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential import extras, memory
from vmdpotential.errors import InputError, VmdpotentialError, listed_words, one_line, shorten_text
from vmdpotential.units import BOHR

from .overlap import overlap
from .shells import LARGEST_MOMENTUM, Shell, in_monomials
from .wavefunction import Channel, Wavefunction

log = logging.getLogger(__name__)

#: Bytes of memory per byte of a file while it is read.
_FACTOR = 30

#: Largest coordinate (bohr) and limits of exponents (bohr^-2); files with others are taken as damaged.
_LARGEST_COORDINATE, _LARGEST_EXPONENT, _LEAST_EXPONENT = 1e5, 1e12, 1e-6

#: A section of a Molden file about pseudopotentials: lines with an atom's number and the electrons that its potential
#: replaces (Core), or with its element, number, and the charge that is left (Pseudo).
_SECTION = re.compile(r"^[ \t]*\[(core|pseudo)\][^\n]*\n([^\[]*)", re.IGNORECASE | re.MULTILINE)

_patching = threading.Lock()


@lru_cache(maxsize=1)
def _read_version(path: Path, changed: int) -> Wavefunction:
    return read_wavefunction(path)


def read_again(path: Path) -> Wavefunction:
    """Return the wave function in a file; the last one is kept, so that a viewer draws further orbitals quickly.

    Raises
    ------
    VmdpotentialError
        As :func:`read_wavefunction`.
    """
    try:
        return _read_version(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None


def read_wavefunction(path: Path | str) -> Wavefunction:
    """Return the wave function in a file, whose format follows from its name (``.molden``, ``.fchk``, ``.wfn`` ...).

    Raises
    ------
    InputError
        If the file cannot be read, is damaged, has no orbitals, or shells of higher angular momentum than h.
    BackendError
        If iodata is not installed.
    MemoryPlanError
        If the file is too large for the available memory.
    """
    path = Path(path)
    iodata = extras.load_optional("iodata", "files of quantum chemistry", "qm")
    try:
        size = path.stat().st_size
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    if not path.is_file():
        raise InputError(f"{path}: is not a file")
    memory.require(_FACTOR * size, f"reading {path}", "use a smaller basis set")
    try:
        with warnings.catch_warnings(record=True) as notes, np.errstate(all="ignore"), _overlaps(path.name):
            warnings.simplefilter("always")
            data = iodata.load_one(str(path))
            data.atcorenums = _without_cores(path, data.atnums, data.atcorenums)
            result = _converted(path.name, data)
    except VmdpotentialError:
        raise
    except Exception as error:  # parsers raise all kinds of errors for damaged files
        if isinstance(error.__cause__, VmdpotentialError):
            raise error.__cause__ from None
        raise InputError(f"{path}: cannot be read as a wave function ({_reason(error, path)})",
                         "give a whole Molden, FCHK, WFN, WFX or Molekel file, with its usual suffix") from None
    if notes:  # warnings, which repeat the file's name
        texts = (str(note.message).partition("\n")[0].partition(f" ({path}")[0] for note in notes)
        log.warning("%s: %s", path, listed_words(dict.fromkeys(texts), 300))
    return result


@contextlib.contextmanager
def _overlaps(name: str) -> Iterator[None]:
    """Let iodata check the normalisation in Molden files by our overlaps, as its own take up to a minute."""
    from iodata.formats import molden

    def compute(basis: Any, positions: Any) -> NDArray[np.float64]:
        centres = _finite(name, "positions", positions, _LARGEST_COORDINATE)
        return overlap([shell for item in basis.shells for shell in _shells(name, item, basis.conventions, centres)])

    with _patching:
        theirs = molden.compute_overlap
        molden.compute_overlap = compute
        try:
            yield
        finally:
            molden.compute_overlap = theirs


def _without_cores(path: Path, numbers: Any, charges: Any) -> Any:
    """Return the charges of nuclei less the core electrons that a Molden file states apart from its atoms.

    Some programs write the charge that is left among the atoms, and others that of the whole nucleus.
    """
    with open(path, "rb") as file:
        if b"[molden format]" not in file.read(1000).lower():
            return charges
    result = np.array(charges, np.float64)
    for kind, lines in _SECTION.findall(path.read_text("latin-1")):
        for words in (line.replace(":", " ").split() for line in lines.splitlines() if line.strip()):
            try:
                atom, value = int(words[-2]) - 1, float(words[-1])
                whole, known = float(numbers[atom]), float(charges[atom])
            except (ValueError, IndexError):
                raise InputError(f"{path}: its section [{kind}] is not a list of atoms and numbers") from None
            left = value if kind.lower() == "pseudo" else whole - value
            if atom < 0 or not 0 <= left <= whole or known not in (whole, left):
                raise InputError(f"{path}: its sections [Atoms] and [{kind}] disagree about the nucleus of atom "
                                 f"{words[-2]}", "write the file again")
            result[atom] = left
    return result


def _reason(error: Exception, path: Path) -> str:
    """Return the reason of a parser's failure: its message without the file's name, or the unexpected error."""
    first = error.__cause__ or error
    text = one_line(str(first).partition("\n")[0].replace(f" ({path}:", " (line "))
    if isinstance(first, KeyError):
        return f"the entry {shorten_text(text, 80)} is missing"
    return shorten_text(f"{type(first).__name__}: {text}" if error.__cause__ else text or type(first).__name__, 120)


def _converted(name: str, data: Any) -> Wavefunction:
    """Return the wave function that iodata read, after checking all of it."""
    orbitals, basis = data.mo, data.obasis
    if orbitals is None or basis is None or orbitals.coeffs is None:
        raise InputError(f"{name}: contains no orbitals with their basis functions")
    if orbitals.kind == "generalized":
        raise InputError(f"{name}: has orbitals of mixed spin, which cannot be read")
    if orbitals.occs is None:
        raise InputError(f"{name}: does not state the occupations of its orbitals")
    if basis.primitive_normalization != "L2":
        raise InputError(f"{name}: its primitives are not normalised so that their squares integrate to 1")
    centres = _finite(name, "positions", data.atcoords, _LARGEST_COORDINATE)
    shells = tuple(shell for item in basis.shells for shell in _shells(name, item, basis.conventions, centres))
    functions = sum(len(shell.functions) for shell in shells)
    coefficients = _finite(name, "orbital coefficients", orbitals.coeffs, 1e6)
    if coefficients.shape[0] != functions or not functions:
        raise InputError(f"{name}: has {functions} basis functions, but orbitals with {coefficients.shape[0]} "
                         "coefficients")
    energies = None if orbitals.energies is None else np.asarray(orbitals.energies, float)
    if energies is not None and (len(energies) != coefficients.shape[1] or not np.isfinite(energies).all()):
        energies = None
    split, restricted = orbitals.norba, orbitals.kind == "restricted"
    occupations = [_finite(name, "occupations", values, 2.001) for values in (orbitals.occsa, orbitals.occsb)]
    channels = []
    for part, values in zip((slice(split), slice(None) if restricted else slice(split, None)), occupations,
                            strict=True):
        part = slice(None) if restricted else part
        channels.append(Channel(coefficients[:, part], values, None if energies is None else energies[part]))
        if channels[-1].coefficients.shape[1] != len(values):
            raise InputError(f"{name}: has {channels[-1].coefficients.shape[1]} orbitals and {len(values)} occupations")
    numbers = np.asarray(data.atnums, np.int64)
    if len(numbers) != len(centres):
        raise InputError(f"{name}: has {len(numbers)} elements and {len(centres)} positions")
    cores = None if data.atcorenums is None else _finite(name, "charges of nuclei", data.atcorenums, 200)
    if cores is not None and len(cores) != len(numbers):
        raise InputError(f"{name}: has {len(numbers)} elements and {len(cores)} charges of nuclei")
    return Wavefunction(name, numbers, centres * BOHR, shells, channels[0], channels[1], restricted, cores)


def _shells(name: str, shell: Any, conventions: Any, centres: NDArray[np.float64]) -> list[Shell]:
    exponents = _finite(name, "exponents", shell.exponents, _LARGEST_EXPONENT)
    if not len(exponents) or exponents.min() < _LEAST_EXPONENT:
        raise InputError(f"{name}: has a shell without primitives, or an exponent below {_LEAST_EXPONENT:g} bohr^-2")
    if not 0 <= shell.icenter < len(centres):
        raise InputError(f"{name}: has a shell at atom {shell.icenter + 1}, but only {len(centres)} atoms")
    coefficients = _finite(name, "contraction coefficients", shell.coeffs, 1e9)
    results = []
    for momentum, kind, column in zip(shell.angmoms.tolist(), shell.kinds, coefficients.T, strict=True):
        if not 0 <= momentum <= LARGEST_MOMENTUM:
            raise InputError(f"{name}: has a shell of angular momentum {momentum}; s to h shells (0 to "
                             f"{LARGEST_MOMENTUM}) can be computed")
        functions = tuple(conventions[momentum, str(kind)])
        in_monomials(momentum, functions)
        results.append(Shell(centres[shell.icenter], momentum, exponents, column, functions))
    return results


def _finite(name: str, what: str, values: ArrayLike, largest: float) -> NDArray[np.float64]:
    array = np.asarray(values, np.float64)
    if not (np.abs(array) <= largest).all():  # NaN too
        raise InputError(f"{name}: some {what} are not finite numbers, or larger than {largest:g}")
    return array
