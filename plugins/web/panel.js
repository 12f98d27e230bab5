// The controls, the table of ions, and what ties them to the scene. Texts of the user's are set as text, never as HTML.
"use strict";

(function (page) {
  const $ = (id) => document.getElementById(id);
  const content = JSON.parse($("content").textContent);
  const STEPS = 400;  // of the level slider
  const state = { map: null, level: 0, axis: -1, position: 0, range: 1, ion: -1, triangles: [0, 0] };
  let scene = null;

  const unit = () => state.map.unit || "";
  const withUnit = (value, digits) => `${page.show(value, digits)} ${unit()}`.trim();
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

  const drawSurfaces = later(() => {
    if (!scene || !state.map) return;
    const style = getComputedStyle(document.documentElement);
    const colour = (sign) => ($(sign).checked ? style.getPropertyValue(`--${sign}`).trim() : "");
    const shown = { positive: colour("positive"), negative: colour("negative") };
    state.triangles = scene.isosurfaces(state.map, state.level, shown, $("opacity").value / 100);
  });
  const drawSlice = later(() => { if (scene) scene.slice(state.map, state.axis, state.position, state.range); });

  // ---- map

  function limits() {
    const [low, , , high] = state.map.quantiles;
    const top = Math.max(high, state.level, 1e-12);
    return [Math.log(Math.min(Math.max(low, top * 1e-4), state.level || top)), Math.log(top)];
  }

  function setLevel(level, from) {
    if (!(level > 0)) return;
    state.level = level;
    const [low, high] = state.limits;
    const slider = $("level");
    if (from !== slider) slider.value = Math.round(STEPS * (Math.log(level) - low) / (high - low || 1));
    if (from !== $("level-number")) $("level-number").value = Number(level.toPrecision(3));
    slider.setAttribute("aria-valuetext", `plus and minus ${withUnit(level)}`);
    $("positive-text").textContent = `+${withUnit(level)}`;
    $("negative-text").textContent = `−${withUnit(level)}`;
    drawSurfaces();
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
    if (!(range > 0)) return;
    state.range = range;
    $("low").textContent = `−${page.show(range)}`;
    $("high").textContent = `+${withUnit(range)}`;
    $("colours").setAttribute("aria-label", `Colours: red for −${withUnit(range)}, white for 0, blue for +${withUnit(range)}`);
    drawSlice();
  }

  function setAxis(axis) {
    const { map } = state, off = axis < 0;
    state.axis = axis;
    $("position").disabled = $("range").disabled = off;
    $("colours").hidden = off;
    if (off) {
      $("position-text").textContent = "";
      drawSlice();
      return;
    }
    Object.assign($("position"), { min: map.origin[axis], max: map.last[axis], step: 0.1 });
    setPosition((map.origin[axis] + map.last[axis]) / 2);
  }

  function chooseMap(map) {
    const keep = state.map && state.map.unit === map.unit;
    state.map = map;
    $("unit").textContent = map.label;
    if (!keep) {
      state.level = content.level || page.round(map.quantiles[1] || map.quantiles[3] || 1);
      const range = page.round(map.quantiles[2] || map.quantiles[3] || 1);
      $("range").value = range;
      state.range = range;
    }
    state.limits = limits();
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

  function bindMap(maps) {
    for (const id of ["map-section", "about-section"]) $(id).hidden = false;
    maps.forEach((map, n) => $("map").add(new Option(map.name, n)));
    $("map-choice").hidden = maps.length < 2;
    $("map").addEventListener("change", () => {
      chooseMap(maps[$("map").value]);
      announce(`Map ${state.map.name}, ${state.map.label}`);
    });
    $("level").addEventListener("input", () => {
      const [low, high] = state.limits;
      setLevel(Number(Math.exp(low + (high - low) * $("level").value / STEPS).toPrecision(3)), $("level"));
    });
    $("level-number").addEventListener("change", () => setLevel(Number($("level-number").value), $("level-number")));
    const opacity = () => { $("opacity-text").textContent = `${$("opacity").value} %`; };
    opacity();
    $("opacity").addEventListener("input", () => { opacity(); drawSurfaces(); });
    for (const sign of ["positive", "negative"]) $(sign).addEventListener("change", drawSurfaces);
    for (const radio of document.getElementsByName("axis")) {
      radio.addEventListener("change", () => setAxis(radio.value === "" ? -1 : Number(radio.value)));
    }
    $("position").addEventListener("input", () => setPosition(Number($("position").value)));
    $("range").addEventListener("change", () => setRange(Number($("range").value)));
    $("gradient").style.background = page.gradient();
    chooseMap(maps[0]);
  }

  // the handle of the slice moves it along its axis, however the axis lies on the screen
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

  const COLUMNS = [
    ["charge", "Charge", (ion) => signed(ion.charge)],
    ["solute", "To solute, Å", (ion) => page.show(ion.solute)],
    ["energy", "Energy when placed, kcal/mol", (ion) => page.show(ion.energy, 4)],
    ["final", "with all ions", (ion) => page.show(ion.final, 4)],
  ];

  function bindIons() {
    $("ion-section").hidden = false;
    const columns = COLUMNS.filter(([key]) => key === "charge" || content.ions.some((ion) => ion[key] !== null));
    const kinds = new Map();
    for (const ion of content.ions) kinds.set(ion.name, (kinds.get(ion.name) || 0) + 1);
    $("ion-caption").textContent = `${[...kinds].map(([name, n]) => `${n} ${name}`).join(", ")}. Choose one to centre it.`;
    $("ion-head").append(...["Ion", ...columns.map(([, title]) => title)].map((title) => {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.textContent = title;
      return cell;
    }));
    content.ions.forEach((ion, n) => {
      const row = $("ions").insertRow(), head = document.createElement("th"), button = document.createElement("button");
      const swatch = document.createElement("span");
      swatch.className = "swatch ion";
      swatch.style.background = page.ionColour(ion.charge);
      head.scope = "row";
      button.type = "button";
      button.append(swatch, `${ion.name} ${ion.number}`);
      button.title = ion.water ? `in place of ${ion.water}` : "of the structure";
      head.append(button);
      row.append(head);
      for (const [, , text] of columns) row.insertCell().textContent = text(ion);
      row.addEventListener("click", () => chooseIon(n));
    });
  }

  function mark(n) {
    state.ion = n;
    [...$("ions").rows].forEach((row, m) => {
      row.classList.toggle("chosen", m === n);
      const button = row.querySelector("button");
      if (m === n) button.setAttribute("aria-current", "true"); else button.removeAttribute("aria-current");
    });
  }

  function chooseIon(n) {
    const ion = content.ions[n];
    mark(n);
    const place = ion.position.map((x) => x.toFixed(1).replace("-", "−")).join(", ");
    const energy = ion.energy === null ? "" : `, ${page.show(ion.energy, 4)} kcal/mol when placed`;
    announce(`${ion.name} ${ion.number}, charge ${signed(ion.charge)}, at ${place} Å${energy}`);
    if (!scene) return;
    scene.centre(ion.position);
    scene.mark(ion.position, `${ion.name} ${ion.number}`, dark());
  }

  function chooseAtom(atom, ion) {
    if (ion >= 0) {
      chooseIon(ion);
      $("ions").rows[ion].scrollIntoView({ block: "nearest" });
      return;
    }
    const name = `${atom.resn}${atom.resi}:${atom.atom}`;
    const value = state.map ? state.map.sample(atom.x, atom.y, atom.z) : NaN;
    announce(name + (Number.isFinite(value) ? `, potential ${withUnit(value)}` : ""));
    mark(-1);
    scene.mark([atom.x, atom.y, atom.z], name, dark());
  }

  // ---- page

  function setTheme(name) {
    document.documentElement.dataset.theme = name;
    $("theme").setAttribute("aria-pressed", String(name === "dark"));
    if (scene) {
      scene.background(getComputedStyle(document.documentElement).getPropertyValue("--ground").trim());
      drawSurfaces();
    }
  }

  function withoutScene(text) {
    $("message").textContent = text;
    $("message").hidden = false;
    for (const id of ["scene", "keys", "reset"]) $(id).hidden = true;
    for (const id of ["style", "show-ions"]) $(id).disabled = true;
    for (const control of document.querySelectorAll("#map-section fieldset")) control.disabled = true;
  }

  async function start() {
    const maps = await Promise.all(content.maps.map((map) => page.PotentialMap.read(map)));
    const media = window.matchMedia("(prefers-color-scheme: dark)");
    setTheme(media.matches ? "dark" : "light");
    media.addEventListener("change", () => setTheme(media.matches ? "dark" : "light"));
    $("theme").addEventListener("click", () => setTheme(dark() ? "light" : "dark"));
    if (content.ions.length) bindIons();
    if (page.hasWebGL()) {
      scene = new page.Scene($("scene"), content);
      scene.picked = chooseAtom;
      bindHandle();
      setTheme(document.documentElement.dataset.theme);
      const restyle = () => scene.style($("style").value, $("show-ions").checked);
      restyle();
      scene.fit();
      $("style").addEventListener("change", restyle);
      $("show-ions").addEventListener("change", restyle);
      $("reset").addEventListener("click", () => { mark(-1); announce(""); scene.mark(); scene.reset(); });
      $("scene").addEventListener("keydown", (event) => { if (scene.key(event)) event.preventDefault(); });
    }
    if (maps.length) bindMap(maps);
    if (!scene) {
      withoutScene("This browser shows no 3D graphics: WebGL is switched off or not there. Switch on hardware "
        + "acceleration in its settings, or open the page in another browser. The tables beside are complete.");
    }
    Object.assign(page, { content, maps, scene, state });
  }

  page.ready = start().catch((error) => {
    withoutScene(`The page cannot be shown: ${error.message}`);
    throw error;
  });
})(window.vmdpotential);
