"""Where the values of a map come from, which every file of the map states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vmdpotential.molecule.cell import Cell


@dataclass(frozen=True)
class Provenance:
    """Origin of a map's values, which every file of the map contains.

    Empty strings and None mean "not known".

    Parameters
    ----------
    quantity : str
        Name of the mapped quantity.
    derived : str
        How the values follow from maps of the quantity, if they are not its values or their mean: ``difference`` of two
        maps, or ``deviation`` or ``error`` of the mean over frames. Such values have colours of their own.
    method, interaction : str
        Method of summation, and interaction between a charge and a point.
    medium : str
        Medium between the charges, for legends and axes: "vacuum, no screening", "screened, 0.15 M, dielectric
        78.5".
    medium_kind : str
        Its kind, by which colours and surfaces are chosen: ``water`` (a continuum), ``screened``, ``explicit`` or
        ``vacuum``; empty if it is not known, or of several media.
    boundary : str
        ``open`` or ``periodic``.
    cell : tuple of nine float, A
        The vectors a, b and c of a periodic map.
    cutoff : float, A
        Distance beyond which charges are ignored.
    tolerance, error : float
        Rms errors over the potential's rms: the largest one allowed, and the one measured against the exact sum.
    error_away : float
        Error at the points farther than 2 A from every charge.
    error_field, error_field_away : float
        The same errors of the electric field, if it was computed with the map.
    precision, engine : str
        Floating-point precision and compute engine.
    atoms : str
        Selection of the atoms that contribute charges.
    molecule : str
        Number of these atoms and their centre, A: "3128 atoms around 10.12 8.03 -4.40".
    state : str
        Which of several states of the same atoms the map is of, such as ``pH 4`` or ``frame 20, 40 ps``.
    frames : str
        Frames over which the map is a mean.
    inefficiency : float
        Statistical inefficiency of these frames.
    zero : str
        Reference of the potential, at which it is zero.
    inputs : tuple of str
        Names of the input files.
    program : str
        Name and version of the program.

    Examples
    --------
    >>> grid = vp.potential_map(vp.read_structure("data/dhfr.pdb.gz", topology="data/dhfr.psf.gz"), spacing=4.0,
    ...                         medium="explicit")
    >>> grid.provenance.boundary
    'periodic'
    """

    quantity: str = "electrostatic potential"
    derived: str = ""
    method: str = ""
    interaction: str = ""
    medium: str = ""
    medium_kind: str = ""
    boundary: str = ""
    cell: tuple[float, ...] | None = None
    cutoff: float | None = None
    tolerance: float | None = None
    error: float | None = None
    error_away: float | None = None
    error_field: float | None = None
    error_field_away: float | None = None
    precision: str = ""
    engine: str = ""
    atoms: str = ""
    molecule: str = ""
    state: str = ""
    frames: str = ""
    inefficiency: float | None = None
    zero: str = ""
    inputs: tuple[str, ...] = ()
    program: str = ""

    @property
    def continuum(self) -> bool:
        """Whether the map is that of a molecule in a continuum, the medium water."""
        return self.medium_kind == "water"


def cell_vectors(text: str) -> tuple[float, ...] | None:
    """Return the nine components of the cell vectors in a header; None if they are missing or span no volume."""
    try:
        vectors = np.array([float(x) for x in text.split()])
        Cell(vectors)
    except ValueError:
        return None
    return tuple(vectors.tolist())
