"""Requested ions: names and formulas in any program's notation are converted to species and their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from vmdpotential.errors import UsageError
from vmdpotential.molecule.conversions import as_structure
from vmdpotential.molecule.names import ION_RESIDUES, Ion
from vmdpotential.molecule.structure import Structure

from .counts import IonCounts, IonSpecies, explicit_counts
from .edit import IonNames, find_ion, name_ion
from .options import IonOptions
from .salts import Salt, check_fractions, find_salt, neutralising_ions, plan_counts, plan_mixture
from .templates import IonTemplate, template_of


class RequestedIons:
    """Requested ions, and the names with which they are written.

    Parameters
    ----------
    structure : Structure
    options : IonOptions

    Attributes
    ----------
    written : dict
        Ions of one atom, by the names of their species.
    templates : dict
        Ions of several atoms, by the names of their species.

    Raises
    ------
    UsageError
        For an unknown ion, one of the wrong sign, or one that is listed twice.
    """

    def __init__(self, structure: Structure, options: IonOptions) -> None:
        self._structure, self._options = structure, options
        salt, cation, anion = options.salt, options.cation, options.anion
        self.templates: dict[str, IonTemplate] = {
            name: template_of(name, as_structure(each)) for name, each in (options.templates or {}).items()}
        self.written: dict[str, IonNames] = {}
        self._known: dict[Ion, IonSpecies] = {}
        self._salts: list[Salt] = []
        self._listed: list[tuple[IonSpecies, int]] | None = None
        if options.ions is not None:
            if salt is not None:
                raise UsageError("ions", "the numbers of ions are already given", "leave out {salt}")
            self._listed = self._list(options.ions)
            return
        if salt is not None:
            check_fractions(salt)
            charges = {name: template.species.charge for name, template in self.templates.items()}
            for formula, fraction in salt.items():
                pair = find_salt(formula, charges)
                self._salts.append(Salt(formula, self._find(pair[0], "salt"), self._find(pair[1], "salt"), fraction))
        default = neutralising_ions(self._salts) if self._salts else None
        self._cation = default[0] if default and cation == "auto" else self._signed(cation, "SOD", "cation", 1)
        self._anion = default[1] if default and anion == "auto" else self._signed(anion, "CLA", "anion", -1)

    def _find(self, name: str, parameter: str) -> IonSpecies:
        if name in self.templates:
            return self.templates[name].species
        ion = name_ion(self._structure, name, parameter, self._options.naming)
        self.written[ion.residue] = ion
        return self._known.setdefault(find_ion(name, parameter), IonSpecies(ion.residue, round(ion.charge)))

    def _signed(self, name: str, default: str, parameter: str, sign: int) -> IonSpecies:
        ion = self._find(default if name == "auto" else name, parameter)
        if ion.charge * sign < 0:
            word = "positive" if sign > 0 else "negative"
            raise UsageError(parameter, f"its charge is {ion.charge:+d}", f"choose a {word} ion", value=name)
        return ion

    def _list(self, ions: Mapping[str, int]) -> list[tuple[IonSpecies, int]]:
        if not ions or min(ions.values()) < 0:
            raise UsageError("ions", "give at least one ion and its number, such as SOD=11,CLA=2")
        results = [self._find(name, "ions") for name in ions]
        if len({find_ion(name, "ions") if name not in self.templates else name for name in ions}) < len(results):
            raise UsageError("ions", "two of these names are the same ion", "list it once", value=",".join(ions))
        return list(zip(results, ions.values(), strict=True))

    def existing(self, free: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[tuple[IonSpecies, int]]:
        """Return the existing ions: the free ions of one atom, a mask (N,), and residues with the templates' names.

        Ions that are also requested get the names with which these are written, even if the structure's differ.
        """
        structure = self._structure
        numbers: dict[IonSpecies, int] = {}
        for name, number in zip(*np.unique(structure.residue_names[free], return_counts=True), strict=True):
            ion = ION_RESIDUES[str(name).upper()]
            species = self._known.get(ion, IonSpecies(str(name), ion.charge))
            numbers[species] = numbers.get(species, 0) + int(number)
        results = list(numbers.items())
        residues = structure.residue_names[structure.residue_starts[:-1]]
        for name, template in self.templates.items():
            number = int((residues == name).sum())
            if number:
                results.append((template.species, number))
        return results

    def counts(self, net_charge: float, waters: int, existing: Sequence[tuple[IonSpecies, int]]) -> IonCounts:
        """Return the numbers of ions to add; see :func:`~vmdpotential.plugins.ions.salts.plan_counts`."""
        asked = self._options
        if self._listed is not None:
            if asked.concentration:
                raise UsageError("ions", "the numbers of ions are already given", "leave out {concentration}")
            return explicit_counts(net_charge, waters, self._listed, {ion.name: n for ion, n in existing})
        if self._salts and not asked.concentration:
            raise UsageError("salt", "the composition of a salt needs its concentration", "give {concentration} too")
        plan = partial(plan_mixture, salts=self._salts) if self._salts else plan_counts
        return plan(net_charge, waters, cation=self._cation, anion=self._anion, neutralize=asked.neutralize,
                    concentration=asked.concentration, method=asked.count, existing=existing,
                    count_existing=asked.count_existing)
