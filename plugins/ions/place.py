"""Placement of ions in a structure; the preparations are made once for several replicas."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np

from vmdpotential.errors import UsageError
from vmdpotential.maps import check_tolerance
from vmdpotential.molecule.charges import assign_charges
from vmdpotential.molecule.conversions import StructureLike
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import change_options, takes_fields
from vmdpotential.units import coulomb_constant

from .counts import IonSpecies
from .edit import AddedIon, check_neutral, replace_waters, water_sites
from .energies import IonEnergies, ion_energies
from .kinds import RequestedIons
from .montecarlo import DEFAULT_DIELECTRIC
from .options import IonOptions
from .placement import PlacedIon, Placement
from .sites import CandidateSites, Surroundings, choose_sites
from .templates import CLEAR_DISTANCE, overlapping_waters, rotate_templates


@takes_fields(IonOptions)
def place_ions(structure: StructureLike, options: IonOptions | None = None, **keywords: Any) -> Placement:
    """Replace waters of a solvated structure by ions.

    Options are given as keywords, or as an object of :class:`~vmdpotential.plugins.ions.options.IonOptions`, whose
    fields keywords override.

    Parameters
    ----------
    structure : Structure or path
        Structure with waters. If it has no charges, these are assigned.
    options : IonOptions, optional
        All other options in one object.
    cation, anion : str
        Ions in any program's names (SOD, Na+, NA, MG ...), or names of `templates`; ``auto`` is SOD and CLA, or for a
        mixture its most common ions of lowest charge.
    neutralize : bool
        Whether to compensate the net charge.
    concentration : float
        Concentration of salt, mol/L.
    count : {"add", "sltcap", "split"}
        How the number of salt ions follows from the concentration, see
        :func:`~vmdpotential.plugins.ions.salts.plan_counts`.
    salt : mapping, optional
        Mixture of salts instead of that of `cation` and `anion`, ``{formula: fraction of the formula units}``, such
        as ``{"NaCl": 0.7, "MgCl2": 0.3}`` (see :func:`~vmdpotential.plugins.ions.salts.plan_mixture`). `cation` and
        `anion` then only neutralise.
    count_existing : bool
        Whether ions already in the structure are part of the salt.
    ions : mapping, optional
        Explicit list of ions instead, ``{name: number}``; no others are added, even if the net charge is not 0.
    templates : mapping, optional
        Ions of several atoms, ``{name: structure with charges, or its file}``; the other parameters refer to them by
        this name and in formulas.
    site : str
        Sites of the ions. ``potential``: those where an ion's energy is lowest; ``random``: random waters;
        ``monte-carlo``: a sample of the Boltzmann distribution at `temperature` in `dielectric` (see
        :mod:`~vmdpotential.plugins.ions.montecarlo`).
    from_solute, between : float, A
        Minimum distance of an ion's atoms to every solute atom, and to every other ion (also existing ones), with
        periodic images. Waters are ignored. Also as `solute_distance` and `ion_distance`.
    seed : int, optional
        Random seed; chosen and reported unless given.
    refine : bool
        Whether the ions of ``potential``, after all are placed, move one at a time to free sites of lower energy
        until no move lowers the energy. Existing ions do not move, and no two ions exchange their sites.
    sweeps : int
        Number of steps per ion of ``monte-carlo``.
    keep : str, optional
        A selection; waters with an atom in it (crystal waters) are not replaced.
    naming : str
        Naming convention: ``auto`` (that of the structure), ``charmm``, ``amber`` or ``gromacs``.
    temperature : float, K
        Temperature for energies in kT and for ``monte-carlo``.
    dielectric : float, optional
        Relative permittivity for the reported energies and for ``monte-carlo``; the other sites do not depend on it.
        Unless given, 78.5 with ``monte-carlo`` and 1 otherwise. Also as `dielectric_constant`.
    tolerance : float
        Largest rms error of the potential at the sites, measured at 200 of them, relative to its rms.
    engine : str
        Compute engine of the potential of the solute; meshes, and the potentials of ions, use the CPU.

    Returns
    -------
    Placement
        The structure with its ions, and a record of every ion.

    Raises
    ------
    UsageError
        For an unknown ion, one of the wrong sign, or a method that is not valid for the ions or the charge.
    InputError
        Without waters, for atoms whose charges are not known, a net charge that is no integer, a crystal's asymmetric
        unit, or a template that is not an ion.
    NoRoomError
        If there are not enough free sites.

    Examples
    --------
    >>> structure = vp.read_structure("data/dhfr.pdb.gz", topology="data/dhfr.psf.gz")
    >>> placed = vp.place_ions(structure, concentration=0.15)
    >>> round(placed.structure.net_charge, 3)
    0.0
    >>> placed.to_dataframe()["name"].iloc[0]
    'SOD'
    """
    return place_replicas(structure, 1, options, **keywords)[0]


@takes_fields(IonOptions)
def place_replicas(structure: StructureLike, replicas: int, options: IonOptions | None = None,
                   **keywords: Any) -> list[Placement]:
    """Return several placements with different seeds: `seed`, seed + 1, ...

    Each is the placement by :func:`place_ions` with that seed. Their common preparations are made once.

    Parameters
    ----------
    structure : Structure or path
        Structure with waters. If it has no charges, these are assigned.
    replicas : int
        Number of placements.
    options : IonOptions, optional
        All other options in one object.
    templates : mapping, optional
        As in :func:`place_ions`.
    **keywords
        Fields of :class:`~vmdpotential.plugins.ions.options.IonOptions`.

    Returns
    -------
    list of Placement
        One for each seed.

    Raises
    ------
    UsageError
        As in :func:`place_ions`, and for several replicas of a method that is not random.
    InputError, NoRoomError
        As in :func:`place_ions`.

    Examples
    --------
    >>> structure = vp.read_structure("data/dhfr.pdb.gz", topology="data/dhfr.psf.gz")
    >>> placements = vp.place_replicas(structure, 2, site="random", seed=1)
    >>> [placed.seed for placed in placements]
    [1, 2]
    """
    structure = assign_charges(structure)
    chosen = change_options(IonOptions, options, keywords)
    seed, site = chosen.seed, chosen.site
    if replicas < 1:
        raise UsageError("replicas", "must be at least 1", value=str(replicas))
    if site == "potential" and replicas > 1:
        raise UsageError("replicas",
                         "all replicas would be identical, because sites of the lowest potential are not random",
                         "use {site monte-carlo} or {site random}", value=str(replicas))
    placer = _Placer(structure, chosen)
    if site == "potential":
        return [placer.place(None)]
    first = secrets.randbits(32) if seed is None else seed
    return [placer.place(first + number) for number in range(replicas)]


class _Placer:
    """Preparations of a placement that do not depend on the seed."""

    def __init__(self, structure: Structure, options: IonOptions) -> None:
        from vmdpotential.engines import get_engine
        from vmdpotential.molecule.selection import is_ion, is_water

        site, temperature, dielectric = options.site, options.temperature, options.dielectric
        if dielectric is None:
            dielectric = DEFAULT_DIELECTRIC if site == "monte-carlo" else 1.0
        self.kcal = coulomb_constant("kcal/mol/e", temperature, dielectric)
        self.kt = coulomb_constant("kT/e", temperature, dielectric)
        self.structure, self.site, self.refine, self.sweeps = structure, site, options.refine, options.sweeps
        self.temperature, self.dielectric = temperature, dielectric
        charges = structure.known_charges
        kinds = RequestedIons(structure, options)
        self.written, self.templates = kinds.written, kinds.templates
        structure.require_whole_cell("use {expand cell}")
        self.residues, self.oxygens = water_sites(structure)
        check_neutral(structure, self.residues)
        water, existing = is_water(structure), is_ion(structure)
        self.net_charge = float(charges.sum())
        self.counts = kinds.counts(self.net_charge, len(self.residues), kinds.existing(existing))
        self.allowed = _replaceable(structure, self.residues, options.keep)
        kept_waters = np.ones(len(self.oxygens), bool)
        kept_waters[self.allowed] = False
        solute = ~water & ~existing
        self.candidates = CandidateSites(
            structure.positions[self.oxygens[self.allowed]], self.counts.added,
            Surroundings(structure.positions[solute], charges[solute], structure.positions[existing],
                         charges[existing], structure.cell),
            get_engine(options.engine), options.from_solute, options.between,
            structure.positions[self.oxygens[kept_waters]], CLEAR_DISTANCE, check_tolerance(options.tolerance))

    def place(self, seed: int | None) -> Placement:
        """Return the placement with a seed."""
        structure, candidates, counts = self.structure, self.candidates, self.counts
        sites = choose_sites(candidates, counts.added, method=self.site, net_charge=self.net_charge, seed=seed or 0,
                             refine=self.refine, factor=self.kt, sweeps=self.sweeps)
        atoms = rotate_templates(sites, self.templates, candidates, self.site, self.kt, seed or 0)
        owner = np.repeat(np.arange(len(atoms)), [len(each) for each in atoms])
        positions = np.asfortranarray(np.concatenate([np.zeros((0, 3)), *atoms]))
        charges = np.concatenate([np.zeros(0), *(
            self.templates[ion.name].charges if ion.name in self.templates else [float(ion.charge)]
            for ion in sites.species)])
        fixed = sites.fixed[owner]
        several = np.isin(owner, [row for row, ion in enumerate(sites.species) if ion.name in self.templates])
        if several.any():
            fixed[several] = candidates.potential_at(positions[several])
        energies = ion_energies(candidates, owner, positions, charges, fixed)
        # in the file, ions of a kind are contiguous, in the order in which they were placed
        rank = {s.name: i for i, (s, _) in enumerate(counts.added)}
        order = np.argsort([rank[s.name] for s in sites.species], kind="stable").tolist()
        chosen = self.allowed[sites.index]
        overlapping = overlapping_waters(
            structure.positions[self.oxygens], [(self.templates[sites.species[i].name], atoms[i]) for i in order
                                                if sites.species[i].name in self.templates], structure.cell)
        replaced = np.sort(self.residues[np.union1d(chosen, overlapping)])
        edited = replace_waters(structure, replaced, [
            self._added(int(self.residues[chosen[i]]), sites.species[i], atoms[i]) for i in order])
        placed = tuple(
            self._record(int(self.oxygens[chosen[i]]), sites.species[i], energies, i, number, len(atoms[i]))
            for number, i in enumerate(order, 1)
        )
        return Placement(edited, structure, placed, replaced, counts, self.site, seed, self.temperature,
                         self.dielectric, sites.moves, sites.gain * self.kcal, sites.sampling,
                         self.candidates.tolerance, self.candidates.error if counts.added else None)

    def _added(self, water: int, ion: IonSpecies, positions: Any) -> AddedIon:
        template = self.templates.get(ion.name)
        if template is None:
            return AddedIon(water, (self.written[ion.name],), positions, np.zeros((0, 2), np.int64))
        return AddedIon(water, template.names, positions, template.bonds)

    def _record(self, oxygen: int, ion: IonSpecies, energies: IonEnergies, row: int, number: int,
                atoms: int) -> PlacedIon:
        def finite(distance: float) -> float | None:
            return float(distance) if np.isfinite(distance) else None

        structure = self.structure
        before, final = float(energies.before[row]), float(energies.final[row])
        x, y, z = structure.positions[oxygen].tolist()
        return PlacedIon(
            name=ion.name, residue_id=number, order=row + 1, charge=ion.charge, position=(x, y, z),
            water=f"{structure.residue_names[oxygen]} {structure.residue_ids[oxygen]}",
            water_segment=str(structure.segment_ids[oxygen] or structure.chain_ids[oxygen]),
            solute_distance=finite(energies.solute_distance[row]), ion_distance=finite(energies.ion_distance[row]),
            energy=before * self.kcal, energy_kt=before * self.kt, final_energy=final * self.kcal,
            final_energy_kt=final * self.kt, atoms=atoms,
        )


def _replaceable(structure: Structure, residues: Any, keep: str | None) -> Any:
    """Return the indices of the waters that may be replaced."""
    from vmdpotential.molecule.selection import select

    if keep is None:
        return np.arange(len(residues))
    kept = np.logical_or.reduceat(select(structure, keep, "keep"), structure.residue_starts[:-1])[residues]
    if not kept.any():
        raise UsageError("keep", "the selection contains no water", "leave it out, or select waters", value=keep)
    if kept.all():
        raise UsageError("keep", "all waters would be kept, so that none is left for ions", "select fewer waters",
                         value=keep)
    return np.flatnonzero(~kept)
