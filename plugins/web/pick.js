// The object under the mouse: an ion, an atom, or a point of a surface or of the slice.
"use strict";

(function (page) {
  // Distance along a ray to a sphere, Infinity where it misses.
  function toSphere([ox, oy, oz], [dx, dy, dz], x, y, z, radius) {
    const [px, py, pz] = [x - ox, y - oy, z - oz];
    const along = px * dx + py * dy + pz * dz;
    const inside = radius * radius - (px * px + py * py + pz * pz - along * along);
    return inside < 0 || along < 0 ? Infinity : along - Math.sqrt(inside);
  }

  // Distance along a ray to a box, Infinity where it misses.
  function toBox(origin, away, boxes, n) {
    let [first, last] = [0, Infinity];
    for (let d = 0; d < 3; d++) {
      const a = (boxes[n + d] - 1e-3 - origin[d]) / away[d], b = (boxes[n + 3 + d] + 1e-3 - origin[d]) / away[d];
      first = Math.max(first, Math.min(a, b));
      last = Math.min(last, Math.max(a, b));
    }
    return first <= last ? first : Infinity;
  }

  // Distance along a ray to the nearest triangle of a group (Moeller and Trumbore 1997).
  function toGroup(origin, away, { positions, faces, boxes }) {
    let best = Infinity;
    const [ox, oy, oz] = origin, [dx, dy, dz] = away;
    for (let n = 0; n < boxes.length; n += 6) {
      if (!(toBox(origin, away, boxes, n) < best)) continue;
      const start = 3 * page.BLOCK * (n / 6), end = Math.min(start + 3 * page.BLOCK, faces.length);
      for (let f = start; f < end; f += 3) {
        const a = 3 * faces[f], b = 3 * faces[f + 1], c = 3 * faces[f + 2];
        const ax = positions[a], ay = positions[a + 1], az = positions[a + 2];
        const ux = positions[b] - ax, uy = positions[b + 1] - ay, uz = positions[b + 2] - az;
        const vx = positions[c] - ax, vy = positions[c + 1] - ay, vz = positions[c + 2] - az;
        const px = dy * vz - dz * vy, py = dz * vx - dx * vz, pz = dx * vy - dy * vx;
        const size = ux * px + uy * py + uz * pz;
        if (Math.abs(size) < 1e-12) continue;
        const tx = ox - ax, ty = oy - ay, tz = oz - az;
        const u = (tx * px + ty * py + tz * pz) / size;
        if (u < 0 || u > 1) continue;
        const qx = ty * uz - tz * uy, qy = tz * ux - tx * uz, qz = tx * uy - ty * ux;
        const v = (dx * qx + dy * qy + dz * qz) / size;
        if (v < 0 || u + v > 1) continue;
        const t = (vx * qx + vy * qy + vz * qz) / size;
        if (t > 1e-6 && t < best) best = t;
      }
    }
    return best;
  }

  // Only drawn atoms can be picked: with ribbons, those that determine the ribbon and those of residues without one.
  const RIBBON = new Set(["N", "CA", "C", "O", "P", "O5'", "C5'", "C4'", "C3'", "O3'"]);
  function toAtoms(scene, origin, away) {
    const { atoms, drawn } = scene;
    let [best, found] = [Infinity, -1];
    if (drawn === "none") return [best, found];
    for (let r = 0; r < atoms.residueCount; r++) {
      const ribbon = drawn === "cartoon" && atoms.kinds[r] === 1;
      for (let n = atoms.starts[r]; n < atoms.starts[r + 1]; n++) {
        const t = toSphere(origin, away, atoms.places[3 * n], atoms.places[3 * n + 1], atoms.places[3 * n + 2], ribbon ? 1 : 0.45);
        if (t < best && (!ribbon || RIBBON.has(atoms.names.of(n)))) [best, found] = [t, n];
      }
    }
    return [best, found];
  }

  // the value at the vertex that is the nearest to a point
  function atVertex(groups, [x, y, z]) {
    let [best, found] = [Infinity, NaN];
    for (const { positions, values } of groups) for (let n = 0; n < values.length; n++) {
      const distance = (positions[3 * n] - x) ** 2 + (positions[3 * n + 1] - y) ** 2 + (positions[3 * n + 2] - z) ** 2;
      if (distance < best) [best, found] = [distance, values[n]];
    }
    return found;
  }

  // Return { kind, point, atom, ion, value }, where kind is ion, atom, or the name of a mesh; null if there is nothing.
  page.pick = function (scene, x, y) {
    const [origin, away] = scene.ray(x, y);
    let [best, hit] = [Infinity, null];
    const nearer = (t, what) => { if (t < best) [best, hit] = [t, what]; };
    const [t, atom] = toAtoms(scene, origin, away);
    if (atom >= 0) nearer(t, { kind: "atom", atom });
    if (scene.ionsShown) {
      scene.content.ions.forEach((ion, n) => nearer(toSphere(origin, away, ...ion.position, 1.15), { kind: "ion", ion: n }));
    }
    for (const [kind, { groups }] of Object.entries(scene.meshes)) {
      if (kind === "waters") continue;
      for (const group of groups) nearer(toGroup(origin, away, group), { kind });
    }
    if (!hit) return null;
    hit.point = hit.kind === "atom" ? scene.atoms.place(hit.atom) : hit.kind === "ion" ? scene.content.ions[hit.ion].position
      : origin.map((c, d) => c + best * away[d]);
    if (hit.kind === "surface" || hit.kind === "patches") hit.atom = scene.atoms.nearest(hit.point);
    if (hit.kind === "patches" || hit.kind === "faces") hit.value = atVertex(scene.meshes[hit.kind].groups, hit.point);
    return hit;
  };
})(globalThis.vmdpotential);
