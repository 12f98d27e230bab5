"""Lennard-Jones parameters, exclusions and 1-4 pairs of a GROMACS TPR, collected while MDAnalysis reads the file.

MDAnalysis parses these parts of a TPR and discards them; its functions are wrapped here to keep them.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from vmdpotential import memory, units
from vmdpotential.arrays import Floats, Integers
from vmdpotential.errors import InputError
from vmdpotential.molecule.nonbonded import Nonbonded, positions_of, unique_pairs
from vmdpotential.molecule.structure import Names

#: Factors from kJ/mol nm^6 to kcal/mol A^6, and from kJ/mol nm^12 to kcal/mol A^12.
_C6, _C12 = 1e6 / units.CALORIE, 1e12 / units.CALORIE
_HINT = "compute it with GROMACS"

#: Version of TPR files from which on there may be interactions between molecules.
INTERMOLECULAR = 103

log = logging.getLogger(__name__)

_patching = threading.Lock()


@dataclass
class Molecule:
    """Nonbonded parameters of a molecule type in a TPR, with atoms counted from its first."""

    types: Integers
    exclusions: Integers = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    pairs14: Integers = field(default_factory=lambda: np.zeros((0, 3), np.int64))  # number of the function, atoms
    cross_terms: Integers = field(default_factory=lambda: np.zeros((0, 5), np.int64))
    others: tuple[str, ...] = ()
    perturbed: bool = False


@dataclass
class TprParameters:
    """Data collected from a TPR while MDAnalysis reads it."""

    molecules: dict[str, Molecule] = field(default_factory=dict)
    functions: list[list[float]] = field(default_factory=list)
    general: Any = None

    def nonbonded(self, names: Names, starts: Integers, labels: Names, path: str) -> Nonbonded:
        """Return the nonbonded parameters of a system of molecules.

        Parameters
        ----------
        names : (M,) str
            Names of the molecules' types.
        starts : (M,) int64
            First atom of each molecule.
        labels : (N,) str
            Names of the atoms' types.
        path : str
            The file, for errors.

        Raises
        ------
        InputError
            When the file has other pair potentials than Lennard-Jones, or 1-4 pairs with their own charges.
        """
        count, kinds = len(labels), self.general.atnr
        if any(len(values) != 2 for values in self.functions[: kinds**2]):
            raise InputError(f"{path}: has Buckingham potentials, which are not supported", _HINT)
        if self.general.reppow != 12:
            raise InputError(f"{path}: has the repulsion exponent {self.general.reppow:g}, not 12", _HINT)
        others = sorted({name for kind in set(names.tolist()) for name in self.molecules[kind].others})
        if any(not (0 <= kind.pairs14[:, 1:].min(initial=0) <= kind.pairs14[:, 1:].max(initial=0) < len(kind.types))
               for kind in self.molecules.values()):
            raise InputError(f"{path}: lists atoms in 1-4 pairs that its molecules do not have", "write it again")
        if others:
            raise InputError(
                f"{path}: has pairs with own charges ({', '.join(others)}), which are not supported", _HINT)
        if any(self.molecules[name].perturbed for name in set(names.tolist())):
            log.warning("%s: has a second state of molecules (for free energies); the first one is used", path)
        first_atoms = {name: starts[names == name] for name in self.molecules}
        pairs_of = {name: len(kind.exclusions) + len(kind.pairs14) for name, kind in self.molecules.items()}
        number = sum(len(first_atoms[name]) * number for name, number in pairs_of.items())
        memory.require(150 * number, f"reading {path}", "take a smaller system")
        table = np.array(self.functions[: kinds**2]).reshape(kinds, kinds, 2) * (_C6, _C12)
        table = (table + table.transpose(1, 0, 2)) / 2
        types = np.zeros(count, np.int64)
        pairs, rows = [np.zeros((0, 2), np.int64)], [np.zeros((0, 3), np.int64)]
        for name, kind in self.molecules.items():
            types[first_atoms[name][:, None] + np.arange(len(kind.types))] = kind.types
            pairs.append((first_atoms[name][:, None, None] + kind.exclusions).reshape(-1, 2))
            rows.append((first_atoms[name][:, None, None] * [0, 1, 1] + kind.pairs14).reshape(-1, 3))
        excluded, entry = unique_pairs(np.concatenate(pairs), count), np.concatenate(rows)
        pairs14 = np.sort(entry[:, 1:], axis=1)
        order = np.lexsort(pairs14.T[::-1])
        pairs14 = pairs14[order]
        own = np.array([self.functions[k][:2] for k in entry[order, 0]]).reshape(-1, 2) * (_C6, _C12)
        charges = np.full(len(pairs14), shortest_decimals([self.general.fudgeQQ])[0])
        # a 1-4 pair that is not excluded is summed twice by GROMACS: as a 1-4 pair, and as an ordinary pair
        twice = positions_of(pairs14, excluded, count) < 0
        twice[1:] &= (np.diff(pairs14, axis=0) != 0).any(1)  # only for the first of several functions of a pair
        if twice.any():
            own[twice] += table[types[pairs14[twice, 0]], types[pairs14[twice, 1]]]
            charges[twice] += 1
            excluded = unique_pairs(np.concatenate([excluded, pairs14]), count)
        used, first = np.unique(types, return_index=True)
        known = dict(zip(used.tolist(), labels[first].tolist(), strict=True))
        return Nonbonded(
            source="tpr", names=tuple(known.get(k) or f"type {k + 1}" for k in range(kinds)), types=types,
            c6=table[..., 0], c12=table[..., 1], exclusions=excluded, pairs14=pairs14,
            c6_14=own[:, 0], c12_14=own[:, 1], charges14=charges,
        )


def _excluded(ends: list[int], partners: list[int], count: int) -> Integers:
    """Return the excluded pairs of a molecule; `partners` of atom i are those from ends[i] to ends[i + 1]."""
    sizes = np.diff(ends).astype(np.int64)
    if (sizes < 0).any() or sizes.sum() != len(partners):
        raise ValueError("its exclusions disagree with their counts")
    pairs = np.stack([np.repeat(np.arange(len(sizes)), sizes), np.array(partners, np.int64)], axis=1)
    # gmx convert-tpr keeps exclusions of atoms that it has removed
    return pairs[((pairs >= 0) & (pairs < count)).all(1)]


def shortest_decimals(values: Any) -> Floats:
    """Return numbers stored in single precision as the shortest decimals that round to them: -0.3 for -0.30000001.

    The charges of a molecule then sum to the value in its force field, instead of being off by a few 1e-6 e.
    """
    result = np.array(values, np.float64)
    single = result.astype(np.float32)
    if not (single == result).all():
        return result
    unique, inverse = np.unique(single, return_inverse=True)
    return np.array([float(str(value)) for value in unique])[inverse.reshape(-1)]


@contextlib.contextmanager
def collecting(path: Path) -> Iterator[TprParameters]:
    """Collect Lennard-Jones parameters, exclusions, 1-4 pairs and cross-terms (CMAP) while MDAnalysis reads a TPR.

    The counts in the file are also checked: MDAnalysis trusts them, and with damaged ones would loop for minutes, or
    exhaust the memory.
    """
    from MDAnalysis.topology.tpr import utils

    size = path.stat().st_size if path.exists() else 2**31

    def counted(*arguments: int) -> range:
        numbers = range(*arguments)
        if len(numbers) > size:  # whatever is counted takes at least one byte in the file
            raise InputError(f"{path}: states larger counts than its size allows; it may be damaged")
        return numbers

    kept = TprParameters()
    # of numbers the last two: where each atom's exclusions end, and their atoms
    latest: dict[str, deque[Any]] = {name: deque(maxlen=2) for name in ("do_ilists", "do_atoms", "ndo_int")}
    originals = {name: getattr(utils, name) for name in (
        "do_ffparams", "do_iparams", "do_ilists", "do_moltype", "do_atoms", "do_molblock", "ndo_int")}
    versions: list[int] = []

    def keep_block(data: Any) -> Any:
        """Read a block of molecules; the next number, unless another block follows, is that of the atoms."""
        data.__dict__.pop("unpack_int", None)
        result = originals["do_molblock"](data)
        if versions[-1] >= INTERMOLECULAR:
            data.__dict__["unpack_int"] = lambda: count_of_atoms(data)
        return result

    def count_of_atoms(data: Any) -> int:
        """Return the number of atoms; skip the interactions between molecules after it, which MDAnalysis ignores."""
        del data.__dict__["unpack_int"]
        count, present = int(data.unpack_int()), int(data.unpack_uchar())
        if present:
            log.info("%s: interactions between molecules are not used", path)
            originals["do_ilists"](data, versions[-1])

        def known() -> int:  # MDAnalysis expects this byte after the atoms' types
            del data.__dict__["unpack_uchar"]
            return present

        data.__dict__["unpack_uchar"] = known
        return count

    def keep_general(*arguments: Any) -> Any:
        versions.append(arguments[1])
        kept.general = originals["do_ffparams"](*arguments)
        return kept.general

    def keep_functions(data: Any, kinds: list[int], version: int) -> None:
        read = data.unpack_real
        values: list[float] = []

        def keep_value() -> float:
            values.append(read())
            return values[-1]

        data.unpack_real = keep_value
        try:
            for kind in kinds:
                originals["do_iparams"](data, [kind], version)
                kept.functions.append(list(values))
                values.clear()
        finally:
            data.unpack_real = read

    def kept_results(name: str) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            result = originals[name](*arguments)
            latest[name].append(list(result) if name == "do_ilists" else result)
            return latest[name][-1]

        return call

    def keep_molecule(*arguments: Any) -> Any:
        result = originals["do_moltype"](*arguments)
        lists, atoms = latest["do_ilists"][-1], latest["do_atoms"][-1].atoms
        entries = {entry.ik[0]: np.array(entry.iatoms, np.int64) for entry in lists if entry.nr}
        molecule = Molecule(np.array([atom.tp for atom in atoms], np.int64))
        if "LJ14" in entries:
            molecule.pairs14 = entries["LJ14"].reshape(-1, 3)
        if "CMAP" in entries:  # the first number of each entry is its type
            molecule.cross_terms = entries["CMAP"].reshape(-1, 6)[:, 1:]
        molecule.others = tuple(sorted({"LJC14_Q", "LJC_NB"} & set(entries)))
        second = [kept.functions[k] for k in molecule.pairs14[:, 0]]
        molecule.perturbed = any((a.tp, a.q) != (a.typeB, a.qB) for a in atoms) or any(c[:2] != c[2:] for c in second)
        ends, partners = latest["ndo_int"]
        molecule.exclusions = _excluded(ends, partners, len(atoms))
        kept.molecules[result.name.decode()] = molecule
        return result

    wrappers = {"do_ffparams": keep_general, "do_iparams": keep_functions, "do_moltype": keep_molecule,
                "do_molblock": keep_block, **{name: kept_results(name) for name in latest}}
    with _patching:  # all threads share the module's functions
        for name, function in wrappers.items():
            setattr(utils, name, function)
        utils.range = counted
        try:
            yield kept
        finally:
            del utils.range
            for name, function in originals.items():
                setattr(utils, name, function)
