"""Scenes in Mol* itself: its viewer from the npm package, and what it draws."""

import base64
import json
import re
import sys
from pathlib import Path

import numpy as np

VIEWER = Path(sys.prefix, "node_modules", "molstar", "build", "viewer")

PAGE = """<!DOCTYPE html><meta charset=utf-8><link rel=stylesheet href="{style}"><script src="{script}"></script>
<div id=app style="position:absolute;inset:0"></div><script>
window.opened = (async () => {{
  window.viewer = await molstar.Viewer.create("app", {{ layoutIsExpanded: false, layoutShowControls: false }});
  await viewer.loadMvsData("base64,{scene}", "mvsx");
}})();
</script>"""

#: Meshes of primitives: positions, and the colour of each vertex, which the graphics card finds by its group.
MESHES = """(() => {
  const text = (array) => {
    let s = "";
    for (const x of new Uint8Array(array.buffer, array.byteOffset, array.byteLength)) s += String.fromCharCode(x);
    return btoa(s);
  };
  const result = [];
  for (const { obj } of viewer.plugin.state.data.cells.values()) {
    if (obj?.type.name !== "Shape 3D" || !obj.data.repr) continue;
    for (const { values } of obj.data.repr.renderObjects) {
      const groups = values.aGroup.ref.value, shades = values.tColor.ref.value.array;
      const colours = new Uint8Array(3 * groups.length);
      for (let n = 0; n < colours.length; n++) colours[n] = shades[3 * groups[Math.floor(n / 3)] + n % 3];
      const count = values.drawCount.ref.value, faces = values.elements.ref.value.slice(0, count);
      result.push([text(Float32Array.from(values.aPosition.ref.value)), text(colours), text(Uint32Array.from(faces))]);
    }
  }
  return JSON.stringify(result);
})()"""


def open_scene(browser, scene, folder):
    """Open a scene in Mol*."""
    page = folder / "molstar.html"
    page.write_text(PAGE.format(style=(VIEWER / "molstar.css").as_uri(), script=(VIEWER / "molstar.js").as_uri(),
                                scene=base64.b64encode(scene.read_bytes()).decode()), "utf-8")
    browser.open(page, (900, 640), wait=False)
    browser.run("window.opened", 120)
    browser.settle()


def meshes(browser):
    """Return the corners of the triangles (T, 3, 3) and the colours of these, 0 to 255, of each mesh that is drawn."""
    result = []
    for texts in json.loads(browser.run(MESHES)):
        positions, colours, faces = (np.frombuffer(base64.b64decode(text), kind)
                                     for text, kind in zip(texts, ("<f4", "u1", "<u4"), strict=True))
        faces = faces.reshape(-1, 3)
        result.append((positions.reshape(-1, 3)[faces], colours.reshape(-1, 3)[faces]))
    return result


def next_scene(browser):
    """Go to the next scene, and wait until it is drawn."""
    browser.run("viewer.plugin.managers.snapshot.applyNext(1)")
    browser.run("new Promise((done) => setTimeout(done, 1000))")  # the camera moves for half a second
    browser.settle()


def described(browser):
    """Return the text of the description, and the colours of its keys from left to right."""
    text = browser.run("document.querySelector('.msp-markdown').innerText")
    return text, [re.findall(r"rgb\((\d+), (\d+), (\d+)\)", key) for key in browser.run(
        "[...document.querySelectorAll('.msp-markdown span')].map((e) => e.style.background).filter(Boolean)")]
