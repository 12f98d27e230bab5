// What is drawn, with 3Dmol.js: atoms, ions, isosurfaces and the slice.
"use strict";

(function (page) {
  const AXES = ["x", "y", "z"];
  const LIGHT = [0.2, 0.2, 1].map((x) => x / Math.hypot(0.2, 0.2, 1));  // 3Dmol.js's lamp, fixed to the screen
  const GREY = 0xb4b4ac;

  // positive blue, negative red, as the surfaces and as in the other viewers
  page.ionColour = (charge) => (charge > 0 ? "#2f6db5" : charge < 0 ? "#c8372d" : "#9a9a9a");

  page.hasWebGL = function () {
    try {
      const canvas = document.createElement("canvas");
      return Boolean(canvas.getContext("webgl2") || canvas.getContext("webgl"));
    } catch (error) {
      return false;
    }
  };

  // a vector turned from the screen's axes to the model's
  function toModel([qx, qy, qz, qw], [x, y, z]) {
    const [cx, cy, cz] = [-qx, -qy, -qz];
    const tx = 2 * (cy * z - cz * y), ty = 2 * (cz * x - cx * z), tz = 2 * (cx * y - cy * x);
    return { x: x + qw * tx + cy * tz - cz * ty, y: y + qw * ty + cz * tx - cx * tz, z: z + qw * tz + cx * ty - cy * tx };
  }

  class Scene {
    constructor(host, content) {
      this.host = host;
      this.content = content;
      this.viewer = window.$3Dmol.createViewer(host, { backgroundColor: "white", disableFog: true, antialias: true });
      this.surfaces = [];
      this.picked = () => {};
      this.moved = () => {};
      const { format, text } = content.structure;
      this.model = this.viewer.addModel(text, format, { keepH: true });
      this.ions = this.viewer.addModel();
      this.ions.addAtoms(content.ions.map((ion, n) => {
        const [x, y, z] = ion.position;
        return { x, y, z, elem: ion.element || "X", atom: ion.name, resn: ion.name, resi: ion.number, serial: n + 1,
          chain: "", hetflag: true, bonds: [], bondOrder: [], ss: "c", b: 0, properties: { ion: n } };
      }));
      for (const model of [this.model, this.ions]) {
        model.setClickable({}, true, (atom) => this.picked(atom, model === this.ions ? atom.properties.ion : -1));
      }
      this.viewer.setViewChangeCallback(() => this.viewChanged());
    }

    background(colour) {
      this.viewer.setBackgroundColor(colour, 1);
    }

    style(name, ions) {
      const coloured = { colorfunc: (atom) => (atom.elem === "C" ? GREY : window.$3Dmol.elementColors.rasmol[atom.elem] ?? GREY) };
      const sticks = { stick: { radius: 0.14, ...coloured } };
      this.model.setStyle({}, {});
      if (name === "cartoon") {
        const many = this.model.selectedAtoms({ hetflag: true }).length > 20000;
        this.model.setStyle({ hetflag: true }, many ? { line: coloured } : sticks);
        this.model.setStyle({ hetflag: false }, { cartoon: { color: GREY } });
        // residues that are no polymer have no ribbon
        this.model.setStyle({ hetflag: false, predicate: (atom) => !this.hasRibbon(atom) }, many ? { line: coloured } : sticks);
      } else if (name === "stick") this.model.setStyle({}, sticks);
      else if (name === "line") this.model.setStyle({}, { line: coloured });
      const spheres = (atom) => page.ionColour(this.content.ions[atom.properties.ion].charge);
      this.ions.setStyle({}, ions ? { sphere: { radius: 1.15, colorfunc: spheres } } : {});
      this.viewer.render();
    }

    hasRibbon(atom) {
      if (!this.ribbons) {
        const backbone = this.model.selectedAtoms({ atom: ["CA", "P", "O5'", "C1'"] });
        this.ribbons = new Set(backbone.map((a) => `${a.chain} ${a.resi} ${a.icode} ${a.resn}`));
      }
      return this.ribbons.has(`${atom.chain} ${atom.resi} ${atom.icode} ${atom.resn}`);
    }

    remove(shape) {
      if (!shape) return;
      this.viewer.removeShape(shape);
      shape.geo?.dispose?.();  // removing alone leaves its buffers on the graphics card
    }

    // the number of triangles of the positive and the negative surface
    isosurfaces(map, level, shown, opacity) {
      this.surfaces.forEach((shape) => this.remove(shape));
      this.surfaces = [];
      const counts = [];
      for (const [sign, colour] of [[1, shown.positive], [-1, shown.negative]]) {
        const mesh = map && colour ? page.isosurface(map, level, sign) : { faceArr: [] };
        counts.push(mesh.faceArr.length / 3);
        if (mesh.faceArr.length) this.surfaces.push(this.viewer.addCustom({ ...mesh, color: colour, opacity }));
      }
      this.viewer.render();
      return counts;
    }

    slice(map, axis, position, range) {
      this.plane = map && axis >= 0 ? { map, axis, position, range } : null;
      this.drawSlice();
      this.viewer.render();
    }

    drawSlice() {
      this.remove(this.shape);
      this.shape = null;
      if (!this.plane) return this.moved();
      const { map, axis, position, range } = this.plane;
      // normals along the light, so that colours are those of the scale, from wherever it is seen
      const view = this.viewer.getView().slice(4, 8);
      const mesh = page.slice(map, axis, position, range, toModel(view, LIGHT));
      const back = [];
      for (let n = 0; n < mesh.faceArr.length; n += 3) back.push(mesh.faceArr[n], mesh.faceArr[n + 2], mesh.faceArr[n + 1]);
      this.shape = this.viewer.addCustom({ ...mesh, faceArr: mesh.faceArr.concat(back), side: 0 });
      this.drawnView = view;
      this.moved();
    }

    viewChanged() {
      this.moved();
      if (!this.plane || this.waiting) return;
      const view = this.viewer.getView().slice(4, 8);
      if (Math.hypot(...view.map((x, n) => x - this.drawnView[n])) < 0.01) return;
      this.waiting = true;
      requestAnimationFrame(() => {
        this.waiting = false;
        if (this.plane) {
          this.drawSlice();
          this.viewer.render();
        }
      });
    }

    // where a point of the model is drawn, in pixels of the view
    toScreen([x, y, z]) {
      const at = this.viewer.modelToScreen({ x, y, z }), box = this.host.getBoundingClientRect();
      return [at.x - box.left - window.scrollX, at.y - box.top - window.scrollY];
    }

    // middle of an edge of the slice, where its handle is
    grip() {
      const { map, axis, position } = this.plane;
      const [u, v] = [0, 1, 2].filter((d) => d !== axis), point = [0, 0, 0];
      point[axis] = position;
      point[u] = map.last[u];
      point[v] = (map.origin[v] + map.last[v]) / 2;
      return point;
    }

    // turns so that a slice is seen at a slant
    lookAt(axis) {
      const turns = [["y", -55, "x", 12], ["x", 55, "y", 10], ["x", -28, "y", 24]][axis];
      const view = this.viewer.getView();
      view.splice(4, 4, 0, 0, 0, 1);
      this.viewer.setView(view);
      this.viewer.rotate(turns[1], turns[0]);
      this.viewer.rotate(turns[3], turns[2]);
    }

    reset() {
      this.viewer.setView(this.first);
      this.viewer.render();
    }

    // fits all atoms and ions into the view, and what is around a single one
    fit() {
      const atoms = this.viewer.selectedAtoms({});
      const [x, y, z] = ["x", "y", "z"].map((d) => atoms.reduce((sum, atom) => sum + atom[d], 0) / (atoms.length || 1));
      const around = this.viewer.addSphere({ center: { x, y, z }, radius: 8, opacity: 0 });
      this.viewer.zoomTo();
      this.viewer.zoom(1.1);
      this.viewer.removeShape(around);
      this.viewer.setSlab(-500, 500);
      this.viewer.render();
      this.first = this.viewer.getView();
    }

    centre(point) {
      const start = this.viewer.getView(), goal = point.map((x) => -x);
      const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
      const begin = performance.now(), duration = still ? 0 : 350;
      const step = (now) => {
        const t = duration ? Math.min(1, Math.max(0, (now - begin) / duration)) : 1, s = t * t * (3 - 2 * t);
        const view = this.viewer.getView();
        for (let d = 0; d < 3; d++) view[d] = start[d] + (goal[d] - start[d]) * s;
        this.viewer.setView(view);
        if (t < 1) requestAnimationFrame(step);
      };
      step(begin);
    }

    mark(point, text, dark) {
      this.viewer.removeAllLabels();
      if (!text) return this.viewer.render();
      const [x, y, z] = point;
      this.viewer.addLabel(text, { position: { x, y, z }, fontSize: 13, inFront: true, backgroundOpacity: 0.85,
        backgroundColor: dark ? "#262d35" : "#ffffff", fontColor: dark ? "#eceff2" : "#1b2026", borderThickness: 1,
        borderColor: "#8a939c", screenOffset: { x: 14, y: -14 } });
      this.viewer.render();
    }

    key(event) {
      const turn = { ArrowLeft: ["y", -5], ArrowRight: ["y", 5], ArrowUp: ["x", -5], ArrowDown: ["x", 5] }[event.key];
      if (event.ctrlKey || event.altKey || event.metaKey) return false;
      if (turn && event.shiftKey) {
        this.viewer.translate(turn[0] === "y" ? turn[1] * 4 : 0, turn[0] === "x" ? -turn[1] * 4 : 0);
      } else if (turn) this.viewer.rotate(turn[1], turn[0]);
      else if (event.key === "+" || event.key === "=") this.viewer.zoom(1.15);
      else if (event.key === "-") this.viewer.zoom(1 / 1.15);
      else if (event.key === "Home") this.reset();
      else return false;
      return true;
    }
  }

  Scene.AXES = AXES;
  page.Scene = Scene;
})(window.vmdpotential);
