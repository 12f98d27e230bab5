"""Protonation states: formal charges of heavy atoms, from which the number of hydrogens follows.

The pKa of amino acids and of the ends of chains is that of a model compound, or PROPKA's (M. H. M. Olsson, C. R.
Sondergaard, M. Rostkowski, J. H. Jensen, J. Chem. Theory Comput. 7, 2011, 525, the source of the model values, too). In
other molecules, acids and bases are recognised by their bonds, and charged if they are so in water near pH 7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from vmdpotential.molecule.gasteiger import AROMATIC_DOUBLE, AROMATIC_SINGLE, AROMATIC_TRIPLE, DOUBLE_BOND, SINGLE_BOND
from vmdpotential.molecule.structure import Integers, Structure
from vmdpotential.molecule.user_charges import ResidueCharges

from .components import AMINO_ACIDS, PLANAR_BONDS, Component
from .contacts import CLEAR_DIFFERENCE, Contacts
from .draft import Draft

#: pKa values of model compounds, as in PROPKA 3.
MODEL_PKA = {"ASP": 3.80, "GLU": 4.50, "HIS": 6.50, "CYS": 9.00, "TYR": 10.00, "LYS": 10.50, "ARG": 12.50,
             "N+": 8.00, "C-": 3.20}
#: pKa of the last hydrogen of a nucleotide's terminal phosphate, as of 5'-nucleotides in water.
PHOSPHATE_PKA = 6.3
#: Net charges, e, of metal clusters in the oxidized state at rest, and what that is: the dictionary states none.
METAL_CLUSTERS = {"SF4": (2, "[4Fe-4S]2+"), "FES": (2, "[2Fe-2S]2+"), "F3S": (1, "[3Fe-4S]+"), "CUA": (3, "[2Cu]3+")}
#: The atom with the formal charge of the charged form, and that charge, e.
_SITES = {"ASP": ("OD2", -1), "GLU": ("OE2", -1), "HIS": ("ND1", 1), "CYS": ("SG", -1), "TYR": ("OH", -1),
          "LYS": ("NZ", 1), "ARG": ("NH2", 1)}
#: The other oxygens of acids.
_TWINS = {"ASP": ("OD1",), "GLU": ("OE1",)}
_AROMATIC = (AROMATIC_SINGLE, AROMATIC_DOUBLE, AROMATIC_TRIPLE)
#: Whether a residue is charged, by names that programs use for one protonation state.
_NAMED = {"ASH": False, "ASPP": False, "ASPH": False, "GLH": False, "GLUP": False, "GLUH": False, "LYN": False,
          "LSN": False, "LYSN": False, "CYM": True, "HIP": True, "HSP": True, "HISH": True, "HISP": True,
          "HID": False, "HSD": False, "HISA": False, "HISD": False, "HIE": False, "HSE": False, "HISB": False,
          "HISE": False}
#: Names of neutral histidine with the hydrogen on ND1, and on NE2.
_DELTA = frozenset(("HID", "HSD", "HISA", "HISD"))
_EPSILON = frozenset(("HIE", "HSE", "HISB", "HISE"))


#: Notes on residues, for the report.
FLIPPED = "contacts would be better with the end of the side chain flipped by 180 degrees; kept as in the file"
CHARGED_NOTE = "all histidines of the file have both hydrogens, as in old X-ray entries, and are charged"
SCHIFF = "Schiff base of lysine, taken as protonated"
UNDECIDED = "no contact decides which nitrogen of the neutral histidine has the hydrogen"


def oxidized(component: Component | None) -> str:
    """Return the note on the net charge of a cluster of metals; empty for other residues."""
    _, state = METAL_CLUSTERS.get("" if component is None else component.name, (0, ""))
    return state and f"taken as oxidized, {state}; charges in a file of yours have priority"


def model_values(structure: Structure, draft: Draft,
                 charges: Sequence[ResidueCharges]) -> dict[tuple[int, str], float]:
    """Return no pKa values, so that all groups have those of their model compounds."""
    return {}


@dataclass
class ProtonationStates:
    """Formal charges (N,), e, and bonds (B, 3) with orders of heavy atoms; states, pKa and notes by residue index."""

    charges: Integers
    bonds: Integers
    names: dict[int, str] = field(default_factory=dict)
    pka: dict[tuple[int, str], float] = field(default_factory=dict)
    notes: dict[int, str] = field(default_factory=dict)

    def bonds_of(self, atoms: Iterable[int]) -> Integers:
        """Return the indices of the bonds of some atoms, increasing."""
        order, starts = self._by_atom
        return np.unique(np.concatenate([order[starts[atom]:starts[atom + 1]] for atom in atoms]))

    @cached_property
    def _by_atom(self) -> tuple[Integers, Integers]:
        """Indices of the bonds, sorted by atom, and the start of each atom's bonds among them."""
        ends = self.bonds[:, :2].ravel()
        starts = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=len(self.charges)))])
        return np.argsort(ends, kind="stable") // 2, starts


def assign(draft: Draft, bonds: Integers, ph: float, pka: Mapping[tuple[int, str], float],
           present: Mapping[int, Mapping[str, int]]) -> ProtonationStates:
    """Return the protonation states of all residues.

    Parameters
    ----------
    draft : Draft
        Heavy atoms, with no atoms missing.
    bonds : (B, 3) int64
        Two heavy atoms and the order of their bond.
    ph : float
        The pH.
    pka : mapping
        Computed pKa values by residue index and group (ASP, N+ ...); other groups have those of model compounds.
    present : mapping
        Numbers of hydrogens in the file, by residue index and name of the heavy atom, for residues with hydrogens.
    """
    states = ProtonationStates(np.zeros(len(draft), np.int64), bonds.copy())
    starts, linked = draft.starts, draft.linked()
    contacts = Contacts(draft)
    for n, residue in enumerate(draft.residues):
        result = residue.component
        if result is None:
            continue
        place = {str(draft.names[k]): k for k in range(starts[n], starts[n + 1])}
        if result.name not in AMINO_ACIDS:
            continue
        names = []
        if result.name in _SITES:
            value = states.pka[n, result.name] = pka.get((n, result.name), MODEL_PKA[result.name])
            names.append(_side_chain(result.name, n, place, ph, value, states, contacts, linked[n], present.get(n, {}),
                                     residue.name.upper()))
        if contacts.flipped(result.name, place):
            states.notes[n] = FLIPPED
        names += _ends(n, place, ph, pka, states, linked[n], present.get(n, {}))
        states.names[n] = "+".join(filter(None, names))
    _others(draft, states, linked, ph, present)
    histidines = [n for n, r in enumerate(draft.residues) if r.component is not None and r.component.name == "HIS"]
    both = [n for n in histidines if {"ND1", "NE2"} <= present.get(n, {}).keys()]
    if len(both) == len(histidines) > 1:
        for n in both:
            if states.pka.get((n, "HIS"), ph) < ph:
                states.notes[n] = CHARGED_NOTE
    return states


def _side_chain(group: str, n: int, place: dict[str, int], ph: float, pka: float, states: ProtonationStates,
                contacts: Contacts, linked: set[str], present: Mapping[str, int], written: str) -> str:
    """Set the charge of a side chain, and return Amber's name of its state."""
    atom, charge = _SITES[group]
    if atom not in place:
        return ""
    charged = (ph > pka) if charge < 0 else (ph < pka)
    known = _NAMED.get(written)
    if known is not None:
        charged = known
    if group == "HIS":
        return _histidine(n, place, charged, states, contacts, linked, present, written)
    if group == "CYS":
        if "SG" in linked:
            return "CYX"
        if contacts.metal(place["SG"]):
            charged = True
        elif present:
            charged = charged and not present.get("SG")
    elif group == "LYS" and (states.bonds[states.bonds_of([place[atom]]), 2] == DOUBLE_BOND).any():
        charged = True
        states.notes[n] = SCHIFF
    elif {atom, *_TWINS.get(group, ())} & linked:
        charged = False
        if atom not in linked:  # an ester of the other oxygen
            _swap(states, place[atom], place[_TWINS[group][0]])
    elif group in ("ASP", "GLU") and present:
        first = atom[:-1] + "1"
        protonated = present.get(first, 0) + present.get(atom, 0) > 0
        charged = charged and not protonated
        if protonated and present.get(first, 0) and not present.get(atom, 0):  # the hydrogen is on the other oxygen
            _swap(states, place[atom], place[first])
    elif group == "TYR" and present:
        charged = charged and not present.get("OH")
    if charged:
        states.charges[place[atom]] = charge
    if group == "ARG" and not charged:
        return "ARGN"
    return {"ASP": "ASH", "GLU": "GLH", "LYS": "LYN", "CYS": "CYS", "TYR": "TYR", "ARG": "ARG"}[group] if not charged \
        else {"CYS": "CYM", "TYR": "TYM"}.get(group, group)


def _histidine(n: int, place: dict[str, int], charged: bool, states: ProtonationStates, contacts: Contacts,
               linked: set[str],
               present: Mapping[str, int], written: str) -> str:
    """Set the charge and the double bonds of a histidine, and return Amber's name of its state."""
    delta, epsilon = place["ND1"], place.get("NE2", place["ND1"])
    bare = [n for n in (delta, epsilon) if contacts.metal(n)]
    bare += [place[name] for name in ("ND1", "NE2") if name in linked]
    protonated = [name for name in ("ND1", "NE2") if present.get(name)]
    if protonated and not bare:
        charged, on_delta = len(protonated) == 2, protonated == ["ND1"]
    elif bare:
        charged, on_delta = False, epsilon in bare
    elif written in _DELTA | _EPSILON:
        on_delta = written in _DELTA
    else:
        behind = contacts.draft.positions[[place[name] for name in ("CG", "CD2", "CE1") if name in place]].mean(0)
        difference = contacts.score(delta, behind) - contacts.score(epsilon, behind)
        on_delta = difference > 0
        if abs(difference) < CLEAR_DIFFERENCE and not charged:
            states.notes[n] = UNDECIDED
    if charged:
        states.charges[delta] = 1
        return "HIP"
    if on_delta:  # the double bond is at NE2, not at ND1 as in the dictionary
        ring = {name: place[name] for name in ("CG", "ND1", "CE1", "NE2", "CD2") if name in place}
        pairs = {frozenset((ring.get("ND1"), ring.get("CE1"))): AROMATIC_SINGLE,
                 frozenset((ring.get("CE1"), ring.get("NE2"))): AROMATIC_DOUBLE}
        for row in states.bonds_of(ring.values()).tolist():
            key = frozenset(states.bonds[row, :2].tolist())
            states.bonds[row, 2] = pairs.get(key, states.bonds[row, 2])
        return "HID"
    return "HIE"


def _swap(states: ProtonationStates, first: int, second: int) -> None:
    """Exchange the bond orders of the two oxygens of a carboxylic acid."""
    rows = states.bonds_of([first, second])
    rows = rows[np.isin(states.bonds[rows, 2], [SINGLE_BOND, DOUBLE_BOND])]
    states.bonds[rows, 2] = SINGLE_BOND + DOUBLE_BOND - states.bonds[rows, 2]


def _ends(n: int, place: dict[str, int], ph: float, pka: Mapping[tuple[int, str], float], states: ProtonationStates,
          linked: set[str], present: Mapping[str, int]) -> list[str]:
    """Set the charges of a residue's N- and C-terminus, if it has one, and return the names of their states."""
    names = []
    if "N" in place and "N" not in linked:
        value = states.pka[n, "N+"] = pka.get((n, "N+"), MODEL_PKA["N+"])
        if ph < value:
            states.charges[place["N"]] = 1
        names.append("N-terminus" if ph < value else "neutral N-terminus")
    if "OXT" in place and "C" not in linked and "OXT" not in linked:
        value = states.pka[n, "C-"] = pka.get((n, "C-"), MODEL_PKA["C-"])
        charged = ph > value and not present.get("OXT")
        if charged:
            states.charges[place["OXT"]] = -1
        names.append("C-terminus" if charged else "neutral C-terminus")
    return names


# ---- other molecules -----------------------------------------------------------------------------------


def _others(draft: Draft, states: ProtonationStates, linked: list[set[str]], ph: float,
            present: Mapping[int, Mapping[str, int]]) -> None:
    """Set the charges of residues other than amino acids, by the dictionary and by functional groups."""
    starts = draft.starts
    known: dict[tuple[str, tuple[str, ...], frozenset[str]], Integers] = {}
    for n, residue in enumerate(draft.residues):
        result = residue.component
        if result is None or result.name in AMINO_ACIDS:
            continue
        part = slice(int(starts[n]), int(starts[n + 1]))
        key = result.name, tuple(draft.names[part].tolist()), frozenset(linked[n])
        if key not in known:
            known[key] = _formal(draft, n, part)
            if result.is_amino_acid and "N" in linked[n]:
                known[key][key[1].index("N")] = min(0, known[key][key[1].index("N")])
        states.charges[part] = known[key]
        total = int(known[key].sum())
        ends = [key[1].index(name) for name in result.phosphate[1:] if name in key[1]]
        if len(ends) == 3:  # of a 5' end, or of a nucleotide that is no part of a chain
            states.pka[n, result.name] = PHOSPHATE_PKA
            held = [k for k in ends if present.get(n, {}).get(key[1][k])]
            if ph < PHOSPHATE_PKA or held or residue.after_gap:
                charged = [k for k in ends if known[key][k]]
                atom = part.start + (held or sorted(charged, key=lambda k: result.leaving[result.row[key[1][k]]]))[-1]
                total -= int(states.charges[atom])
                states.charges[atom] = 0
        if result.name in METAL_CLUSTERS:
            total = METAL_CLUSTERS[result.name][0]
        if total:
            states.names[n] = f"{total:+d}"


def _formal(draft: Draft, n: int, part: slice) -> Integers:
    """Return the formal charges of a residue's atoms in water near pH 7."""
    result = draft.residues[n].component
    assert result is not None
    names = draft.names[part].tolist()
    elements = draft.elements[part].tolist()
    place = {name: k for k, name in enumerate(names)}
    charges = np.array([result.charges[result.row[name]] for name in names], np.int64)
    if result.stated:
        return charges
    bonds: list[list[tuple[int, int]]] = [[] for _ in names]
    for a, b, order in result.bonds.tolist():
        first, second = place.get(result.atoms[a]), place.get(result.atoms[b])
        if first is not None and second is not None:
            bonds[first].append((second, order))
            bonds[second].append((first, order))
    outside = np.zeros(len(names), np.int64)  # bonds to other residues
    for atom in draft.links.reshape(-1).tolist():
        if part.start <= atom < part.stop:
            outside[atom - part.start] += 1

    def ends(k: int) -> bool:
        return len(bonds[k]) + outside[k] == 1 and elements[k] in ("O", "S") and not charges[k]

    for k, element in enumerate(elements):
        single = [j for j, order in bonds[k] if order == SINGLE_BOND and ends(j)]
        double = [j for j, order in bonds[k] if order == DOUBLE_BOND and elements[j] in ("O", "S")]
        if element == "C" and double and single:
            charges[single[0]] = -1
        elif element in ("P", "As") and double:
            charges[single[:2]] = -1
            # the third hydroxyl group of a phosphate keeps its hydrogen (pKa 12)
            charges[[j for j, order in bonds[k] if order == SINGLE_BOND and charges[j] < 0][2:]] = 0
        elif element in ("S", "Se") and double and single:  # sulfonic and sulfinic acids
            charges[single] = -1
        elif element == "Se" and len(bonds[k]) + outside[k] == 1:
            # pKa 5.2 in selenocysteine (R. E. Huber, R. S. Criddle, Arch. Biochem. Biophys. 122, 1967, 164)
            charges[k] = -1
    _bases(elements, bonds, outside, charges)
    return charges


def _bases(elements: list[str], bonds: list[list[tuple[int, int]]], outside: Integers, charges: Integers) -> None:
    """Set the charges of amines, amidines and guanidines."""
    flat = [any(order in PLANAR_BONDS for _, order in near) for near in bonds]
    ring = [any(order in _AROMATIC for _, order in near) for near in bonds]
    for k, element in enumerate(elements):  # C(=N)(N): amidine, guanidine
        if element != "C":
            continue
        double = [j for j, order in bonds[k] if order == DOUBLE_BOND and elements[j] == "N"]
        single = [j for j, order in bonds[k] if order == SINGLE_BOND and elements[j] == "N"]
        # an imine in a ring, as in nucleobases, is not protonated near pH 7; a guanidine on an aromatic ring is
        plain = all(elements[i] == "C" and (i == k or not flat[i] or (j in single and ring[i]))
                    for j in (*double, *single) for i, _ in bonds[j]) and not any(ring[j] for j in single)
        if len(double) == 1 and single and plain and not charges[double[0]] and not outside[double[0]]:
            charges[double[0]] = 1
    charged: set[int] = set(np.flatnonzero(charges > 0).tolist())
    for k, element in enumerate(elements):
        if element != "N" or charges[k] or flat[k] or not bonds[k]:
            continue
        if any(elements[j] != "C" or flat[j] for j, _ in bonds[k]) or len(bonds[k]) + outside[k] > 3:
            continue
        # only one of two amines next to each other (piperazine) is charged
        near = {i for j, _ in bonds[k] for i, _ in bonds[j]}
        near |= {i for j in near for i, _ in bonds[j]}
        if outside[k] or near & charged:
            continue
        charges[k] = 1
        charged.add(k)
