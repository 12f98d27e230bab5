// Meshes from maps: isosurfaces (naive surface nets: Gibson 1998) and axis-aligned slices.
"use strict";

(function (page) {
  // The surface where sign * value = level: one vertex for each lattice cell that it crosses, at the mean of the
  // points where it crosses the cell's edges; normals point to where sign * value falls.
  page.isosurface = function (map, level, sign) {
    const [nx, ny, nz] = map.shape, data = map.data;
    const dx = ny * nz, dy = nz, dz = 1;
    const inside = new Uint8Array(data.length);
    for (let n = 0; n < data.length; n++) inside[n] = sign * data[n] > level ? 1 : 0;
    const corners = [0, dx, dy, dx + dy, dz, dx + dz, dy + dz, dx + dy + dz];
    const edges = [];
    for (let a = 0; a < 8; a++) for (const bit of [1, 2, 4]) if (!(a & bit)) edges.push([a, a | bit]);
    const cell = new Int32Array(data.length).fill(-1);
    const vertexArr = [], normalArr = [], faceArr = [];
    for (let i = 0; i < nx - 1; i++) for (let j = 0; j < ny - 1; j++) for (let k = 0; k < nz - 1; k++) {
      const n = i * dx + j * dy + k;
      const mask = inside[n] + inside[n + dx] + inside[n + dy] + inside[n + dx + dy] + inside[n + 1]
        + inside[n + dx + 1] + inside[n + dy + 1] + inside[n + dx + dy + 1];
      if (mask === 0 || mask === 8) continue;
      let x = 0, y = 0, z = 0, count = 0;
      for (const [a, b] of edges) {
        const p = n + corners[a], q = n + corners[b];
        if (inside[p] === inside[q]) continue;
        const t = (sign * level - data[p]) / (data[q] - data[p]);
        x += (a & 1) + t * ((b & 1) - (a & 1));
        y += ((a >> 1) & 1) + t * (((b >> 1) & 1) - ((a >> 1) & 1));
        z += (a >> 2) + t * ((b >> 2) - (a >> 2));
        count++;
      }
      x /= count; y /= count; z /= count;
      cell[n] = vertexArr.length;
      vertexArr.push({
        x: map.origin[0] + map.spacing[0] * (i + x), y: map.origin[1] + map.spacing[1] * (j + y),
        z: map.origin[2] + map.spacing[2] * (k + z),
      });
      // gradient of the trilinear interpolation at the vertex
      const v = corners.map((c) => data[n + c]);
      const mix = (t, p, q) => p * (1 - t) + q * t;
      const gx = mix(z, mix(y, v[1] - v[0], v[3] - v[2]), mix(y, v[5] - v[4], v[7] - v[6])) / map.spacing[0];
      const gy = mix(z, mix(x, v[2] - v[0], v[3] - v[1]), mix(x, v[6] - v[4], v[7] - v[5])) / map.spacing[1];
      const gz = mix(y, mix(x, v[4] - v[0], v[5] - v[1]), mix(x, v[6] - v[2], v[7] - v[3])) / map.spacing[2];
      const norm = -sign / (Math.hypot(gx, gy, gz) || 1);
      normalArr.push({ x: gx * norm, y: gy * norm, z: gz * norm });
    }
    // each lattice edge that the surface crosses joins the vertices of the four cells around it
    const quad = (out, a, b, c, d) => {
      if (a < 0 || b < 0 || c < 0 || d < 0) return;
      if (out) faceArr.push(a, b, c, a, c, d); else faceArr.push(a, c, b, a, d, c);
    };
    for (let i = 0; i < nx - 1; i++) for (let j = 0; j < ny - 1; j++) for (let k = 0; k < nz - 1; k++) {
      const n = i * dx + j * dy + k, here = inside[n];
      if (j && k && here !== inside[n + dx]) quad(here, cell[n - dy - dz], cell[n - dz], cell[n], cell[n - dy]);
      if (i && k && here !== inside[n + dy]) quad(here, cell[n - dx - dz], cell[n - dx], cell[n], cell[n - dz]);
      if (i && j && here !== inside[n + dz]) quad(here, cell[n - dx - dy], cell[n - dy], cell[n], cell[n - dx]);
    }
    return { vertexArr, normalArr, faceArr };
  };

  // Colour of a value between -range (red) and range (blue), as r, g, b from 0 to 1.
  const STOPS = [[0.62, 0.07, 0.14], [0.85, 0.42, 0.33], [0.97, 0.78, 0.69], [0.97, 0.97, 0.97], [0.70, 0.83, 0.91],
    [0.34, 0.60, 0.79], [0.06, 0.31, 0.60]];
  page.colour = function (value, range) {
    const u = (Math.max(-1, Math.min(1, value / range)) + 1) / 2 * (STOPS.length - 1);
    const n = Math.min(Math.floor(u), STOPS.length - 2), t = u - n;
    const [r, g, b] = STOPS[n].map((low, c) => low + t * (STOPS[n + 1][c] - low));
    return { r, g, b };
  };
  page.gradient = () => "linear-gradient(to right, " + STOPS.map(
    (stop) => `rgb(${stop.map((c) => Math.round(255 * c)).join(" ")})`).join(", ") + ")";

  // The plane across an axis at a position, coloured by the values on it.
  page.slice = function (map, axis, position, range, normal, most = 120) {
    const [u, v] = [0, 1, 2].filter((d) => d !== axis);
    const nu = Math.max(2, Math.min(most, map.shape[u])), nv = Math.max(2, Math.min(most, map.shape[v]));
    const vertexArr = [], normalArr = [], color = [], faceArr = [];
    const point = [0, 0, 0];
    point[axis] = position;
    for (let a = 0; a < nu; a++) for (let b = 0; b < nv; b++) {
      point[u] = map.origin[u] + (map.last[u] - map.origin[u]) * a / (nu - 1);
      point[v] = map.origin[v] + (map.last[v] - map.origin[v]) * b / (nv - 1);
      vertexArr.push({ x: point[0], y: point[1], z: point[2] });
      normalArr.push(normal);
      color.push(page.colour(map.sample(...point), range));
      if (a && b) {
        const n = a * nv + b;
        faceArr.push(n - nv - 1, n - 1, n, n - nv - 1, n, n - nv);
      }
    }
    // u, v, axis is right-handed across x and z, left-handed across y
    return { vertexArr, normalArr, color, faceArr, handedness: axis === 1 ? -1 : 1 };
  };
})(window.vmdpotential);
