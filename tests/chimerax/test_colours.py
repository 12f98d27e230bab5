"""The colours of a surface that ChimeraX draws."""

import same_colours

import vmdpotential as vp


def test_an_entry_has_the_same_colours_as_in_all_programs(session, opened, do, tmp_path):
    from chimerax.core.models import Surface

    entry = same_colours.write_entry(tmp_path)
    vp.write_structure(entry.structure, tmp_path / "entry.pdb")  # its charges are those of the same templates
    opened(tmp_path / "entry.pdb")
    do(f"potential map #1 spacing {same_colours.SPACING} range {same_colours.LOW},{same_colours.HIGH}")
    (surface,) = (model for model in session.models.list(type=Surface) if model.vertex_colors is not None)
    entry.check(surface.vertex_colors[:, :3] / 255, entry.value_at(surface.vertices, surface.normals))
