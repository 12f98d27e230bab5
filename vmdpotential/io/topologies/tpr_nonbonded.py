"""Lennard-Jones, exclusions and 1-4 pairs of a GROMACS TPR: MDAnalysis reads past them, and this keeps them."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from vmdpotential import memory, units
from vmdpotential.errors import InputError
from vmdpotential.molecule.nonbonded import Integers, Names, Nonbonded, positions_of, unique_pairs

#: kJ/mol nm^6, and nm^12, in kcal/mol A^6, and A^12.
_C6, _C12 = 1e6 / units.CALORIE, 1e12 / units.CALORIE
_CURE = "compute it with GROMACS"

log = logging.getLogger(__name__)

_one = threading.Lock()


@dataclass
class Molecule:
    """What a TPR says of a kind of molecule, atoms counted from its first."""

    types: Integers
    exclusions: Integers = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    pairs14: Integers = field(default_factory=lambda: np.zeros((0, 3), np.int64))  # number of the function, atoms
    cross_terms: Integers = field(default_factory=lambda: np.zeros((0, 5), np.int64))
    others: tuple[str, ...] = ()
    perturbed: bool = False


@dataclass
class Kept:
    """What is kept of a TPR while MDAnalysis reads it."""

    molecules: dict[str, Molecule] = field(default_factory=dict)
    functions: list[list[float]] = field(default_factory=list)
    general: Any = None

    def nonbonded(self, names: Names, starts: Integers, labels: Names, path: str) -> Nonbonded:
        """Return it for molecules of these names that start at these atoms.

        Parameters
        ----------
        names : (M,) str
        starts : (M,) int64
        labels : (N,) str
            The names of the atoms' types.
        path : str
            For errors.

        Raises
        ------
        InputError
            When the file has pairs that are no Lennard-Jones with a common factor on charges.
        """
        count, kinds = len(labels), self.general.atnr
        if any(len(values) != 2 for values in self.functions[: kinds**2]):
            raise InputError(f"{path}: has Buckingham potentials, which are not supported", _CURE)
        if self.general.reppow != 12:
            raise InputError(f"{path}: repels by r to the {self.general.reppow:g}, which is not supported", _CURE)
        others = sorted({name for kind in set(names.tolist()) for name in self.molecules[kind].others})
        if any(not (0 <= kind.pairs14[:, 1:].min(initial=0) <= kind.pairs14[:, 1:].max(initial=0) < len(kind.types))
               for kind in self.molecules.values()):
            raise InputError(f"{path}: names atoms in 1-4 pairs that its molecules do not have", "write it again")
        if others:
            raise InputError(
                f"{path}: has pairs with charges of their own ({', '.join(others)}), which are not supported", _CURE)
        if any(self.molecules[name].perturbed for name in set(names.tolist())):
            log.warning("%s: has a second state of the molecules (free energies); the first one is taken", path)
        at = {name: starts[names == name] for name in self.molecules}
        pairs_of = {name: len(kind.exclusions) + len(kind.pairs14) for name, kind in self.molecules.items()}
        number = sum(len(at[name]) * number for name, number in pairs_of.items())
        memory.require(150 * number, f"reading {path}", "take a smaller system")
        table = np.array(self.functions[: kinds**2]).reshape(kinds, kinds, 2) * (_C6, _C12)
        table = (table + table.transpose(1, 0, 2)) / 2
        types = np.zeros(count, np.int64)
        pairs, rows = [np.zeros((0, 2), np.int64)], [np.zeros((0, 3), np.int64)]
        for name, kind in self.molecules.items():
            types[at[name][:, None] + np.arange(len(kind.types))] = kind.types
            pairs.append((at[name][:, None, None] + kind.exclusions).reshape(-1, 2))
            rows.append((at[name][:, None, None] * [0, 1, 1] + kind.pairs14).reshape(-1, 3))
        excluded, entry = unique_pairs(np.concatenate(pairs), count), np.concatenate(rows)
        pairs14 = np.sort(entry[:, 1:], axis=1)
        order = np.lexsort(pairs14.T[::-1])
        pairs14 = pairs14[order]
        own = np.array([self.functions[k][:2] for k in entry[order, 0]]).reshape(-1, 2) * (_C6, _C12)
        charges = np.full(len(pairs14), _decimal(self.general.fudgeQQ))
        # GROMACS sums a 1-4 pair that it does not exclude twice: as one, and as any other
        twice = positions_of(pairs14, excluded, count) < 0
        twice[1:] &= (np.diff(pairs14, axis=0) != 0).any(1)  # once, where a pair has several functions
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
    """Return the pairs of a molecule of `count` atoms of which each atom's end at `ends` among `partners`."""
    sizes = np.diff(ends).astype(np.int64)
    if (sizes < 0).any() or sizes.sum() != len(partners):
        raise ValueError("its exclusions disagree with their counts")
    pairs = np.stack([np.repeat(np.arange(len(sizes)), sizes), np.array(partners, np.int64)], axis=1)
    # gmx convert-tpr leaves those of atoms that it took out
    return pairs[((pairs >= 0) & (pairs < count)).all(1)]


def _decimal(value: float) -> float:
    """Return a number kept in single precision as the short decimal it came from: 0.8333 for 0.83329999."""
    return float(str(np.float32(value))) if np.float32(value) == value else value


@contextlib.contextmanager
def keeping(path: Path) -> Iterator[Kept]:
    """Collect what MDAnalysis reads and drops of a TPR: Lennard-Jones, exclusions, 1-4 pairs, cross-terms (CMAP).

    MDAnalysis also believes a TPR's counts, and would go through what is not there for minutes, or fill the memory.
    """
    from MDAnalysis.topology.tpr import utils

    size = path.stat().st_size if path.exists() else 2**31

    def counted(*arguments: int) -> range:
        numbers = range(*arguments)
        if len(numbers) > size:  # the file has a byte and more for all that it counts, also for a molecule's atom
            raise InputError(f"{path}: counts more than it holds, as if damaged")
        return numbers

    kept = Kept()
    lists: list[Any] = []
    atoms: list[Any] = []
    numbers: deque[list[int]] = deque(maxlen=2)  # where each atom's exclusions end, and their atoms
    theirs = {name: getattr(utils, name) for name in (
        "do_ffparams", "do_iparams", "do_ilists", "do_moltype", "do_atoms", "ndo_int")}

    def keep_general(*arguments: Any) -> Any:
        kept.general = theirs["do_ffparams"](*arguments)
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
                theirs["do_iparams"](data, [kind], version)
                kept.functions.append(list(values))
                values.clear()
        finally:
            data.unpack_real = read

    def keep_atoms(*arguments: Any) -> Any:
        result = theirs["do_atoms"](*arguments)
        atoms[:] = result.atoms
        return result

    def keep_lists(*arguments: Any) -> Any:
        lists[:] = theirs["do_ilists"](*arguments)
        return list(lists)

    def keep_numbers(*arguments: Any) -> Any:
        numbers.append(theirs["ndo_int"](*arguments))
        return numbers[-1]

    def keep_molecule(*arguments: Any) -> Any:
        result = theirs["do_moltype"](*arguments)
        entries = {entry.ik[0]: np.array(entry.iatoms, np.int64) for entry in lists if entry.nr}
        molecule = Molecule(np.array([atom.tp for atom in atoms], np.int64))
        if "LJ14" in entries:
            molecule.pairs14 = entries["LJ14"].reshape(-1, 3)
        if "CMAP" in entries:  # of each entry the first number is its type
            molecule.cross_terms = entries["CMAP"].reshape(-1, 6)[:, 1:]
        molecule.others = tuple(sorted({"LJC14_Q", "LJC_NB"} & set(entries)))
        second = [kept.functions[k] for k in molecule.pairs14[:, 0]]
        molecule.perturbed = any((a.tp, a.q) != (a.typeB, a.qB) for a in atoms) or any(c[:2] != c[2:] for c in second)
        ends, partners = numbers
        molecule.exclusions = _excluded(ends, partners, len(atoms))
        kept.molecules[result.name.decode()] = molecule
        return result

    ours = {"do_ffparams": keep_general, "do_iparams": keep_functions, "do_ilists": keep_lists,
            "do_moltype": keep_molecule, "do_atoms": keep_atoms, "ndo_int": keep_numbers}
    with _one:  # the functions of a module are no thread's own
        for name, function in ours.items():
            setattr(utils, name, function)
        utils.range = counted
        try:
            yield kept
        finally:
            del utils.range
            for name, function in theirs.items():
                setattr(utils, name, function)
