"""The command ``surface``."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np

from vmdpotential.commands.on_surface import CavitySurface, OnSurface, distinct_names, lining_names, row_name
from vmdpotential.commands.options import Source, UnitOfFile, check_are_maps, names_of, read_maps
from vmdpotential.commands.surface_options import SurfacePotential, SurfaceShape, ViewOptions
from vmdpotential.commands.surface_output import MovingOutput
from vmdpotential.errors import UsageError
from vmdpotential.figures.colours import check_range, check_units, colour_range, reading_distance
from vmdpotential.figures.movies import is_movie
from vmdpotential.grid.lattice import Grid
from vmdpotential.maps import MapOptions, Medium
from vmdpotential.maps.solute import as_mapped, chosen_atoms, other_molecule, without_water
from vmdpotential.molecule.moments import charge_moments
from vmdpotential.molecule.selection import Mask, is_water, select
from vmdpotential.molecule.structure import Structure, atom_label
from vmdpotential.parameters import Command, Option, fields_of, warn_unused
from vmdpotential.surfaces import molecular_surface, owner_rows
from vmdpotential.surfaces.contact import find_faces, join_surfaces
from vmdpotential.surfaces.patches import find_patches

log = logging.getLogger(__name__)


def surface(
    source: Source,
    map: Annotated[tuple[Path | Grid, ...], Option(
        "map file (.dx, .mrc, .ccp4, .cube, .npz ...) whose values are taken at the surface, or several, which are the "
        "frames of a movie; unless given, the potential is computed as by the command map", positional=True,
        metavar="MAP")] = (),
    potential: SurfacePotential = SurfacePotential(),
    shape: SurfaceShape = SurfaceShape(),
    patches: Annotated[float | None, Option(
        "report patches, the connected areas where the map is at least this value, or at most its negative, such as 1 "
        "for a potential in kT/e", low=0, metavar="VALUE", heading="surface")] = None,
    by: Annotated[str, Option(
        "rows of the table: one for each residue, atom, vertex or patch",
        choices=("residue", "atom", "vertex", "patch"), heading="surface")] = "residue",
    between: Annotated[tuple[str, ...], Option(
        "two molecules that touch, whose surfaces replace that of atoms: figures and meshes show them turned apart "
        "like the pages of a book, with the faces that they hide from each other to the reader, each in the potential "
        "of its own charges, or in the given map", metavar="SEL", selection=True, heading="surface")] = (),
    picture: ViewOptions = ViewOptions(),
    unit_of_file: UnitOfFile = None,
    output: MovingOutput = MovingOutput(),
) -> OnSurface:
    """Map a potential onto the surface of a molecule.

    Without a map, the potential is computed with the same options and default as by the command map: one command leads
    from a deposited structure to its coloured surface.

    The table has the area of each residue, atom or vertex (A^2), and the area-weighted mean, minimum and maximum of the
    map on it. Closed cavities, which a probe cannot leave, are parts of their own: their number, places and values are
    reported, and meshes and figures show the outer surface alone unless `cavities` are requested.

    Several maps, such as those of a titration at several values of pH, follow each other in a movie, on one colour
    scale; tables, meshes and the report are those of the first.

    With `patches`, the connected areas of the outer surface on which the map exceeds a threshold are reported, of both
    signs: area, integral, mean, centre, normal and the residues that share them. The figure shows these areas alone.

    With `between`, the potential of each of both molecules is computed without the other one, whose place the medium
    takes. A given map, such as that of the complex, is read on both surfaces. Cavities are left out.

    Raises
    ------
    UsageError
        For files of other formats, for rows by patch without patches, for several maps without a movie or in different
        units, and for two molecules that share atoms or do not touch.
    InputError
        For structures without elements, or maps that do not contain the surface.
    BackendError
        When scikit-image is not installed.
    """
    from vmdpotential.figures import slices

    size = picture.size_for(output.figure)
    if picture.range is not None:
        check_range(picture.range)
    if by == "patch" and patches is None:
        raise UsageError("by", "there are no patches without a threshold", "give {patches}, such as 1", value=by)
    check_are_maps("map", map, "for several structures, use batch surface with their folder")
    if len(map) > 1:
        if output.figure is None or not is_movie(output.figure):
            raise UsageError("map", f"{len(map)} maps are the frames of a movie, and none is written",
                             "give {figure movie.gif} too, or one map")
        if patches is not None:
            raise UsageError("patches", "they are those of one map", "give one map, or leave out {patches}")
    paths = output.checked_files(picture)
    if between:
        if len(between) != 2:
            raise UsageError("between", f"two selections are needed, and there are {len(between)}",
                             "such as {between //A} //B")
        if output.figure is not None and is_movie(output.figure):
            raise UsageError("figure", f"{output.figure}: an open book does not turn", "choose .png, .pdf or .svg")
        warn_unused(("atoms", "cavities", "view", "facing", "up"), "two molecules are turned apart")
    structure, parts, grids, prepared = _mapped(source, map, potential, shape, unit_of_file, between)
    grid = grids[0]
    check_units(grids, "map")
    titles = names_of(map, grids[: len(map)]) if len(map) > 1 or (map and isinstance(map[0], Path)) else [
        "map" if map else "potential"]
    start = time.perf_counter()
    structure = as_mapped(structure, grid)
    default = "all" if is_water(structure).all() else "solute"
    atoms = default if potential.atoms is None else potential.atoms
    chosen = parts[0] | parts[1] if parts else chosen_atoms(structure, atoms, Medium("water"))
    for each in grids[max(len(parts) - 1, 0):] if map else ():  # a map is there once for each of two molecules
        if other := other_molecule(each, structure.positions[chosen]):
            log.warning("%s: %s: the potential of one molecule on the surface of another", structure.where, other)
    faces = find_faces(structure, parts[0], parts[1], kind=shape.kind, probe=shape.probe,
                       spacing=shape.mesh_spacing) if parts else ()
    made = [face.surface for face in faces] or [molecular_surface(
        structure, atoms=chosen, kind=shape.kind, probe=shape.probe, spacing=shape.mesh_spacing)]
    mesh = join_surfaces(made) if faces else made[0]
    views = [] if faces else picture.of(mesh, structure)
    shape = shape if shape.outwards is not None else replace(shape, outwards=reading_distance(grid))
    values = np.concatenate([each.sample(of, shape.outwards or 0.0) for each, of in zip(made, grids, strict=False)])
    series = [values, *(mesh.sample(of, shape.outwards or 0.0) for of in grids[len(made):])]
    seconds = time.perf_counter() - start
    inside = np.isfinite(values)
    for title, read in zip(titles, series, strict=True):
        if not np.isfinite(read).any():
            raise UsageError("map", "the map does not cover any point of the surface", "give the map of this structure",
                             value=title)
    outer = mesh.cavities == 0
    span = picture.range or colour_range(grids, [read[outer] for read in series])
    owners = mesh.atoms if by == "atom" else structure.residue_of[mesh.atoms]
    parts = [mesh.cavities == n for n in np.unique(mesh.cavities).tolist()]
    tables = [owner_rows(mesh, values, owners, part) for part in parts]
    names = [distinct_names([row_name(structure, row, by == "atom") for row in table]) for table in tables]
    one = np.zeros(len(values), np.int64)
    whole, = owner_rows(mesh, values, one, outer)
    cavities = [CavitySurface(row.area, row.mean, row.low, row.high, mesh.vertices[part].mean(0).tolist(),
                       lining_names(of_part, table))
                for part, table, of_part in zip(parts[1:], tables[1:], names[1:], strict=True)
                for row in owner_rows(mesh, values, one, part)]
    drawn = np.ones_like(outer) if shape.cavities else outer
    found, patch_of = ([], np.full(len(values), -1)) if patches is None else find_patches(
        mesh, np.where(outer, values, np.nan), patches, structure.residue_of[mesh.atoms])
    labels = [atom_label(structure, first, True) for first in structure.residue_starts[:-1].tolist()] if found else []
    moments = None if structure.charges is None else charge_moments(structure.positions[chosen],
                                                                    structure.known_charges[chosen])
    result = OnSurface(
        prepared=prepared or None, shape=shape, surface=mesh, grid=grid, whole=whole,
        within=next(iter(owner_rows(mesh, values, one, ~outer)), None), found=cavities, seen=drawn,
        threshold=patches, areas=found, places=patch_of, residues=distinct_names(labels), moments=moments,
        span=span, by=by, names=names, tables=tables, values=values, structure=structure,
        inside=float(mesh.areas[inside & outer].sum() / mesh.areas[outer].sum()),
        views=views, size=size, pictured=output.figure is not None,
        label=slices.bar_label(grid) if picture.label is None else picture.label,
        faces=faces, partners=[str(text) for text in between], own=not map,
        series=dict(zip(titles, series, strict=True)) if len(map) > 1 else {}, of=titles[0],
        head=f"{shape.kind} " + (f"surfaces of {' and '.join(between)}" if faces else f"surface of {atoms}"),
        seconds=seconds, files=paths, draws=not paths)
    output.write_files(result, picture, slices.quantity_label(grid), lambda: (result.drawn, values[drawn]))
    return result


def _mapped(source: Source, map: Sequence[Path | Grid], potential: SurfacePotential, shape: SurfaceShape,
            unit: str | None, between: Sequence[str]) -> tuple[Structure, list[Mask], list[Grid], str]:
    """Return the structure, the atoms of two molecules, the map of each surface, and a text that lists added atoms."""
    from vmdpotential.maps import potential_map
    from vmdpotential.maps.interaction import in_medium

    def parts(structure: Structure) -> list[Mask]:
        return [without_water(structure, select(structure, text, "between")) for text in between]

    if map:
        names = [p.name for p in fields_of(MapOptions) if p.argument not in SurfacePotential.__annotations__]
        warn_unused([*names, "set"], "the map is given")
        structure, prepared = source.hydrogenated()
        return structure, parts(structure), read_maps(map, unit) * (2 if between else 1), prepared
    warn_unused(("unit_of_file",), "it is for a map, and none is given")
    shown = source.read()
    options = in_medium(potential.for_surface(shown, shape), shown)
    structure, report = source.with_charges(shown, between or [options.chosen], "between" if between else "atoms")
    chosen = parts(structure)
    maps = [potential_map(structure, replace(options, atoms=atoms)) for atoms in chosen] or [
        potential_map(structure, options)]
    return structure, chosen, maps, report.prepared


command = Command.of(surface, draws="mesh", examples=(
    "surface entry.pdb --patches 1 --by patch -o patches.csv --figure patches.png",
    "surface protein.pdb potential.dx --kind accessible --by atom --range -5,5 -o atoms.csv surface.ply",
), python="""\
>>> structure = vp.read_structure("data/dhfr.pdb.gz", topology="data/dhfr.psf.gz")
>>> grid = vp.potential_map(structure, atoms="protein", spacing=3.0)
>>> on_surface = vp.surface(structure, grid, atoms="protein", spacing=1.5)
>>> on_surface.surface.area > 5000  # A^2
True""")
