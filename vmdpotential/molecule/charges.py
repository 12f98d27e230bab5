"""Charges of a structure: its topology's, else those of force-field templates, else an error that lists the gaps."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import ChargeError, UsageError
from vmdpotential.molecule.atomnames import family
from vmdpotential.molecule.names import IONS, WATERS, unique_names
from vmdpotential.molecule.structure import Structure
from vmdpotential.molecule.templates import FORCE_FIELDS, Match, Miss, library, match_water, rigid_water, water_roles

#: What may be asked for; `auto` is the force field that matches most atoms.
CHOICES = ("auto", *FORCE_FIELDS)

#: Largest distance, A, of the sulphurs of a disulfide bridge.
DISULFIDE = 2.5

#: Largest distance, e, of a net charge from an integer; what rounding to float32 leaves of 1e5 charges.
INTEGER_TOLERANCE = 1e-3

_LISTED = 10


@dataclass(frozen=True)
class ChargeReport:
    """Where charges come from.

    Parameters
    ----------
    source : str
        ``topology`` (or the format of it), or the force field of the templates.
    templates : dict
        Template (``ALA+NTER``, ``TIP3P``, ``SOD``) to the number of residues that it gave charges to;
        empty for a topology.
    net_charge : float
        e
    """

    source: str
    net_charge: float
    templates: dict[str, int] = field(default_factory=dict)

    @property
    def is_integer(self) -> bool:
        """Whether the net charge is an integer within :data:`INTEGER_TOLERANCE`."""
        return abs(self.net_charge - round(self.net_charge)) <= INTEGER_TOLERANCE

    def __str__(self) -> str:
        if not self.templates:
            return f"charges from the {self.source}; {_net_charge_text(self.net_charge)}"
        residues = sum(self.templates.values())
        return (
            f"charges from {self.source} templates ({residues} residues, {len(self.templates)} kinds); "
            f"{_net_charge_text(self.net_charge)}"
        )


def assign_charges(structure: Structure, force_field: str = "auto") -> Structure:
    """Return the structure with charges: its own where it has some, else those of templates.

    Parameters
    ----------
    structure : Structure
    force_field : str
        ``charmm36``, ``amber14`` (ff14SB, OL15, OL3, lipid17), or ``auto``: the one that matches more
        atoms; between equals the one whose own residue names the structure uses; else ``charmm36``.
        Waters are TIP3P, or the model of their sites and name; ions have their formal charge.

    Raises
    ------
    ChargeError
        When atoms have no template; lists residue, atom and count.
    UsageError
        When the force field is unknown.
    """
    return charges_and_report(structure, force_field)[0]


def charges_and_report(structure: Structure, force_field: str = "auto") -> tuple[Structure, ChargeReport]:
    """Do what :func:`assign_charges` does, and return also where the charges come from."""
    if force_field not in CHOICES:
        raise UsageError("force_field", f"choose one of {', '.join(CHOICES)}", value=force_field)
    if structure.charges is not None:
        source = structure.topology.source + " topology" if structure.topology is not None else "topology"
        return structure, ChargeReport(source, structure.net_charge)
    kinds = _residue_kinds(structure)
    wanted = FORCE_FIELDS if force_field == "auto" else (force_field,)
    found = {name: _match_all(structure, kinds, name) for name in wanted}

    def merit(name: str) -> tuple[int, int]:
        own = library(name).residues
        matched = [(kind, m) for kind, m in zip(kinds.kinds, found[name], strict=True) if isinstance(m, Match)]
        return (
            sum(kind.atoms for kind, _ in matched),
            sum(kind.atoms for kind, _ in matched if kind.residue_name in own and kind.residue_name not in WATERS),
        )

    best = max(wanted, key=merit)  # the first of equals
    matches = found[best]
    if any(isinstance(match, Miss) for match in matches):
        raise _error(structure, kinds, matches, best)
    charges = kinds.spread([match.charges for match in matches if isinstance(match, Match)])
    templates: Counter[str] = Counter()
    for kind, match in zip(kinds.kinds, matches, strict=True):
        assert isinstance(match, Match)
        templates[match.label] += kind.residues
    result = structure.with_charges(charges)
    return result, ChargeReport(best, result.net_charge, dict(templates.most_common()))


def _net_charge_text(net: float) -> str:
    if abs(net - round(net)) <= INTEGER_TOLERANCE:
        return f"net charge {round(net):+d} e" if round(net) else "net charge 0 e"
    return f"net charge {net:+.4f} e, which is no integer: are residues incomplete, or the topology of another file?"


# ---- residues of one kind: the same name and the same atoms in the same order ------------------------


@dataclass(frozen=True)
class _Kind:
    residue_name: str
    atom_names: tuple[str, ...]
    disulfide: bool
    residues: int

    @property
    def atoms(self) -> int:
        return self.residues * len(self.atom_names)


@dataclass(frozen=True)
class _Kinds:
    kinds: list[_Kind]
    kind_of: NDArray[np.int64]  # (R,)
    lengths: NDArray[np.int64]  # (R,)
    places: NDArray[np.int64]  # (N,) place of an atom in its residue

    def spread(self, charges: list[tuple[float, ...]]) -> NDArray[np.float64]:
        """Return (N,) charges from those of each kind."""
        if not charges:
            return np.zeros(0)
        first = np.concatenate([[0], np.cumsum([len(values) for values in charges])])
        flat = np.array([charge for values in charges for charge in values])
        return np.asarray(flat[np.repeat(first[self.kind_of], self.lengths) + self.places])


def _residue_kinds(structure: Structure) -> _Kinds:
    """Sort residues by name and atoms, so that Python looks at each kind once, and numpy at the atoms."""
    starts = structure.residue_starts
    lengths = np.diff(starts)
    places = np.arange(len(structure)) - np.repeat(starts[:-1], lengths)
    residue_names, name_of = unique_names(structure.residue_names[starts[:-1]])
    atom_names, atom_of = unique_names(structure.atom_names)
    if not len(structure):
        return _Kinds([], np.zeros(0, np.int64), lengths, places)
    bridged = _disulfides(structure, residue_names, name_of)
    # a 64-bit hash of each residue: random numbers for the names, odd multiples for the order
    random = np.random.default_rng(1).integers(1 << 63, size=max(len(atom_names), len(residue_names)), dtype=np.uint64)
    atom_hashes = random[atom_of] * (2 * places + 1).astype(np.uint64)
    hashes = np.add.reduceat(atom_hashes, starts[:-1])
    hashes ^= (random[name_of] * np.uint64(0x9E3779B97F4A7C15)) ^ bridged.astype(np.uint64)
    _, first, kind_of, counts = np.unique(hashes, return_index=True, return_inverse=True, return_counts=True)
    kinds = [
        _Kind(
            str(residue_names[name_of[residue]]),
            tuple(structure.atom_names[starts[residue] : starts[residue + 1]].tolist()),
            bool(bridged[residue]),
            count,
        )
        for residue, count in zip(first.tolist(), counts.tolist(), strict=True)
    ]
    return _Kinds(kinds, kind_of.reshape(-1).astype(np.int64), lengths, places)


def _disulfides(structure: Structure, residue_names: NDArray[np.str_], name_of: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return (R,) which cysteines are bridged: by name (CYX, CYM) or by the distance of the sulphurs."""
    cysteines = [name for name in residue_names.tolist() if family(name) == "CYS"]
    bridged = np.zeros(len(name_of), bool)
    if not cysteines:
        return bridged
    of_kind = np.array([name in cysteines for name in residue_names.tolist()])[name_of]
    atoms = np.flatnonzero(np.repeat(of_kind, np.diff(structure.residue_starts)))
    sulphurs = atoms[structure.atom_names[atoms] == "SG"]
    residues = np.searchsorted(structure.residue_starts, sulphurs, side="right") - 1
    positions = structure.positions[sulphurs]
    for row in range(len(sulphurs)):
        distances = positions - positions[row]
        if structure.cell is not None:
            distances = structure.cell.minimum_image(distances)
        close = (distances**2).sum(1) < DISULFIDE**2
        bridged[residues[row]] = close.sum() > 1
    for place, name in enumerate(residue_names.tolist()):
        if name.upper().endswith(("CYX", "CYM")):
            bridged[name_of == place] = name.upper().endswith("CYX")
    return bridged


def _match_all(structure: Structure, kinds: _Kinds, force_field: str) -> list[Match | Miss]:
    """Match every kind of residue."""
    result: list[Match | Miss] = []
    for index, kind in enumerate(kinds.kinds):
        name = kind.residue_name.upper()
        ion = IONS.get(name) if len(kind.atom_names) == 1 else None
        if ion is not None:
            result.append(Match(ion.residue, (float(ion.charge),)))
        elif name in WATERS:
            model = _four_site_model(structure, kinds, index) if len(kind.atom_names) == 4 else None
            result.append(match_water(name, kind.atom_names, model))
        else:
            result.append(library(force_field).match(name, kind.atom_names, kind.disulfide))
    return result


def _four_site_model(structure: Structure, kinds: _Kinds, kind: int) -> str | None:
    """Tell the model of a kind of 4-site waters from the distance of its massless site from the oxygen."""
    starts = structure.residue_starts[:-1][kinds.kind_of == kind]
    roles = water_roles(kinds.kinds[kind].atom_names)
    if sorted(roles) != ["H", "H", "M", "O"]:
        return None
    distances = structure.positions[starts + roles.index("M")] - structure.positions[starts + roles.index("O")]
    if structure.cell is not None:
        distances = structure.cell.minimum_image(distances)
    return rigid_water(float(np.sqrt((distances**2).sum(1)).mean()), len(starts))


def _error(structure: Structure, kinds: _Kinds, matches: list[Match | Miss], force_field: str) -> ChargeError:
    """Return the error that lists residue, atom and count of what has no template."""
    extra: Counter[str] = Counter()
    lacking: Counter[str] = Counter()
    for kind, match in zip(kinds.kinds, matches, strict=True):
        if isinstance(match, Miss):
            for counts, atoms in ((extra, match.extra), (lacking, match.lacking)):
                for atom in atoms:
                    counts[f"{kind.residue_name} {atom}"] += kind.residues
    where = structure.sources[0] if structure.sources else "structure"
    parts = []
    if extra:
        parts.append(f"no {force_field} charge for {_list(extra)}")
    if lacking:
        parts.append(f"atoms that {force_field} needs are missing: {_list(lacking)}")
    cure = "give a file that has charges (PSF, prmtop, TPR, PQR) as {topology}"
    if lacking:
        cure = "complete the residues (hydrogens too), or " + cure
    return ChargeError(f"{where}: {'; '.join(parts)}", cure)


def _list(counts: Counter[str]) -> str:
    """Write the most frequent of what is counted: 12 atoms: LIG C1 (3), LIG C2 (3) ... and 8 more kinds."""
    items = sorted(counts.items(), key=lambda item: -item[1])
    total = sum(counts.values())
    listed = ", ".join(f"{name} ({count})" for name, count in items[:_LISTED])
    more = f" and {len(items) - _LISTED} more kinds" if len(items) > _LISTED else ""
    return f"{total} atom{'s' if total > 1 else ''}: {listed}{more}"
