"""The command ``complementarity``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from vmdpotential import progress
from vmdpotential.commands.options import Source
from vmdpotential.commands.pictures import PictureOptions
from vmdpotential.commands.slice import parse_range
from vmdpotential.commands.surface_output import SurfaceOutput, SurfaceResult
from vmdpotential.errors import UsageError
from vmdpotential.figures.captions import minus_signs
from vmdpotential.figures.colours import ValueRange, check_range, robust_range
from vmdpotential.maps.medium import Medium
from vmdpotential.maps.options import Engine, MethodOptions
from vmdpotential.maps.solute import without_water
from vmdpotential.maps.solver import describe_solution
from vmdpotential.molecule.charges import ChargeReport
from vmdpotential.molecule.selection import select
from vmdpotential.molecule.structure import atom_label
from vmdpotential.parameters import Command, Option, ReportRows, WithoutFields
from vmdpotential.results import Axes, Figure, TableColumns
from vmdpotential.surfaces import PROBE_RADIUS
from vmdpotential.surfaces.drawn import DrawnSurface

from .correlation import Agreement
from .faces import ContactFace, Interface, find_interface

if TYPE_CHECKING:
    from vmdpotential.figures.book import OpenBook

#: Number of residues of each face in the report.
_PRINTED = 5

_UNIT = "kT/e"


@dataclass(frozen=True, kw_only=True)
class FaceOptions:
    """Options of the faces, and of the lattice of the solution."""

    spacing: Annotated[float, Option(
        "grid spacing of the continuum", unit="A", low=0.05, high=2.0, front=True)] = 0.5
    probe: Annotated[float, Option(
        "radius of the probe sphere that rolls over both surfaces; a face is what it cannot touch in the complex",
        unit="A", low=0.1, high=20, aliases=("probe_radius",), heading="surface")] = PROBE_RADIUS
    mesh_spacing: Annotated[float, Option(
        "spacing of the grid on which the surfaces are constructed", unit="A", low=0.05, high=2,
        heading="surface")] = 0.4


@dataclass(frozen=True, kw_only=True)
class FaceOutput(SurfaceOutput):
    """Files of two faces."""

    output: Annotated[tuple[Path, ...], Option(
        "files to write: .csv for the table, .glb or .ply for the mesh of both faces, turned apart and coloured by "
        "their own and the partner's potential", short="o", viewer=False, written=True, suffix=".csv")] = ()
    figure: Annotated[Path | None, Option(
        "figure to write, of both faces, turned apart and coloured by their own and the partner's potential: .png, "
        ".pdf or .svg", written=True, heading="main options")] = None


def complementarity(
    source: Source,
    between: Annotated[tuple[str, ...], Option(
        "the two molecules that touch: two selections", metavar="SEL", selection=True, front=True)],
    shape: FaceOptions = FaceOptions(),
    solution: Annotated[MethodOptions, WithoutFields("method", "screened")] = MethodOptions(),
    by: Annotated[str, Option(
        "rows of the table: one for each residue or vertex of both faces", choices=("residue", "vertex"),
        heading="surface")] = "residue",
    range: Annotated[ValueRange | None, Option(
        "range of the colours, kT/e; unless given, wide enough for 98 % of both potentials on both faces",
        parse=parse_range, metavar="LO,HI", front=True, aliases=("color_range",))] = None,
    engine: Engine = "auto",
    picture: PictureOptions = PictureOptions(),
    output: FaceOutput = FaceOutput(),
) -> Complementarity:
    """Compute the electrostatic complementarity of two molecules that touch.

    The potential of each molecule is computed in water and salt, by the Poisson-Boltzmann equation, with its charges
    alone, in the shape of the complex. On the face of each molecule, which is the part of its surface that the other
    hides from water, the complementarity is minus the correlation coefficient of both potentials, weighted by area: 1
    if they are opposite everywhere, 0 if they are unrelated, and -1 if they are equal (A. J. McCoy, V. C. Epa, P. M.
    Colman, J. Mol. Biol. 268 (1997) 570).

    Waters are left out. Reported are the values of both faces and their mean, with a standard error and a 95 %
    confidence interval that know that neighbouring points are alike, and the error of the grid. The table has the
    potentials on each residue and its contribution; contributions add up to the value of the face.

    Raises
    ------
    UsageError
        For selections that share atoms or do not touch, and for files of other formats.
    InputError
        For atoms without charges or radii.
    TaskError
        When the solution does not converge.
    MemoryPlanError
        When a grid does not fit into memory.
    BackendError
        When scikit-image is not installed.
    """
    if range is not None:
        check_range(range)
    if len(between) != 2:
        raise UsageError("between", f"two selections are needed, and there are {len(between)}",
                         "such as {between //A} //B")
    size = picture.size_for(output.figure)
    extra: dict[str, Any] = {**(solution.parameters or {}), "dielectric": solution.dielectric}
    medium = Medium.continuum(temperature=solution.temperature, **extra)
    paths = output.checked_files(picture)
    structure, charges = source.charged(between, "between")
    first, second = (without_water(structure, select(structure, text, "between")) for text in between)
    with progress.clock() as clock:
        interface = find_interface(structure, first, second, solution, spacing=shape.spacing, probe=shape.probe,
                                   mesh_spacing=shape.mesh_spacing, engine=engine)
    span = range or robust_range([value for face in interface.faces for value in (face.own, face.partner)])
    result = Complementarity(charges=charges, names=tuple(map(str, between)), shape=shape, interface=interface, by=by,
                             medium=f"{describe_solution(medium.parameters, medium.dielectric)}, "
                                    f"{medium.temperature:g} K",
                             span=span, size=size, label=_UNIT if picture.label is None else picture.label,
                             seconds=clock.seconds, files=paths, draws=not paths)
    output.write_files(result, picture, f"complementarity of {' and '.join(result.names)}",
                       lambda: result.book.mesh(interface.structure.positions[:, 0].max()))
    return result


class Complementarity(SurfaceResult):
    """Electrostatic complementarity of two molecules."""

    charges: ChargeReport
    names: tuple[str, ...]
    shape: FaceOptions
    interface: Interface
    by: str
    medium: str
    size: tuple[float, float | None]
    label: str
    seconds: float

    @property
    def value(self) -> float:
        """Complementarity: the mean of both faces."""
        return self.interface.pearson[-1].value

    @cached_property
    def book(self) -> OpenBook:
        """Both faces, turned apart."""
        from .book import book_of_faces

        return book_of_faces(self.interface, self.names)

    @property
    def caption(self) -> str:
        """What the figure shows, in sentences."""
        first, second = self.names
        return minus_signs(
            f"Faces of {first} (left) and {second} (right) that touch each other, turned apart like the pages of a "
            "book, coloured by the electrostatic potential of their own charges (above) and by that of the partner's "
            f"charges (below). Medium: {self.medium}. Colours: {self.span[0]:g} to {self.span[1]:g} {_UNIT}; the rest "
            "of the surfaces is grey.")

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """Area, A^2, mean potentials, kT/e, and contribution of each residue of both faces."""
        return [row for n, face in enumerate(self.interface.faces) for row in self._residues(n, face)]

    def _residues(self, n: int, face: ContactFace) -> Iterator[dict[str, Any]]:
        structure, areas = self.interface.structure, face.areas
        own, partner = (value - np.average(value, weights=areas) for value in (face.own, face.partner))
        size = np.sqrt((areas @ own**2) * (areas @ partner**2))
        share = -areas * own * partner / (size or 1.0)
        residues, row = np.unique(structure.residue_of[face.surface.atoms[face.buried]], return_inverse=True)
        area, total = np.bincount(row, areas), np.bincount(row, share)
        means = [np.bincount(row, areas * value) / area for value in (face.own, face.partner)]
        for residue, *numbers in zip(residues.tolist(), area.tolist(), *(mean.tolist() for mean in means),
                                     total.tolist(), strict=True):
            yield {"face": self.names[n],
                   "name": atom_label(structure, int(structure.residue_starts[residue]), True),
                   **dict(zip(("area", "own", "partner", "contribution"), numbers, strict=True))}

    def _entry(self, n: int) -> dict[str, Any]:
        """Return the figures of a face, or of the mean of both, for ``--json``."""
        pearson, spearman = self.interface.pearson[n], self.interface.spearman[n]
        return {"value": pearson.value, "error": pearson.error, "interval": pearson.interval,
                "grid_error": self.interface.grid_errors[n], "spearman": spearman.value,
                "spearman_error": spearman.error, "spearman_interval": spearman.interval}

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | self.charges.data | {
            "between": self.names, **self._entry(2), "buried_area": self.interface.area,
            "faces": [{"name": name, "area": float(face.areas.sum()), "vertices": len(face.areas), **self._entry(n)}
                      for n, (name, face) in enumerate(zip(self.names, self.interface.faces, strict=True))],
            "unit": "kT/e", "spacing": self.shape.spacing, "probe": self.shape.probe,
            "mesh_spacing": self.shape.mesh_spacing, "range": list(self.span), "caption": self.caption,
            "normal": self.interface.axes[2],
            "seconds": self.seconds, "rows": self.rows}

    @property
    def row(self) -> Mapping[str, Any]:
        """The figures that a ``batch`` has of it."""
        own = super().row
        faces = {f"{key}_{n}": face[key] for n, face in enumerate(self.data["faces"], 1) for key in ("value", "area")}
        return {**own, **faces}

    def shown(self) -> dict[str, Any]:
        """Return the objects for viewers and notebooks, by name; None for those that there are not."""
        mesh, values = self.book.mesh(self.interface.structure.positions[:, 0].max())
        return super().shown() | {"mesh": DrawnSurface(mesh, values, self.span, "kT/e", "kT/e")}

    def text(self) -> Iterator[str | ReportRows]:
        """Yield the complementarity of both faces and their mean, and the residues that contribute most."""
        yield str(self.charges)
        interface = self.interface
        yield (f"complementarity of {self.names[0]} and {self.names[1]}: " + _stated(interface.pearson[2])
               + f", error of the grid {interface.grid_errors[2]:.2g}; by ranks {_stated(interface.spearman[2])}")
        for n, (name, face) in enumerate(zip(self.names, interface.faces, strict=True)):
            yield (f"face of {name}: {face.areas.sum():.1f} A^2, {_stated(interface.pearson[n])}; by ranks "
                   + _stated(interface.spearman[n]))
            rows = sorted((row for row in self.rows if row["face"] == name), key=lambda row: -row["contribution"])
            for word, chosen in (("complementary", rows[:_PRINTED]), ("not complementary", rows[::-1][:_PRINTED])):
                chosen = [row for row in chosen if (row["contribution"] > 0) == (word == "complementary")]
                if chosen:
                    yield f"most {word}: " + ", ".join(
                        f"{row['name']} {row['contribution']:+.3f} ({row['own']:+.3g} and {row['partner']:+.3g} kT/e)"
                        for row in chosen)
        yield "+- is the standard error, with the 95 % interval in brackets, from resampled parts of the interface"
        yield f"{self.seconds:.2f} s"

    def table(self) -> TableColumns:
        """Return a row for each residue or vertex of both faces."""
        if self.by == "residue":
            return {name: [row[name] for row in self.rows]
                    for name in ("face", "name", "area", "own", "partner", "contribution")}
        structure, faces = self.interface.structure, self.interface.faces
        places, normals = (np.concatenate([getattr(face, name) for face in faces]) for name in ("places", "normals"))
        atoms = np.concatenate([face.surface.atoms[face.buried] for face in faces])
        names = {n: atom_label(structure, n, False) for n in np.unique(atoms).tolist()}
        return {"face": [name for name, face in zip(self.names, faces, strict=True) for _ in face.areas],
                **{x: places[:, n] for n, x in enumerate("xyz")},
                **{f"n{x}": normals[:, n] for n, x in enumerate("xyz")},
                **{name: np.concatenate([getattr(face, attribute) for face in faces])
                   for name, attribute in (("area", "areas"), ("own", "own"), ("partner", "partner"))},
                "atom": [names[n] for n in atoms.tolist()]}

    def plot(self, ax: Axes) -> Axes:
        """Draw the potentials at the vertices of both faces against each other."""
        for name, face in zip(self.names, self.interface.faces, strict=True):
            ax.scatter(face.own, face.partner, face.areas, label=f"face of {name}", linewidths=0, alpha=0.5)
        ax.set(xlabel="own potential (kT/e)", ylabel="potential of the partner (kT/e)")
        ax.legend()
        return ax

    def draw(self) -> Figure:
        """Return the figure of both faces, turned apart."""
        return self.book.draw(ValueRange(*self.span), self.label, *self.size)


def _stated(value: Agreement) -> str:
    """Return a value with its error."""
    if value.error is None or value.interval is None:
        return f"{value.value:.3f} (too small an area for a statistical error)"
    low, high = value.interval
    return f"{value.value:.3f} +- {value.error:.3f} [{low:.3f}, {high:.3f}]"


command = Command.of(complementarity, draws="mesh", examples=(
    "complementarity entry.pdb --between //A/1-99 //B/1-99 --figure faces.png",
    "complementarity entry.pdb --between //A,B/1-99 '(XK2)' --set salt=0.1,inside=4 -o residues.csv faces.glb",
), python="""\
>>> structure = vp.prepare("data/1hvr.pdb.gz").structure
>>> faces = vp.complementarity(structure, between=["//A", "//B"], spacing=1.5, mesh_spacing=1.0)
>>> -1 <= faces.value <= 1
True""")
