"""Titration of a structure: energies of its sites, populations of their states, and pKa values from the curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.engines import Engine, get_engine
from vmdpotential.molecule.moments import charge_moments
from vmdpotential.molecule.structure import Structure
from vmdpotential.molecule.user_charges import ResidueCharges

from ..preparation.draft import Draft
from .energies import SiteEnergies, Solvent, changes_of, site_energies
from .sites import TitratedStructure, TitrationSite, titrated_structure
from .statistics import LN10, SiteEnsemble

#: The values of pH at which curves are computed for pKa values, which may be outside of any range that exists.
PH = np.arange(-4.0, 18.01, 0.25)

#: Difference below which values of pH are the same.
SAME_PH = 1e-9

#: Least deviation of a mean number of protons from 0 and 1 of which the logarithm is taken.
LEAST = 1e-9


@dataclass(frozen=True, eq=False)
class TitrationCurves:
    """Sites and their energies, from which everything follows at any pH.

    Parameters
    ----------
    titrated : TitratedStructure
    energies : SiteEnergies
    solvent : Solvent
    engine : Engine
    """

    titrated: TitratedStructure
    energies: SiteEnergies
    solvent: Solvent
    engine: Engine

    @property
    def sites(self) -> Sequence[TitrationSite]:
        """The sites."""
        return self.titrated.sites

    @cached_property
    def ensemble(self) -> SiteEnsemble:
        """The states of all sites."""
        states = [(n, state) for n, site in enumerate(self.sites) for state in site.states]
        water = np.array([state.energy for _, state in states]) * LN10
        return SiteEnsemble(np.array([n for n, _ in states]), np.array([state.protons for _, state in states]),
                            water + self.energies.desolvation + self.energies.background, self.energies.between)

    @cached_property
    def _known(self) -> tuple[Floats, Floats]:
        """Populations (P, K) of states at :data:`PH`, and their standard errors."""
        return self.ensemble.populations(PH, self.engine)

    def populations(self, ph: Floats) -> tuple[Floats, Floats]:
        """Return the populations (P, K) of the states but the first of each site, and their standard errors."""
        nearest = np.abs(ph[:, None] - PH).argmin(1)
        other = np.abs(PH[nearest] - ph) > SAME_PH
        found = tuple(each[nearest] for each in self._known)
        for rows, each in zip(found, self.ensemble.populations(ph[other], self.engine), strict=True):
            rows[other] = each
        return found[0], found[1]

    def protonated(self, populations: Floats) -> Floats:
        """Return the fraction (P, S) of each site that has its proton, by populations (P, K)."""
        ensemble = self.ensemble
        result = np.zeros((len(populations), ensemble.count))
        np.add.at(result.T, ensemble.site, (populations * ensemble.protons).T)
        # an acid's first state has the proton that its other one lacks
        lost = np.array([not site.is_base for site in self.sites])
        result += lost
        return result

    def charges(self, populations: Floats) -> Floats:
        """Return the mean charges (N,), e, of all atoms, by populations (K,) of states."""
        result = self.titrated.neutral.copy()
        for share, change in zip(populations, changes_of(self.titrated), strict=True):
            result[change.atoms] += share * change.charges
        return result

    def moments(self, populations: Floats) -> tuple[Floats, Floats]:
        """Return net charges (P,), e, and dipole moments (P,), D, of the mean charges about the atoms' centre."""
        found = [charge_moments(self.titrated.structure.positions, self.charges(row)) for row in populations]
        return np.array([each.net_charge for each in found]), np.array([each.dipole for each in found])

    @cached_property
    def intrinsic(self) -> Floats:
        """The pKa (S,) of each site with all others neutral."""
        ensemble = self.ensemble
        result = np.zeros(ensemble.count)
        for n in range(ensemble.count):
            rows = ensemble.states_of(n)
            energies, protons = np.append(0.0, ensemble.energies[rows]), np.append(0, ensemble.protons[rows])
            bound = protons == protons.max()
            result[n] = (np.logaddexp.reduce(-energies[bound]) - np.logaddexp.reduce(-energies[~bound])) / LN10
        return result

    @cached_property
    def curves(self) -> tuple[Floats, Floats]:
        """Fractions (P, S) of protonated sites at :data:`PH`, and their standard errors."""
        populations, errors = self._known
        site = self.ensemble.site
        spread = np.zeros((len(PH), self.ensemble.count))
        np.add.at(spread.T, site, (errors * np.abs(self.ensemble.protons)).T)
        return self.protonated(populations), spread

    @property
    def net_charges(self) -> Floats:
        """Net charges (P,), e, at :data:`PH`."""
        neutral = np.array([0.0 if site.is_base else 1.0 for site in self.sites])
        return self.titrated.neutral.sum() + (self.curves[0] - neutral).sum(1)

    @cached_property
    def pka(self) -> tuple[Floats, Floats, Floats]:
        """The pKa (S,) at half of each curve, Hill's slope there, and the numerical error of the pKa.

        The error is that of the lattice in the intrinsic pKa and that of Monte Carlo, not that of the model. A value
        beyond all of :data:`PH` is NaN.
        """
        fractions, spread = self.curves
        logits = np.log(np.clip(fractions, LEAST, None)) - np.log(np.clip(1 - fractions, LEAST, None))
        values, slopes, errors = (np.full(len(self.sites), np.nan) for _ in range(3))
        for n, logit in enumerate(logits.T):
            at = np.flatnonzero((logit[:-1] > 0) & (logit[1:] <= 0))
            if not len(at):
                continue
            # where a curve crosses one half several times, the crossing in its middle
            k = int(at[len(at) // 2])
            step = PH[k + 1] - PH[k]
            values[n] = PH[k] + step * logit[k] / (logit[k] - logit[k + 1])
            slopes[n] = (logit[k] - logit[k + 1]) / step / LN10
            statistical = float(spread[k : k + 2, n].max()) / (0.25 * LN10 * slopes[n])
            errors[n] = np.hypot(statistical, self._lattice_errors[n])
        return values, slopes, errors

    @cached_property
    def _lattice_errors(self) -> Floats:
        result = np.zeros(len(self.sites))
        np.maximum.at(result, self.ensemble.site, self.energies.errors / LN10)
        return result

    @cached_property
    def contributions(self) -> tuple[Floats, Floats]:
        """Shifts (S,) of the pKa by desolvation and by the permanent charges, of the charged state."""
        charged = [int(np.flatnonzero((self.ensemble.site == n) & (self.ensemble.protons != 0))[0])
                   for n in range(len(self.sites))]
        signs = np.array([-1.0 if site.is_base else 1.0 for site in self.sites]) / LN10
        return signs * self.energies.desolvation[charged], signs * self.energies.background[charged]


def curves_of(titrated: TitratedStructure, solvent: Solvent, engine: str = "auto") -> TitrationCurves:
    """Return the titration of a structure with all hydrogens.

    Raises
    ------
    TaskError
        When a solution does not converge.
    """
    chosen, whole = get_engine(engine), titrated.structure
    assert whole.radii is not None
    return TitrationCurves(titrated, site_energies(
        whole.positions, whole.radii, titrated.neutral, changes_of(titrated), solvent, chosen), solvent, chosen)


def pka_values(structure: Structure, draft: Draft, charges: Sequence[ResidueCharges]) -> dict[tuple[int, str], float]:
    """Return the pKa values of a structure's sites by residue index of its draft and group; see `PkaSource`."""
    sources = [residue.source for residue in draft.residues]
    of = structure.residue_of
    kept = np.isin(of, of[sources])
    part = structure.part(kept)
    titrated = titrated_structure(part, charges=charges)
    curves, origins, whole = curves_of(titrated, Solvent()), titrated.structure.origins, titrated.structure
    assert origins is not None
    place = {int(of[source]): n for n, source in enumerate(sources)}
    rows = np.flatnonzero(kept)[titrated.rows]
    result = {}
    for site, value in zip(curves.sites, curves.pka[0], strict=True):
        first = int(origins[whole.residue_starts[site.residue]])
        if np.isfinite(value):
            result[place[int(of[rows[first]])], site.group] = float(value)
    return result
