"""CHARMM parameter files (.prm, .par, .str, .rtf), read by ParmEd (extra ``forcefields``).

Exclusions are those of CHARMM's ``nbxmod 5``: 1-2 and 1-3 pairs, and 1-4 pairs, which have their own parameters.
"""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vmdpotential.arrays import Floats, Integers
from vmdpotential.errors import InputError, listed_words
from vmdpotential.extras import load_optional
from vmdpotential.io.files.text import buffered_stream, format_suffix, read_text, reading_file
from vmdpotential.molecule.nonbonded import Nonbonded, pairs_by_bonds, unique_pairs
from vmdpotential.molecule.structure import Structure, Topology

from . import CHARMM_SUFFIXES

#: Most characters of a line; CHARMM itself reads 200.
_LONGEST = 5000

_E14FAC = re.compile(rb"\be14fac[ \t]+([0-9.]+)", re.IGNORECASE)
_COMMENT = re.compile(rb"!.*")


def nonbonded(structure: Structure, files: Sequence[Path]) -> Nonbonded:
    """Return the nonbonded parameters of atoms by CHARMM's parameters for their types.

    Parameters
    ----------
    structure : Structure
        With a topology that has types and bonds, such as a PSF.
    files : sequence of Path
        Parameter files.

    Raises
    ------
    InputError
        When a file cannot be read, or types have no parameters; all of them are listed.
    BackendError
        When ParmEd is not installed.
    """
    topology, source = structure.topology, structure.sources[-1] if structure.sources else "the structure"
    if topology is None or not len(topology.bonds) or (topology.types == "").any():
        raise InputError(f"{source}: has no atom types, which CHARMM's parameters need",
                         "give the PSF of these atoms as {topology}")
    if "DRUDE" in topology.flags or "anisotropies" in topology.extra.get("terms", {}):
        raise InputError(f"{source}: uses a Drude model, whose polarizable charges are not supported")
    kinds, types = np.unique(topology.types, return_inverse=True)
    result, e14fac = _read(files, all(name.isdigit() for name in kinds.tolist()))
    atoms = [result(name) for name in kinds.tolist()]
    missing = [name for name, atom in zip(kinds.tolist(), atoms, strict=True) if atom is None or atom.epsilon is None]
    names = ", ".join(path.name for path in files)
    if missing:
        raise InputError(f"{listed_words([names], 60)}: no Lennard-Jones for the types {listed_words(missing, 120)}",
                         "give the parameter files that define them too")
    c6, c12 = _table(atoms, result.geometric, False)
    c6_14, c12_14 = _table(atoms, result.geometric, True)
    for i, first in enumerate(atoms):
        for j, second in enumerate(atoms[: i + 1]):
            special = result.special(first.name, second.name)
            if special:
                rmin, epsilon, rmin14, epsilon14 = special
                c6[i, j], c12[i, j] = _coefficients(rmin, epsilon)
                c6_14[i, j], c12_14[i, j] = _coefficients(rmin14, epsilon14)
                for table in (c6, c12, c6_14, c12_14):
                    table[j, i] = table[i, j]
    exclusions, pairs14 = _pairs(topology)
    kind = tuple(types[pairs14].T)
    return Nonbonded(
        source=f"CHARMM {names}", names=tuple(kinds.tolist()), types=types.reshape(-1), c6=c6, c12=c12,
        exclusions=exclusions, pairs14=pairs14, c6_14=c6_14[kind], c12_14=c12_14[kind],
        charges14=np.full(len(pairs14), e14fac),
    )


def ion_parameters(path: Path, ions: Structure, types: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return sigma, A, and epsilon, kcal/mol, of the types that a file has; raises the errors of :func:`nonbonded`."""
    result = _read([buffered_stream(path)], False)[0]
    atoms = {name: atom for name in types if (atom := result(name)) is not None and atom.epsilon is not None}
    return {name: (float(atom.sigma), abs(float(atom.epsilon))) for name, atom in atoms.items()}


class _Types(dict[str, Any]):
    """Types by name, into which ParmEd puts the parameters that it reads.

    An ordinary dictionary would lose parameters: ParmEd creates types only for MASS lines, drops all parameters after
    the first type without one, and replaces a type, without its parameters, when its MASS line is repeated.
    """

    def __init__(self, make: Any) -> None:
        self.make = make

    def __missing__(self, name: str) -> Any:
        self[name] = self.make(name, None, 0.0)
        return self[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in self:
            super().__setitem__(name, value)


class _Parameters:
    """Parameters of types, and of special pairs of types, that were read from files."""

    def __init__(self, parameters: Any) -> None:
        self.parameters = parameters
        self.geometric = parameters.combining_rule == "geometric"

    def __call__(self, name: str) -> Any:
        """Return a type by its name or number, or None."""
        if name.isdigit() and int(name) in self.parameters.atom_types_int:
            name = self.parameters.atom_types_int[int(name)].name
        return self.parameters.atom_types_str.get(name.upper())

    def special(self, first: str, second: str) -> Any:
        """Return Rmin and epsilon of a special pair (NBFIX), and those of its 1-4 pairs, or None."""
        return self.parameters.atom_types_str[first].nbfix.get(second)


def _read(files: Sequence[Path], numbered: bool) -> tuple[_Parameters, float]:
    """Return the parameters, and the scale factor of charges in 1-4 pairs (e14fac)."""
    load_optional("parmed", f"{files[0]}: CHARMM's parameters", "forcefields")
    from parmed import AtomType
    from parmed.charmm import CharmmParameterSet

    parameters = CharmmParameterSet()
    parameters.atom_types_str = _Types(AtomType)
    factors = {}
    for path in sorted(files, key=lambda path: CHARMM_SUFFIXES.index(format_suffix(path))):
        kind = format_suffix(path)
        is_topology = kind == ".rtf" or (kind == ".inp" and "top" in path.name.lower())
        with reading_file(path), warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
            warnings.simplefilter("ignore")
            data = read_text(path)
            _check_lines(path, data)
            for match in _E14FAC.finditer(_COMMENT.sub(b"", data)):
                factors[float(match[1])] = path
            if is_topology and not numbered:  # needed only for the numbers of types
                continue
            # ParmEd gets a plain ASCII copy: comments are in any encoding, and compressed files may be of any size
            plain = Path(folder) / f"parameters{kind}"
            plain.write_text(data.decode("ascii", "replace"), encoding="ascii", errors="replace")
            read = (parameters.read_topology_file if is_topology else
                    parameters.read_stream_file if kind == ".str" else parameters.read_parameter_file)
            read(str(plain))
    if len(factors) > 1:
        names, values = listed_words([path.name for path in factors.values()],
                                     80), listed_words([f"{x:g}" for x in factors], 40)
        raise InputError(f"{names}: scale charges of 1-4 pairs differently (e14fac {values})", "give files that agree")
    return _Parameters(parameters), next(iter(factors), 1.0)


def _check_lines(path: Path, data: bytes) -> None:
    """Raise InputError for a line that is too long, because ParmEd's patterns take time quadratic in its length."""
    number = next((n for n, line in enumerate(data.split(b"\n"), 1) if len(line) > _LONGEST), 0)
    if number:
        raise InputError(f"{path}: line {number} has more than {_LONGEST} characters", "correct or divide that line")


@np.errstate(all="ignore")  # numbers that are not finite are rejected later
def _table(atoms: Sequence[Any], geometric: bool, is14: bool) -> tuple[Floats, Floats]:
    half = np.array([atom.rmin_14 if is14 else atom.rmin for atom in atoms], np.float64)
    epsilon = np.abs(np.array([atom.epsilon_14 if is14 else atom.epsilon for atom in atoms], np.float64))
    rmin = 2 * np.sqrt(np.outer(half, half)) if geometric else half[:, None] + half
    return _coefficients(rmin, np.sqrt(np.outer(epsilon, epsilon)))


@np.errstate(all="ignore")
def _coefficients(rmin: Any, epsilon: Any) -> tuple[Any, Any]:
    """Return c6 and c12 of the Lennard-Jones potential with its minimum -epsilon at rmin."""
    rmin6 = np.asarray(rmin, np.float64) ** 6
    return 2 * epsilon * rmin6, epsilon * rmin6 * rmin6


def _pairs(topology: Topology) -> tuple[Integers, Integers]:
    """Return exclusions and 1-4 pairs by bonds, with the additional exclusions that the PSF lists (NNB)."""
    count, terms = len(topology.types), topology.extra.get("terms", {})
    bonds = topology.bonds
    if len(terms.get("lone_pairs", ())):
        bonds = _with_lone_pairs(bonds, terms["lone_pairs"][:, :2], count)
    exclusions, pairs14 = pairs_by_bonds(bonds, count)
    if not len(terms.get("exclusions", ())):
        return exclusions, pairs14
    additional = unique_pairs(terms["exclusions"], count)
    excluded14 = np.isin(pairs14 @ [count, 1], additional @ [count, 1])
    return unique_pairs(np.concatenate([exclusions, additional]), count), pairs14[~excluded14]


def _with_lone_pairs(bonds: Integers, pairs: Integers, count: int) -> Integers:
    """Return bonds, with bonds added for unbonded lone pairs so that these have the exclusions of their first hosts."""
    from scipy.sparse import csr_matrix

    pairs = pairs[~np.isin(pairs[:, 0], bonds)]
    both = np.concatenate([bonds, bonds[:, ::-1]])
    near = csr_matrix((np.ones(len(both)), tuple(both.T)), shape=(count, count))
    result = (csr_matrix((np.ones(len(pairs)), tuple(pairs.T)), shape=(count, count)) @ near).tocoo()
    return np.concatenate([bonds, pairs, np.stack([result.row, result.col], axis=1).astype(np.int64)])
