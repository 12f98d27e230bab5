"""The colours of a surface that PyMOL draws."""

import re

import numpy as np
import same_colours


def test_an_entry_has_the_same_colours_as_in_all_programs(cmd, do, tmp_path):
    """They are those of the triangles that PyMOL writes as VRML."""
    entry = same_colours.write_entry(tmp_path)
    cmd.load(str(entry.path), "entry")
    do(f"potential_map entry, spacing={same_colours.SPACING}, range='{same_colours.LOW},{same_colours.HIGH}'")
    for name in cmd.get_names():
        (cmd.enable if name in ("potential_group", "potential_surface") else cmd.disable)(name)
    cmd.set_view([*np.eye(3).ravel(), 0, 0, -100, 0, 0, 0, 1, 200, 0])  # coordinates are those of the camera
    text = cmd.get_vrml()

    def rows(name):
        (block,) = re.findall(rf"\b{name} \[([^\]]*)\]", text)
        return np.array(block.replace(",", " ").split(), float).reshape(-1, 3)

    entry.check(rows("color"), entry.value_at(rows("point"), rows("vector")))
