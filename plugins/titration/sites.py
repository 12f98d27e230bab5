"""Sites that bind a proton: the charges of their states, and the atoms of their model compounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from vmdpotential.arrays import Floats, Integers
from vmdpotential.errors import InputError, UsageError
from vmdpotential.molecule.atomnames import AMINO_ACIDS, family
from vmdpotential.molecule.elements import fill_elements
from vmdpotential.molecule.selection import is_water
from vmdpotential.molecule.structure import Structure
from vmdpotential.molecule.templates import FORCE_FIELDS, TemplateMatch, template_library
from vmdpotential.molecule.user_charges import ResidueCharges

from ..preparation.report import PreparedStructure
from ..preparation.states import MODEL_PKA

#: Groups that lose their charge with a proton; the others have it without.
BASES = ("HIS", "LYS", "ARG", "N+")

#: How much less stable neutral histidine with the proton on ND1 is in water than with it on NE2, in units of pKa (M.
#: Tanokura, Biochim. Biophys. Acta 742 (1983) 576: microscopic values of 6.53 and 6.92).
DELTA_TAUTOMER = 0.39

#: The state that a residue's row states if it is a site, and names of one of its hydrogens that a site has.
_STATES = {"ASP": "ASP", "GLU": "GLU", "HIP": "HIS", "CYS": "CYS", "TYR": "TYR", "LYS": "LYS", "ARG": "ARG",
           "N-terminus": "N+", "C-terminus": "C-"}

#: By group, the heavy atoms that share the change of the charge if no template has the other state, and the hydrogens
#: or acids' oxygens that are alike in water.
_HOLDERS = {"ASP": ("OD1", "OD2"), "GLU": ("OE1", "OE2"), "C-": ("O", "OXT"), "CYS": ("SG",), "TYR": ("OH",),
            "LYS": ("NZ",), "ARG": ("NH1", "NH2"), "N+": ("N",)}

#: By group, the atoms that the template of the other state has in addition, or lacks.
_ADDED = {"ASP": "HD2", "GLU": "HE2", "C-": "HXT"}
_LACKING = {"CYS": ("HG",), "LYS": ("HZ1", "HZ2", "HZ3"), "N+": ("H1", "H2", "H3")}

#: Longest peptide bond, A.
PEPTIDE_BOND = 1.7

#: Largest deviation from 1 e of the difference of the net charges of a ligand's states, as files round their charges.
ONE_PROTON = 0.02


class SiteState(NamedTuple):
    """A state of a site: protons more than in its first state, energy in water beyond that of these, and charges."""

    #: Name of the state in Amber.
    name: str
    protons: int
    #: Energy at pH 0 relative to the first state in the model compound, in units of pKa.
    energy: float
    #: (A,) float64, e: the charges of the atoms of the site's residue less those of its first state.
    charges: Floats


@dataclass(frozen=True, eq=False)
class TitrationSite:
    """A site, whose first state is neutral; of a ligand's states the one of the smaller net charge is the first.

    Parameters
    ----------
    label : str
        Name and number of the residue, with ``N+`` or ``C-`` for an end of a chain, and the chain.
    group : str
        Group by which model values are known: ``ASP``, ``N+`` ..., or the name of a ligand.
    model_pka : float
        The pKa of the model compound in water.
    residue : int
        Index of the residue.
    atoms : (A,) int64
        Atoms of the residue.
    states : sequence of SiteState
        All but the first one, which has the charges of :attr:`TitratedStructure.neutral`.
    model : (M,) int64
        Atoms of the model compound: the residue, and the peptide groups next to it.
    """

    label: str
    group: str
    model_pka: float
    residue: int
    atoms: Integers
    states: tuple[SiteState, ...]
    model: Integers

    @property
    def is_base(self) -> bool:
        """Whether the site's first state is without its proton."""
        return any(state.protons > 0 for state in self.states)


@dataclass(frozen=True, eq=False)
class TitratedStructure:
    """A completed structure with all hydrogens that its sites' states need.

    Parameters
    ----------
    structure : Structure
        With the charges and radii of the file's or the force field's.
    sites : sequence of TitrationSite
    neutral : (N,) float64, e
        Charges with each site in its first state.
    prepared : PreparedStructure
        What was added.
    bare : Structure
        The atoms of the input to which hydrogens were added, as `origins` of `structure` count them.
    rows : (B,) int64
        These atoms in the input.
    """

    structure: Structure
    sites: tuple[TitrationSite, ...]
    neutral: Floats
    prepared: PreparedStructure
    bare: Structure
    rows: Integers


def no_sites(structure: Structure) -> tuple[str, str]:
    """Return an error and its hint for a structure without sites."""
    return (f"{structure.where}: has no amino acid that binds or releases a proton", "give a structure of a protein")


def titrated_structure(structure: Structure, *, force_field: str = "charmm36", radii: str = "mbondi2",
                       charges: Sequence[ResidueCharges] = (),
                       model_pka: Mapping[str, float] | None = None) -> TitratedStructure:
    """Return a structure without its waters, with the hydrogens that its sites need, and the sites.

    The hydrogens of amino acids are replaced, and names that stand for a protonation state are not followed. A
    ligand is a site if it has a value among `model_pka`, and its states with and without the proton among `charges`.

    Raises
    ------
    UsageError
        For a model pKa of a ligand without two states, or of one that the structure does not have.
    InputError
        For a structure without sites.
    TaskError
        When the structure cannot be completed.
    """
    from ..preparation.prepare import prepare_structure

    families = np.array([family(str(name)) for name in structure.residue_names])
    amino = np.isin(families, AMINO_ACIDS)
    hydrogen = np.isin(structure.elements, ["H", "D"]) if structure.elements is not None else np.zeros(len(amino), bool)
    bare = replace(structure, residue_names=np.where(amino, families, structure.residue_names).astype(np.str_))
    kept = ~(amino & hydrogen) & ~is_water(structure)
    bare = bare.part(kept)
    ligands = ligand_forms(charges, model_pka or {}, bare)
    unbound = [id(forms.free) for forms in ligands.values()]
    bound = [charge for charge in charges if id(charge) not in unbound]
    prepared = prepare_structure(
        bare, radii=radii, charges=bound, force_field=force_field,
        pka=lambda _bare, draft, _charges: {  # acids are charged, and all other sites have their proton
            (n, group): -99.0 if group in _ADDED else 99.0
            for n in range(len(draft.residues)) for group in MODEL_PKA})
    whole = prepared.structure
    field = prepared.charges.source if prepared.charges.source in FORCE_FIELDS else FORCE_FIELDS[0]
    neutral, sites = whole.known_charges.copy(), []
    values = MODEL_PKA | {name.upper(): value for name, value in (model_pka or {}).items()}
    for n, row in enumerate(prepared.rows):
        if (name := row.residue.upper()) in ligands:
            atoms = np.arange(whole.residue_starts[n], whole.residue_starts[n + 1])
            changes, states = _ligand_states(whole, atoms, bare, ligands[name], values[name], force_field)
            neutral[atoms] += changes
            sites.append(TitrationSite(row.label, name, values[name], n, atoms, states, atoms))
            continue
        for word in row.state.split("+"):
            group = _STATES.get(word)
            atoms = np.arange(whole.residue_starts[n], whole.residue_starts[n + 1])
            found = None if group is None else _states(whole, atoms, group, field, values[group])
            if group is None or found is None:
                continue
            end = f" {group}" if group in ("N+", "C-") else ""
            label = f"{row.residue}{row.number}{end} {row.chain}".rstrip()
            changes, states = found
            neutral[atoms] += changes
            sites.append(TitrationSite(label, group, values[group], n, atoms, states, _model(whole, n)))
    if not sites:
        raise InputError(*no_sites(structure))
    return TitratedStructure(whole, tuple(sites), neutral, prepared, bare, np.flatnonzero(kept))


class LigandForms(NamedTuple):
    """Charges of a ligand with and without a proton."""

    bound: ResidueCharges
    free: ResidueCharges


def ligand_forms(charges: Sequence[ResidueCharges], model_pka: Mapping[str, float],
                 structure: Structure) -> dict[str, LigandForms]:
    """Return both forms of each ligand with a model pKa, by its name.

    Raises
    ------
    UsageError
        For a name of neither a group nor a residue of the structure, and forms that do not differ by one proton.
    """
    result: dict[str, LigandForms] = {}
    present = {str(name).upper() for name in structure.residue_names}
    for given in model_pka:
        name = given.upper()
        if name in MODEL_PKA:
            continue
        if name not in present:
            raise UsageError("model_pka", f"{given} is no residue of {structure.where}",
                             f"name a ligand, or one of {', '.join(MODEL_PKA)}", value=given)
        forms = sorted((charge for charge in charges if name in (charge.residue.upper(), charge.short.upper())),
                       key=lambda charge: -len(charge.charges))
        hint = "give {charges} two files of it, with and without the proton (.mol2 or .sdf)"
        if len(forms) != 2 or any(form.molecule is None for form in forms):
            raise UsageError("charges", f"two states of {given} with bonds are needed for its pKa, and there are "
                             f"{sum(form.molecule is not None for form in forms)}", hint, value=given)
        elements = [Counter(form.molecule.elements) for form in forms if form.molecule is not None]
        change = sum(forms[0].charges.values()) - sum(forms[1].charges.values())
        if elements[0] - elements[1] != Counter("H") or elements[1] - elements[0] or abs(change - 1) > ONE_PROTON:
            raise UsageError("charges", f"{forms[0].source} and {forms[1].source} do not differ by one hydrogen and a "
                             f"charge of 1 e, but by {change:.4g} e", hint, value=given)
        result[name] = LigandForms(*forms)
    return result


def _ligand_states(whole: Structure, atoms: Integers, bare: Structure, forms: LigandForms, pka: float,
                   force_field: str) -> tuple[Floats, tuple[SiteState, ...]]:
    """Return the charges of a ligand's first state less the structure's, which has its proton, and its other state.

    The ligand is completed without the proton as well. The hydrogens of an atom share the charge that they have there.
    """
    from ..preparation.prepare import prepare_structure

    assert whole.origins is not None
    sources = np.unique(bare.residue_of[whole.origins[atoms]])
    alone = bare.take(np.flatnonzero(np.isin(bare.residue_of, sources)))
    free = prepare_structure(alone, charges=[forms.free], force_field=force_field).structure
    own, charges = whole.known_charges[atoms], np.zeros(len(atoms))
    places = dict(zip(free.atom_names.tolist(), range(len(free)), strict=True))
    part = whole.take(atoms)
    holders, others = holders_of(part), holders_of(free)
    names = part.atom_names.tolist()
    for n in np.flatnonzero(holders < 0):
        here = places[names[n]]
        charges[n] = free.known_charges[here]
        held = holders == n
        charges[held] = free.known_charges[others == here].sum() / max(1, held.sum())
    change = charges - own
    if abs(own.sum() + change.sum()) < abs(own.sum()):
        return change, (SiteState("protonated", 1, -pka, -change),)
    return np.zeros(len(atoms)), (SiteState("deprotonated", -1, pka, change),)


def holders_of(structure: Structure) -> Integers:
    """Return the nearest heavy atom of each hydrogen, and -1 for other atoms."""
    hydrogen = np.isin(fill_elements(structure).elements, ["H", "D"])
    heavy = np.flatnonzero(~hydrogen)
    apart = np.linalg.norm(structure.positions[:, None] - structure.positions[heavy], axis=2)
    return np.where(hydrogen, heavy[apart.argmin(1)], -1)


def _states(whole: Structure, atoms: Integers, group: str, field: str,
            pka: float) -> tuple[Floats, tuple[SiteState, ...]] | None:
    """Return the charges of a site's neutral state less the structure's, and its other states; None for no site."""
    names, own = whole.atom_names[atoms].tolist(), whole.known_charges[atoms]
    if not {*_HOLDERS.get(group, ())} <= set(names) or (group == "CYS" and "HG" not in names):
        return None
    name = family(str(whole.residue_names[atoms[0]]))
    if group == "HIS":
        epsilon, delta = (_matched(field, name, names, own, lacking=(hydrogen,)) for hydrogen in ("HD1", "HE2"))
        if epsilon is None or delta is None:
            return None
        # of the macroscopic value, which the pKa of the model compound is
        energy = -pka - float(np.log10(1 + 10**-DELTA_TAUTOMER))
        return epsilon - own, (SiteState("HIP", 1, energy, own - epsilon),
                               SiteState("HID", 0, DELTA_TAUTOMER, delta - epsilon))
    other = _other_state(field, name, names, own, group)
    if group in _ADDED:
        return other - own, (SiteState("charged", -1, pka, own - other),)
    if group in BASES:
        return other - own, (SiteState("charged", 1, -pka, own - other),)
    return np.zeros(len(atoms)), (SiteState("charged", -1, pka, other - own),)


def _other_state(field: str, name: str, names: list[str], own: Floats, group: str) -> Floats:
    """Return the charges (A,) of the state with one proton more, of an acid's charged form, or one less."""
    change = 1.0 if group in _ADDED else -1.0
    holders = [names.index(atom) for atom in _HOLDERS[group]]
    alike: list[int] = []
    result: Floats | None
    if group in _ADDED:
        result = _matched(field, name, names, own, added=_ADDED[group])
        alike = holders  # the proton's charge is on both oxygens, which are alike in water
    elif group in _LACKING:
        alike = [names.index(atom) for atom in _LACKING[group] if atom in names]
        result = _matched(field, name, names, own, lacking=tuple(names[atom] for atom in alike[-1:]))
    else:
        result = None
    if result is None:
        result = own.copy()
        result[holders] += change / len(holders)
        return result
    result[alike] = result[alike].mean()
    return result


def _matched(field: str, name: str, names: list[str], own: Floats, added: str = "",
             lacking: tuple[str, ...] = ()) -> Floats | None:
    """Return the charges (A,) of a template with an atom more, whose charge the atoms of `added` share, or less.

    The template is used only if it changes the net charge by one proton's.
    """
    present = [n for n, atom in enumerate(names) if atom not in lacking]
    match = template_library(field).match(name, [names[n] for n in present] + ([added] if added else []))
    if not isinstance(match, TemplateMatch):
        return None
    result = np.zeros(len(names))
    result[present] = match.charges[: len(present)]
    if added:
        result[[names.index(atom) for atom in _HOLDERS[next(g for g, a in _ADDED.items() if a == added)]]] += (
            match.charges[-1] / 2)
    change = result.sum() - own.sum()
    return result if abs(abs(change) - 1) < 1e-3 else None


def _model(whole: Structure, residue: int) -> Integers:
    """Return the atoms of a residue and of the peptide groups next to it."""
    starts = whole.residue_starts
    rows = np.arange(starts[residue], starts[residue + 1])
    chosen = [rows]
    for near, own, other, group in ((residue - 1, "N", "C", ("C", "O")),
                                    (residue + 1, "C", "N", ("N", "H", "CA", "HA"))):
        if not 0 <= near < len(starts) - 1:
            continue
        others = np.arange(starts[near], starts[near + 1])
        a, b = rows[whole.atom_names[rows] == own], others[whole.atom_names[others] == other]
        if len(a) and len(b) and np.linalg.norm(whole.positions[a[0]] - whole.positions[b[0]]) < PEPTIDE_BOND:
            chosen.append(others[np.isin(whole.atom_names[others], group)])
    return np.sort(np.concatenate(chosen))
