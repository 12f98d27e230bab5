"""Patches of the surface of a molecule in each frame of a trajectory, and in which residues they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from vmdpotential.arrays import Integers
from vmdpotential.execution.work import WorkNeeds
from vmdpotential.figures.colours import reading_distance
from vmdpotential.frames.cells import CellFrames
from vmdpotential.frames.statistics import BlockMean, FrameMean
from vmdpotential.frames.sums import FrameSum
from vmdpotential.frames.task import FrameTask
from vmdpotential.io.trajectories.frames import Frame
from vmdpotential.maps import potential_map
from vmdpotential.maps.options import MapOptions
from vmdpotential.molecule.structure import Structure
from vmdpotential.surfaces import molecular_surface
from vmdpotential.surfaces.patches import find_patches

#: Figures of a whole surface, for each sign: area of the patches, A^2, their number, and area of the largest one.
TOTALS = ("area", "patches", "largest")


@dataclass(frozen=True, eq=False)
class SurfacePatches(FrameTask):
    """Patches of a surface over frames.

    Parameters
    ----------
    frames : CellFrames
    rows : (n,) int64
        Atoms of the surface among those of the frames.
    molecule : Structure
        These atoms, with charges.
    potential : MapOptions
        Options of the potential.
    threshold : float
        Least value of positive patches, and minus the greatest of negative ones, in the unit of the potential.
    least : float, A^2
        Patches of smaller areas are left out.
    within : float, A^2
        A residue with at least this area in patches of a sign counts as occupied by them.
    mesh_spacing : float, A
        Spacing of the lattice on which surfaces are made.
    """

    frames: CellFrames
    rows: Integers
    molecule: Structure
    potential: MapOptions
    threshold: float
    least: float
    within: float
    mesh_spacing: float

    def needs(self) -> WorkNeeds:
        """Return the engine."""
        return WorkNeeds(self.potential.engine)

    def sums(self) -> Mapping[str, FrameSum]:
        """Return ``areas`` and ``occupied`` (2, residues), ``exposed`` (residues,), and ``totals`` of frames (2, 3).

        The first index is that of the sign, positive first.
        """
        return {"areas": FrameMean(), "occupied": BlockMean(), "exposed": BlockMean(), "totals": FrameMean()}

    def of_frame(self, frame: Frame) -> Mapping[str, ArrayLike]:
        """Return the figures of a frame."""
        here = replace(self.molecule, positions=frame.positions[self.rows], cell=None)
        surface = molecular_surface(here, atoms="all", spacing=self.mesh_spacing, cavities=False)
        grid = potential_map(here, self.potential)
        owners = here.residue_of[surface.atoms]
        found, _ = find_patches(surface, surface.sample(grid, reading_distance(grid)), self.threshold, owners)
        areas, totals = np.zeros((2, here.residue_count)), np.zeros((2, len(TOTALS)))
        for patch in found:
            if patch.area < self.least:
                continue
            sign = 0 if patch.name[0] == "+" else 1
            areas[sign, patch.owners] += patch.area * patch.shares
            totals[sign] += patch.area, 1, 0
            totals[sign, 2] = max(totals[sign, 2], patch.area)
        return {"areas": areas, "occupied": (areas >= self.within).astype(np.float64),
                "exposed": np.bincount(owners, surface.areas, here.residue_count), "totals": totals}
