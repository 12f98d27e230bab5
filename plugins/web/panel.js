// The controls and the table of ions, and their connection to the scene. Texts from the user are never set as HTML.
"use strict";

(function (page) {
  const $ = (id) => document.getElementById(id);
  const content = JSON.parse($("content").textContent);
  const STEPS = 400;  // of the level slider
  const MANY = 20000;  // from this number of atoms, those inside the surface are not drawn at first
  const SHOWN = 0.98;  // fraction of the surface within the initial range of the colours
  const state = { map: null, level: 0, axis: -1, position: 0, range: 0, ion: -1, apart: false, triangles: [0, 0] };
  const maps = [];
  let scene = null, reading = null, atoms = null, measured = () => false;
  page.setStops(content.stops);

  const unit = () => state.map.unit || "";
  const withUnit = (value, digits) => `${page.show(value, digits)} ${unit()}`.trim();
  const potential = (value) => `${page.even(value, state.range)} ${unit()}`.trim();
  const signed = (charge) => (charge > 0 ? `+${charge}` : String(charge)).replace("-", "−");
  const announce = (text) => { $("status").textContent = text; };
  const dark = () => document.documentElement.dataset.theme === "dark";

  // one redraw for many events
  function later(action) {
    let waiting = false;
    return () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; action(); });
    };
  }

  // pending work
  const pending = new Set();
  function working(promise) {
    pending.add(promise);
    const done = () => { pending.delete(promise); $("busy").hidden = !pending.size; };
    promise.then(done, (error) => { done(); announce(error.message); });
    $("busy").hidden = false;
    return promise;
  }
  page.idle = async () => { while (pending.size) await Promise.allSettled(pending); };

  // a view that the user has not rotated stays fitted to the shown parts
  function refit(change) {
    const fitted = scene.untouched;
    change();
    if (fitted) scene.fit();
  }

  // ---- surfaces

  let wanted = {};
  async function makeIsosurfaces() {
    const turn = wanted = {}, style = getComputedStyle(document.documentElement), n = maps.indexOf(state.map);
    const opacity = $("opacity").value / 100, counts = [];
    const made = [];
    for (const [name, sign] of [["positive", 1], ["negative", -1]]) {
      const groups = $(name).checked && !state.apart
        ? await page.work("isosurface", { n, level: state.level, sign, masked: !$("inside").checked }) : [];
      if (turn !== wanted) return;
      counts.push(groups.reduce((sum, { faces }) => sum + faces.length / 3, 0));
      made.push([name, groups, style.getPropertyValue(`--${name}`).trim()]);
    }
    state.triangles = counts;
    refit(() => {
      made.forEach(([name, groups, colour]) => scene.mesh(name, groups, { colour, opacity }));
      legend();
    });
    scene.render();
  }
  const drawIsosurfaces = later(() => { if (scene && state.map) working(makeIsosurfaces()); });

  async function makeSurface() {
    const map = state.map;
    const groups = await page.work("surface", { n: maps.indexOf(map), content: content.surface });
    if (map !== state.map) return;
    state.surface = groups;
    if (!state.range) setRange(map.limit || rangeOf(groups) || page.roundUp(map.quantiles[2] || map.quantiles[3] || 1));
    if (scene) refit(showSurface);
  }

  // round, and wide enough for most of the surface
  function rangeOf(groups) {
    const sizes = Float32Array.from(groups.flatMap(({ values }) => Array.from(values.filter((v) => v === v), Math.abs))).sort();
    const size = sizes[Math.floor(SHOWN * (sizes.length - 1))];
    return size > 0 ? page.roundUp(size) : 0;
  }

  function showSurface() {
    const patches = $("patched").checked ? state.patches : null, shown = $("surface").checked && !state.apart;
    const opacity = $("surface-opacity").value / 100;
    scene.mesh("surface", shown && !patches ? state.surface : null, { opacity });
    scene.mesh("patches", shown && patches ? patches.groups : null, { opacity });
    for (const name of ["surface", "patches"]) scene.paint(name, state.range);
    scene.write(shown && patches ? patches.rows.filter(({ label }) => label).map(({ name, label }) => [minus(name), label]) : [], dark());
    scene.render();
    legend();
  }

  const repaint = later(() => {
    if (!scene) return;
    for (const name of ["surface", "patches", "slice"]) scene.paint(name, state.range);
    scene.render();
  });
  const drawSlice = later(() => {
    if (!scene) return;
    refit(() => {
      scene.slice(state.map, state.apart ? -1 : state.axis, state.position, state.range);
      legend();
    });
  });

  // The legend of the colours: HTML over the view, and lines for the saved picture.
  function legend() {
    const meshes = scene ? scene.meshes : {};
    const coloured = ["surface", "patches", "slice", "faces"].some((name) => meshes[name]);
    $("colours").hidden = !coloured;
    const shown = ["positive", "negative"].filter((name) => meshes[name]);
    $("levels").replaceChildren(...shown.map((name) => {
      const row = document.createElement("span"), swatch = document.createElement("span");
      swatch.className = `swatch ${name}`;
      row.append(swatch, ` ${$(`${name}-text`).textContent}`);
      return row;
    }));
    $("legend").hidden = !coloured && !shown.length;
    $("legend-text").textContent = state.apart ? content.faces.meaning : state.map ? state.map.label : "";
  }

  // ---- map

  function limits() {
    const [low, , , high] = state.map.quantiles;
    const top = Math.max(high, state.level, 1e-12);
    return [Math.log(Math.min(Math.max(low, top * 1e-4), state.level || top)), Math.log(top)];
  }

  function setLevel(level, from) {
    if (!(level > 0)) {
      $("level-number").value = Number(state.level.toPrecision(3));
      return;
    }
    state.level = level;
    const [low, high] = state.limits;
    const slider = $("level");
    if (from !== slider) slider.value = Math.round(STEPS * (Math.log(level) - low) / (high - low || 1));
    if (from !== $("level-number")) $("level-number").value = Number(level.toPrecision(3));
    slider.setAttribute("aria-valuetext", `plus and minus ${withUnit(level)}`);
    $("positive-text").textContent = `+${withUnit(level)}`;
    $("negative-text").textContent = `−${withUnit(level)}`;
    drawIsosurfaces();
  }

  function setPosition(position) {
    const { map, axis } = state;
    if (axis < 0) return;
    state.position = Math.max(map.origin[axis], Math.min(map.last[axis], position));
    $("position").value = state.position;
    const text = `${page.Scene.AXES[axis]} = ${state.position.toFixed(1).replace("-", "−")} Å`;
    $("position-text").textContent = text;
    $("position").setAttribute("aria-valuetext", text);
    drawSlice();
  }

  function setRange(range) {
    if (range > 0) state.range = range;
    if (!state.range) return;
    $("range").value = state.range;  // also replaces an invalid range
    key();
    repaint();
  }

  // the key of the colours: those of the map, or of the faces
  function key() {
    const { range, unit: of, signs = [true, true] } = state.apart ? content.faces : { ...state.map, range: state.range };
    const [negative, positive] = signs, both = negative && positive;
    state.signs = signs;
    $("low").textContent = negative ? `−${page.show(range)}` : "0";
    $("middle").textContent = both ? "0" : `${negative ? "−" : "+"}${page.show(range / 2)}`;
    $("high").textContent = positive ? `+${page.show(range)}` : "0";
    $("gradient").style.background = `linear-gradient(to right, ${page.stops(signs).join(", ")})`;
    const limit = `${page.show(range)} ${of}`.trim();
    $("colours").setAttribute("aria-label", `Colours: ${[negative && `red for −${limit}`, "white for 0",
      positive && `blue for +${limit}`].filter(Boolean).join(", ")}`);
  }

  function setAxis(axis) {
    const { map } = state, off = axis < 0;
    state.axis = axis;
    $("position").disabled = off;
    if (off) {
      $("position-text").textContent = "";
      drawSlice();
      return;
    }
    Object.assign($("position"), { min: map.origin[axis], max: map.last[axis], step: 0.1 });
    setPosition((map.origin[axis] + map.last[axis]) / 2);
  }

  // each map is unpacked once
  const unpacked = [];
  const unpack = (n) => unpacked[n] ??= page.work("map", { n, content: content.maps[n] }).then((values) => {
    maps[n] = new page.Lattice(content.maps[n], values);
    return maps[n];
  });

  let chosen = null;
  async function chooseMap(n) {
    const turn = chosen = {}, map = await unpack(n);
    if (turn !== chosen) return;
    const keep = state.map && state.map.unit === map.unit && state.map.medium === map.medium;
    state.map = map;
    $("unit").textContent = map.label;
    if (!keep) {
      state.level = content.level || page.round(map.quantiles[1] || map.quantiles[3] || 1);
      state.range = 0;
    }
    state.limits = limits();
    if (content.patches) await makePatches(n);
    if (turn !== chosen) return;
    if (content.surface) await makeSurface();
    else if (!state.range) setRange(map.limit || page.roundUp(map.quantiles[2] || map.quantiles[3] || 1));
    if (turn !== chosen) return;
    setLevel(state.level);
    setRange(state.range);
    setAxis(state.axis);
    $("about").replaceChildren(...map.about.flatMap(([what, value]) => {
      const term = document.createElement("dt"), text = document.createElement("dd");
      term.textContent = what;
      text.textContent = value;
      return [term, text];
    }));
  }

  function bindMap() {
    for (const id of ["map-section", "about-section"]) $(id).hidden = false;
    content.maps.forEach((map, n) => $("map").add(new Option(map.name, n)));
    $("map-choice").hidden = content.maps.length < 2;
    $("map").addEventListener("change", () => working(chooseMap(Number($("map").value)).then(() => {
      announce(`Map ${state.map.name}, ${state.map.label}`);
    })));
    $("surface-part").hidden = $("inside-row").hidden = !content.surface;
    $("missing").textContent = content.missing;
    $("missing").hidden = !content.missing;
    for (const sign of ["positive", "negative"]) $(sign).checked = !content.surface;
    $("level").addEventListener("input", () => {
      const [low, high] = state.limits;
      setLevel(Number(Math.exp(low + (high - low) * $("level").value / STEPS).toPrecision(3)), $("level"));
    });
    $("level-number").addEventListener("change", () => setLevel(Number($("level-number").value), $("level-number")));
    for (const [id, names] of [["opacity", ["positive", "negative"]], ["surface-opacity", ["surface"]]]) {
      const show = () => { $(`${id}-text`).textContent = `${$(id).value} %`; };
      show();
      const draw = later(() => {
        if (!scene) return;
        for (const name of names) scene.opacity(name, $(id).value / 100);
        scene.render();
      });
      $(id).addEventListener("input", () => { show(); draw(); });
    }
    for (const id of ["positive", "negative", "inside"]) $(id).addEventListener("change", drawIsosurfaces);
    for (const id of ["surface", "patched"]) $(id).addEventListener("change", () => { if (scene) refit(showSurface); });
    for (const radio of document.getElementsByName("axis")) {
      radio.addEventListener("change", () => setAxis(radio.value === "" ? -1 : Number(radio.value)));
    }
    $("position").addEventListener("input", () => setPosition(Number($("position").value)));
    $("range").addEventListener("change", () => setRange(Number($("range").value)));
  }

  // the handle of the slice moves it along its axis, in any orientation of the axis on the screen
  function bindHandle() {
    const handle = $("handle");
    scene.moved = () => {
      handle.hidden = !scene.plane;
      if (!scene.plane) return;
      const [x, y] = scene.toScreen(scene.grip());
      const [width, height] = [scene.host.clientWidth, scene.host.clientHeight];
      handle.style.left = `${Math.max(16, Math.min(width - 16, x))}px`;
      handle.style.top = `${Math.max(16, Math.min(height - 16, y))}px`;
    };
    let drag = null;
    handle.addEventListener("pointerdown", (event) => {
      drag = { x: event.clientX, y: event.clientY, at: state.position };
      handle.setPointerCapture(event.pointerId);
      handle.classList.add("dragged");
      event.preventDefault();
    });
    handle.addEventListener("pointermove", (event) => {
      if (!drag) return;
      const here = scene.grip(), there = [...here];
      here[state.axis] = drag.at;
      there[state.axis] = drag.at + 1;
      const a = scene.toScreen(here), b = scene.toScreen(there);
      let [ax, ay] = [b[0] - a[0], b[1] - a[1]];  // pixels for 1 A
      if (Math.hypot(ax, ay) < 1) [ax, ay] = [0, -8];  // seen along the axis: up is forward
      drag.at += ((event.clientX - drag.x) * ax + (event.clientY - drag.y) * ay) / (ax * ax + ay * ay);
      [drag.x, drag.y] = [event.clientX, event.clientY];
      setPosition(drag.at);
    });
    for (const name of ["pointerup", "pointercancel"]) {
      handle.addEventListener(name, () => { drag = null; handle.classList.remove("dragged"); });
    }
  }

  // ---- ions

  const decimal = (value) => (value === null ? "–" : value.toFixed(1).replace("-", "−"));
  const COLUMNS = [
    ["charge", "Charge", (ion) => signed(ion.charge)],
    ["solute", "To solute, Å", (ion) => decimal(ion.solute)],
    ["energy", "Energy when placed, kcal/mol", (ion) => decimal(ion.energy)],
    ["final", "with all ions", (ion) => decimal(ion.final)],
  ];

  function bindIons() {
    $("ion-section").hidden = false;
    const columns = COLUMNS.filter(([name]) => name === "charge" || content.ions.some((ion) => ion[name] !== null));
    const kinds = new Map();
    for (const ion of content.ions) kinds.set(ion.name, (kinds.get(ion.name) || 0) + 1);
    $("ions-caption").textContent = `${[...kinds].map(([name, n]) => `${n} ${name}`).join(", ")}. Choose one to centre it.`;
    fillTable("ions", ["Ion", ...columns.map(([, title]) => title)], content.ions.map((ion) => ({
      name: `${ion.name} ${ion.number}`, colour: ion.colour, title: ion.water ? `in place of ${ion.water}` : "of the structure",
      cells: columns.map(([, , text]) => text(ion)) })), chooseIon);
  }

  // A table in place of an earlier one; rows that can be chosen are one stop of Tab, in which arrow keys move.
  function fillTable(id, titles, rows, choose = null) {
    const body = $(id);
    $(`${id}-head`).replaceChildren(...titles.map((title) => {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.textContent = title;
      return cell;
    }));
    body.replaceChildren();
    rows.forEach(({ name, colour, title = "", cells }, n) => {
      const row = body.insertRow(), head = document.createElement("th");
      head.scope = "row";
      row.append(head);
      for (const text of cells) row.insertCell().textContent = text;
      row.lastChild.classList.toggle("words", / /.test(cells.at(-1)));
      if (!choose) {
        head.textContent = name;
        return;
      }
      const button = document.createElement("button"), swatch = document.createElement("span");
      swatch.className = "swatch ion";
      swatch.style.background = colour;
      button.type = "button";
      button.tabIndex = n ? -1 : 0;
      button.append(swatch, name);
      button.title = title;
      head.append(button);
      row.addEventListener("click", () => choose(n));
    });
    const buttons = [...body.querySelectorAll("button")];
    body.onkeydown = (event) => {
      const steps = { ArrowUp: -1, ArrowDown: 1, Home: -buttons.length, End: buttons.length };
      if (!(event.key in steps) || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      const at = buttons.indexOf(event.target) + steps[event.key];
      buttons[Math.max(0, Math.min(buttons.length - 1, at))].focus();
    };
    for (const button of buttons) {
      button.addEventListener("focus", () => { for (const other of buttons) other.tabIndex = other === button ? 0 : -1; });
    }
  }

  function markRow(id, n) {
    [...$(id).rows].forEach((row, m) => {
      row.classList.toggle("chosen", m === n);
      const button = row.querySelector("button");
      if (m === n) button?.setAttribute("aria-current", "true"); else button?.removeAttribute("aria-current");
    });
  }

  function mark(n) {
    state.ion = n;
    markRow("ions", n);
    markRow("patches", -1);
  }

  function chooseIon(n) {
    const ion = content.ions[n];
    mark(n);
    $("tip").hidden = true;  // of the previous position of the mouse
    const place = ion.position.map((x) => x.toFixed(1).replace("-", "−")).join(", ");
    const energy = ion.energy === null ? "" : `, ${decimal(ion.energy)} kcal/mol when placed`;
    announce(`${ion.name} ${ion.number}, charge ${signed(ion.charge)}, at ${place} Å${energy}`);
    if (!scene || state.apart) return;
    scene.centre(ion.position);
    scene.mark(ion.position, `${ion.name} ${ion.number}`, dark());
  }

  // ---- patches and faces

  const minus = (text) => text.replace("-", "−");

  let patchMesh = null;
  async function makePatches(n) {
    const found = content.patches.maps[n];
    state.patches = null;
    $("patch-section").hidden = !found;
    if (!found) return;
    const mesh = await (patchMesh ??= page.readMesh(content.patches.mesh)), { rows } = found;
    const known = await reading;
    const places = await page.unpack(found.places, Int32Array);
    state.patches = { rows, groups: page.groups(mesh, (v) => (places[v] < 0 ? NaN : rows[places[v]].mean)) };
    const large = rows.filter(({ area }) => area >= content.patches.least), small = rows.length - large.length;
    const limit = withUnit(content.patches.threshold);
    $("patches-caption").textContent = `At least ${limit}, or at most −${limit}; integrals in ${unit()} Å². Choose one to `
      + `centre it.${small ? ` ${small} of less than ${content.patches.least} Å² ${small > 1 ? "have" : "has"} no name.` : ""}`;
    const numbers = ({ area, integral, mean, residues }) => [area.toFixed(0), minus(integral.toFixed(0)), page.show(mean),
      residues.map(([r, share]) => `${page.named(known, r)} ${Math.round(100 * share)} %`).join(", ")];
    fillTable("patches", ["Patch", "Area, Å²", "Integral", "Mean", "Residues"], large.map((patch) => ({
      name: minus(patch.name), colour: `var(--${patch.mean > 0 ? "positive" : "negative"})`, cells: numbers(patch) })),
      (row) => choosePatch(large[row], row));
  }

  function choosePatch(patch, row) {
    mark(-1);
    markRow("patches", row);
    $("tip").hidden = true;
    const name = `patch ${minus(patch.name)}`;
    announce(`${name}: ${patch.area.toFixed(0)} Å², mean ${potential(patch.mean)}, integral ${minus(patch.integral.toFixed(0))} ${unit()} Å²`);
    if (!scene || state.apart) return;
    scene.centre(patch.label, patch.normal);
    scene.mark(...$("patched").checked ? [] : [patch.label, name, dark()]);  // there is a label already
  }

  let faceGroups = null;
  async function setApart(apart) {
    const { faces } = content;
    if (apart && !faceGroups) {
      const values = await page.unpack(faces.values, Float32Array);
      faceGroups = page.groups(await page.readMesh(faces.mesh), (v) => values[v]);
    }
    state.apart = apart;
    for (const control of document.querySelectorAll("#map-section fieldset")) control.disabled = apart;
    if (apart) {  // residues and distances are those of the molecule
      $("measure").checked = false;
      $("clear").click();
    }
    for (const id of ["map", "range", "style", "show-ions", "patched", "residues", "measure", "clear"]) $(id).disabled = apart;
    scene.mark();
    if (apart) scene.mesh("faces", faceGroups);
    scene.paint("faces", faces.range);
    if (apart || state.map) key();
    showSurface();
    scene.showIons(!apart && $("show-ions").checked);
    if (state.map) {
      drawSlice();
      await makeIsosurfaces();
    }
    await scene.style(apart ? "none" : $("style").value);
    if (!apart) scene.mesh("faces", null);
    legend();
    scene.fit();
  }

  function bindFaces() {
    const { faces } = content;
    $("face-section").hidden = false;
    $("face-text").textContent = `${faces.title}: ${faces.text}`;
    $("faces-caption").textContent = `Residues that contribute most to the complementarity first; mean potentials in ${faces.unit}.`;
    const rows = [...faces.rows].sort((a, b) => b.contribution - a.contribution);
    fillTable("faces", ["Residue", "Face", "Area, Å²", "Own", "Of partner", "Contri\u00adbution"], rows.map((row) => ({
      name: row.name, cells: [row.face === faces.rows[0].face ? "left" : "right", row.area.toFixed(0), decimal(row.own), decimal(row.partner),
        minus(row.contribution.toFixed(3))] })));
    if (scene) $("apart").addEventListener("change", () => working(setApart($("apart").checked)));
    else $("apart").disabled = true;
  }

  // ---- what is under the mouse

  function described({ kind, atom, ion, point, value: drawn }) {
    if (kind === "faces") return Number.isFinite(drawn) ? `potential ${page.show(drawn)} ${content.faces.unit}` : "not on the face";
    if (kind === "ion") {
      const { name, number, charge } = content.ions[ion];
      return `${name} ${number}, charge ${signed(charge)}`;
    }
    if (kind === "positive" || kind === "negative") return `isosurface at ${$(`${kind}-text`).textContent}`;
    const value = state.map ? state.map.sample(...point) : NaN;
    const text = Number.isFinite(value) ? `potential ${potential(value)}` : "", patch = patchAt(drawn);
    return [atom === undefined ? "" : atoms.label(atom), patch && `patch ${minus(patch.name)}`, text].filter(Boolean).join(", ");
  }

  // the patch whose mean is drawn at a point
  const patchAt = (mean) => state.patches?.rows.find((patch) => Math.fround(patch.mean) === mean);

  function bindMouse() {
    const host = $("scene"), tip = $("tip");
    let at = null, pressed = null;
    const place = (event) => {
      const box = host.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    const hover = later(() => {
      const hit = at && page.pick(scene, ...at);
      tip.hidden = !hit;
      if (!hit) return;
      tip.textContent = described(hit);
      const room = host.clientWidth - tip.offsetWidth - 8;
      tip.style.left = `${Math.max(8, Math.min(at[0] + 14, room))}px`;
      tip.style.top = `${Math.max(8, Math.min(at[1] + 16, host.clientHeight - tip.offsetHeight - 8))}px`;
    });
    host.addEventListener("pointermove", (event) => {
      at = event.buttons || event.pointerType === "touch" ? null : place(event);
      hover();
    });
    host.addEventListener("pointerleave", () => { at = null; hover(); });
    host.addEventListener("pointerdown", (event) => { pressed = place(event); });
    host.addEventListener("pointerup", (event) => {
      const here = place(event);
      if (pressed && Math.hypot(here[0] - pressed[0], here[1] - pressed[1]) < 5) choose(page.pick(scene, ...here));
      pressed = null;
    });
  }

  // name of a point of the view in the list of distances
  function pointName({ kind, atom, ion, point }) {
    if (kind === "ion") return `${content.ions[ion].name} ${content.ions[ion].number}`;
    return atom === undefined ? `a point at ${point.map((x) => decimal(x)).join(", ")}` : atoms.label(atom);
  }

  function choose(hit) {
    if (!hit) return;
    if (measured(hit.point, hit.kind === "surface" ? `surface at ${atoms.label(hit.atom)}` : pointName(hit), hit.atom)) return;
    if (hit.kind === "ion") {
      chooseIon(hit.ion);
      $("ions").rows[hit.ion].scrollIntoView({ block: "nearest" });
      return;
    }
    const patch = hit.kind === "patches" && patchAt(hit.value);
    if (patch?.label) {
      const row = state.patches.rows.filter(({ label }) => label).indexOf(patch);
      choosePatch(patch, row);
      $("patches").rows[row].scrollIntoView({ block: "nearest" });
      return;
    }
    const text = described(hit);
    announce(text);
    mark(-1);
    scene.mark(hit.point, text, dark());
  }

  page.choose = choose;

  // ---- picture

  // picture of the view with twice the screen's resolution, with the legend
  page.picture = function () {
    const finer = 2, canvas = scene.picture(finer), draw = canvas.getContext("2d");
    const style = getComputedStyle(document.documentElement), text = style.getPropertyValue("--text").trim();
    draw.scale(finer, finer);
    draw.font = "13px system-ui, sans-serif";
    draw.textBaseline = "top";
    let y = 12;
    if (!$("colours").hidden) {
      const gradient = draw.createLinearGradient(12, 0, 232, 0), stops = page.stops(state.signs);
      stops.forEach((colour, n) => gradient.addColorStop(n / (stops.length - 1), colour));
      draw.fillStyle = gradient;
      draw.fillRect(12, y, 220, 12);
      draw.fillStyle = text;
      [["low", "left", 12], ["middle", "center", 122], ["high", "right", 232]].forEach(([id, align, x]) => {
        draw.textAlign = align;
        draw.fillText($(id).textContent, x, y + 16);
      });
      y += 36;
    }
    draw.textAlign = "left";
    for (const row of $("levels").children) {
      draw.fillStyle = style.getPropertyValue(`--${row.firstChild.classList[1]}`).trim();
      draw.fillRect(12, y + 1, 12, 12);
      draw.fillStyle = text;
      draw.fillText(row.textContent.trim(), 30, y);
      y += 18;
    }
    draw.fillStyle = text;
    if (!$("legend").hidden) {
      lines(draw, $("legend-text").textContent, scene.host.clientWidth - 24).forEach((line, n) => draw.fillText(line, 12, y + 18 * n));
    }
    return canvas;
  };

  // a text broken into lines of a largest width in pixels, unless a word is longer
  function lines(draw, text, width) {
    const result = [];
    for (const word of text.split(" ")) {
      const longer = [...result.slice(-1), word].join(" ");
      if (result.length && draw.measureText(longer).width <= width) result[result.length - 1] = longer;
      else result.push(word);
    }
    return result;
  }

  function save() {
    page.picture().toBlob((blob) => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(blob);
      link.download = `${content.title.replace(/[^\p{L}\p{N}.]+/gu, "-").slice(0, 60)}.png`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    });
  }

  // ---- page

  function setTheme(name) {
    document.documentElement.dataset.theme = name;
    $("theme").setAttribute("aria-pressed", String(name === "dark"));
    if (!scene) return;
    scene.background(getComputedStyle(document.documentElement).getPropertyValue("--ground").trim());
    drawIsosurfaces();
    if (state.patches) showSurface();  // whose labels have the colours of the theme
  }

  function withoutScene(text) {
    $("message").textContent = text;
    $("message").hidden = false;
    for (const id of ["scene", "keys", "reset", "save"]) $(id).hidden = true;
    for (const id of ["style", "show-ions"]) $(id).disabled = true;
    for (const control of document.querySelectorAll("#map-section fieldset")) control.disabled = true;
  }

  function bindScene() {
    scene.showIons(true);
    scene.covered = () => {
      const legend = $("legend"), hint = $("keys");
      return [legend.offsetTop + legend.offsetHeight, hint.offsetHeight && $("view").clientHeight - hint.offsetTop];
    };
    bindHandle();
    bindMouse();
    measured = page.bindMeasure(scene, atoms, announce);
    $("style").addEventListener("change", () => refit(() => working(scene.style($("style").value))));
    $("show-ions").addEventListener("change", () => { scene.showIons($("show-ions").checked); scene.render(); });
    $("reset").addEventListener("click", () => { mark(-1); announce(""); scene.mark(); scene.fit(); });
    $("save").addEventListener("click", save);
    $("scene").addEventListener("keydown", (event) => { if (scene.key(event)) event.preventDefault(); });
    new ResizeObserver(() => refit(() => scene.moved())).observe($("scene"));
  }

  async function start() {
    const media = window.matchMedia("(prefers-color-scheme: dark)");
    setTheme(media.matches ? "dark" : "light");
    media.addEventListener("change", () => setTheme(media.matches ? "dark" : "light"));
    $("theme").addEventListener("click", () => setTheme(dark() ? "light" : "dark"));
    reading = page.Atoms.read(content.structure);
    if (content.maps.length) {
      bindMap();
      working(chooseMap(0));
    }
    $("show-ions").closest("p").hidden = !content.ions.length;
    if (content.ions.length) bindIons();
    atoms = await reading;
    Object.assign(page, { content, maps, atoms, state });
    if (page.hasWebGL()) {
      page.scene = scene = new page.Scene($("scene"), content, atoms);
      bindScene();
      setTheme(document.documentElement.dataset.theme);
      if (content.faces && !content.maps.length) $("apart").checked = true;
    } else {
      withoutScene("This browser shows no 3D graphics: WebGL is switched off or missing. Switch on hardware "
        + "acceleration in its settings, or open the page in another browser. All tables are shown.");
    }
    if (content.faces) bindFaces();
    await Promise.all(pending);
    if (!scene) return;
    if (state.surface || state.patches) showSurface();
    else if (state.map) await makeIsosurfaces();
    else scene.drawn = "cartoon";
    scene.fit();
    page.complete = complete();
  }

  // work that the first picture does not need
  async function complete() {
    if (content.surface && atoms.count > MANY) $("style").value = "none";
    await scene.done();
    refit(() => working($("apart").checked ? setApart(true) : scene.style($("style").value)));
    for (let n = 0; n < content.maps.length; n++) await unpack(n);
    await page.idle();
  }

  page.ready = start().catch((error) => {
    withoutScene(`The page cannot be shown: ${error.message}`);
    throw error;
  });
})(globalThis.vmdpotential);
