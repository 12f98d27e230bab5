// Tasks for a worker, which runs these scripts, too: unpacking maps and making surfaces.
"use strict";

(function (page) {
  const kept = { maps: [], atSurface: [], depth: null, depths: new Map(), surface: null };

  const tasks = {
    async map({ n, content }) {
      kept.maps[n] = await page.readMap(content);
      kept.atSurface[n] = content.surface ? await page.readMap(content.surface) : null;
      return kept.maps[n].data;
    },
    // the molecular surface, with the values of a map on it: its own ones if the page has only a part of the map's points
    async surface({ n, content }) {
      if (!kept.depth) {
        kept.depth = await page.readDepth(content);
        kept.surface = page.isosurface(kept.depth, 0, 1);
      }
      return page.groups(kept.surface, page.outside(kept.atSurface[n] ?? kept.maps[n], kept.surface));
    },
    // only outside of the molecule, if its surface is known
    async isosurface({ n, level, sign, masked }) {
      const map = kept.maps[n];
      if (masked && kept.depth && !kept.depths.has(n)) kept.depths.set(n, page.depthAt(kept.depth, map));
      return page.groups(page.isosurface(map, level, sign, masked ? kept.depths.get(n) ?? null : null));
    },
  };

  if (typeof document === "undefined") {  // in the worker, which runs one task after the other
    let last = Promise.resolve();
    globalThis.onmessage = ({ data: { id, name, what } }) => {
      last = last.then(() => tasks[name](what)).then(
        (result) => globalThis.postMessage({ id, result }), (error) => globalThis.postMessage({ id, error: error.message }));
    };
    return;
  }

  // Without a worker the tasks run here; if it fails, after those whose results it had kept are run again.
  let worker = null, count = 0, last = Promise.resolve();
  const waiting = new Map(), prepared = new Map();
  const here = ({ name, what, done, failed }) => {
    last = last.then(() => tasks[name](what)).then((result) => done?.(result), (error) => failed?.(error));
  };
  const without = () => {
    worker.terminate();
    worker = null;
    for (const task of [...prepared.values(), ...waiting.values()]) here(task);
    waiting.clear();
  };
  try {
    const scripts = [...document.querySelectorAll("script[data-worker]")].map((script) => script.textContent);
    worker = new Worker(URL.createObjectURL(new Blob(scripts, { type: "text/javascript" })));
    worker.onerror = without;
    worker.onmessage = ({ data: { id, result, error } }) => {
      const { name, what, done, failed } = waiting.get(id);
      waiting.delete(id);
      if (error !== undefined) return failed(new Error(error));
      if (name !== "isosurface") prepared.set(name === "map" ? what.n : name, { name, what });
      return done(result);
    };
  } catch (error) {
    worker = null;
  }

  page.work = (name, what) => new Promise((done, failed) => {
    if (!worker) return here({ name, what, done, failed });
    waiting.set(++count, { name, what, done, failed });
    worker.postMessage({ id: count, name, what });
  });
})(globalThis.vmdpotential);
