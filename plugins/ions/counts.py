"""Numbers of ions: neutralising ions, salt at a concentration, or an explicit list."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from vmdpotential.errors import InputError, UsageError
from vmdpotential.parameters import parse_items
from vmdpotential.units import ANGSTROM, AVOGADRO

if TYPE_CHECKING:
    from .salts import SaltShare

#: Volume of a water molecule, A^3: 18.015 g/mol at 0.997 g/cm^3, that of water at 25 C (CRC Handbook). (VMD's
#: autoionize counts with 31.05 A^3, so that it adds 3.5 % more salt.)
WATER_VOLUME = 30.0

#: How the number of salt ions follows from a concentration.
COUNT_METHODS = ("add", "sltcap", "split")

#: Deviation of the net charge from an integer, e, above which a warning is given; float32 topologies reach 1e-3.
INTEGER_WARNING = 1e-3
#: Deviation above which no number of ions neutralises the charge, and an error is raised.
INTEGER_LIMIT = 0.1


def water_molarity() -> float:
    """Return the concentration of water in water, 55.35 mol/L, from :data:`WATER_VOLUME`."""
    return 1.0 / (AVOGADRO * WATER_VOLUME * ANGSTROM**3 * 1000)


@dataclass(frozen=True)
class IonSpecies:
    """Species of ions: its name, charge in e, and the largest distance of an atom from the ion's centre, A."""

    name: str
    charge: int
    radius: float = 0.0


@dataclass(frozen=True)
class IonCounts:
    """Numbers of the ions to add, and how they were determined.

    Parameters
    ----------
    added : tuple of (Species, int)
        Ions to add, cations first; only species with numbers above 0.
    neutralizing, salt : dict
        The same numbers by purpose, ``{name: number}``. Both are empty for an explicit list.
    method : str
        ``add``, ``sltcap``, ``split`` or ``explicit``.
    net_charge : float
        Charge of the structure before ions are added, e.
    waters : int
        Number of water molecules before ions are added.
    concentration : float
        Requested concentration of salt, mol/L.
    existing : dict
        Ions already in the structure, ``{name: number}``.
    existing_counted : bool
        Whether these were subtracted from the requested salt.
    neutralize : bool
        Whether the net charge is compensated.
    warnings : tuple of str
    mixture : tuple of Share
        Division of the salt among the parts of a mixture.
    """

    added: tuple[tuple[IonSpecies, int], ...]
    neutralizing: Mapping[str, int]
    salt: Mapping[str, int]
    method: str
    net_charge: float
    waters: int
    concentration: float
    existing: Mapping[str, int]
    existing_counted: bool
    neutralize: bool
    warnings: tuple[str, ...] = ()
    mixture: tuple[SaltShare, ...] = ()

    @property
    def total(self) -> int:
        """Number of ions added."""
        return sum(number for _, number in self.added)

    @property
    def added_charge(self) -> int:
        """Charge of the ions added, e."""
        return sum(species.charge * number for species, number in self.added)

    @property
    def final_charge(self) -> float:
        """Charge of the structure with the added ions, e."""
        return self.net_charge + self.added_charge

    @property
    def water_volume(self) -> float:
        """Volume to which concentrations refer, A^3: that of the waters before ions are added, at water's density."""
        return self.waters * WATER_VOLUME

    @property
    def concentrations(self) -> dict[str, float]:
        """Final concentration of every ion species in the remaining water, mol/L, existing ions included."""
        numbers = dict(self.existing)
        for species, number in self.added:
            numbers[species.name] = numbers.get(species.name, 0) + number
        left = self.waters - self.total
        return {name: number / left * water_molarity() if left > 0 else 0.0 for name, number in numbers.items()}

    @property
    def lines(self) -> list[str]:
        """Lines of a report that explains the numbers."""
        lines = [f"net charge before: {_charge(self.net_charge)} e; waters: {self.waters}"]
        if self.method == "explicit":
            lines.append(f"ions: {_numbers({s.name: n for s, n in self.added})}, as listed")
        else:
            if not self.neutralize:
                lines.append("neutralising ions: none, as requested")
            else:
                lines.append(f"neutralising ions: {_numbers(self.neutralizing)}")
            if self.concentration > 0:
                explanation = {
                    "add": "in addition to the neutralising ions",
                    "sltcap": "SLTCAP: the concentration is that of the bulk far from the solute; "
                              "the neutralising ions are part of it",
                    "split": "SPLIT: the neutralising charge is split between more counter-ions and fewer co-ions",
                }[self.method]
                lines.append(
                    f"salt ions: {_numbers(self.salt)} for {self.concentration:g} mol/L in "
                    f"{self.water_volume / 1000:.4g} nm^3 of water, {self.waters} molecules of {WATER_VOLUME:g} A^3 "
                    f"({explanation})")
            if self.mixture:
                lines.append(f"mixture: {', '.join(map(str, self.mixture))}; rounded down, the rest by largest "
                             "remainder")
        if self.existing:
            text = f"existing ions: {_numbers(self.existing)}"
            if self.method != "explicit" and self.concentration > 0:
                text += ", counted as part of the salt" if self.existing_counted else ", not counted as salt"
            lines.append(text)
        if self.concentrations:
            each = ", ".join(f"{name} {value:.3f}" for name, value in self.concentrations.items())
            lines.append(f"concentrations afterwards: {each} mol/L")
        lines.append(f"net charge afterwards: {_charge(self.final_charge)} e")
        return lines

    @property
    def data(self) -> dict[str, object]:
        """The numbers as a dictionary for JSON."""
        return {
            "added": {species.name: number for species, number in self.added},
            "neutralizing": dict(self.neutralizing),
            "salt": dict(self.salt),
            "method": self.method,
            "net_charge_before": self.net_charge,
            "net_charge_after": self.final_charge,
            "waters_before": self.waters,
            "water_volume": self.water_volume,
            "concentration": self.concentration,
            "mixture": [vars(share) for share in self.mixture],
            "concentrations_after": self.concentrations,
            "existing": dict(self.existing),
            "existing_counted": self.existing_counted,
        }


def _numbers(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {name}" for name, number in numbers.items() if number) or "none"


def _charge(value: float) -> str:
    nearest = round(value)
    if abs(value - nearest) > INTEGER_WARNING:
        return f"{value:+.4f}"
    return f"{nearest:+d}" if nearest else "0"


def parse_list(text: str) -> dict[str, int]:
    """Return ``{name: number}`` for a text such as ``SOD=11,CLA=2``.

    Raises
    ------
    ValueError
        For other texts, with the reason.
    """
    form = "NAME=NUMBER, several with commas, such as SOD=11,CLA=2"
    numbers = parse_items(text, "=", form)
    if not all(number.isascii() and number.isdigit() for number in numbers.values()):
        raise ValueError(f"write {form}")
    return {name: int(number) for name, number in numbers.items()}


def explicit_counts(
    net_charge: float, waters: int, ions: Sequence[tuple[IonSpecies, int]], existing: Mapping[str, int]
) -> IonCounts:
    """Return the counts for an explicit list of ions, without regard to the net charge."""
    counts = IonCounts(
        tuple((s, n) for s, n in ions if n), {}, {}, "explicit", net_charge, waters, 0.0, existing, False, False
    )
    if abs(counts.final_charge) > INTEGER_WARNING:
        warning = f"the net charge with the ions listed is {counts.final_charge:+.4g} e"
        return replace(counts, warnings=(warning,))
    return counts


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
        If an ion has the wrong sign, or the method is not valid for these ions or this charge.
    InputError
        If the net charge is not close to an integer.
    """
    if not cation.charge > 0:
        raise UsageError("cation", f"its charge is {cation.charge:+d}", "choose a positive ion", value=cation.name)
    if not anion.charge < 0:
        raise UsageError("anion", f"its charge is {anion.charge:+d}", "choose a negative ion", value=anion.name)
    check_method(method)
    charge, warnings = whole_charge(net_charge, neutralize)
    target = salt_target(concentration, waters)
    present = [sum(s.charge * n * sign for s, n in existing if s.charge * sign > 0) for sign in (1, -1)]
    if not count_existing:
        present = [0, 0]
    if method == "add" or target == 0:
        added = _add(charge, target, cation.charge, -anion.charge, present, neutralize)
    else:
        if not neutralize:
            raise UsageError("count", "this method always neutralises the system",
                             "use {count add} with {neutralize False}", value=method)
        if (cation.charge, anion.charge) != (1, -1):
            raise UsageError("count", "this method is valid for monovalent ions only", "use {count add}", value=method)
        cations, _ = COUNT_FORMULAS[method](charge - present[0] + present[1], target)
        added = balance_charge(charge, cations - present[0], 1, 1)
    base = balance_charge(charge, 0, cation.charge, -anion.charge) if neutralize else (0, 0)
    species = (cation, anion)
    numbers: dict[str, int] = {}
    for ion, number in existing:
        numbers[ion.name] = numbers.get(ion.name, 0) + number
    return IonCounts(
        tuple((s, n) for s, n in zip(species, added, strict=True) if n),
        {s.name: n for s, n in zip(species, base, strict=True) if n},
        {s.name: n - b for s, n, b in zip(species, added, base, strict=True) if n - b},
        method, net_charge, waters, concentration, numbers, count_existing, neutralize, warnings,
    )


def check_method(method: str) -> None:
    """Raise UsageError unless a method is one of :data:`COUNT_METHODS`."""
    if method not in COUNT_METHODS:
        raise UsageError("count", f"choose one of {', '.join(COUNT_METHODS)}", value=method)


def whole_charge(net_charge: float, neutralize: bool) -> tuple[int, tuple[str, ...]]:
    """Return the net charge as an integer, e, and warnings.

    Raises
    ------
    InputError
        If it is to be neutralised and is not close to an integer.
    """
    charge = math.floor(net_charge + 0.5)
    if neutralize and abs(net_charge - charge) > INTEGER_LIMIT:
        raise InputError(
            f"the net charge {net_charge:+.4f} e is not an integer, so that ions cannot neutralise it",
            "check the charges, or use {neutralize False}",
        )
    if abs(net_charge - charge) > INTEGER_WARNING:
        return charge, (f"the net charge {net_charge:+.4f} e is not an integer, and is rounded to {charge:+d}",)
    return charge, ()


def salt_target(concentration: float, waters: int) -> float:
    """Return the number of formula units for a concentration (mol/L) in some waters; raises UsageError if invalid."""
    if not 0 <= concentration < math.inf:
        raise UsageError("concentration", "must be a number of mol/L, at least 0", value=f"{concentration:g}")
    return concentration * waters / water_molarity()


def balance_charge(charge: int, least: int, plus: int, minus: int) -> tuple[int, int]:
    """Return the smallest numbers of cations and anions that compensate `charge`, with at least `least` e of cations.
    """
    first = max(0, -(-max(least, -charge) // plus))
    for cations in range(first, first + minus):
        if (cations * plus + charge) % minus == 0:
            return cations, (cations * plus + charge) // minus
    raise UsageError(
        "cation", f"ions of charge {plus:+d} and {-minus:+d} cannot compensate the net charge {charge:+d}",
        "choose a monovalent {cation} or {anion}, or use {neutralize False}",
    )


def _add(
    charge: int, target: float, plus: int, minus: int, present: Sequence[int], neutralize: bool
) -> tuple[int, int]:
    """Return the numbers for ``add``: whole formula units of salt, minus ions present, plus neutralising ions."""
    unit = math.lcm(plus, minus)  # charge of the cations in one formula unit
    salt = math.floor(target + 0.5) * unit
    if not neutralize:
        units = max(0, -(-(salt - min(present)) // unit))
        return units * unit // plus, units * unit // minus
    bare = charge - present[0] + present[1]  # the charge without the existing ions
    return balance_charge(charge, salt + max(0, -bare) - present[0], plus, minus)


def _sltcap(charge: int, target: float) -> tuple[int, int]:
    """Return the numbers by Schmit et al. 2018: co-ions are rounded, and counter-ions compensate the charge."""
    coions = math.floor(target * math.exp(-math.asinh(abs(charge) / (2 * target))) + 0.5)
    return (coions, coions + charge) if charge > 0 else (coions - charge, coions)


def _split(charge: int, target: float) -> tuple[int, int]:
    """Return the numbers by Machado and Pantano 2020: co-ions are rounded, and counter-ions compensate the charge."""
    if target < abs(charge):
        raise UsageError(
            "count",
            f"to compensate a charge of {charge:+d} e, this method needs at least {abs(charge)} ion pairs, and "
            f"the concentration gives {target:.1f}", "use {count sltcap}, or a larger box", value="split",
        )
    coions = math.floor(target - abs(charge) / 2 + 0.5)
    return (coions, coions + charge) if charge > 0 else (coions - charge, coions)


#: Functions of the charge and the number of ion pairs that return the numbers of cations and anions, for the methods
#: in which neutralising ions are part of the salt.
COUNT_FORMULAS = {"sltcap": _sltcap, "split": _split}
