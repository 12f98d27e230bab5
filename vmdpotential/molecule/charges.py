"""Assignment of charges: the structure's own, or else those of force-field templates.

An error lists the atoms for which there is no charge.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import ChargeError, IncompleteError, Message, UsageError, listed_words
from vmdpotential.molecule.atomnames import family
from vmdpotential.molecule.conversions import StructureLike, as_structure
from vmdpotential.molecule.names import ION_RESIDUES, WATER_RESIDUES, in_table, unique_names
from vmdpotential.molecule.structure import Structure
from vmdpotential.molecule.templates import FORCE_FIELDS, TemplateMatch, TemplateMiss, template_library
from vmdpotential.molecule.user_charges import ResidueCharges, UserCharges
from vmdpotential.molecule.water import WATER_CHOICES as WATER_CHOICES
from vmdpotential.molecule.water import WATER_LABELS, IdentifiedWater, find_water, site_distance

log = logging.getLogger(__name__)

#: Values of the option `force_field`; `auto` is the force field that matches most atoms.
CHOICES = ("auto", *FORCE_FIELDS)

#: Longest bonds of a cysteine's sulphur, A: to another sulphur (or selenium), and to an atom of the second row.
DISULFIDE_LENGTH, THIOETHER_LENGTH = 2.5, 2.1
#: Elements of atoms that a cysteine's sulphur is covalently bonded to; metals leave it a thiolate.
_COVALENT = ["B", "C", "N", "O", "P", "S", "Se"]
#: Names of a thiol's hydrogen.
_THIOL = ["HG", "HG1", "HSG", "1HG"]

#: Largest deviation of a net charge from an integer, e; it allows for rounding of 1e5 charges to float32.
INTEGER_TOLERANCE = 1e-3

_LISTED = 10


#: Names of waters and ions that are used with only one of the force fields.
_OWN_SOLVENT = {
    "charmm36": {"TIP3", "TIP4", "SOD", "POT", "CLA", "CAL", "CES", "LIT", "RUB"},
    "amber14": {"WAT", "LI+", "NA+", "K+", "RB+", "CS+", "CL-", "BR-", "I-", "F-"},
}


@dataclass(frozen=True)
class ChargeReport:
    """Origin of a structure's charges.

    Parameters
    ----------
    source : str
        Force field of the templates, or another origin (``psf topology``, ``PQR file``).
    net_charge : float
        Net charge, e.
    templates : dict
        Number of residues by template (``ALA+NTER``, ``TIP3P``, ``SOD``); empty if no template was used.
    fits : tuple of str
        Force fields with templates for as many atoms as the one that was used, which comes first.
    waters : dict
        Evidence for each water model: ``by its name``, ``by the place of its massless site``, ``by default`` or
        ``as asked``.
    given : tuple of str
        Residues with charges from a user's file, each with the file and the net charge.
    without : dict
        Number of residues, by name, that have no charges and need none.
    approximate : dict
        Number of residues with Gasteiger charges, by name, and their total net charge, e.
    prepared : str
        Summary of the structure's completion; empty if it was not completed.
    """

    source: str
    net_charge: float
    templates: dict[str, int] = field(default_factory=dict)
    fits: tuple[str, ...] = ()
    waters: dict[str, str] = field(default_factory=dict)
    given: tuple[str, ...] = ()
    without: dict[str, int] = field(default_factory=dict)
    approximate: dict[str, tuple[int, float]] = field(default_factory=dict)
    prepared: str = ""

    def __str__(self) -> str:
        return "; ".join(filter(None, (self.prepared, self._sources())))

    def _sources(self) -> str:
        """Return the origin of the charges, without the summary of a completion."""
        if not (self.templates or self.given or self.approximate):
            return f"charges from the {self.source}; {_net_charge_text(self.net_charge)}"
        residues = sum(self.templates.values())
        water = "".join(f", water {model} ({evidence})" for model, evidence in self.waters.items())
        templates = f"{self.source} templates ({residues} residues, {len(self.templates)} kinds){water}"
        sources = [*([templates] if self.templates else []), *self.given]
        if self.approximate:
            residues_of = ", ".join(f"{name} {count} ({net:+.3g} e)" if abs(net) > 5e-4 else f"{name} {count} (0 e)"
                                    for name, (count, net) in self.approximate.items())
            sources.append(f"approximate charges by Gasteiger's method for {residues_of}")
        number = sum(self.without.values())
        without = "" if not self.without else (
            f"; left out: {number} residue{'s' if number > 1 else ''} without charges "
            f"({', '.join(f'{name} {count}' for name, count in self.without.items())})")
        return f"charges from {', '.join(sources)}{without}; {_net_charge_text(self.net_charge)}"

    @property
    def data(self) -> dict[str, Any]:
        """The report for programs (``--json``); ``force_field`` is None if no template was used."""
        return {
            "prepared": self.prepared or None, "charges": self.source,
            "force_field": self.source if self.templates else None,
            "force_fields_that_fit": list(self.fits), "water_models": dict(self.waters),
            "charges_given": list(self.given), "without_charges": dict(self.without),
            "charges_approximate": {name: {"residues": count, "net_charge": round(net, 6) + 0.0}
                                    for name, (count, net) in self.approximate.items()},
        }


def assign_charges(structure: StructureLike, force_field: str = "auto", water: str = "auto") -> Structure:
    """Return the structure with charges: its own if it has some, or else those of templates.

    Parameters
    ----------
    structure : Structure or path
        Atoms with hydrogens.
    force_field : str
        ``charmm36``, ``amber14`` (ff14SB, OL15, OL3, lipid17), or ``auto``: the force field that matches more atoms
        of the whole structure (also if only a part of it was selected); if both match the same number, the one whose
        particular names of residues, and then of atoms, the structure uses; else ``charmm36`` (``amber14`` if atoms
        were added to the structure). If both match and the names do not decide, there is a warning. Ions have their
        formal charges.
    water : str
        ``auto``, the model that the waters' names and sites indicate (see :mod:`~vmdpotential.molecule.water`), or one
        of ``tip3p``, ``spc``, ``spce``, ``opc3``, ``tip4p``, ``tip4pew``, ``tip4p2005``, ``tip4pfb``, ``opc``.

    Returns
    -------
    Structure
        The structure with charges.

    Raises
    ------
    ChargeError
        When atoms have no template, or a water does not have the sites of its model; lists residue, atom and count.
    UsageError
        When the force field or the water model is unknown.

    Examples
    --------
    >>> structure = vp.assign_charges(vp.read_structure("data/dhfr.pdb.gz"), force_field="amber14")
    >>> round(structure.net_charge, 3)
    -11.0
    """
    structure = as_structure(structure)
    return charges_and_report(structure, force_field, water)[0]


def charges_and_report(
    structure: Structure, force_field: str = "auto", water: str = "auto", residues: Sequence[ResidueCharges] = (),
    needed: NDArray[np.bool_] | None = None, stated: NDArray[np.float64] | None = None,
    otherwise: Callable[[NDArray[np.bool_], NDArray[np.float64]], NDArray[np.float64]] | None = None,
    written: Structure | None = None,
) -> tuple[Structure, ChargeReport]:
    """Return the structure with charges, as :func:`assign_charges` does, and their origin.

    Parameters
    ----------
    structure, force_field, water
        See :func:`assign_charges`.
    residues : sequence of ResidueCharges
        Charges that have priority over templates, for residues with their names.
    needed : (N,) bool, optional
        Mask of the atoms that must have charges, all by default. Residues of other atoms may be without a template:
        their charges are 0, and the report lists them.
    stated : (R,) float64, e, optional
        Charges of the residues' protonation states, NaN where unknown. A template with another net charge is not used:
        it has the right atoms, but is of an ion, while the residue is bonded to another one (an ester).
    otherwise : function, optional
        Function that returns charges (N,), e, from a mask (N,) of the atoms in residues without a template and the
        charges (N,), e, of the others; those of the masked atoms are used. The force field is then chosen without a
        warning.
    written : Structure, optional
        The structure as it was in its file, if it was completed. Its names, not those of added atoms, decide between
        force fields that match the same number of atoms; if they do not, it is ``amber14``.

    Returns
    -------
    structure : Structure
    report : ChargeReport

    Raises
    ------
    ChargeError
        See :func:`assign_charges`; also for `residues` that the structure does not have, or has with other atoms.
    UsageError
        For an unknown choice, and for options that do not apply, as the structure has charges.
    """
    for parameter, value, choices in (("force_field", force_field, CHOICES), ("water", water, WATER_CHOICES)):
        if value not in choices:
            raise UsageError(parameter, f"choose one of {', '.join(choices)}", value=value)
    if structure.charges is not None:
        if water != "auto":
            raise UsageError("water", "is for waters without charges, and these have some", "leave it out", value=water)
        if residues:
            raise UsageError("charges", "is for residues without charges, and all of these atoms have some",
                             "leave it out", value=residues[0].source)
        source = structure.charge_source or (
            f"{structure.topology.source} topology" if structure.topology is not None else "structure")
        return structure, ChargeReport(source, structure.net_charge)
    complete, among = _complete(structure)
    kinds = _residue_kinds(complete, stated)
    fits = (force_field,) if force_field != "auto" else _force_fields(structure, stated, written)
    user_charges = UserCharges(residues)
    matches = _match_all(complete, kinds, fits[0], water, user_charges)
    for kind, match in zip(kinds.kinds, matches, strict=True):
        if isinstance(match, TemplateMiss) and match.file:
            raise _other_atoms(structure, kind.residue_name, match)
    if user_charges and not user_charges.used:
        raise ChargeError(f"{residues[0].source}: contains the residues {listed_words(user_charges.unused(), 80)}, and "
                          f"{structure.where} has none of them", "name the residue in it as the structure does")
    missed = np.array([isinstance(match, TemplateMiss) for match in matches], bool)
    atoms = np.repeat(missed[kinds.kind_of], kinds.lengths)[among]
    if missed.any() and otherwise is None and (needed is None or (atoms & needed).any()):
        raise _error(structure, kinds, matches, fits[0])
    unused = user_charges.unused()
    if unused and not residues[0].source.endswith((".xml", ".top")):  # these contain whole force fields
        log.warning("%s: has no residues %s, for which charges were given", structure.where, listed_words(unused, 80))
    charges = kinds.spread([(0.0,) * len(kind.atom_names) if isinstance(match, TemplateMiss) else match.charges
                            for kind, match in zip(kinds.kinds, matches, strict=True)])[among]
    approximate: dict[str, tuple[int, float]] = {}
    if otherwise is not None and atoms.any():
        charges = np.where(atoms, otherwise(atoms, charges), charges)
        for name in np.unique(structure.residue_names[atoms]).tolist():
            named = atoms & (structure.residue_names == name)
            approximate[name] = len(np.unique(structure.residue_index[named])), float(charges[named].sum())
    templates: Counter[str] = Counter()
    waters: dict[str, str] = {}
    without: Counter[str] = Counter()
    for kind, match in zip(kinds.kinds, matches, strict=True):
        if isinstance(match, TemplateMiss) and otherwise is None:
            without[kind.residue_name] += kind.residues
        if getattr(match, "file", "") or isinstance(match, TemplateMiss):
            continue
        label = WATER_LABELS[match.model] if isinstance(match, IdentifiedWater) else getattr(match, "label", "")
        templates[label] += kind.residues
        if isinstance(match, IdentifiedWater):
            waters[label] = match.evidence
    result = structure.with_charges(charges)
    return result, ChargeReport(fits[0], result.net_charge, dict(templates.most_common()), fits, waters,
                                tuple(user_charges.described()), dict(without), approximate)


def has_hydrogens(structure: Structure) -> bool:
    """Return whether any atom, except those of waters, is a hydrogen."""
    rows = ~in_table(structure.residue_names, WATER_RESIDUES)
    elements = structure.elements[rows]
    names = np.where(elements == "", structure.atom_names[rows], elements)
    return bool(np.char.startswith(np.char.lstrip(names.astype(np.str_), "0123456789"), "H").any()
                or (elements == "D").any())


def _complete(structure: Structure) -> tuple[Structure, NDArray[Any]]:
    """Return the complete residues of selected atoms, as a structure, and the indices of the selected atoms in it."""
    whole, rows = structure.whole, structure.whole_rows
    if whole is None or rows is None:
        return structure, np.arange(len(structure))
    atoms = np.flatnonzero(np.isin(whole.residue_index, whole.residue_index[rows]))
    return whole.take(atoms), np.searchsorted(atoms, rows)


def _force_fields(structure: Structure, stated: NDArray[np.float64] | None, written: Structure | None
                  ) -> tuple[str, ...]:
    """Return the force field that fits the whole structure best, then others that fit as well; warn of a guess.

    Names are those of the completed structure's file, `written`, if there is one.
    """
    whole = structure.whole or structure
    kinds = _residue_kinds(whole, stated)
    matches = {name: _match_all(whole, kinds, name) for name in FORCE_FIELDS}
    charges = {name: [getattr(match, "charges", None) for match in matches[name]] for name in FORCE_FIELDS}
    names = {name: set(template_library(name).residues) for name in FORCE_FIELDS}
    matched = {name: sum(kind.atoms for kind, match in zip(kinds.kinds, matches[name], strict=True)
                         if isinstance(match, TemplateMatch)) for name in FORCE_FIELDS}
    if written is not None:
        kinds = _residue_kinds(written, None)
        matches = {name: _match_all(written, kinds, name) for name in FORCE_FIELDS}
    evidence = {}
    for name in FORCE_FIELDS:
        own = names[name].difference(WATER_RESIDUES, *(others for other, others in names.items() if other != name))
        fitting = [(kind, m) for kind,
                   m in zip(kinds.kinds, matches[name], strict=True) if isinstance(m, TemplateMatch)]
        # atoms in residues, solvent residues, and atoms whose names are particular to the force field
        evidence[name] = (
            sum(kind.atoms for kind, _ in fitting if kind.residue_name in own),
            sum(kind.residue_name.upper() in _OWN_SOLVENT[name] for kind in kinds.kinds),
            sum(kind.atoms for kind, match in fitting if match.own_names),
        )
    order = FORCE_FIELDS if written is None else FORCE_FIELDS[::-1]
    best = max(order, key=lambda name: (matched[name], evidence[name]))  # the first of equals
    fits = [best]
    for other in FORCE_FIELDS:
        if other == best or matched[other] < matched[best] or charges[other] == charges[best]:
            continue
        fits.append(other)
        decided = sum(evidence[best][:2]) > 0 == sum(evidence[other][:2])
        # CHARMM's names of atoms are its own; Amber's are those of the PDB, which many programs write
        decided |= best == "charmm36" and evidence[best][2] > 0 == sum(evidence[other])
        if written is None and not decided:
            log.warning(Message("%s: its names fit %s and %s; the charges are those of %s, choose with {force_field}"),
                        whole.where, best, other, best)
    return tuple(fits)


def _net_charge_text(net: float) -> str:
    if abs(net - round(net)) <= INTEGER_TOLERANCE:
        return f"net charge {round(net):+d} e" if round(net) else "net charge 0 e"
    return f"net charge {net:+.4f} e, which is no integer: are residues incomplete, or the topology of another file?"


# ---- residues of one kind ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Kind:
    """Residues with the same name, atoms in the same order and state; `residues` is their number."""

    residue_name: str
    atom_names: tuple[str, ...]
    disulfide: bool
    residues: int
    stated: float

    @property
    def atoms(self) -> int:
        return self.residues * len(self.atom_names)


@dataclass(frozen=True)
class _Kinds:
    """Kinds of residues, with the kind and length (R,) of each residue, and each atom's place (N,) in its residue."""

    kinds: list[_Kind]
    kind_of: NDArray[np.int64]
    lengths: NDArray[np.int64]
    places: NDArray[np.int64]

    def spread(self, charges: list[tuple[float, ...]]) -> NDArray[np.float64]:
        """Return the charges (N,) of all atoms from those of the atoms of each kind."""
        if not charges:
            return np.zeros(0)
        first = np.concatenate([[0], np.cumsum([len(values) for values in charges])])
        flat = np.array([charge for values in charges for charge in values])
        return np.asarray(flat[np.repeat(first[self.kind_of], self.lengths) + self.places])


def _residue_kinds(structure: Structure, stated: NDArray[np.float64] | None) -> _Kinds:
    """Return the kinds of residues, by numpy over all atoms, so that Python matches each kind only once."""
    starts = structure.residue_starts
    lengths = np.diff(starts)
    places = np.arange(len(structure)) - np.repeat(starts[:-1], lengths)
    residue_names, name_of = unique_names(structure.residue_names[starts[:-1]])
    atom_names, atom_of = unique_names(structure.atom_names)
    if not len(structure):
        return _Kinds([], np.zeros(0, np.int64), lengths, places)
    bridged = _bridged(structure, residue_names, name_of)
    # a 64-bit hash of each residue: random numbers for the names, times odd factors for the order of atoms
    random = np.random.default_rng(1).integers(1 << 63, size=max(len(atom_names), len(residue_names)), dtype=np.uint64)
    atom_hashes = random[atom_of] * (2 * places + 1).astype(np.uint64)
    hashes = np.add.reduceat(atom_hashes, starts[:-1])
    hashes ^= (random[name_of] * np.uint64(0x9E3779B97F4A7C15)) ^ bridged.astype(np.uint64)
    if stated is None:
        stated = np.full(len(name_of), np.nan)
    hashes ^= (np.nan_to_num(stated, nan=99).astype(np.int64).astype(np.uint64) * np.uint64(0xD1B54A32D192ED03))
    _, first, kind_of, counts = np.unique(hashes, return_index=True, return_inverse=True, return_counts=True)
    kinds = [
        _Kind(
            str(residue_names[name_of[residue]]),
            tuple(structure.atom_names[starts[residue] : starts[residue + 1]].tolist()),
            bool(bridged[residue]),
            count,
            float(stated[residue]),
        )
        for residue, count in zip(first.tolist(), counts.tolist(), strict=True)
    ]
    return _Kinds(kinds, kind_of.reshape(-1).astype(np.int64), lengths, places)


def _bridged(structure: Structure, residue_names: NDArray[np.str_], name_of: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a mask (R,) of the cysteines whose sulphur is bonded to another residue, by name (CYX, CYM) or distance.

    Such a sulphur has the charge of a disulfide bridge, also if it is bonded to a ligand, and not that of a thiolate.
    """
    cysteines = [name for name in residue_names.tolist() if family(name) == "CYS"]
    bridged = np.zeros(len(name_of), bool)
    if not cysteines:
        return bridged
    of_kind = np.array([name in cysteines for name in residue_names.tolist()])[name_of]
    atoms = np.flatnonzero(np.repeat(of_kind, np.diff(structure.residue_starts)))
    sulphurs = atoms[structure.atom_names[atoms] == "SG"]
    starts = structure.residue_starts
    residues = np.searchsorted(starts, sulphurs, side="right") - 1
    thiol = np.zeros(len(name_of), bool)
    thiol[np.searchsorted(starts, atoms[np.isin(structure.atom_names[atoms], _THIOL)], side="right") - 1] = True

    def bonded(sulphur: int, residue: int, near: NDArray[np.int64], longest: float) -> bool:
        distances = structure.positions[near] - structure.positions[sulphur]
        if structure.cell is not None:
            distances = structure.cell.minimum_image(distances)
        close = near[(distances**2).sum(1) < longest**2]
        return bool(((close < starts[residue]) | (close >= starts[residue + 1])).any())

    others = None
    for sulphur, residue in zip(sulphurs.tolist(), residues.tolist(), strict=True):
        bridged[residue] = bonded(sulphur, residue, sulphurs, DISULFIDE_LENGTH)
        if not thiol[residue] and not bridged[residue]:  # few remain, for which all atoms are searched
            if others is None:
                others = np.flatnonzero(np.isin(structure.elements, _COVALENT))
                heavier = np.isin(structure.elements[others], ["S", "Se"])
            bridged[residue] = (bonded(sulphur, residue, others, THIOETHER_LENGTH)
                                or bonded(sulphur, residue, others[heavier], DISULFIDE_LENGTH))
    for row, name in enumerate(residue_names.tolist()):
        if name.upper().endswith(("CYX", "CYM")):
            bridged[name_of == row] = name.upper().endswith("CYX")
    return bridged


def _match_all(
    structure: Structure, kinds: _Kinds, force_field: str, water: str = "auto", user_charges: UserCharges | None = None,
) -> list[TemplateMatch | TemplateMiss | IdentifiedWater]:
    """Return the match, or the lack of one, of every kind of residue."""
    result: list[TemplateMatch | TemplateMiss | IdentifiedWater] = []
    for index, kind in enumerate(kinds.kinds):
        name = kind.residue_name.upper()
        ion = ION_RESIDUES.get(name) if len(kind.atom_names) == 1 else None
        users = user_charges.match(kind.residue_name, kind.atom_names, kind.residues) if user_charges else None
        if users is not None:
            result.append(users)
        elif ion is not None:
            result.append(TemplateMatch(ion.residue, (float(ion.charge),)))
        elif name in WATER_RESIDUES:
            starts = structure.residue_starts[:-1][kinds.kind_of == index]
            distance = site_distance(structure, starts, kind.atom_names)
            result.append(find_water(name, kind.atom_names, len(starts), distance, water))
        else:
            match = template_library(force_field).match(name, kind.atom_names, kind.disulfide)
            # templates of nucleotides at chain ends have fractional charges
            other = isinstance(match, TemplateMatch) and abs(sum(match.charges) - kind.stated) > 0.5
            result.append(TemplateMiss((), (), f"{kind.residue_name} is bonded to another residue") if other else match)
    return result


def _error(
    structure: Structure, kinds: _Kinds, matches: Sequence[TemplateMatch | TemplateMiss | IdentifiedWater],
    force_field: str
) -> ChargeError:
    """Return the error for residues without a template, which lists the atoms concerned and their numbers."""
    extra: Counter[str] = Counter()
    lacking: Counter[str] = Counter()
    reasons: list[str] = []
    for kind, match in zip(kinds.kinds, matches, strict=True):
        if isinstance(match, TemplateMiss):
            if match.reason:
                reasons.append(f"{match.reason} ({kind.residues} of them)")
            for counts, atoms in ((extra, match.extra), (lacking, match.lacking)):
                for atom in atoms:
                    counts[f"{kind.residue_name} {atom}"] += kind.residues
    parts = reasons[:3]
    if extra:
        parts.append(f"no {force_field} charge for {_list(extra)}")
    if lacking and not has_hydrogens(structure):
        parts.append("it has no hydrogens")
    elif lacking:
        parts.append(f"missing atoms of {force_field}: {_list(lacking)}")
    hint = "give a file that has charges (PSF, prmtop, TPR, PQR) as {topology}"
    if len({name.split()[0] for name in extra}) == 1 and not reasons and not lacking:
        hint = "give a file of its charges (MOL2, ITP, XML, CSV) as {charges}, or of all as {topology}"
    if reasons and not extra and not lacking:
        hint = "choose a model with these sites by {water}, or " + hint
    if lacking:
        hint = "complete the structure by vmdpotential prepare, or " + hint
    error = IncompleteError if extra or lacking else ChargeError
    return error(f"{structure.where}: {'; '.join(parts)}", hint)


def _other_atoms(structure: Structure, residue_name: str, miss: TemplateMiss) -> ChargeError:
    """Return the error for a residue with other atoms than the user's file with its charges."""
    parts = []
    if miss.extra:
        parts.append(f"has no charge for {listed_words(miss.extra, 90)}")
    if miss.lacking:
        parts.append(f"has charges for {listed_words(miss.lacking, 90)}, which the residue lacks")
    return ChargeError(f"{structure.where}: residue {residue_name} has other atoms than in {miss.file}, which "
                       f"{' and '.join(parts)}", "give a file with the same atom names, including hydrogens")


def _list(counts: Counter[str]) -> str:
    """Return the most frequent atoms as text: 12 atoms: LIG C1 (3), LIG C2 (3) ... and 8 more kinds."""
    items = sorted(counts.items(), key=lambda item: -item[1])
    total = sum(counts.values())
    first = ", ".join(f"{name} ({count})" for name, count in items[:_LISTED])
    more = f" and {len(items) - _LISTED} more kinds" if len(items) > _LISTED else ""
    return f"{total} atom{'s' if total > 1 else ''}: {first}{more}"
