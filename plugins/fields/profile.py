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
wavelengths (:func:`waves`). The truncated series of point charges oscillates, also far from the atoms. Atoms are
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
from vmdpotential.execution.work import Arrays, WorkNeeds
from vmdpotential.frames.cells import CellFrames
from vmdpotential.frames.errors_of_means import as_equal, spanned_correlation_times, too_short, uncertainty_of_mean
from vmdpotential.frames.options import Execution
from vmdpotential.frames.statistics import BlockMean
from vmdpotential.frames.sums import FrameSum, TotalOverFrames, named_arrays
from vmdpotential.frames.task import FrameTask, MergedSums, run_task
from vmdpotential.grid.lattice import Grid
from vmdpotential.grid.means import mean_over_planes
from vmdpotential.interactions import coulomb
from vmdpotential.io.trajectories.frames import Frames, cell_of
from vmdpotential.maps.medium import has_water
from vmdpotential.maps.options import Unit
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import CheckedOptions, Option, change_options, takes_fields
from vmdpotential.units import DEFAULT_TEMPERATURE, coulomb_constant

Mask = NDArray[np.bool_]

#: Quantities of a profile.
QUANTITIES = ("charge density", "field", "potential")

#: Half the number of bins per shortest wavelength, and number of terms of the Taylor series in each bin. With these the
#: error is 1e-8 of a charge.
FINE, TERMS = 4, 8

#: The series ends at k s = END, where the transform of Gaussians of standard deviation s is e^-18; for very narrow ones
#: at MOST times the nodes.
END, MOST = 6.0, 32

#: Least length, A, of a part of the cell without atoms that is taken for vacuum.
VACUUM = 8.0

#: A cell vector is perpendicular to the axis if its component along it is less than this fraction of its length.
_LEVEL = 1e-4

#: A group of atoms has no centre along a periodic axis if the mean of their phase factors is smaller than this.
_SPREAD = 0.02


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


def waves(fraction: Floats, charges: Floats, count: int) -> NDArray[np.complex128]:
    """Return the sums over atoms of q exp(-2 pi i n f), n from 0 to `count`.

    For the atoms of a bin around f_b, exp(-2 pi i n (f - f_b)) is expanded in a Taylor series, so that a few moments of
    each bin are enough for all n: each moment needs one histogram and one Fourier transform.

    Parameters
    ----------
    fraction : (N,) float64
        Positions along the axis in periods.
    charges : (N,) float64
    count : int
    """
    bins = 2 * FINE * max(1, count)
    offset = fraction - np.floor(fraction)
    offset *= bins
    index = offset.astype(np.int64)
    offset -= index
    offset -= 0.5
    index[index == bins] = 0  # of a negative fraction that is rounded to 1
    k = 2 * np.pi / bins * np.arange(count + 1)
    weights = np.array(charges, np.float64)
    total, factor = np.zeros(count + 1, np.complex128), np.exp(-0.5j * k)
    for term in range(TERMS):
        total += factor * np.fft.rfft(np.bincount(index, weights, bins))[: count + 1]
        factor *= -1j * k / (term + 1)
        weights *= offset
    return total


def period_of(cell: Cell, axis: int, where: str = "") -> float:
    """Return the period, A, of the cell along an axis to which two cell vectors are perpendicular.

    The message of an error begins with `where`.

    Raises
    ------
    UsageError
        When no two cell vectors are; its hint names the axes that have a period.
    """
    heights = np.abs(cell.vectors)
    level = heights < _LEVEL * np.linalg.norm(cell.vectors, axis=1)[:, None]
    if level[:, axis].sum() == 2:
        return float(heights[:, axis].max())
    others = [f"{{axis {'xyz'[d]}}}" for d in range(3) if level[:, d].sum() == 2]
    raise UsageError(
        "axis", f"{where}the cell ({cell}) has no period along it, because no two of its vectors are perpendicular to "
        "it", f"use {' or '.join(others)}" if others else "rotate the structure so that two vectors of its cell are",
        value="xyz"[axis])


@dataclass(frozen=True, eq=False)
class Profiles(FrameTask):
    """Sums of profiles over blocks of frames; small and picklable.

    Parameters
    ----------
    frames : CellFrames
    charges : (N,) float64, e
    parts : sequence of (A,) int64
        Disjoint sets of atoms, which together are all atoms.
    rows : (names, parts) bool
        Which parts are added for each curve; the first curve is the total.
    region : (A,) int64 or None
        Atoms over whose density the mean potential is 0.
    centre : (A,) int64 or None
        Atoms whose centre is moved to the middle of the profile.
    axis, nodes : int
    finer : int
        Factor by which the Fourier series has more nodes than the profile; it ends at half of their number.
    smear : float, A
        Standard deviation of Gaussian charges, 0 for points.
    start : float
        Fraction of the cell at which the profile begins.
    constant : float
        Coulomb constant in the unit of the potential.
    slab : bool
        Whether the slab correction is applied.
    """

    frames: CellFrames
    charges: Floats
    parts: Sequence[NDArray[np.int64]]
    rows: Mask
    region: NDArray[np.int64] | None
    centre: NDArray[np.int64] | None
    axis: int
    nodes: int
    finer: int
    smear: float
    start: float
    constant: float
    slab: bool = False

    def needs(self) -> WorkNeeds:
        """Return the memory for a frame and the sums."""
        return WorkNeeds(memory=200 * len(self.charges) + 200 * self.nodes * len(self.rows))

    def sums(self) -> Mapping[str, FrameSum]:
        """Return the mean curves (rows, 3, n), and totals: the density (n,) of the region's atoms, the ``integral``
        (n + 1,), and ``cells`` (4,): period, its square, 1/V, and the field of all charges in the vacuum, V/A.
        """
        return {"curves": BlockMean(spread=False), "region": TotalOverFrames(), "integral": TotalOverFrames(),
                "cells": TotalOverFrames()}

    def block(self, numbers: range) -> Arrays:
        """Return the arrays of the sums over some frames."""
        values, region = np.zeros((len(self.rows), 3, self.nodes)), np.zeros(self.nodes)
        cells, integral = np.zeros(4), np.zeros(self.nodes + 1)
        for frame in self.frames.part(numbers):
            cell = cell_of(self.frames.source.name, frame)
            potential, density, period, inside = self.of(frame.positions, cell, f"in frame {frame.number} ")
            values += potential
            region += density
            cells += period, period**2, 1 / cell.volume, inside
            integral += self.integral(frame.positions, cell)
        return named_arrays(len(numbers), {"curves": {"mean": values / len(numbers)}, "region": {"sum": region},
                                    "integral": {"sum": integral}, "cells": {"sum": cells}})

    def of(self, positions: Floats, cell: Cell, where: str = "") -> tuple[Floats, Floats, float, float]:
        """Return the curves (rows, 3, n) of one frame, the density (n,) of the region's atoms, the period, A, and the
        field of all charges in the vacuum, V/A, which is 0 without a vacuum.
        """
        period = period_of(cell, self.axis, where)
        most = (self.finer * self.nodes - 1) // 2
        fraction = self._fractions(positions, period)
        no_groups = len(self.parts) == 1
        sums = np.array([waves(*((fraction, self.charges) if no_groups else (fraction[part], self.charges[part])), most)
                         for part in self.parts])
        k = 2 * np.pi / period * np.arange(most + 1)
        gaussian = np.exp(-0.5 * (self.smear * k) ** 2)
        spectrum = np.zeros((len(self.rows), 3, most + 1), np.complex128)
        density = (self.rows @ sums) * (gaussian / cell.volume)
        volts = 4 * np.pi * coulomb_constant("V")
        spectrum[:, 0] = density
        spectrum[:, 1, 1:] = -1j * volts * density[:, 1:] / k[1:]
        spectrum[:, 2, 1:] = 4 * np.pi * self.constant * density[:, 1:] / k[1:] ** 2
        values = self._at_nodes(spectrum)
        gap, gap_centre = vacuum(fraction, period)
        inside = self._fields_at(gap_centre, fraction, period, cell) if gap >= VACUUM else np.zeros(len(self.rows))
        if self.slab:
            if gap < VACUUM:
                raise UsageError(
                    "slab_correction", f"{where}the cell has no vacuum along the axis: the longest part without atoms "
                    f"is {gap:.3g} A long, and {VACUUM:g} A are needed", "leave it out")
            line = (np.arange(self.nodes) / self.nodes - gap_centre) % 1 * period
            values[:, 1] -= inside[:, None]
            values[:, 2] += inside[:, None] * (self.constant / coulomb_constant("V") * (line - line.mean()))
        atoms = np.zeros(self.nodes)
        if self.region is not None:
            place = fraction[self.region]
            atoms = self._at_nodes(waves(place, np.ones(len(place)), most) * gaussian) / len(place)
        return values, atoms, period, float(inside[0])

    def _fractions(self, positions: Floats, period: float) -> Floats:
        """Return positions (N,) along the axis from the left edge, in periods."""
        fraction: Floats = positions[:, self.axis] / period
        return fraction - (self.start if self.centre is None else middle(fraction[self.centre]) - 0.5)

    def integral(self, positions: Floats, cell: Cell) -> Floats:
        """Return the potential (n + 1,) by double integration of the point charges from the left edge.

        Field and potential are taken to be 0 there, as by ``gmx potential``, whose result approaches this one with
        thinner slices.
        """
        period = period_of(cell, self.axis)
        place = self._fractions(positions, period) % 1
        index = np.minimum((place * self.nodes).astype(int), self.nodes - 1)
        charge, moment = (np.append(0, np.cumsum(np.bincount(index, weights, self.nodes)))
                          for weights in (self.charges, self.charges * place))
        result: Floats = -4 * np.pi * self.constant * period**2 / cell.volume * (
            np.arange(self.nodes + 1) / self.nodes * charge - moment)
        return result

    def _fields_at(self, place: float, fraction: Floats, period: float, cell: Cell) -> Floats:
        """Return the field, V/A, of each curve's point charges at a position, a fraction of the period."""
        apart = self.charges * ((fraction - place) % 1 - 0.5)
        parts = np.array([apart[part].sum() for part in self.parts])
        fields: Floats = 4 * np.pi * coulomb_constant("V") * period / cell.volume * (self.rows @ parts)
        return fields

    def _at_nodes(self, spectrum: NDArray[np.complex128]) -> Floats:
        """Return the values at the nodes (..., n) of a Fourier series (..., most + 1)."""
        values: Floats = np.fft.irfft(spectrum, self.finer * self.nodes, norm="forward")[..., :: self.finer]
        return values


def vacuum(fraction: Floats, period: float) -> tuple[float, float]:
    """Return the length, A, of the longest part of a period without atoms, and its centre as a fraction."""
    bins = max(4, int(period / 0.5))
    taken = np.zeros(bins, bool)
    taken[(fraction % 1 * bins).astype(int) % bins] = True
    full = np.flatnonzero(taken)
    gaps = np.diff(full, append=full[0] + bins)
    first = int(gaps.argmax())
    length = int(gaps[first]) - 1
    return length * period / bins, (full[first] + 1 + length / 2) / bins % 1


def middle(fraction: Floats) -> float:
    """Return the centre of positions along a periodic axis, in fractions of the period.

    The mean of the phase factors gives a first centre; then the positions are averaged in their images nearest to it.

    Raises
    ------
    UsageError
        When the group is spread evenly.
    """
    mean = np.exp(2j * np.pi * fraction).mean()
    if abs(mean) < _SPREAD:
        raise UsageError("center", "its atoms are spread evenly along the axis and have no centre",
                         "choose a layer, such as {center lipid}")
    centre = float(np.angle(mean)) / (2 * np.pi)
    for _ in range(3):  # the nearest images depend on the centre
        apart = fraction - centre
        centre += float((apart - np.rint(apart)).mean())
    return centre


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


def parts_of(atoms: int, sources: Mapping[str, Mask] | None) -> tuple[list[str], list[NDArray[np.int64]], Mask]:
    """Return disjoint sets of atoms from which sums over groups, which may overlap, are combined.

    Returns
    -------
    names : list of str
        ``total``, the groups, and ``rest`` if there are atoms in none of them.
    parts : list of (A,) int64
        Sets of atoms that are in the same groups.
    rows : (names, parts) bool
        Which parts are added for each name.
    """
    if not sources:
        return ["total"], [np.arange(atoms)], np.ones((1, 1), bool)
    masks = np.array(list(sources.values()), bool)
    kind = np.unique(2.0 ** np.arange(len(masks)) @ masks, return_inverse=True)[1]
    parts = [np.flatnonzero(kind == n) for n in range(int(kind.max()) + 1)]
    kinds = masks[:, [part[0] for part in parts]].T
    rows = np.concatenate([np.ones((1, len(kinds)), bool), kinds.T])
    names = ["total", *sources]
    rest = ~np.asarray(kinds.any(axis=1))
    if rest.any():
        names.append("rest")
        rows = np.concatenate([rows, rest[None]])
    return names, parts, rows


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
    result: Floats = np.append(potential, potential[0]) - potential[0] + (
        field[0] * constant / coulomb_constant("V")) * along
    return result


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

