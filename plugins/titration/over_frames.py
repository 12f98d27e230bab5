"""Titration of a structure in every frame: each has energies of its own, and curves and pKa values are means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from vmdpotential import progress
from vmdpotential.arrays import Floats, Integers
from vmdpotential.execution.work import WorkNeeds
from vmdpotential.frames.cells import CellFrames
from vmdpotential.frames.statistics import BlockMean, FrameMean
from vmdpotential.frames.sums import FrameSum
from vmdpotential.frames.task import FrameTask
from vmdpotential.io.trajectories.frames import Frame
from vmdpotential.preparation.follow import Follower

from .energies import Solvent
from .sites import TitratedStructure
from .statistics import LN10
from .titration import curves_of

#: Figures of each site.
SITE_FIGURES = ("intrinsic_pka", "desolvation", "background", "pka", "slope", "error")


@dataclass(frozen=True, eq=False)
class FrameTitrations(FrameTask):
    """Titrations of the frames of a structure.

    Parameters
    ----------
    frames : CellFrames
    follower : Follower
        Function from the positions of the structure's own atoms to those with all hydrogens.
    titrated : TitratedStructure
    rows : (B,) int64
        The atoms of its `bare` structure among those of the frames.
    solvent : Solvent
    ph, map_ph : (P,), (M,) float64
        Values of pH of the curves, and of mean charges.
    engine : str
    """

    frames: CellFrames
    follower: Follower
    titrated: TitratedStructure
    rows: Integers
    solvent: Solvent
    ph: Floats
    map_ph: Floats
    engine: str

    def needs(self) -> WorkNeeds:
        """Return the engine."""
        return WorkNeeds(self.engine)

    def sums(self) -> Mapping[str, FrameSum]:
        """Return the means over frames.

        ``sites`` has the :data:`SITE_FIGURES` (6, S); ``curves`` (Q, S) and ``net`` (Q,) fractions of protonated sites
        and net charges, e, at :data:`.titration.PH`; ``protonated`` (P, S), ``moments`` (2, P) with charges, e, and
        dipole moments, D, and ``errors`` (P,) of Monte Carlo; ``charges`` (M, N), e, those of the atoms; and
        ``asymmetry`` that of the energies in units of pKa.
        """
        return {**{name: FrameMean() for name in ("sites", "curves", "net", "protonated", "moments", "errors",
                                                  "asymmetry")}, "charges": BlockMean()}

    def of_frame(self, frame: Frame) -> Mapping[str, ArrayLike]:
        """Return the figures of a frame."""
        own = self.titrated
        positions = self.follower.of_positions(frame.positions[self.rows])
        here = replace(own, structure=replace(own.structure, positions=positions, cell=None))
        if frame.total == 1:
            found = curves_of(here, self.solvent, self.engine)
        else:
            with progress.listen_to_progress(lambda *_: None):  # frames report the progress
                found = curves_of(here, self.solvent, self.engine)
        populations, errors = found.populations(self.ph)
        charges = [found.charges(row) for row in found.populations(self.map_ph)[0]]
        return {"sites": np.array([found.intrinsic, *found.contributions, *found.pka]), "curves": found.curves[0],
                "net": found.net_charges, "protonated": found.protonated(populations),
                "moments": np.array(found.moments(populations)), "errors": errors.max(1),
                "asymmetry": found.energies.asymmetry / LN10,
                "charges": np.reshape(charges, (len(charges), len(positions)))}
