// The scene in 3Dmol.js: atoms, ions, surfaces and the slice.
"use strict";

(function (page) {
  const AXES = ["x", "y", "z"];
  const LIGHT = [0.2, 0.2, 1].map((x) => x / Math.hypot(0.2, 0.2, 1));  // 3Dmol.js's lamp, fixed to the screen
  const GREY = 0xb4b4ac, HIGHLIGHT = 0x2fa84f, WATER = "#6f9fc8";
  const [CAMERA, FIELD] = [150, Math.PI / 9];  // distance of 3Dmol.js's camera, and its vertical field of view
  const LARGE = 30000;  // from this number of atoms, the scene is drawn at the screen's resolution only
  const POINTS = 2000;  // from this number of waters, they are drawn as points

  page.hasWebGL = function () {
    try {
      const canvas = document.createElement("canvas");
      return Boolean(canvas.getContext("webgl2") || canvas.getContext("webgl"));
    } catch (error) {
      return false;
    }
  };

  // a vector rotated by the inverse of a rotation, such as from the screen's axes to the model's
  function turned([qx, qy, qz, qw], [x, y, z]) {
    const [cx, cy, cz] = [-qx, -qy, -qz];
    const tx = 2 * (cy * z - cz * y), ty = 2 * (cz * x - cx * z), tz = 2 * (cx * y - cy * x);
    return [x + qw * tx + cy * tz - cz * ty, y + qw * ty + cz * tx - cx * tz, z + qw * tz + cx * ty - cy * tx];
  }

  class Scene {
    constructor(host, content, atoms) {
      this.host = host;
      this.content = content;
      this.atoms = atoms;
      this.viewer = window.$3Dmol.createViewer(host, {
        backgroundColor: "white", disableFog: true, antialias: true, upscale: atoms.count < LARGE });
      this.meshes = {};  // groups of triangles and their shape, by name
      this.models = [];
      this.drawn = "none";
      this.moved = () => {};
      this.covered = () => [0, 0];  // heights in pixels of the covered parts of the view, at its top and bottom
      this.measured = [];  // lines of distances and their labels
      this.names = [];
      this.ions = this.viewer.addModel();
      this.ions.addAtoms(content.ions.map((ion, n) => {
        const [x, y, z] = ion.position;
        return { x, y, z, elem: ion.element || "X", atom: ion.name, resn: ion.name, resi: ion.number, serial: n + 1,
          chain: "", hetflag: true, bonds: [], bondOrder: [], ss: "c", b: 0, properties: { ion: n } };
      }));
      this.viewer.setViewChangeCallback(() => this.viewChanged());
    }

    // Draws once for several changes, as a picture can take a second without a graphics card.
    render() {
      this.waiting ||= requestAnimationFrame(() => this.renderNow());
    }

    renderNow() {
      cancelAnimationFrame(this.waiting);
      this.waiting = 0;
      this.viewer.render();
    }

    // requests a redraw after a change that the viewer does not draw by itself
    quietly(change) {
      this.viewer.show = () => {};
      change();
      delete this.viewer.show;
      this.render();
    }

    // Resolves when all is drawn; a request to a busy graphics card would block the page.
    async done() {
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      const gl = this.viewer.getCanvas().getContext("webgl2"), fence = gl?.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
      if (!fence) return;
      gl.flush();
      while (gl.clientWaitSync(fence, 0, 0) === gl.TIMEOUT_EXPIRED) await new Promise((done) => setTimeout(done, 10));
      gl.deleteSync(fence);
    }

    background(colour) {
      this.viewer.setBackgroundColor(colour, 1);
    }

    showIons(shown) {
      const colour = (atom) => this.content.ions[atom.properties.ion].colour;
      this.ionsShown = shown;
      this.ions.setStyle({}, shown ? { sphere: { radius: 1.15, colorfunc: colour } } : {});
    }

    // Draws the atoms in parts, so that the page stays usable while a large structure is drawn.
    async style(name) {
      const turn = this.turn = {}, { atoms } = this;
      this.drawn = name;
      if (name !== "none" && !this.parts) this.parts = atoms.parts(atoms.waters <= POINTS);
      this.mesh("waters", name !== "none" && atoms.waters > POINTS ? atoms.points() : null, { colour: WATER });
      const coloured = { colorfunc: (atom) => (atom.elem === "C" ? GREY : window.$3Dmol.elementColors.rasmol[atom.elem] ?? GREY) };
      const sticks = atoms.count > LARGE ? { line: coloured } : { stick: { radius: 0.14, ...coloured } };
      for (const [n, part] of (this.parts ?? []).entries()) {
        if (!this.models[n]) {
          if (name === "none") continue;
          this.models[n] = this.viewer.addModel(atoms.pdb(part), "pdb", { keepH: true });
        }
        const model = this.models[n];
        model.setStyle({}, name === "none" ? {} : name === "line" ? { line: coloured } : sticks);
        // only polymers have ribbons
        if (name === "cartoon") model.setStyle({ hetflag: false }, { cartoon: { color: GREY } });
        if (name === "none") continue;
        this.render();
        await this.done();
        if (turn !== this.turn) return;
      }
      this.render();
    }

    // Shows groups of triangles in place of earlier ones with the same name; without groups, these are removed.
    mesh(name, groups, { colour = null, opacity = 1, side = undefined } = {}) {
      const before = this.meshes[name];
      delete this.meshes[name];
      if (before) {
        this.viewer.removeShape(before.shape);
        before.shape.geo.dispose();  // removing the shape does not free its buffers on the graphics card
      }
      if (!groups?.length) return;
      const shape = this.viewer.addShape({ color: colour ?? "white", opacity, side });
      for (const { positions, normals, faces } of groups) {
        const group = shape.geo.addGeoGroup();
        Object.assign(group, { vertexArray: positions, normalArray: normals, faceArray: faces, lineArray: new Uint16Array(0),
          colorArray: new Float32Array(positions.length), vertices: positions.length / 3, faceidx: faces.length, __inittedArrays: true });
      }
      this.meshes[name] = { groups, shape };
      if (colour === null) delete shape.color;  // each vertex has its own
    }

    opacity(name, opacity) {
      if (this.meshes[name]) this.meshes[name].shape.opacity = opacity;
    }

    // colours by the values at the vertices
    paint(name, range) {
      if (!this.meshes[name]) return;
      const { groups, shape } = this.meshes[name];
      groups.forEach(({ values }, n) => page.colours(values, range, shape.geo.geometryGroups[n].colorArray));
      shape.geo.colorsNeedUpdate = true;
    }

    slice(map, axis, position, range) {
      this.plane = map && axis >= 0 ? { map, axis, position, range } : null;
      this.mesh("slice", this.plane && page.slice(map, axis, position), { side: 0 });
      if (this.plane) {
        this.paint("slice", range);
        this.light();
      }
      this.moved();
      this.render();
    }

    // normals along the light, so that the slice has the colours of the scale in every orientation
    light() {
      this.lit = this.viewer.getView().slice(4, 8);
      const { geo } = this.meshes.slice.shape, normal = turned(this.lit, LIGHT), { normalArray } = geo.geometryGroups[0];
      for (let n = 0; n < normalArray.length; n++) normalArray[n] = normal[n % 3];
      geo.normalsNeedUpdate = true;
    }

    viewChanged() {
      this.moved();
      if (!this.plane || this.turning) return;
      const view = this.viewer.getView().slice(4, 8);
      if (Math.hypot(...view.map((x, n) => x - this.lit[n])) < 0.01) return;
      this.turning = true;
      requestAnimationFrame(() => {
        this.turning = false;
        if (this.plane) {
          this.light();
          this.render();
        }
      });
    }

    // where a point of the model is drawn, in pixels of the view
    toScreen([x, y, z]) {
      const at = this.viewer.modelToScreen({ x, y, z }), box = this.host.getBoundingClientRect();
      return [at.x - box.left - window.scrollX, at.y - box.top - window.scrollY];
    }

    // the ray through a pixel of the view, in the model's coordinates: position of the eye, and a unit vector
    ray(x, y) {
      const { clientWidth: width, clientHeight: height } = this.host, view = this.viewer.getView();
      const turn = view.slice(4, 8), up = Math.tan(FIELD / 2);
      const away = [(2 * x / width - 1) * up * width / height, (1 - 2 * y / height) * up, -1], length = Math.hypot(...away);
      return [turned(turn, [0, 0, CAMERA - view[3]]).map((c, d) => c - view[d]),
        turned(turn, away.map((c) => c / length))];
    }

    // middle of an edge of the slice, the position of its handle
    grip() {
      const { map, axis, position } = this.plane;
      const [u, v] = [0, 1, 2].filter((d) => d !== axis), point = [0, 0, 0];
      point[axis] = position;
      point[u] = map.last[u];
      point[v] = (map.origin[v] + map.last[v]) / 2;
      return point;
    }

    // rotates the view so that a slice is seen at an angle
    lookAt(axis) {
      const turns = [["y", -55, "x", 12], ["x", 55, "y", 10], ["x", -28, "y", 24]][axis];
      const view = this.viewer.getView();
      view.splice(4, 4, 0, 0, 0, 1);
      this.viewer.setView(view);
      this.viewer.rotate(turns[1], turns[0]);
      this.viewer.rotate(turns[3], turns[2]);
    }

    // x, y, z and radius of spheres that contain all shown parts
    *spheres() {
      for (const { groups } of Object.values(this.meshes)) for (const { boxes } of groups) {
        for (let n = 0; n < boxes.length; n += 6) {
          for (const x of [0, 3]) for (const y of [1, 4]) for (const z of [2, 5]) yield [boxes[n + x], boxes[n + y], boxes[n + z], 0];
        }
      }
      if (this.ionsShown) for (const ion of this.content.ions) yield [...ion.position, 1.2];
      if (this.drawn === "none") return;
      const { places, count } = this.atoms;
      for (let n = 0; n < 3 * count; n += 3) yield [places[n], places[n + 1], places[n + 2], 1.5];
    }

    // Fits all shown parts, or the surroundings of a single atom, into the view between legend and hint.
    fit() {
      const low = [Infinity, Infinity, Infinity], high = [-Infinity, -Infinity, -Infinity];
      for (const sphere of this.spheres()) for (let d = 0; d < 3; d++) {
        low[d] = Math.min(low[d], sphere[d] - sphere[3]);
        high[d] = Math.max(high[d], sphere[d] + sphere[3]);
      }
      if (low[0] === Infinity) return;
      this.moving = null;
      const centre = low.map((x, d) => (x + high[d]) / 2);
      const { clientWidth: width, clientHeight: height } = this.host;
      const whole = Math.tan(FIELD / 2), across = whole * width / height;
      const [above, below] = this.covered(), up = whole * (1 - (above + below) / height);
      let [distance, radius] = [8 / Math.min(up, across), 8];
      for (const [x, y, z, r] of this.spheres()) {
        const [dx, dy, dz] = [Math.abs(x - centre[0]), Math.abs(y - centre[1]), z - centre[2]];
        distance = Math.max(distance, (dx + r) / across + dz + r, (dy + r) / up + dz + r);
        radius = Math.max(radius, Math.hypot(dx, dy, dz) + r);
      }
      distance *= 1.04;
      centre[1] += distance * whole * (above - below) / height;
      this.viewer.setSlab(-3 * radius - 300, 3 * radius + 300);
      this.quietly(() => this.viewer.setView([...centre.map((x) => -x), CAMERA - distance, 0, 0, 0, 1]));
      this.first = this.viewer.getView();
    }

    // whether the user has not changed the initial view
    get untouched() {
      const view = this.viewer.getView();
      return Boolean(this.first) && this.first.every((x, n) => Math.abs(x - view[n]) < 1e-6);
    }

    // Moves a point to the middle, with a direction, if there is one, turned to the viewer.
    centre(point, towards = null) {
      const start = this.viewer.getView(), goal = point.map((x) => -x);
      if (towards) {
        const [x, y, z] = towards, size = Math.sqrt(2 * (1 + z));
        start.splice(4, 4, ...(size > 1e-3 ? [y / size, -x / size, 0, size / 2] : [1, 0, 0, 0]));
        this.viewer.setView(start);
      }
      const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
      const begin = performance.now(), duration = still ? 0 : 350;
      const turn = this.moving = {};
      const step = (now) => {
        if (turn !== this.moving) return;  // another animation has started, or the whole view is restored
        const t = duration ? Math.min(1, Math.max(0, (now - begin) / duration)) : 1, s = t * t * (3 - 2 * t);
        const view = this.viewer.getView();
        for (let d = 0; d < 3; d++) view[d] = start[d] + (goal[d] - start[d]) * s;
        this.viewer.setView(view);
        if (t < 1) requestAnimationFrame(step);
      };
      step(begin);
    }

    mark(point, text, dark) {
      if (this.waiting) this.renderNow();  // the viewer cannot handle additions and removals between two frames
      this.quietly(() => {
        if (this.label) this.viewer.removeLabel(this.label);
        this.label = text ? this.addLabel(point, text, dark, { x: 14, y: -14 }) : null;
      });
    }

    addLabel([x, y, z], text, dark, screenOffset, inFront = true) {
      return this.viewer.addLabel(text, { position: { x, y, z }, fontSize: 13, inFront, backgroundOpacity: 0.85,
        backgroundColor: dark ? "#262d35" : "#ffffff", fontColor: dark ? "#eceff2" : "#1b2026", borderThickness: 1,
        borderColor: "#8a939c", screenOffset });
    }

    // Writes texts at points, in place of earlier ones.
    write(texts, dark) {
      if (this.waiting) this.renderNow();
      this.quietly(() => {
        for (const name of this.names) this.viewer.removeLabel(name);
        this.names = texts.map(([text, point]) => this.addLabel(point, text, dark, { x: 0, y: 0 }, false));
      });
    }

    // Draws a line between two points, with a text at its middle.
    line(start, end, text) {
      if (this.waiting) this.renderNow();
      const [a, b] = [start, end].map(([x, y, z]) => ({ x, y, z }));
      this.quietly(() => {
        const shape = this.viewer.addCylinder({ start: a, end: b, radius: 0.12, color: "#e0a000", fromCap: 2, toCap: 2 });
        const label = this.addLabel(start.map((x, d) => (x + end[d]) / 2), text, false, { x: 0, y: 0 });
        this.measured.push([shape, label]);
      });
    }

    clearLines() {
      if (this.waiting) this.renderNow();
      this.quietly(() => {
        for (const [shape, label] of this.measured) {
          this.viewer.removeShape(shape);
          this.viewer.removeLabel(label);
        }
      });
      this.measured = [];
    }

    // Draws residues as thick sticks with green carbon, in addition to other representations.
    highlight(residues) {
      if (this.highlighted) this.viewer.removeModel(this.highlighted);
      this.highlighted = null;
      if (residues.length) {
        const { atoms } = this, text = residues.map((r) => atoms.pdb([r, r + 1])).join("\n");
        const colour = (atom) => (atom.elem === "C" ? HIGHLIGHT : window.$3Dmol.elementColors.rasmol[atom.elem] ?? GREY);
        this.highlighted = this.viewer.addModel(text, "pdb", { keepH: true });
        this.highlighted.setStyle({}, { stick: { radius: 0.3, colorfunc: colour } });
      }
      this.render();
    }

    // the view on a canvas, with a number of points per pixel of the screen
    picture(finer) {
      const { clientWidth: width, clientHeight: height } = this.host, from = this.viewer.getCanvas();
      const factor = finer * width / from.width, canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [finer * width, finer * height];
      if (factor > 1) this.viewer.setWidth(factor * width).setHeight(factor * height);
      this.renderNow();
      canvas.getContext("2d").drawImage(from, 0, 0, canvas.width, canvas.height);
      if (factor > 1) this.viewer.resize();
      return canvas;
    }

    key(event) {
      const turn = { ArrowLeft: ["y", -5], ArrowRight: ["y", 5], ArrowUp: ["x", -5], ArrowDown: ["x", 5] }[event.key];
      if (event.ctrlKey || event.altKey || event.metaKey) return false;
      if (turn && event.shiftKey) {
        this.viewer.translate(turn[0] === "y" ? turn[1] * 4 : 0, turn[0] === "x" ? -turn[1] * 4 : 0);
      } else if (turn) this.viewer.rotate(turn[1], turn[0]);
      else if (event.key === "+" || event.key === "=") this.viewer.zoom(1.15);
      else if (event.key === "-") this.viewer.zoom(1 / 1.15);
      else if (event.key === "Home") this.fit();
      else return false;
      return true;
    }
  }

  Scene.AXES = AXES;
  page.Scene = Scene;
})(globalThis.vmdpotential);
