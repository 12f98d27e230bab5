"""Charge density, electric field and potential along an axis of a periodic cell, as means over frames.

Poisson's equation is solved by a Fourier series along the axis, in each frame's own cell. With the sums over the atoms
S_n = sum q exp(-i k z), k = 2 pi n / L, the Fourier coefficients of density, field and potential are ::

    rho_n = S_n / V,    E_n = -4 pi C i rho_n / k,    phi_n = 4 pi C rho_n / k^2,    n != 0

so that the potential is periodic, has the mean 0, and no net slope (conducting surroundings, "tinfoil"); a net charge
has a neutralising background. Double integration from an edge of the cell, in contrast, would assume that density and
field vanish there.

In the vacuum between the images of a slab with the dipole moment M, conducting surroundings make a field,
4 pi C M / V, that an isolated slab does not have. The slab correction removes it (I.-C. Yeh, M. L. Berkowitz, J. Chem.
Phys. 111 (1999) 3155); the potential then has a step in the middle of the vacuum. With positions f from there, in
periods, M - Q L / 2 = L sum q (f - 1/2), exactly.

The sums S_n are exact to 1e-8 of a charge: they are computed from moments of the atoms in bins finer than the
wavelengths (:func:`.waves.waves`). The truncated series of point charges oscillates, also far from the atoms. Atoms are
therefore Gaussian charges, by default with the distance of nodes as standard deviation, and the series extends until
their Fourier transform has vanished (:data:`END`). Point charges have a series of twice the nodes. If the cell changes,
frames are averaged at equal fractional coordinates, and the profile is given in the mean cell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats
from vmdpotential.errors import InputError, UsageError, count_of
from vmdpotential.execution.blocks import piece_size
from vmdpotential.frames.cells import CellFrames
from vmdpotential.frames.errors_of_means import as_equal, spanned_correlation_times, too_short, uncertainty_of_mean
from vmdpotential.frames.options import Execution
from vmdpotential.frames.task import MergedSums, run_task
from vmdpotential.grid.lattice import Grid
from vmdpotential.grid.means import mean_over_planes
from vmdpotential.interactions import coulomb
from vmdpotential.io.trajectories.frames import Frames
from vmdpotential.maps.medium import has_water
from vmdpotential.maps.options import Unit
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import CheckedOptions, Option, change_options, takes_fields
from vmdpotential.units import DEFAULT_TEMPERATURE, coulomb_constant

from .contributions import parts_of
from .waves import Profiles, period_of

Mask = NDArray[np.bool_]

#: Quantities of a profile.
QUANTITIES = ("charge density", "field", "potential")

#: The series ends at k s = END, where the transform of Gaussians of standard deviation s is e^-18; for very narrow ones
#: at MOST times the nodes.
END, MOST = 6.0, 32

@dataclass(frozen=True, eq=False)
class Profile:
    """Means over frames along an axis.

    Parameters
    ----------
    axis : int
        0, 1 or 2.
    z : (n,) float64, A
        Nodes over one period, in the mean cell.
    names : sequence of str
        ``total`` and the requested contributions, if any.
    values : (names, 3, n) float64
        Charge density, e/A^3, field, V/A, and potential, in `unit`.
    errors : (names, 3, n) float64 or None
        Standard errors of `values`; NaN for curves without one, None if no curve has one.
    integral : (n + 1,) float64, in `unit`
        Potential by double integration of the density from the left edge, where field and potential are taken to be 0;
        at the nodes and at the right edge.
    unit : str
    zero : str
        Where the potential is 0: ``mean``, ``left`` or ``region``.
    shift : float, in `unit`
        Potential at this zero relative to the mean over the cell; it was subtracted from `values`.
    frames, blocks : int
    period, deviation : float, A
        Mean length of the cell along the axis, and its standard deviation over frames.
    charge : float, e
        Net charge of the cell.
    medium : str
        Description of the medium between the charges, empty if it is not known.
    intervals : (names, 3, n) float64 or None
        Half the widths of the 95 % intervals of `values`.
    artificial : float, V/A
        Field that conducting surroundings make in the vacuum next to a slab; 0 if there is no vacuum.
    corrected : bool
        Whether this field was removed.
    no_error : str
        Why the potential has no standard error; empty if it has one, or if there are no frames.
    """

    axis: int
    z: Floats
    names: Sequence[str]
    values: Floats
    errors: Floats | None
    integral: Floats
    unit: str
    zero: str = "mean"
    shift: float = 0.0
    frames: int = 1
    blocks: int = 1
    period: float = 0.0
    deviation: float = 0.0
    charge: float = 0.0
    medium: str = ""
    intervals: Floats | None = None
    artificial: float = 0.0
    corrected: bool = False
    no_error: str = ""

    def __repr__(self) -> str:
        phi = self.values[0, 2]
        return (f"Profile({phi.min():.4g} to {phi.max():.4g} {self.unit} along {'xyz'[self.axis]}, {len(self.z)} nodes "
                f"over {self.period:.4g} A, of {', '.join(self.names)}; {count_of(self.frames, 'frame')})")

    @property
    def units(self) -> tuple[str, str, str]:
        """Units of the three quantities."""
        return "e/A^3", "V/A", self.unit


@dataclass(frozen=True, kw_only=True)
class ProfileOptions(CheckedOptions):
    """All options of a profile, see :func:`profile`."""

    spacing: Annotated[float, Option(
        "largest distance between nodes of the profile", unit="A", above=0, high=100, heading="grid")] = 0.5
    smear: Annotated[float | None, Option(
        "standard deviation of each atom's Gaussian charge; the distance between nodes unless given, 0 for points",
        unit="A", low=0, high=100, heading="method and accuracy")] = None
    slab_correction: Annotated[bool, Option(
        "remove the field that conducting (tinfoil) surroundings make in the vacuum next to a slab (Yeh and "
        "Berkowitz)", heading="method and accuracy")] = False
    unit: Unit = "V"
    temperature: Annotated[float, Option(
        "temperature of kT in the unit kT/e", unit="K", above=0, heading="medium")] = DEFAULT_TEMPERATURE
    axis: int = 2
    center: Mask | None = None
    zero: str | Mask = "mean"
    sources: Mapping[str, Mask] | None = None
    cell: Cell | None = None


@takes_fields(ProfileOptions)
def profile(structure: Structure, trajectory: Frames | None = None, options: ProfileOptions | None = None,
            execution: Execution | None = None, **keywords: Any) -> Profile:
    """Return charge density, field and potential along an axis of the periodic cell.

    Options are keywords, or one object of :class:`ProfileOptions`, which keywords then change.

    Parameters
    ----------
    structure : Structure
        With charges; without a trajectory its own positions are the only frame.
    trajectory : Frames, optional
    options : ProfileOptions, optional
    execution : Execution, optional
        Where blocks of frames are computed and kept.
    axis : int
        0, 1 or 2; two vectors of the cell must be perpendicular to this axis.
    spacing : float, A
        Largest distance between nodes.
    smear : float, A, optional
        Standard deviation of Gaussian charges; the distance between nodes unless given, 0 for points.
    center : (N,) bool, optional
        Atoms whose centre (with equal weights) is moved to z = 0, the middle of the profile, in every frame.
    zero : str or (N,) bool
        Where the potential is 0: its ``mean`` over the cell, the ``left`` edge, or its mean over the density of atoms.
    sources : mapping of (N,) bool, optional
        Contributions of groups by name; atoms in none of them make one called ``rest``.
    cell : Cell, optional
        Cell of all frames, which replaces their own.
    unit, temperature
        Unit of the potential and temperature of kT/e, see :func:`vmdpotential.units.coulomb_constant`.
    slab_correction : bool
        Whether the field that conducting surroundings make in the vacuum next to a slab is removed.

    Raises
    ------
    InputError
        Without charges, or for a frame without a cell.
    UsageError
        For an axis that has no period, a group without a centre, or a slab without a vacuum or with a net charge.
    """
    structure.require_whole_cell("use {expand cell}")
    asked = change_options(ProfileOptions, options, keywords)
    axis, spacing, zero = asked.axis, asked.spacing, asked.zero
    frames = CellFrames.with_cells(structure, trajectory, asked.cell)
    first = frames.first.cell
    if first is None:
        raise InputError(f"{structure.where}: a profile needs a periodic cell", "give {cell}")
    length = period_of(first, axis)
    if not 0 < spacing <= length / 4:
        raise UsageError("spacing", f"at least four nodes are needed in {length:.4g} A", value=f"{spacing:g}")
    if asked.slab_correction and abs(structure.known_charges.sum()) > 1e-3:
        raise UsageError("slab_correction", "the slab must not have a net charge, and this one has "
                         f"{structure.known_charges.sum():.3g} e", "leave it out, or correct the charges")
    nodes = int(np.ceil(length / spacing - 1e-4))  # tolerates the rounding of cells in files
    names, parts, rows = parts_of(len(structure), asked.sources)
    region = None if isinstance(zero, str) else np.flatnonzero(zero)
    places = structure.positions[:, axis]
    # depending on the program, a cell begins at 0 or is centred at 0
    start = round(float(places.min() + places.max()) / length) / 2 - 0.5
    smear = length / nodes if asked.smear is None else asked.smear
    finer = 2 if not smear else min(MOST, int(np.ceil(END / np.pi * length / nodes / smear - 1e-6)))
    work = Profiles(
        frames, structure.known_charges, parts, rows, region,
        None if asked.center is None else np.flatnonzero(asked.center), axis, nodes, finer, smear,
        start, coulomb_constant(asked.unit, asked.temperature), asked.slab_correction)
    merged = run_task(work, execution, piece=piece_size(len(structure)))
    result = _result(work, merged, names, zero if isinstance(zero, str) else "region", asked.unit)
    return replace(result, medium=coulomb.INTERACTION.bind().medium(1.0, 298.15, has_water(structure)))


def _result(work: Profiles, merged: MergedSums, names: Sequence[str], zero: str, unit: str) -> Profile:
    """Return the means over blocks of frames, with their errors."""
    counts = np.array(merged.counts, float)
    values = merged["curves"].series.reshape(len(counts), -1, 3, work.nodes)
    total = counts.sum()
    period, squares, _, inside = merged["cells"].value / total
    # the potential at its zero is the same linear function of the potential in all blocks
    weights = np.zeros(work.nodes)
    if zero == "left":
        weights[0] = 1
    elif zero == "region":
        weights = merged["region"].value / merged["region"].value.sum()
    shifts = values[:, :, 2] @ weights
    values[:, :, 2] -= shifts[..., None]
    means = np.tensordot(counts / total, values, 1)
    deviations, errors, intervals = as_equal(counts, values), np.full_like(means, np.nan), np.full_like(means, np.nan)
    for name, quantity in np.ndindex(means.shape[:2]):  # one by one, so that a curve's errors do not depend on others
        if (curve_error := uncertainty_of_mean(deviations[:, name, quantity])) is not None:
            errors[name, quantity], intervals[name, quantity] = curve_error.error, curve_error.interval
    any_error = np.isfinite(errors).any()
    charge = float(work.charges.sum())
    z = period * (np.arange(work.nodes) / work.nodes + (work.start if work.centre is None else -0.5))
    return Profile(
        work.axis, z, names, means, errors if any_error else None,
        merged["integral"].value / total, unit, zero,
        float(shifts[:, 0] @ counts / total), merged.count, len(counts), float(period),
        float(np.sqrt(max(0.0, squares - period**2))), charge, "",
        intervals if any_error else None, float(inside), work.slab,
        "" if np.isfinite(errors[0, 2, 0]) else too_short(merged.count, spanned_correlation_times(deviations[:, 0, 2])))


def integral(z: Floats, field: Floats, potential: Floats, constant: float) -> Floats:
    """Return the potential (n + 1,) of a map by double integration of its density from the left edge.

    It differs from the periodic potential by a linear function, which makes potential and field 0 at the edge.

    Parameters
    ----------
    z, field, potential : (n,) float64
    constant : float
        Coulomb constant in the unit of the potential.
    """
    along = (z[1] - z[0]) * np.arange(len(z) + 1)
    return np.append(potential, potential[0]) - potential[0] + (
        field[0] * constant / coulomb_constant("V")) * along


def profile_of_map(grid: Grid, axis: int = 2, *, zero: str = "mean", unit: str = "V", name: str = "the map") -> Profile:
    """Return the profile of a periodic potential map: its mean over planes, and field and density derived from it.

    Field and density follow from the Fourier series of the mean potential. `name` is the name of the map in errors.

    Raises
    ------
    InputError
        When the map has no unit or no periodic cell, or its nodes do not span one period of the axis.
    """
    if grid.provenance.cell is None:
        raise InputError(f"{name}: the map has no periodic cell", "compute the profile from the structure")
    if not grid.unit or "/A" in grid.unit:
        raise InputError(f"{name}: the map is not a potential with a known unit ({grid.unit or 'none given'})",
                         "compute the map with this program")
    period = period_of(Cell(np.array(grid.provenance.cell)), axis)
    z, mean = mean_over_planes(grid, axis)
    nodes = len(z)
    if abs(nodes * grid.lattice.spacing[axis] - period) > 1e-4 * period:
        raise InputError(f"{name}: its {nodes} nodes do not span exactly one period ({period:.6g} A)",
                         "compute the profile from the structure")
    map_constant = coulomb_constant(grid.unit, grid.temperature or 298.15)
    requested, volts = coulomb_constant(unit, grid.temperature or 298.15), coulomb_constant("V")
    k = 2 * np.pi / period * np.arange(nodes // 2 + 1)
    spectrum = np.fft.rfft(mean) / map_constant
    spectrum[0] = 0
    if nodes % 2 == 0:
        spectrum[-1] = 0
    density, field, potential = (np.fft.irfft(part, nodes) for part in (
        spectrum * k**2 / (4 * np.pi), -1j * k * volts * spectrum, requested * spectrum))
    shift = potential[0] if zero == "left" else 0.0
    values = np.array([[density, field, potential - shift]])
    return Profile(axis, z, ["total"], values, None, integral(z, field, potential, requested), unit, zero,
                   float(shift), period=period, medium=grid.provenance.medium)
