"""Ions for a solvated structure: how many (counts), where (sites), and what changes (edit)."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import UsageError
from vmdpotential.ions.counts import COUNT_METHODS, Counts, Species, explicit_counts, parse_list, plan_counts
from vmdpotential.ions.edit import CONVENTIONS, IonNames, check_neutral, find_ion, name_ion, replace_waters, water_sites
from vmdpotential.ions.sites import SITE_METHODS, Sites, Surroundings, choose_sites
from vmdpotential.molecule.names import IONS
from vmdpotential.molecule.structure import Structure
from vmdpotential.units import DEFAULT_TEMPERATURE, coulomb_constant

if TYPE_CHECKING:
    from vmdpotential.engines import Engine

__all__ = [
    "CONVENTIONS", "COUNT_METHODS", "SITE_METHODS", "Counts", "PlacedIon", "Placement", "parse_list", "place_ions",
]


@dataclass(frozen=True)
class PlacedIon:
    """One ion that was placed.

    Parameters
    ----------
    name : str
        Residue name.
    residue_id : int
        Residue number in the ions' segment.
    order : int
        The how-manieth it was placed, from 1.
    charge : int
        e
    position : tuple of 3 floats, A
        That of the oxygen of the water it replaced.
    water, water_segment : str
        Residue name and number, and segment (else chain), of that water.
    solute_distance, ion_distance : float or None
        To the nearest image of a solute atom, and of another ion when all are placed, A; None where
        there is none.
    energy, energy_kt : float
        Its charge times the potential at its site: of the solute, the ions that were there, and the ions
        before it in this order, where all are at the end; kcal/mol and kT. In a periodic cell with all their
        images and a background that neutralises them (Ewald's sum), so that the mean over the cell is 0.
        Their sum is the energy of the ions placed with all that is around them and with each other.
    final_energy, final_energy_kt : float
        The same with all other ions, those after it too.
    """

    name: str
    residue_id: int
    order: int
    charge: int
    position: tuple[float, float, float]
    water: str
    water_segment: str
    solute_distance: float | None
    ion_distance: float | None
    energy: float
    energy_kt: float
    final_energy: float
    final_energy_kt: float

    #: Columns of a table, and how each is written.
    COLUMNS = (
        "name", "residue_id", "order", "charge", "x_A", "y_A", "z_A", "water", "water_segment", "solute_distance_A",
        "ion_distance_A", "energy_kcal_per_mol", "energy_kT", "final_energy_kcal_per_mol", "final_energy_kT",
    )

    @property
    def row(self) -> tuple[Any, ...]:
        """The values of :attr:`COLUMNS`; blanks where there is no distance."""
        distances = ("" if d is None else f"{d:.4f}" for d in (self.solute_distance, self.ion_distance))
        energies = (self.energy, self.energy_kt, self.final_energy, self.final_energy_kt)
        return (
            self.name, self.residue_id, self.order, self.charge, *(f"{x:.4f}" for x in self.position), self.water,
            self.water_segment, *distances, *(f"{energy:.6f}" for energy in energies),
        )


@dataclass(frozen=True, eq=False)
class Placement:
    """What :func:`place_ions` did.

    Parameters
    ----------
    structure : Structure
        With the ions.
    original : Structure
        Before; what undoes it.
    ions : tuple of PlacedIon
        In the order of the structure.
    replaced : (K,) int64
        Residues of `original`, waters, that the ions took the place of.
    counts : Counts
    site : str
        ``potential`` or ``random``.
    seed : int or None
        Of the random choice.
    temperature, dielectric : float
        What the energies are for.
    moves : int
        Moves of ions to better sites, after all had been placed.
    gain : float
        By how much the moves lowered the energy of all, kcal/mol.
    """

    structure: Structure
    original: Structure
    ions: tuple[PlacedIon, ...]
    replaced: NDArray[np.int64]
    counts: Counts
    site: str
    seed: int | None
    temperature: float
    dielectric: float
    moves: int = 0
    gain: float = 0.0

    def __repr__(self) -> str:
        names = Counter(ion.name for ion in self.ions)
        ions = ", ".join(f"{number} {name}" for name, number in names.items()) or "no ions"
        energy = sum(ion.energy for ion in self.ions)
        charges = [round(charge, 6) + 0.0 for charge in (self.counts.net_charge, self.structure.net_charge)]
        return (f"Placement({ions} in place of waters by {self.site}, {energy:.1f} kcal/mol; net charge "
                f"{charges[0]:+.4g} e, then {charges[1]:+.4g} e)")

    @property
    def kept_atoms(self) -> NDArray[np.int64]:
        """The atoms of `original` that `structure` begins with, in order: all but the replaced waters'."""
        starts = self.original.residue_starts
        drop = np.zeros(len(starts) - 1, bool)
        drop[self.replaced] = True
        return np.flatnonzero(~np.repeat(drop, np.diff(starts)))

    @property
    def waters_removed(self) -> int:
        """Number of water molecules replaced, one by each ion."""
        return len(self.ions)

    @property
    def lines(self) -> list[str]:
        """A report for people."""
        lines = [*self.counts.lines, *(f"warning: {warning}" for warning in self.counts.warnings)]
        how = "most favourable potential first" if self.site == "potential" else f"random, seed {self.seed}"
        lines.append(f"placed {len(self.ions)} ions at as many waters ({how})")
        if self.moves:
            lines.append(f"then {self.moves} {'move' if self.moves == 1 else 'moves'} of single ions to better sites "
                         f"gained {self.gain:.3f} kcal/mol")
        if self.ions:
            lines.append(
                f"energies at {self.temperature:g} K, dielectric {self.dielectric:g}, with the solute and the ions "
                "before (final: with all ions):"
            )
            lines.append(
                f"{'ion':>6} {'x':>9} {'y':>9} {'z':>9} {'water':>12} {'solute/A':>9} {'ion/A':>9} "
                f"{'kcal/mol':>11} {'kT':>11} {'final kT':>11}"
            )
        for ion in sorted(self.ions, key=lambda ion: ion.order):
            x, y, z = ion.position
            solute, other = ("-" if d is None else f"{d:.2f}" for d in (ion.solute_distance, ion.ion_distance))
            lines.append(
                f"{ion.name:>6} {x:9.3f} {y:9.3f} {z:9.3f} {ion.water:>12} {solute:>9} {other:>9} "
                f"{ion.energy:11.3f} {ion.energy_kt:11.3f} {ion.final_energy_kt:11.3f}"
            )
        return lines

    @property
    def data(self) -> dict[str, Any]:
        """The same for programs, ready for JSON."""
        return {
            "counts": self.counts.data,
            "waters_removed": self.waters_removed,
            "site": self.site,
            "seed": self.seed,
            "moves": self.moves,
            "gain": self.gain,
            "temperature": self.temperature,
            "dielectric": self.dielectric,
            "warnings": list(self.counts.warnings),
            "ions": [{**vars(ion), "position": list(ion.position)} for ion in self.ions],
        }


def place_ions(
    structure: Structure,
    *,
    cation: str = "SOD",
    anion: str = "CLA",
    neutralize: bool = True,
    concentration: float = 0.0,
    count: str = "add",
    count_existing: bool = True,
    ions: Mapping[str, int] | None = None,
    site: str = "potential",
    from_solute: float = 5.0,
    between: float = 5.0,
    seed: int | None = None,
    refine: bool = True,
    keep: str | None = None,
    naming: str = "auto",
    temperature: float = DEFAULT_TEMPERATURE,
    dielectric: float = 1.0,
    engine: str | Engine = "auto",
) -> Placement:
    """Replace waters of a solvated structure by ions.

    Parameters
    ----------
    structure : Structure
        With charges and waters.
    cation, anion : str
        Ions as any program names them (SOD, Na+, NA, MG ...).
    neutralize : bool
        Whether to compensate the net charge.
    concentration : float
        Salt, mol/L; by `count` (``add``, ``sltcap``, ``split``: see :func:`~vmdpotential.ions.counts.plan_counts`).
    count_existing : bool
        Whether ions that are there are part of that salt.
    ions : mapping, optional
        Exactly these ions instead, ``{name: number}``; nothing else is added, whatever the net charge.
    site : str
        ``potential``: where an ion's energy is lowest; ``random``: anywhere, by `seed`.
    from_solute, between : float, A
        Least distance of an ion to every solute atom, and to every other ion (those that are there
        too), of all periodic images. Water does not count.
    seed : int, optional
        Chosen and reported when it is not given.
    refine : bool
        Whether the ions of ``potential``, when all are placed, move one at a time to free sites of lower
        energy until none gains. Ions that were there stay, and no two ions exchange their sites.
    keep : str, optional
        A selection; waters with an atom in it (crystal waters) are not replaced.
    naming : str
        ``auto`` (the structure's convention), ``charmm``, ``amber`` or ``gromacs``.
    temperature : float, K
    dielectric : float
        Both of the energies reported; neither changes the sites.
    engine : str or Engine
        What sums pairs; meshes, and the ions of a periodic cell, are the CPU engine's.

    Returns
    -------
    Placement

    Raises
    ------
    UsageError
        For an unknown ion, one of the wrong sign, or a method that does not hold.
    InputError
        Without charges or waters, when the net charge is no integer, or for a crystal's asymmetric unit.
    NoRoomError
        When the sites run out.
    """
    from vmdpotential.engines import get_engine
    from vmdpotential.molecule.selection import is_ion, is_water

    kcal = coulomb_constant("kcal/mol/e", temperature, dielectric)
    kt = coulomb_constant("kT/e", temperature, dielectric)
    for option, value in (("from_solute", from_solute), ("between", between)):
        if not 0 <= value < np.inf:
            raise UsageError(option, "must be a distance in A, at least 0", value=f"{value:g}")
    charges = structure.known_charges
    names = _names(structure, cation, anion, ions, naming)
    if ions is not None and concentration:
        raise UsageError("ions", "gives the numbers itself", "leave out {concentration}")
    structure.require_whole_cell("expand it to the cell and solvate it first")
    residues, oxygens = water_sites(structure)
    check_neutral(structure, residues)
    water, there = is_water(structure), is_ion(structure)
    existing = [(Species(name, IONS[name.upper()].charge), number) for name, number in
                zip(*(a.tolist() for a in np.unique(structure.residue_names[there], return_counts=True)), strict=True)]
    species = [Species(ion.residue, ion.charge) for ion in names]
    net_charge = float(charges.sum())
    if ions is not None:
        listed = list(zip(species, ions.values(), strict=True))
        counts = explicit_counts(net_charge, len(residues), listed, {s.name: n for s, n in existing})
    else:
        counts = plan_counts(
            net_charge, len(residues), species[0], species[1], neutralize=neutralize, concentration=concentration,
            method=count, existing=existing, count_existing=count_existing,
        )
    allowed = _replaceable(structure, residues, keep)
    solute = ~water & ~there
    around = Surroundings(
        structure.positions[solute], charges[solute], structure.positions[there], charges[there], structure.cell
    )
    if site == "random" and seed is None:
        seed = secrets.randbits(32)
    sites = choose_sites(
        structure.positions[oxygens[allowed]], counts.added, around,
        get_engine(engine) if isinstance(engine, str) else engine, method=site, from_solute=from_solute,
        between=between, net_charge=net_charge, seed=seed or 0, refine=refine,
    )
    # ions of a kind stand together in the file, in the order they were placed
    rank = {s.name: i for i, (s, _) in enumerate(counts.added)}
    order = np.argsort([rank[s.name] for s in sites.species], kind="stable").astype(np.int64)
    chosen = allowed[sites.index]
    written = {ion.residue: ion for ion in names}
    edited = replace_waters(
        structure, residues[chosen[order]], structure.positions[oxygens[chosen[order]]],
        [written[sites.species[i].name] for i in order],
    )
    placed = tuple(
        _record(structure, int(oxygens[chosen[i]]), sites, int(i), number, kcal, kt)
        for number, i in enumerate(order, 1)
    )
    return Placement(
        edited, structure, placed, np.sort(residues[chosen]), counts, site, seed if site == "random" else None,
        temperature, dielectric, sites.moves, sites.gain * kcal,
    )


def _names(
    structure: Structure, cation: str, anion: str, ions: Mapping[str, int] | None, naming: str
) -> list[IonNames]:
    """Return how the ions are written: of the list, else the cation and the anion."""
    if ions is None:
        for name, option, sign, word in ((cation, "cation", 1, "positive"), (anion, "anion", -1, "negative")):
            charge = find_ion(name, option).charge
            if charge * sign < 0:
                raise UsageError(option, f"its charge is {charge:+d}", f"choose a {word} ion", value=name)
        return [name_ion(structure, cation, "cation", naming), name_ion(structure, anion, "anion", naming)]
    if not ions or min(ions.values()) < 0:
        raise UsageError("ions", "give at least one ion and its number, such as SOD=11,CLA=2")
    names = [name_ion(structure, name, "ions", naming) for name in ions]
    if len({find_ion(name, "ions") for name in ions}) < len(names):
        raise UsageError("ions", "two of these names mean the same ion", "name it once", value=",".join(ions))
    return names


def _replaceable(structure: Structure, residues: Any, keep: str | None) -> Any:
    """Return the rows of the waters that may be replaced."""
    from vmdpotential.molecule.selection import select

    if keep is None:
        return np.arange(len(residues))
    kept = np.logical_or.reduceat(select(structure, keep, "keep"), structure.residue_starts[:-1])[residues]
    if not kept.any():
        raise UsageError("keep", "selects no water", "leave it out, or select waters", value=keep)
    if kept.all():
        raise UsageError("keep", "keeps all waters, so that none is left for ions", "select fewer", value=keep)
    return np.flatnonzero(~kept)


def _record(
    structure: Structure, oxygen: int, sites: Sites, row: int, number: int, kcal: float, kt: float
) -> PlacedIon:
    def finite(distance: float) -> float | None:
        return float(distance) if np.isfinite(distance) else None

    species = sites.species[row]
    before, final = (float(species.charge * phi[row]) for phi in (sites.potential, sites.final_potential))
    x, y, z = structure.positions[oxygen].tolist()
    return PlacedIon(
        name=species.name, residue_id=number, order=row + 1, charge=species.charge, position=(x, y, z),
        water=f"{structure.residue_names[oxygen]} {structure.residue_ids[oxygen]}",
        water_segment=str(structure.segment_ids[oxygen] or structure.chain_ids[oxygen]),
        solute_distance=finite(sites.solute_distance[row]), ion_distance=finite(sites.ion_distance[row]),
        energy=before * kcal, energy_kt=before * kt, final_energy=final * kcal, final_energy_kt=final * kt,
    )
