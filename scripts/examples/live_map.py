"""A live map.

What a viewer does while frames are played or atoms are dragged, in Python: a `LiveMap` is planned once, and each
`update` makes the map of new positions by that plan. Here the protein swings about its centre. The picture shows the
potential at both ends of the swing, and the difference.
"""

import sys
import time
from pathlib import Path

import numpy as np

import vmdpotential as vp
from vmdpotential.figures import page
from vmdpotential.plugins.live.live_map import LiveMap

DATA = Path(__file__).resolve().parents[2] / "data"
out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/live_map")
out.mkdir(parents=True, exist_ok=True)

structure = vp.read_structure(DATA / "dhfr.pdb.gz", topology=DATA / "dhfr.psf.gz")
protein = structure.take(np.flatnonzero(vp.select(structure, "protein")))
live = LiveMap(protein, vp.MapOptions(boundary="periodic", spacing=1.5, tolerance=1e-3, engine="cpu"))

middle = protein.positions.mean(0)
maps = []
start = time.perf_counter()
for angle in np.deg2rad(np.linspace(-15, 15, 5)):
    turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
    maps.append(live.update((protein.positions - middle) @ turn.T + middle))
seconds = (time.perf_counter() - start) / len(maps)
print(f"{len(maps)} maps of {live.atoms} atoms by {live.plans} plan, {seconds:.3f} s each")

shown = {"−15 degrees": maps[0], "+15 degrees": maps[-1], "difference": maps[-1] - maps[0]}
plane = vp.Plane.parse(f"z={middle[2]:.0f}")
panels = [page.Panel(grid, plane, title) for title, grid in shown.items()]
figure = page.compose_slices(panels, value_range=(-500, 500), width=183).figure
page.save(figure, out / "swing.png", dpi=300, force=True)
