"""Results of a command as models of ChimeraX: maps with surfaces, structures with ions, images in the log."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from vmdpotential.figures import colours
from vmdpotential.figures.colours import ValueRange
from vmdpotential.grid.lattice import Grid
from vmdpotential.io.structures.pdbwrite import cell_record
from vmdpotential.molecule.selection import is_water
from vmdpotential.parameters import Report
from vmdpotential.plugins.viewers import adapters, map_surfaces

from .convert import Selected
from .copies import set_charges, show_ions, show_values

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from vmdpotential.molecule.structure import Structure
    from vmdpotential.surfaces.drawn import DrawnSurface

#: Distance, A, within which a computed atom is that of a model.
SAME = 0.01

#: Opacity of the surfaces of a map.
OPACITY = 0.5

#: Colour and radius, A, of the markers of labels.
_LABEL_COLOUR, _LABEL_RADIUS = (40, 40, 40, 255), 0.3

#: Name of the label that describes the colours of the key.
KEY_LABEL = "potential"

#: Number of letters of that label that fit into a small window; longer labels are written smaller.
LETTERS = 55


def show(session: Any, report: Report, name: str, selected: Selected | None,
         options: Mapping[str, Any]) -> tuple[list[Any], list[str]]:
    """Make a model of every result in the report that ChimeraX can show.

    Parameters
    ----------
    session : ChimeraX's session
    report : Report
    name : str
        Name of the models.
    selected : Selected or None
        The atoms of the command.
    options : mapping
        Options of the display, see :mod:`vmdpotential.plugins.viewers.display`.

    Returns
    -------
    models : list
        New models, without the surfaces of maps.
    lines : list of str
        Lines for the user.
    """
    models, lines = [], []
    if selected is None and "structure" in report.objects:  # of a wave function
        models.append(_show_nuclei(session, report.objects["structure"], f"{name} nuclei"))
    further = {id(value): f"{name} {part}" for part, value in report.objects.items() if part != "grid"}
    for kind, value in adapters.results(report):
        if kind == "map":
            title = further.get(id(value), name)
            if "live" in report.objects:
                value = map_surfaces.covering_surface(value, report.objects["structure"])
            model, line = _show_map(session, value, title, selected, "levels" in report.data)
            model.display = title == name  # of a series, the first one
            if options.get("surface") and selected is not None:
                model.display = False  # its isosurfaces would hide the coloured surface
                lines.append(f"{line}; the map is hidden (show #{model.id_string})")
                line = _show_surface(session, value, model, name, selected, options, report)
                if options["hide_water"]:
                    lines += _hide_water(selected)
        elif kind == "ions" and selected is not None:
            model, line = show_ions(session, value, name, selected)
        elif kind == "values" and selected is not None:
            model, line = show_values(session, value, name, selected)
        elif kind == "mesh":
            model, line = _show_mesh(session, value, name, selected)
        else:
            if kind == "figure":
                _show_figure(session, value)
            continue
        models.append(model)
        lines.append(line)
    return models, lines


def _show_map(session: Any, grid: Grid, name: str, selected: Selected | None,
              by_levels: bool = False) -> tuple[Any, str]:
    from chimerax.map import volume_from_grid_data
    from chimerax.map_data import ArrayGridData

    lattice = grid.lattice
    values = np.ascontiguousarray(grid.values.transpose(2, 1, 0))  # ChimeraX's order is z, y, x
    data = ArrayGridData(values, lattice.origin.tolist(), lattice.spacing.tolist(), name=name)
    volume = volume_from_grid_data(data, session, open_model=False, show_dialog=False)
    volume.vmdpotential_header = dict(grid.header())
    if selected is not None:
        volume.position = selected.place
    level = colours.initial_isovalue(grid)
    levels = colours.isosurface_levels(grid) if by_levels else (-level, level)
    shades = [(*_rgba(colours.sign_colour(value))[:3], OPACITY) for value in levels]
    if min(lattice.shape) > 1:
        # caps would close the negative isosurface around all values above its level, which is the whole box
        volume.set_parameters(surface_levels=list(levels), surface_colors=shades, cap_faces=False)
    session.models.add([volume])
    number, unit = volume.id_string, grid.unit or "no known unit"
    texts = [f"{value:g} ({'red' if value < 0 else 'blue'})" for value in levels]
    line = f"map #{number} {name}, in {unit}; isosurface{'s' * (len(texts) > 1)} at {' and '.join(texts)}"
    if grid.provenance.medium:
        line += f", {grid.provenance.medium}"
    if selected is not None and not by_levels:
        line += (f"; colour a molecular surface by it with: color electrostatic #{selected.models[0].id_string} "
                 f"map #{number} range {-level:g},{level:g}")
    return volume, line


def _show_nuclei(session: Any, structure: Structure, name: str) -> Any:
    """Make a model with the nuclei of a wave function and their bonds."""
    model = _new_model(session, structure, name)
    model.atoms.draw_modes = model.atoms[0].STICK_STYLE
    session.models.add([model])
    return model


def show_copies(session: Any, structure: Structure, name: str, selected: Selected) -> Any:
    """Make a model with the copies in an assembly or a cell, and hide the original models."""
    model = _new_model(session, structure, name)
    model.position = selected.place
    if structure.cell is not None:
        model.set_metadata_entry("CRYST1", [cell_record(structure.cell).decode().rstrip()])
    if structure.charges is not None:
        set_charges(session, list(model.atoms), structure.charges)
    session.models.add([model])
    for source in selected.models:
        source.display = False
    return model


def _new_model(session: Any, structure: Structure, name: str) -> Any:
    """Return a model of a structure, with bonds."""
    from chimerax.atomic import AtomicStructure, Element

    model = AtomicStructure(session, name=name)
    residue = None
    for row, index in enumerate(structure.residue_index.tolist()):
        if residue is None or index != structure.residue_index[row - 1]:
            residue = model.new_residue(
                str(structure.residue_names[row]) or "MOL", str(structure.chain_ids[row]) or "A",
                int(structure.residue_ids[row]), insert=str(structure.insertion_codes[row]) or " ")
        element = Element.get_element(str(structure.elements[row]) or "C")
        atom = model.new_atom(str(structure.atom_names[row])[:4], element)
        atom.coord = structure.positions[row]
        residue.add_atom(atom)
    model.connect_structure()
    return model


def _show_surface(session: Any, grid: Grid, volume: Any, name: str, selected: Selected, options: Mapping[str, Any],
                  report: Report) -> str:
    """Make ChimeraX's molecular surface of the atoms that were computed, coloured by a map, and a key of its colours.

    It belongs to the atoms and refers to the map, as if it were made by ChimeraX's commands.
    """
    from chimerax.surface.colorvol import color_electrostatic
    from chimerax.surface.surfacecmds import surface

    part = options["surface_of"]
    computed = map_surfaces.surface_of(report, part, selected.structure)
    assert computed is not None
    span = options["range"] or map_surfaces.surface_range(grid, selected.structure)
    words = map_surfaces.legend(grid, span)
    atoms = _shown_atoms(session, computed, name, selected)
    atoms.spec = name  # for the surface's name
    (model,) = surface(session, enclose=atoms, include=atoms, sharp_boundaries=False)
    model.new_parameters(atoms, visible_patches=_outer_pieces(model.vertices, model.triangles))
    model.name = f"{name} surface, {words}"
    wider = map_surfaces.covering_surface(grid, computed)
    if wider is not grid:  # ChimeraX has no colour for points outside of a map, even if it is periodic
        volume, _ = _show_map(session, wider, f"{name} images", selected)
        volume.display = False
    color_electrostatic(session, [model], volume, palette=_palette(span), offset=colours.reading_distance(grid))
    if session.ui.is_gui:
        _show_key(session, span, colours.map_meaning(grid))
    of_part = f" of {part}, in the field of all computed atoms" if part else ""
    return f"surface #{model.id_string}{of_part}, coloured from {words} (red, white, blue)"


def _shown_atoms(session: Any, computed: Structure, name: str, selected: Selected) -> Any:
    """Return the atoms of the user's models that were computed, or those of a new model if they are elsewhere.

    Hydrogens that were added are no reason for a new model: without them, ChimeraX's radii include them.
    """
    from scipy.spatial import cKDTree

    distance, rows = cKDTree(selected.structure.positions).query(computed.positions)
    found = distance < SAME
    if (found | (computed.elements == "H")).all():
        return selected.atoms[np.unique(rows[found])]
    model = _new_model(session, computed, f"{name} structure")
    model.position = selected.place
    model.atoms.displays = False
    model.residues.ribbon_displays = False
    session.models.add([model])
    return model.atoms


def _outer_pieces(vertices: NDArray[Any], triangles: NDArray[Any]) -> int:
    """Return the number of connected pieces of a surface that are not closed cavities, whose normals are inwards."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    first, second, third = triangles.T
    edges = np.ones(2 * len(first), bool), (np.concatenate([first, first]), np.concatenate([second, third]))
    count, piece = connected_components(coo_array(edges, shape=2 * (len(vertices),)), directed=False)
    corners = (vertices - vertices.mean(0)).astype(np.float64)[triangles]
    signed = np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2]))
    return int((np.bincount(piece[first], signed, count) > 0).sum())


def _palette(span: ValueRange) -> Any:
    """Return ChimeraX's colour map of a range."""
    from chimerax.core.colors import Colormap

    values, shades = zip(*colours.scale(span), strict=True)
    return Colormap(list(values), [_rgba(shade) for shade in shades])


def _show_mesh(session: Any, drawn: DrawnSurface, name: str, selected: Selected | None) -> tuple[Any, str]:
    """Make a coloured surface, with markers for its labels, and a key of its colours."""
    from chimerax.core.models import Surface
    from chimerax.markers import MarkerSet

    span = ValueRange(*drawn.span)
    words = f"{span.low:g} to {span.high:g} {drawn.meaning}"
    model = Surface(f"{name}, {words}", session)
    surface = drawn.surface
    model.set_geometry(np.float32(surface.vertices), np.float32(surface.normals), np.int32(surface.triangles))
    rgb = colours.rgb_of(drawn.values, span)
    model.vertex_colors = np.column_stack([rgb, np.full(len(rgb), 255, np.uint8)])
    models = [model]
    if drawn.labels:
        markers = MarkerSet(session, f"{name} labels")
        for text, place in drawn.labels:
            markers.create_marker(place, _LABEL_COLOUR, _LABEL_RADIUS).name = text
        models.append(markers)
    for made in models:
        if selected is not None:
            made.position = selected.place
    session.models.add(models)
    line = f"surface #{model.id_string}, coloured from {words} (red, white, blue)"
    if drawn.labels:
        if session.main_view.render is not None:  # ChimeraX makes no labels without a window
            _label_markers(session, models[1])
        line += f"; names at the markers #{models[1].id_string}"
    if session.ui.is_gui:
        _show_key(session, span, drawn.meaning)
    return model, line


def _label_markers(session: Any, markers: Any) -> None:
    """Label markers with their names."""
    from chimerax.core.objects import Objects
    from chimerax.label.label3d import label

    label(session, Objects(atoms=markers.atoms), object_type="atoms", attribute="name", height="fixed", size=24)


def _show_key(session: Any, span: ValueRange, words: str) -> None:
    """Show ChimeraX's key with the colours, and a label that describes them."""
    from chimerax.color_key.model import get_model
    from chimerax.label.label2d import label_change, label_create, session_labels

    key = get_model(session)
    stops = colours.scale(span)
    labelled = {span.low, 0.0 if span.low < 0 < span.high else (span.low + span.high) / 2, span.high}
    key.rgbas_and_labels = [(_rgba(colour), f"{value:g}" if value in labelled else "") for value, colour in stops]
    if 0 in key.size:
        key.size = key.DEFAULT_SIZE
    key.font_size = 18
    label = session_labels(session, create=True).named_label(KEY_LABEL)
    size = min(14, LETTERS * 14 // max(1, len(words)))
    if label is None:
        label_create(session, KEY_LABEL, words, size=size, xpos=0.02, ypos=0.94)
    else:
        label_change(session, [label], text=words, size=size)


def _rgba(colour: str) -> tuple[float, ...]:
    """Return red, green, blue and opacity, 0 to 1, of a colour such as #c8372d."""
    return (*(channel / 255 for channel in bytes.fromhex(colour[1:])), 1.0)


def _hide_water(selected: Selected) -> list[str]:
    """Hide the water of models when their first surface is drawn; later, the user's choice is kept."""
    lines = []
    water = selected.atoms.filter(is_water(selected.structure))
    for model in selected.models:
        atoms = water.intersect(model.atoms)
        if not getattr(model, "vmdpotential_without_water", False) and atoms.displays.any():
            atoms.displays = False
            lines.append(f"the water of #{model.id_string} is hidden; show it with: show #{model.id_string} & solvent")
        model.vmdpotential_without_water = True
    return lines


def put_values(volume: Any, grid: Grid) -> None:
    """Put a grid into a map model that was made here; its levels are kept, and surfaces coloured by it follow."""
    from chimerax.core.models import Surface
    from chimerax.map_data import ArrayGridData

    data, lattice = volume.data, grid.lattice
    values = np.ascontiguousarray(grid.values.transpose(2, 1, 0))
    if data.array.shape == values.shape and np.allclose(data.origin, lattice.origin, atol=1e-6) and np.allclose(
            data.step, lattice.spacing, atol=1e-9):
        data.array[...] = values
        data.values_changed()
    else:
        volume.replace_data(ArrayGridData(values, lattice.origin.tolist(), lattice.spacing.tolist(), name=data.name))
        volume.new_region()
    volume.vmdpotential_header = dict(grid.header())
    for surface in volume.session.models.list(type=Surface):
        recolour = surface.auto_recolor_vertices
        if recolour is not None and getattr(getattr(recolour, "__self__", None), "volume", None) is volume:
            recolour()


def _show_figure(session: Any, figure: Figure) -> None:
    """Put a picture of the figure into the log."""
    from PIL import Image

    stream = BytesIO()
    figure.savefig(stream, format="png", dpi=150)
    stream.seek(0)
    with Image.open(stream) as image:
        session.logger.info("", image=(image.convert("RGB"), True))
