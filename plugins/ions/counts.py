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
            lines.append("neutralising ions: " + (_numbers(self.neutralizing) if self.neutralize else
                                                  "none, as requested"))
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
            "net_charge_before": self.net_charge, "net_charge_after": self.final_charge, "waters_before": self.waters,
            "mixture": [vars(share) for share in self.mixture], "concentrations_after": self.concentrations,
            **{name: getattr(self, name) for name in ("neutralizing", "salt", "method", "water_volume",
                                                      "concentration", "existing", "existing_counted")},
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


def _sltcap(charge: int, target: float) -> tuple[int, int]:
    """Return the numbers by Schmit et al. 2018: co-ions are rounded, and counter-ions compensate the charge."""
    return _with_coions(charge, target * math.exp(-math.asinh(abs(charge) / (2 * target))))


def _split(charge: int, target: float) -> tuple[int, int]:
    """Return the numbers by Machado and Pantano 2020: co-ions are rounded, and counter-ions compensate the charge."""
    if target < abs(charge):
        raise UsageError(
            "count",
            f"to compensate a charge of {charge:+d} e, this method needs at least {abs(charge)} ion pairs, and "
            f"the concentration gives {target:.1f}", "use {count sltcap}, or a larger box", value="split",
        )
    return _with_coions(charge, target - abs(charge) / 2)


def _with_coions(charge: int, number: float) -> tuple[int, int]:
    coions = math.floor(number + 0.5)
    return coions + max(0, -charge), coions + max(0, charge)


#: Functions of the charge and the number of ion pairs that return the numbers of cations and anions, for the methods
#: in which neutralising ions are part of the salt.
COUNT_FORMULAS = {"sltcap": _sltcap, "split": _split}
