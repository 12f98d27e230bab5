"""Mixtures of salts: formulas, integral numbers of their ions, and neutralisation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from vmdpotential.errors import UsageError
from vmdpotential.molecule.names import ION_RESIDUES
from vmdpotential.parameters import parse_items

from .counts import COUNT_FORMULAS, IonCounts, IonSpecies, balance_charge, water_molarity, whole_charge

#: Largest deviation of the sum of fractions from 1, for rounded fractions (0.333).
FRACTION_ERROR = 0.005


@dataclass(frozen=True)
class Salt:
    """Salt in a mixture: its ions, and its fraction of all formula units."""

    formula: str
    cation: IonSpecies
    anion: IonSpecies
    fraction: float

    @property
    def ions(self) -> tuple[tuple[IonSpecies, int], tuple[IonSpecies, int]]:
        """Ions of a formula unit and their numbers, the smallest that are neutral."""
        charge = math.lcm(self.cation.charge, self.anion.charge)
        return (self.cation, charge // self.cation.charge), (self.anion, charge // -self.anion.charge)


@dataclass(frozen=True)
class SaltShare:
    """Share of a total number: the fraction, its product with the total, and the integer used."""

    name: str
    fraction: float
    total: int
    exact: float
    number: int

    def __str__(self) -> str:
        return f"{self.number} {self.name} ({self.fraction:.4g} of {self.total} is {self.exact:.4g})"


def parse_salt(text: str) -> dict[str, float]:
    """Return ``{formula: fraction}`` for a text such as ``NaCl:0.7,KCl:0.3``; a single formula has the fraction 1.

    Raises
    ------
    ValueError
        For other texts, with the reason.
    """
    form = "FORMULA:FRACTION, several with commas, such as NaCl:0.7,KCl:0.2,MgCl2:0.1"
    fractions = parse_items(text if ":" in text or "," in text else f"{text}:1", ":", form)
    try:
        result = {name: float(fraction) for name, fraction in fractions.items()}
    except ValueError:
        raise ValueError(f"write {form}") from None
    if not all(0 < fraction < math.inf for fraction in result.values()):
        raise ValueError(f"write {form}")
    check_fractions(result)
    return result


def check_fractions(salts: Mapping[str, float]) -> None:
    """Raise UsageError if a fraction of a mixture is not above 0, or they do not add up to 1."""
    total = math.fsum(salts.values())
    if not salts or not min(salts.values()) > 0:
        raise UsageError("salt", "every fraction must be above 0")
    if not abs(total - 1) <= FRACTION_ERROR:
        raise UsageError("salt", f"the fractions of the formula units add up to {total:g}, not 1")


def find_salt(formula: str, others: Mapping[str, int]) -> tuple[str, str]:
    """Return the names of the cation and the anion of a formula such as NaCl, MgCl2, (NH4)2SO4.

    Parameters
    ----------
    formula : str
    others : mapping
        Names and charges of polyatomic ions, which are known from templates.

    Raises
    ------
    UsageError
        If it is not a neutral formula of two known ions.
    """
    for name, ions in _formulas(others):
        if name == formula:
            return ions
    raise UsageError("salt", f"{formula}: is not a neutral formula of two known ions",
                     "write one such as NaCl, CaCl2 or FeCl3; each polyatomic ion, as in (NH4)2SO4, needs an "
                     "{ion_template}")


def _formulas(others: Mapping[str, int]) -> Iterator[tuple[str, tuple[str, str]]]:
    ions = [(ion.element, ion.charge, ion.residue) for ion in dict.fromkeys(ION_RESIDUES.values())]
    ions += [(name, charge, name) for name, charge in others.items()]

    def part(symbol: str, number: int) -> str:
        return symbol if number == 1 else f"({symbol}){number}" if symbol in others else f"{symbol}{number}"

    for positive, plus, cation in ions:
        for negative, minus, anion in ions:
            if plus > 0 > minus:
                charge = math.lcm(plus, minus)
                yield part(positive, charge // plus) + part(negative, charge // -minus), (cation, anion)


def apportion(total: int, names: Sequence[str], fractions: Sequence[float]) -> tuple[SaltShare, ...]:
    """Return integers that add up to a total: each share is rounded down, the rest goes by largest remainder."""
    norm = math.fsum(fractions)
    exact = [round(total * fraction / norm, 9) for fraction in fractions]
    numbers = [math.floor(value) for value in exact]
    for row in sorted(range(len(exact)), key=lambda row: numbers[row] - exact[row])[: total - sum(numbers)]:
        numbers[row] += 1
    return tuple(SaltShare(name, fraction / norm, total, value, number) for name, fraction, value, number in
                 zip(names, fractions, exact, numbers, strict=True))


def neutralising_ions(salts: Sequence[Salt]) -> tuple[IonSpecies, IonSpecies]:
    """Return the neutralising cation and anion of a mixture: the most common of those of the lowest charge."""
    cations, anions = _ion_fractions(salts, "cation"), _ion_fractions(salts, "anion")

    def best(fractions: Mapping[IonSpecies, float]) -> IonSpecies:
        return min(fractions, key=lambda ion: (abs(ion.charge), -fractions[ion]))

    return best(cations), best(anions)


def _ion_fractions(salts: Sequence[Salt], kind: str) -> dict[IonSpecies, float]:
    """Return the mean number of each cation or anion in a formula unit of the mixture."""
    result: dict[IonSpecies, float] = {}
    for salt in salts:
        ion, number = salt.ions[kind == "anion"]
        result[ion] = result.get(ion, 0.0) + salt.fraction * number
    return result


def plan_counts(
    net_charge: float,
    waters: int,
    cation: IonSpecies,
    anion: IonSpecies,
    *,
    neutralize: bool = True,
    concentration: float = 0.0,
    method: str = "add",
    existing: Sequence[tuple[IonSpecies, int]] = (),
    count_existing: bool = True,
) -> IonCounts:
    """Return the numbers of cations and anions to add.

    The numbers for the system without any free ions are computed first. Existing ions are subtracted (unless
    `count_existing` is false), and the remainder is shifted so that no number is negative and the net charge, rounded
    to an integer, is exactly compensated.

    Let N0 = concentration * waters / (55.35 mol/L) be the number of ion pairs in the volume that the waters have at
    water's density, and Q the charge to compensate:

    ``add``
        round(N0) formula units of salt on top of the neutralising ions.
    ``sltcap``
        N+- = N0 exp(-+asinh(Q / (2 N0))) (Schmit et al., J. Chem. Theory Comput. 2018, 14, 1823).
    ``split``
        N+- = N0 -+ Q/2, valid for N0 >= \\|Q\\| only (Machado and Pantano, J. Chem. Theory Comput.
        2020, 16, 1367).

    If counter-ions alone cannot compensate the charge (an odd charge and a divalent counter-ion), one more
    counter-ion and the co-ions that compensate it are added.

    Parameters
    ----------
    net_charge : float
        Charge of the whole structure, including existing ions, e.
    waters : int
        Number of water molecules.
    cation, anion : Species
    neutralize : bool
        Whether to compensate the net charge.
    concentration : float
        Concentration of salt, mol/L.
    method : str
        One of :data:`COUNT_METHODS`.
    existing : sequence of (Species, int)
        Free ions in the structure.
    count_existing : bool
        Whether existing ions are a part of the salt.

    Returns
    -------
    IonCounts

    Raises
    ------
    UsageError
        If the method is not valid for these ions or this charge.
    InputError
        If the net charge is not close to an integer.
    """
    present = [sum(ion.charge * n * sign for ion, n in existing if ion.charge * sign > 0) for sign in (1, -1)]
    counts = plan_mixture(
        net_charge, waters, [Salt("", cation, anion, 1.0)], cation, anion, concentration=concentration,
        neutralize=neutralize, method=method, count_existing=count_existing,
        existing=[(cation, Fraction(present[0], cation.charge)), (anion, Fraction(present[1], -anion.charge))])
    names = dict.fromkeys(ion.name for ion, _ in existing)
    return replace(counts, mixture=(), existing={
        name: sum(number for ion, number in existing if ion.name == name) for name in names})


def plan_mixture(
    net_charge: float,
    waters: int,
    salts: Sequence[Salt],
    cation: IonSpecies,
    anion: IonSpecies,
    *,
    concentration: float,
    neutralize: bool = True,
    method: str = "add",
    existing: Sequence[tuple[IonSpecies, int | Fraction]] = (),
    count_existing: bool = True,
) -> IonCounts:
    """Return the numbers of ions of a mixture of salts to add.

    As in :func:`~vmdpotential.plugins.ions.salts.plan_counts`, with these differences:

    ``add``
        The round(N0) formula units are divided among the salts by their fractions and largest remainder. `cation` and
        `anion` neutralise.
    ``sltcap``, ``split``
        The numbers of cations and of anions are divided likewise; all ions must be monovalent.
    `existing`
        Existing ions are subtracted for each kind; ions of other kinds are not part of the salt. If there are more of
        a kind than required, `cation` or `anion` compensates their charge.

    The charge of the added ions is exactly opposite to the net charge, rounded to an integer; 0 without `neutralize`.

    Raises
    ------
    UsageError
        If the method is not valid for these ions or this charge.
    InputError
        If the net charge is not close to an integer.
    """
    charge, warnings = whole_charge(net_charge, neutralize)
    target = concentration * waters / water_molarity()  # formula units
    present: dict[IonSpecies, int | Fraction] = {}
    for ion, number in existing:
        present[ion] = present.get(ion, 0) + number
    kinds = dict.fromkeys([*(salt.cation for salt in salts), cation, *(salt.anion for salt in salts), anion])
    counted = {ion: present.get(ion, 0) if count_existing else 0 for ion in kinds}
    bare = int(charge - sum(ion.charge * number for ion, number in counted.items()))
    base: dict[IonSpecies, int | Fraction] = dict.fromkeys(kinds, 0)
    requested = dict.fromkeys(kinds, 0)
    if method == "add" or not target:
        units = math.floor(target + 0.5)
        shares = apportion(units, [salt.formula for salt in salts], [salt.fraction for salt in salts])
        for salt, share in zip(salts, shares, strict=True):
            for ion, number in salt.ions:
                requested[ion] += number * share.number
        if neutralize:
            counter = cation if bare < 0 else anion
            base[counter] = abs(Fraction(bare, counter.charge))
    else:
        if not neutralize:
            raise UsageError("count", "this method always neutralises the system",
                             "use {count add} with {neutralize False}", value=method)
        if any(abs(ion.charge) != 1 for ion in kinds):
            raise UsageError("count", "this method is valid for monovalent ions only", "use {count add}", value=method)
        shares = ()
        for kind, number in zip(("cation", "anion"), COUNT_FORMULAS[method](bare, target), strict=True):
            fractions = _ion_fractions(salts, kind)
            parts = apportion(number, [ion.name for ion in fractions], list(fractions.values()))
            shares += parts
            for ion, share in zip(fractions, parts, strict=True):
                requested[ion] += share.number
    added = {ion: max(0, math.ceil(base[ion] + requested[ion] - counted[ion])) for ion in kinds}
    left = (charge if neutralize else 0) + sum(ion.charge * number for ion, number in added.items())
    for ion, number in zip((cation, anion), balance_charge(left, 0, cation.charge, -anion.charge), strict=True):
        added[ion] += number
    # the added ions that are reported as neutralising; the others are salt
    pair = balance_charge(charge, 0, cation.charge, -anion.charge) if neutralize else (0, 0)
    neutral = dict.fromkeys(kinds, 0) | {
        ion: min(number, added[ion]) for ion, number in zip((cation, anion), pair, strict=True)}
    return IonCounts(
        tuple((ion, number) for ion, number in added.items() if number),
        {ion.name: number for ion, number in neutral.items() if number},
        {ion.name: number - neutral[ion] for ion, number in added.items() if number > neutral[ion]},
        method, net_charge, waters, concentration, {ion.name: int(number) for ion, number in present.items()},
        count_existing, neutralize, warnings, shares)
