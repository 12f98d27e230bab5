"""Options of the command ``probe``, and common parameters of its two kinds of maps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from vmdpotential.commands.options import Fit, Force
from vmdpotential.grid.lattice import Lattice
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Option

from .ligands import LIGANDS


@dataclass(frozen=True, kw_only=True)
class ProbeOptions:
    """Options of the probe or molecule, and of the grid."""

    probe: Annotated[tuple[str, ...], Option(
        "probe atoms: AutoDock's types (C, A, N, NA, OA, SA, HD ...) and its maps e (Coulomb) and d (desolvation); "
        "NAME=SIGMA,EPSILON (A and kcal/mol), which is combined with the structure's own Lennard-Jones parameters; or "
        "NAME=TYPE, a type of its force field", metavar="PROBE",
        front=True)] = ()
    ligand: Annotated[str, Option(
        f"small molecule whose free energy is computed over the frames: {', '.join(LIGANDS)}, or a file of lines "
        "'name x y z sigma epsilon'", metavar="NAME|FILE", front=True)] = ""
    atoms: Annotated[str, Option(
        "atoms that interact with the probe or the molecule", metavar="SEL", selection=True, front=True)] = "all"
    around: Annotated[str, Option(
        "atoms around which the grid is placed. Unless given, the grid of probe atoms is around the atoms that "
        "interact with them; that of a molecule covers the whole periodic cell, or with a padding surrounds the fitted "
        "atoms",
        metavar="SEL", selection=True, heading="grid")] = ""
    spacing: Annotated[float | None, Option(
        "distance between grid points; 0.375 A for probes and 1 A for a molecule unless given", unit="A", low=0.05,
        high=100, heading="main options")] = None
    padding: Annotated[float | None, Option(
        "margin of the grid around these atoms; 4 A unless given, or 5 A around the fitted atoms in an open boundary",
        unit="A", low=0, high=1000, heading="grid")] = None
    cutoff: Annotated[float, Option(
        "cutoff of the Lennard-Jones energy; AutoDock's types always have 8 A", unit="A", low=3, high=50,
        heading="method and accuracy")] = 12.0


@dataclass(frozen=True, kw_only=True)
class InsertionOptions:
    """Options of inserting a molecule into frames."""

    fit: Fit = "auto"
    boundary: Annotated[str, Option(
        "boundary for a molecule over frames: open (no images) or periodic (all images); auto is periodic if the atoms "
        "fill the cell",
        choices=("auto", "open", "periodic"), heading="method and accuracy")] = "auto"
    orientations: Annotated[int, Option(
        "number of evenly spread orientations of a molecule at each point; half of them for symmetric linear molecules",
        low=1, high=10000, heading="method and accuracy")] = 12
    places: Annotated[int, Option(
        "insertion points along each edge of the box around a grid point (2 means 8)", low=1, high=10,
        heading="method and accuracy")] = 2
    temperature: Annotated[float, Option(
        "temperature of the frames", unit="K", above=0, high=1e4, heading="medium")] = 298.15
    stat: Annotated[str, Option(
        "statistics to write for a molecule: mean is the free energy, and sem its standard error, in a further file",
        metavar="mean,sem", heading="trajectory")] = "mean"


@dataclass(frozen=True, kw_only=True)
class ProbeOutput:
    """Files of maps, and of the table of minima."""

    paths: Annotated[Path | None, Option(
        "CSV table of the minima of the free energy, and of the barriers between them", viewer=False, written=True,
        metavar="FILE.csv", heading="output")] = None
    output: Annotated[Path | None, Option(
        "map file; for several probes the name of each is inserted: receptor.map (AutoDock's format), receptor.C.map "
        "...",
        short="o", viewer=False, written=True, suffix=".npz")] = None
    force: Force = False


@dataclass(frozen=True, eq=False)
class ProbeRun:
    """Common parameters of both kinds of maps.

    Parameters
    ----------
    structure : Structure
    options : ProbeOptions
    lattice : Lattice or None
        Lattice of another map.
    spacing : float, A
    engine : str
    outputs : ProbeOutput
    fixed_cell : bool
        Whether the cell of the structure is that of all frames.
    """

    structure: Structure
    options: ProbeOptions
    lattice: Lattice | None
    spacing: float
    engine: str
    outputs: ProbeOutput
    fixed_cell: bool

    def lattice_around(self, positions: NDArray[np.float64]) -> Lattice:
        """Return a lattice around positions (N, 3), with the padding."""
        return Lattice.around(positions, self.spacing, 4.0 if self.options.padding is None else self.options.padding)
