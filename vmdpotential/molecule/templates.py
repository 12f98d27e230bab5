"""Charges of whole residues from force-field templates, matched by the names of their atoms.

A residue matches a template if both have the same atoms, after conversion of the names to one convention (PDB v3). So
the atoms of a residue decide on its protonation state, on chain ends and on deoxyribose, and an incomplete residue has
no match.
"""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from vmdpotential.errors import InputError
from vmdpotential.molecule.atomnames import common_names, family
from vmdpotential.molecule.names import WATER_RESIDUES

FORCE_FIELDS = ("charmm36", "amber14")


class Template(NamedTuple):
    """Charges (e) of the atoms of a residue after patches; `common` has them by names of the common convention."""

    label: str
    charges: dict[str, float]
    common: dict[str, float] | None


class TemplateMatch(NamedTuple):
    """The template of a residue and its charges (e) in the order of the residue's atoms.

    `own_names` means that the residue's atoms have the names of the force field. `file` is the name of the user's file
    that the charges are from, empty for a force field; likewise in :class:`TemplateMiss`.
    """

    label: str
    charges: tuple[float, ...]
    own_names: bool = False
    file: str = ""


class TemplateMiss(NamedTuple):
    """Atoms that the most similar template does not have, and its atoms that the residue lacks; or another reason."""

    extra: tuple[str, ...]
    lacking: tuple[str, ...]
    reason: str = ""
    file: str = ""


# ---- the table --------------------------------------------------------------------------------------


def table_bytes(name: str, what: str) -> bytes:
    """Return a file of `data/`, of the installed package or the source tree; `what` describes it in an error."""
    from importlib import resources

    try:
        return resources.files("vmdpotential.data").joinpath(name).read_bytes()
    except (ModuleNotFoundError, FileNotFoundError):
        checkout = Path(__file__).resolve().parent.parent / "data" / name
        try:
            return checkout.read_bytes()
        except OSError as error:
            raise InputError(f"{checkout}: the {what} is missing", "reinstall vmdpotential") from error


def table_text() -> str:
    """Return the text of the charge table."""
    return gzip.decompress(table_bytes("charges.csv.gz", "charge table")).decode("ascii")


def _parse(atoms: str) -> tuple[dict[str, float], list[str]]:
    """Return the charges of a row of the table, and the atoms that a patch removes."""
    words = atoms.split()
    charges = (word.split("=") for word in words if "=" in word)
    return {name: float(charge) for name, charge in charges}, [word[1:] for word in words if "=" not in word]


_SIDE_PATCHES = {"CYS": ["DISU"], "ASP": ["ASPP"], "GLU": ["GLUP"], "LYS": ["LSN"]}


#: Number of kinds of residues whose matches are kept.
MAX_MATCHES = 10_000


class Library:
    """The templates of one force field.

    Parameters
    ----------
    force_field : str
        One of :data:`FORCE_FIELDS`.
    """

    def __init__(self, force_field: str) -> None:
        self.force_field = force_field
        self.residues: dict[str, str] = {}
        self._patches: dict[str, tuple[dict[str, float], list[str]]] = {}
        for line in table_text().splitlines()[2:]:
            field, kind, name, atoms = line.split(",")
            if field != force_field:
                continue
            if kind == "residue":
                self.residues[name] = atoms
            else:
                self._patches[name] = _parse(atoms)
        if self._patches:
            # caps that are separate residues have the atoms that CHARMM's patches add to the residue next to them
            for cap, patch in (("ACE", "ACE"), ("NME", "CT3"), ("NHE", "CT2")):
                added = {atom: charge for atom, charge in self._patches[patch][0].items() if atom not in ("C", "O")}
                self.residues[cap] = " ".join(f"{atom}={charge}" for atom, charge in added.items())
        self._families: dict[str, list[str]] = {}
        for name in self.residues:
            self._families.setdefault(family(name), []).append(name)
        self._expanded: dict[str, list[Template]] = {}
        self._known = lru_cache(MAX_MATCHES)(self._match)

    def candidates(self, residue_name: str) -> list[str]:
        """Return the names of the templates that a residue name may stand for.

        A name of three letters may be a longer one (POP for POPC and POPE) that was truncated to the columns of a PDB
        file.
        """
        name = residue_name.upper()
        result = self._families.get(family(name), [])
        if not result and len(name) == 3 and name not in WATER_RESIDUES:
            result = [long for long in self.residues if len(long) > 3 and long.startswith(name)]
        # the template with exactly this name comes first, then its other variants
        return sorted(result, key=lambda template: template != name)

    def templates(self, name: str) -> Iterator[Template]:
        """Yield a residue's template, then its combinations with patches."""
        known = self._expanded.setdefault(name, [])
        if not known:
            known.extend(self._expand(name))
        yield from known

    def _expand(self, name: str) -> Iterator[Template]:
        base, _ = _parse(self.residues[name])
        for patches in self._patch_sets(name, base):
            charges = dict(base)
            for patch in patches:
                changed, removed = self._patches[patch]
                for atom in removed:
                    charges.pop(atom, None)
                charges |= changed
            # CT1 and CT3 add atoms with the same names as patches of the N-terminus, so they have no common names
            names = None if {"CT1", "CT2", "CT3"} & set(patches) else common_names(list(charges), family(name))
            common = dict(zip(names, charges.values(), strict=True)) if names else None
            yield Template("+".join([name, *patches]), charges, common)

    def _patch_sets(self, name: str, base: dict[str, float]) -> Iterator[tuple[str, ...]]:
        """Yield the possible combinations of CHARMM's patches for a residue."""
        if not self._patches:
            yield ()
            return
        first, middle, last = [""], [""], [""]
        if {"C1'", "O5'", "P"} <= base.keys():
            first, middle, last = ["", "DEOX"], ["", "5TER", "5PHO", "5MET"], ["", "3TER", "3PHO"]
        elif {"N", "CA", "C", "O"} <= base.keys():
            ends = {"GLY": ["GLYP", "NGNE"], "PRO": ["PROP"], "HYP": ["PROP"]}
            first = ["", *ends.get(name, ["NTER", "NNEU"]), "ACE"]
            middle = ["", *_SIDE_PATCHES.get(name, [])]
            last = ["", "CTER", "CT3", "CT2", "CNEU", *([] if name in ends else ["CT1"])]  # CT1 is for CA with one H
        for patches in itertools.product(first, middle, last):
            names = tuple(patch for patch in patches if patch)
            added = [self._patches[patch][0].keys() - base.keys() for patch in names]
            if len(set().union(*added)) == sum(map(len, added)):  # NTER and CT3 both have an atom HT1
                yield names

    def match(self, residue_name: str, atom_names: Sequence[str],
              disulfide: bool = False) -> TemplateMatch | TemplateMiss:
        """Return the template with exactly these atoms.

        Parameters
        ----------
        residue_name : str
        atom_names : sequence of str
        disulfide : bool
            Whether the sulphur of a cysteine without HG is bonded to another residue, as in a disulfide; otherwise it
            is a thiolate.

        Returns
        -------
        Match or Miss
            The first template with these atoms, or the differences from the most similar one.
        """
        return self._known(residue_name, tuple(atom_names), disulfide)

    def _match(self, residue_name: str, atom_names: tuple[str, ...], disulfide: bool) -> TemplateMatch | TemplateMiss:
        """Return the result of :meth:`match`, which keeps it for other residues of this kind."""
        if len(set(atom_names)) < len(atom_names):
            return TemplateMiss(tuple(name for name in dict.fromkeys(atom_names) if atom_names.count(name) > 1), ())
        names = common_names(atom_names, family(residue_name))
        raw_set, common_set = frozenset(atom_names), frozenset(names or ())
        nearest: tuple[int, TemplateMiss] | None = None
        for name in self.candidates(residue_name):
            for template in self.templates(name):
                if "SG" in raw_set and not _sulphur_fits(template, name, disulfide):
                    continue
                if template.charges.keys() == raw_set:
                    return TemplateMatch(template.label, tuple(template.charges[atom] for atom in atom_names), True)
                if names is None or template.common is None:
                    continue
                if template.common.keys() == common_set:
                    return TemplateMatch(template.label, tuple(template.common[atom] for atom in names))
                lacking = tuple(atom for atom in template.common if atom not in common_set)
                extra = tuple(
                    atom for atom, common in zip(atom_names, names, strict=True) if common not in template.common
                )
                distance = len(extra) + len(lacking)
                if nearest is None or distance < nearest[0]:
                    nearest = distance, TemplateMiss(extra, lacking)
        # if most atoms are unknown, it is another molecule with the same name
        if nearest is None or 2 * len(nearest[1].extra) > len(atom_names):
            return TemplateMiss(tuple(atom_names), ())
        return nearest[1]


def _sulphur_fits(template: Template, name: str, disulfide: bool) -> bool:
    """Return whether a template has the right state of a cysteine without HG: disulfide or thiolate."""
    if family(name) != "CYS" or "HG" in (template.common or template.charges):
        return True
    bonded = "DISU" in template.label or name.endswith("CYX")
    return bonded == disulfide


@cache
def template_library(force_field: str) -> Library:
    """Return the templates of a force field, which are read only once."""
    return Library(force_field)
