"""The command ``born``: the free energy of an ion along a path through a molecule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from vmdpotential import progress
from vmdpotential.arrays import Floats
from vmdpotential.commands.options import Source, TableOutput
from vmdpotential.engines import get_engine
from vmdpotential.errors import UsageError
from vmdpotential.io.files.points import as_points, read_points
from vmdpotential.maps.medium import Medium
from vmdpotential.maps.options import Engine, MethodOptions
from vmdpotential.maps.solute import in_continuum
from vmdpotential.maps.solution import solution_of, with_membrane
from vmdpotential.maps.solution_ions import valence
from vmdpotential.maps.solver import describe_solution
from vmdpotential.molecule.charges import ChargeReport
from vmdpotential.molecule.selection import Selection
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Command, Option, ReportRows, WithoutFields, warn_unused
from vmdpotential.results import Axes, Figure, Result, TableColumns
from vmdpotential.units import coulomb_constant

from ..continuum.molecule import Continuum
from ..continuum.pores import PoreRegion, describe_pores
from ..continuum.request import continuum_of_request
from .energies import Ion, IonEnergy, ion_energies

#: Radii of ions, A, with which Born's energy in water is the measured one (A. A. Rashin, B. Honig, J. Phys. Chem. 89
#: (1985) 5588).
BORN_RADII = {
    "Li+": 1.316, "Na+": 1.680, "K+": 2.172, "Rb+": 2.311, "Cs+": 2.514, "Mg2+": 1.455, "Ca2+": 1.862, "Zn2+": 1.338,
    "F-": 1.423, "Cl-": 1.937, "Br-": 2.087, "I-": 2.343,
}

#: How far a path reaches beyond a membrane, and beyond the atoms where there is none, A.
BEYOND_MEMBRANE, BEYOND_ATOMS = 10.0, 5.0

#: Largest number of points.
MOST_POINTS = 10_000


@dataclass(frozen=True, kw_only=True)
class BornOptions:
    """The ion, its path, and the lattice."""

    ion: Annotated[str, Option(
        f"name of the ion, which ends with its charge; Born radii are known of {', '.join(BORN_RADII)}",
        metavar="NAME", front=True)] = "Na+"
    radius: Annotated[float | None, Option(
        "radius of the ion instead of its Born radius", unit="A", low=0.2, high=10.0, heading="medium")] = None
    along: Annotated[str, Option(
        "axis of a straight path, through the middle of the pore if there is one, else of the atoms",
        choices=("x", "y", "z"), front=True)] = "z"
    positions: Annotated[int, Option(
        "number of points of a straight path", low=2, high=MOST_POINTS, heading="sites")] = 50
    points: Annotated[Path | np.ndarray | None, Option(  # type: ignore[type-arg]
        "file of points instead of a straight path, with a line x,y,z (A) for each", metavar="FILE",
        heading="sites")] = None
    atoms: Annotated[Selection, Option(
        "atoms of the molecule, without the ions in its pores", metavar="all|solute|protein|SEL", front=True,
        selection=True)] = "solute"
    spacing: Annotated[float, Option(
        "distance between the nodes of the lattice around the ion", unit="A", low=0.1, high=2.0, front=True)] = 0.5

    def kind(self) -> Ion:
        """Return the charge and the radius of the ion.

        Raises
        ------
        UsageError
            For a name without a charge, or without a known radius.
        """
        charge = valence(self.ion)
        if charge is None:
            raise UsageError("ion", "the name of an ion ends with its charge", "give {ion Na+}, or {ion Ca2+}",
                             value=self.ion)
        radius = BORN_RADII.get(self.ion) if self.radius is None else self.radius
        if radius is None:
            raise UsageError("ion", "its Born radius is not known", "give {radius 1.8}", value=self.ion)
        return Ion(float(charge), radius)


def born(
    source: Source,
    options: BornOptions = BornOptions(),
    solution: Annotated[MethodOptions, WithoutFields("method", "screened")] = MethodOptions(),
    engine: Engine = "auto",
    output: TableOutput = TableOutput(),
) -> BornProfile:
    """Compute the free energy of an ion along a path through a membrane, a pore or a molecule.

    By the Poisson-Boltzmann equation it is the energy of the molecule with the ion, less those of the molecule and of
    the ion in water: what the ion loses of the response of water (its desolvation), and its interaction with the
    molecule's charges. The structure is rigid. With ``--set membrane=auto`` the molecule is in the membrane that its
    file marks, or whose lipids it has. With ``--set voltage=0.1`` energies are relative to the ion in the solution
    above, and have what the voltage adds.

    Raises
    ------
    UsageError
        For an unknown ion, the full equation, or a smooth permittivity.
    InputError
        For atoms without charges or radii, or points that are not numbers.
    TaskError
        When a solution does not converge.
    """
    output.check()
    ion = options.kind()
    given = solution.parameters or {}
    for name in ("nonlinear", "gaussian"):
        if given.get(name):
            raise UsageError("set", "energies of ions are those of the linear equation and a sharp surface",
                             f"leave out {name}", value=f"{name}={given[name]:g}")
    extra: dict[str, Any] = {**given, "dielectric": solution.dielectric}
    medium = Medium.continuum(method="pb", temperature=solution.temperature, **extra)
    structure, charges = source.charged([options.atoms])
    structure, chosen, _ = in_continuum(structure, options.atoms, medium)
    medium = with_membrane(medium, structure, chosen)
    made = solution_of(structure, chosen, solution.radii, medium, "kT/e", options.spacing)
    molecule = continuum_of_request(made, structure.positions[chosen], structure.known_charges[chosen])
    path = _path(molecule, options)
    with progress.clock() as clock:
        backend = get_engine(engine)
        energies = []
        for energy in ion_energies(molecule, path, ion, options.spacing, backend):
            energies.append(energy)
            progress.report_progress("energies of the ion", len(energies) / len(path))
    kcal = coulomb_constant("kcal/mol/e", medium.temperature) / coulomb_constant("kT/e", medium.temperature)
    apart = np.linalg.norm(molecule.positions - path[:, None], axis=2) - molecule.radii
    result = BornProfile(
        charges=charges, options=options, ion=ion, path=path,
        medium=describe_solution(medium.parameters, medium.dielectric),
        energies=kcal * np.array(energies), kt=1 / kcal, clearance=apart.min(1, initial=np.inf),
        pores=molecule.membrane.pores if molecule.membrane is not None else None,
        searched=bool(medium.parameters["pores"]),
        membrane=None if molecule.membrane is None else (molecule.membrane.low, molecule.membrane.high),
        structure=structure, engine=backend.name, seconds=clock.seconds, files=output.paths, draws=output.draws)
    output.write(result, f"{options.ion} in {structure.where}")
    return result


def _path(molecule: Continuum, options: BornOptions) -> Floats:
    """Return the points (P, 3), A, of the path."""
    if options.points is not None:
        warn_unused(("along", "positions"), "the points are given")
        given = options.points
        points = read_points(given)[0] if isinstance(given, (str, Path)) else as_points(given)[0]
        if not 0 < len(points) <= MOST_POINTS:
            raise UsageError("points", f"1 to {MOST_POINTS:,} points are needed", value=str(len(points)))
        return points
    axis, membrane = "xyz".index(options.along), molecule.membrane
    middle = molecule.positions.mean(0)
    low, high = (float(bound) for bound in (molecule.positions[:, axis].min() - BEYOND_ATOMS,
                                            molecule.positions[:, axis].max() + BEYOND_ATOMS))
    if membrane is not None and membrane.pores is not None:
        region = membrane.pores
        if region.count > 1:
            raise UsageError("points", f"the membrane has {region.count} pores, through which no straight path is the "
                             "only one", "give the {points} of a path")
        middle = region.lattice.points(np.argwhere(region.water)).mean(0)
    if membrane is not None and axis == 2:
        low, high = membrane.low - BEYOND_MEMBRANE, membrane.high + BEYOND_MEMBRANE
    result = np.tile(middle, (options.positions, 1))
    result[:, axis] = np.linspace(low, high, options.positions)
    return result


class BornProfile(Result):
    """The free energy of an ion along a path."""

    charges: ChargeReport
    options: BornOptions
    ion: Ion
    medium: str
    path: Floats
    #: (P, 5) total, error, desolvation, interaction, and what a voltage adds, kcal/mol.
    energies: Floats
    #: 1 kcal/mol in kT.
    kt: float
    #: Distance of each point to the nearest atom's surface, A, negative inside.
    clearance: Floats
    pores: PoreRegion | None
    #: Whether pores were searched for.
    searched: bool
    membrane: tuple[float, float] | None
    structure: Structure
    engine: str
    seconds: float

    @property
    def lengths(self) -> Floats:
        """The coordinate along the axis, A; along points, the length of the path."""
        if self.options.points is None:
            return self.path[:, "xyz".index(self.options.along)]
        steps = np.linalg.norm(np.diff(self.path, axis=0), axis=1)
        return np.concatenate([[0.0], np.cumsum(steps)])

    def table(self) -> TableColumns:
        """Return a row for each point."""
        x, y, z = self.path.T
        named = dict(zip(IonEnergy._fields, self.energies.T, strict=True))
        return {"x": x, "y": y, "z": z, "energy": named["total"], "error": named["error"],
                "desolvation": named["desolvation"], "interaction": named["interaction"], "voltage": named["voltage"],
                "clearance": self.clearance}

    @property
    def row(self) -> Mapping[str, Any]:
        """The figures that a ``batch`` has of it."""
        top = int(self.energies[:, 0].argmax())
        return {"barrier": float(self.energies[top, 0]), "barrier_error": float(self.energies[top, 1]),
                "deepest": float(self.energies[:, 0].min()),
                "pore_radius": None if self.pores is None else self.pores.radius}

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        columns = self.table()
        pore = None if self.pores is None else {
            "volume": self.pores.volume, "radius": self.pores.radius, "count": self.pores.count}
        return super().entries() | self.charges.data | {
            "ion": self.options.ion, "charge": self.ion.charge, "radius": self.ion.radius, "medium": self.medium,
            "membrane": self.membrane, "pore": pore, "unit": "kcal/mol", "spacing": self.options.spacing,
            "lengths": self.lengths, "engine": self.engine, "seconds": self.seconds,
            "rows": [dict(zip(columns, map(float, row), strict=True)) for row in zip(*columns.values(), strict=True)]}

    def shown(self) -> dict[str, Any]:
        """Return the objects for viewers and notebooks, by name."""
        return super().shown() | {"structure": self.structure}

    def text(self) -> Iterator[str | ReportRows]:
        """Yield the pore, the highest and lowest energies, and the table."""
        yield str(self.charges)
        yield f"{self.options.ion}: {self.ion.charge:+g} e in {self.ion.radius:g} A, in {self.medium}"
        if self.membrane is not None and self.searched:
            yield describe_pores(self.pores)
        for word, n in (("highest", int(self.energies[:, 0].argmax())), ("lowest", int(self.energies[:, 0].argmin()))):
            total, error, desolvation, interaction, voltage = self.energies[n]
            x, y, z = self.path[n]
            yield (f"{word} energy {total:.2f} +- {error:.2f} kcal/mol ({total * self.kt:.1f} kT) at {x:.1f}, {y:.1f}, "
                   f"{z:.1f} A: desolvation {desolvation:.2f}, interaction {interaction:.2f}"
                   + (f", voltage {voltage:.2f}" if self.energies[:, 4].any() else ""))
        if (self.clearance < 0).any():
            yield (f"{int((self.clearance < 0).sum())} of {len(self.path)} points are inside atoms, where a rigid "
                   "structure lets no ion pass")
        yield f"{len(self.path)} points in {self.seconds:.2f} s on the {self.engine} engine"

    def plot(self, ax: Axes) -> Axes:
        """Draw the energy and its parts along the path."""
        from vmdpotential.figures.slices import CURVE_COLOURS

        s, (total, error, desolvation, interaction, voltage) = self.lengths, self.energies.T
        if self.membrane is not None and self.options.points is None and self.options.along == "z":
            ax.axvspan(*self.membrane, color="#e8e4d8", linewidth=0, zorder=0)
        ax.axhline(0, color="#808080", linewidth=0.4)
        ax.plot(s, desolvation, "--", color=CURVE_COLOURS[0], linewidth=0.8, label="desolvation")
        ax.plot(s, interaction, ":", color=CURVE_COLOURS[1], linewidth=1.5, label="interaction")
        if voltage.any():
            ax.plot(s, voltage, "-.", color=CURVE_COLOURS[2], linewidth=0.8, label="voltage")
        ax.fill_between(s, total - error, total + error, color="black", alpha=0.2, linewidth=0)
        ax.plot(s, total, color="black", label=self.options.ion)
        name = "Length of the path" if self.options.points is not None else self.options.along
        ax.set(xlabel=f"{name} (Å)", ylabel="Free energy (kcal/mol)", xlim=(s[0], s[-1]) if len(s) > 1 else None)
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2 if voltage.any() else 3, frameon=False)
        return ax

    def draw(self) -> Figure:
        """Return the figure of the energy along the path."""
        from vmdpotential.figures.columns import column_figure

        return column_figure(lambda figure, axes: self.plot(axes[0]), 66)


command = Command.of(born, examples=(
    "born channel.pdb --ion K+ --set membrane=auto --spacing 1 -o potassium.csv --figure potassium.png",
    "born entry.pdb --ion Na+ --along z --positions 20 --spacing 1",
), python="""\\
>>> structure = vp.prepare("data/1hvr.pdb.gz").structure
>>> made = vp.born(structure, atoms="//A/1-20", ion="Cl-", positions=3, spacing=1.0)
>>> made.to_dataframe().columns[3]
'energy'""")
