"""Draw the picture of plugins/chimerax/README.md with ChimeraX's own graphics: picture.py HOME STRUCTURE OUTPUT.

HOME is a user folder that has the bundle, as core.build makes it. OSMesa draws, so no screen is needed.
"""

import os
import sys
from pathlib import Path

os.environ["PYOPENGL_PLATFORM"] = "osmesa"

import core


def main():
    home, structure, output = map(Path, sys.argv[1:])
    session = core.start(home)
    from chimerax.core.commands import run
    from chimerax.graphics.opengl import OffScreenRenderingContext
    from chimerax.pdb import open_pdb
    from chimerax.std_commands.lighting import lighting

    view = session.main_view
    view.initialize_rendering(OffScreenRenderingContext(720, 560))
    session.ui.has_graphics = True
    (model,), _ = open_pdb(session, str(structure), "dhfr")
    session.models.add([model])
    # as the page says
    ionized = run(session, "potential ionize #1 concentration 0.15")
    volume = run(session, "potential map #2 atoms protein spacing 0.8 surface false")
    model.display = False
    polymer = ionized.residues.polymer_types != 0
    ionized.atoms.filter(ionized.atoms.residues.names == "HOH").displays = False
    ionized.residues.ribbon_displays = polymer
    ionized.atoms.filter(ionized.atoms.residues.polymer_types != 0).displays = False
    lighting(session, preset="simple")
    view.background_color = (1, 1, 1, 1)
    volume.update_drawings()
    view.view_all(pad=0.1)
    view.image(720, 560, supersample=3).convert("RGB").quantize(200).save(output, optimize=True)


if __name__ == "__main__":
    main()
