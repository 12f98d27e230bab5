// Meshes from maps: isosurfaces (naive surface nets: Gibson 1998) and axis-aligned slices.
"use strict";

(function (page) {
  const MOST = 65000;  // largest number of vertices of a group, as their indices have 16 bits
  const BLOCK = 256;  // triangles in a bounding box, which accelerates picking

  // numbers in an array that grows
  class Row {
    constructor(Kind) {
      this.data = new Kind(3 << 14);
      this.length = 0;
    }

    push(a, b, c) {
      if (this.length + 3 > this.data.length) {
        const larger = new this.data.constructor(2 * this.data.length);
        larger.set(this.data);
        this.data = larger;
      }
      this.data[this.length++] = a;
      this.data[this.length++] = b;
      this.data[this.length++] = c;
    }

    get values() {
      return this.data.subarray(0, this.length);
    }
  }

  // The surface with sign * value = level: one vertex for each lattice cell that it crosses, at the mean of the points
  // where it crosses the cell's edges; normals point in the direction of decreasing sign * value. If depths of the nodes
  // are given, parts inside a molecule (depth above 0) are removed, and the surface is open there.
  page.isosurface = function (map, level, sign, depth = null) {
    const [nx, ny, nz] = map.shape, data = map.data;
    const dx = ny * nz, dy = nz, dz = 1;
    const inside = new Uint8Array(data.length);
    for (let n = 0; n < data.length; n++) inside[n] = sign * data[n] > level && !(depth && depth[n] > 0) ? 1 : 0;
    const corners = [0, dx, dy, dx + dy, dz, dx + dz, dy + dz, dx + dy + dz];
    const edges = [];
    for (let a = 0; a < 8; a++) for (const bit of [1, 2, 4]) if (!(a & bit)) edges.push([a, a | bit]);
    const cell = new Int32Array(data.length).fill(-1);
    const positions = new Row(Float32Array), normals = new Row(Float32Array), faces = new Row(Uint32Array);
    // position of the crossing on an edge from p to q, and whether the molecule ends the surface there
    let ended = false;
    const crossing = (p, q) => {
      const [a, b] = inside[p] ? [p, q] : [q, p];
      let t = sign * data[b] > level ? 2 : (sign * level - data[a]) / (data[b] - data[a]);
      ended = false;
      if (depth && depth[b] > 0) {
        const u = depth[a] / (depth[a] - depth[b]);
        if (u < t) [t, ended] = [u, true];
      }
      return a === p ? t : 1 - t;
    };
    const v = new Float64Array(8);
    const mix = (t, p, q) => p * (1 - t) + q * t;
    for (let i = 0; i < nx - 1; i++) for (let j = 0; j < ny - 1; j++) for (let k = 0, n = i * dx + j * dy; k < nz - 1; k++, n++) {
      const mask = inside[n] + inside[n + dx] + inside[n + dy] + inside[n + dx + dy] + inside[n + 1]
        + inside[n + dx + 1] + inside[n + dy + 1] + inside[n + dx + dy + 1];
      if (mask === 0 || mask === 8) continue;
      let x = 0, y = 0, z = 0, count = 0;
      for (const [a, b] of edges) {
        const p = n + corners[a], q = n + corners[b];
        if (inside[p] === inside[q]) continue;
        const t = crossing(p, q);
        x += (a & 1) + t * ((b & 1) - (a & 1));
        y += ((a >> 1) & 1) + t * (((b >> 1) & 1) - ((a >> 1) & 1));
        z += (a >> 2) + t * ((b >> 2) - (a >> 2));
        count++;
      }
      x /= count; y /= count; z /= count;
      cell[n] = positions.length / 3;
      positions.push(map.origin[0] + map.spacing[0] * (i + x), map.origin[1] + map.spacing[1] * (j + y),
        map.origin[2] + map.spacing[2] * (k + z));
      // gradient of the trilinear interpolation at the vertex
      for (let c = 0; c < 8; c++) v[c] = data[n + corners[c]];
      const gx = mix(z, mix(y, v[1] - v[0], v[3] - v[2]), mix(y, v[5] - v[4], v[7] - v[6])) / map.spacing[0];
      const gy = mix(z, mix(x, v[2] - v[0], v[3] - v[1]), mix(x, v[6] - v[4], v[7] - v[5])) / map.spacing[1];
      const gz = mix(y, mix(x, v[4] - v[0], v[5] - v[1]), mix(x, v[6] - v[2], v[7] - v[3])) / map.spacing[2];
      const norm = -sign / (Math.hypot(gx, gy, gz) || 1);
      normals.push(gx * norm, gy * norm, gz * norm);
    }
    // each lattice edge that the surface crosses connects the vertices of the four cells around it
    const quad = (p, q, a, b, c, d) => {
      if (a < 0 || b < 0 || c < 0 || d < 0) return;
      if (depth) {
        crossing(p, q);
        if (ended) return;
      }
      if (inside[p]) {
        faces.push(a, b, c);
        faces.push(a, c, d);
      } else {
        faces.push(a, c, b);
        faces.push(a, d, c);
      }
    };
    for (let i = 0; i < nx - 1; i++) for (let j = 0; j < ny - 1; j++) for (let k = 0, n = i * dx + j * dy; k < nz - 1; k++, n++) {
      const here = inside[n];
      if (j && k && here !== inside[n + dx]) quad(n, n + dx, cell[n - dy - dz], cell[n - dz], cell[n], cell[n - dy]);
      if (i && k && here !== inside[n + dy]) quad(n, n + dy, cell[n - dx - dz], cell[n - dx], cell[n], cell[n - dz]);
      if (i && j && here !== inside[n + dz]) quad(n, n + dz, cell[n - dx - dy], cell[n - dy], cell[n], cell[n - dx]);
    }
    return { positions: positions.values, normals: normals.values, faces: faces.values };
  };

  // depths in a molecule at the nodes of a map
  page.depthAt = function (depth, map) {
    const [nx, ny, nz] = map.shape, result = new Float32Array(map.data.length);
    let n = 0;
    for (let i = 0; i < nx; i++) for (let j = 0; j < ny; j++) for (let k = 0; k < nz; k++) {
      const value = depth.sample(map.origin[0] + map.spacing[0] * i, map.origin[1] + map.spacing[1] * j,
        map.origin[2] + map.spacing[2] * k);
      result[n++] = value === value ? value : -127;
    }
    return result;
  };

  // A mesh of the program: vertices and corners are differences from the preceding ones; normals are those of triangles.
  page.readMesh = async function ({ step, vertices, triangles }) {
    const steps = await page.unpack(vertices, Int32Array), faces = await page.unpack(triangles, Int32Array);
    const count = steps.length / 3, positions = new Float32Array(3 * count), normals = new Float32Array(3 * count);
    for (let d = 0, at = 0; d < 3; d++) for (let n = 0, place = 0; n < count; n++) positions[3 * n + d] = step * (place += steps[at++]);
    for (let n = 1; n < faces.length; n++) faces[n] += faces[n - 1];
    for (let f = 0; f < faces.length; f += 3) {
      const [a, b, c] = [0, 1, 2].map((n) => 3 * faces[f + n]);
      const [u, v] = [b, c].map((corner) => [0, 1, 2].map((d) => positions[corner + d] - positions[a + d]));
      for (let d = 0; d < 3; d++) {
        const [e, g] = [(d + 1) % 3, (d + 2) % 3], normal = u[e] * v[g] - u[g] * v[e];
        for (const corner of [a, b, c]) normals[corner + d] += normal;
      }
    }
    for (let n = 0; n < normals.length; n += 3) {
      const size = Math.hypot(normals[n], normals[n + 1], normals[n + 2]) || 1;
      for (let d = 0; d < 3; d++) normals[n + d] /= size;
    }
    return { positions, normals, faces };
  };

  // a map's value at a vertex, at the distance map.outwards (A) along the normal, for example at the centre of a water
  page.outside = (map, { positions, normals }) => (v) => map.sample(
    ...[0, 1, 2].map((d) => positions[3 * v + d] + map.outwards * normals[3 * v + d]));

  // A mesh in groups for 16-bit indices, with values at the vertices, and bounding boxes of blocks of triangles.
  page.groups = function ({ positions, normals, faces }, valueOf = null) {
    const result = [], local = new Int32Array(positions.length / 3).fill(-1);
    let used = [], index = [];
    const close = () => {
      const group = { positions: new Float32Array(3 * used.length), normals: new Float32Array(3 * used.length),
        faces: Uint16Array.from(index), values: valueOf ? new Float32Array(used.length) : null };
      used.forEach((v, n) => {
        for (let d = 0; d < 3; d++) {
          group.positions[3 * n + d] = positions[3 * v + d];
          group.normals[3 * n + d] = normals[3 * v + d];
        }
        if (valueOf) group.values[n] = valueOf(v);
        local[v] = -1;
      });
      group.boxes = page.boxes(group);
      result.push(group);
      [used, index] = [[], []];
    };
    for (let f = 0; f < faces.length; f += 3) {
      if (used.length > MOST) close();
      for (let c = 0; c < 3; c++) {
        const v = faces[f + c];
        if (local[v] < 0) local[v] = used.push(v) - 1;
        index.push(local[v]);
      }
    }
    if (index.length) close();
    return result;
  };

  // the lowest and the highest x, y, z of each block of triangles
  page.boxes = function ({ positions, faces }) {
    const boxes = new Float32Array(6 * Math.ceil(faces.length / (3 * BLOCK)));
    for (let start = 0, n = 0; start < faces.length; start += 3 * BLOCK, n += 6) {
      boxes.fill(Infinity, n, n + 3).fill(-Infinity, n + 3, n + 6);
      const end = Math.min(start + 3 * BLOCK, faces.length);
      for (let f = start; f < end; f++) for (let d = 0; d < 3; d++) {
        const x = positions[3 * faces[f] + d];
        if (x < boxes[n + d]) boxes[n + d] = x;
        if (x > boxes[n + 3 + d]) boxes[n + 3 + d] = x;
      }
    }
    return boxes;
  };
  page.BLOCK = BLOCK;

  const STEPS = 512;
  // Colour of a value between -range (red) and range (blue), as r, g, b from 0 to 1; grey for NaN. The colours at equal
  // distances are those of the page's content, which all viewers and figures use.
  let STOPS = [], TABLE = null;
  page.setStops = function (colours) {
    STOPS = colours.map((colour) => [1, 3, 5].map((n) => parseInt(colour.slice(n, n + 2), 16) / 255));
    TABLE = new Float32Array(3 * (2 * STEPS + 2));
    for (let n = 0; n <= 2 * STEPS + 1; n++) {
      const { r, g, b } = page.colour(n <= 2 * STEPS ? n / STEPS - 1 : NaN, 1);
      TABLE.set([r, g, b], 3 * n);
    }
  };
  page.colour = function (value, range) {
    if (value !== value) return { r: 0.6, g: 0.6, b: 0.6 };
    const u = (Math.max(-1, Math.min(1, value / range)) + 1) / 2 * (STOPS.length - 1);
    const n = Math.min(Math.floor(u), STOPS.length - 2), t = u - n;
    const [r, g, b] = STOPS[n].map((low, c) => low + t * (STOPS[n + 1][c] - low));
    return { r, g, b };
  };
  // only the half of the scale with values, if the map has values of one sign
  page.stops = ([negative, positive] = [true, true]) => STOPS.slice(negative ? 0 : 3, positive ? 7 : 4)
    .map((stop) => `rgb(${stop.map((c) => Math.round(255 * c)).join(" ")})`);

  // the colours of many values
  page.colours = function (values, range, into) {
    for (let n = 0; n < values.length; n++) {
      const u = Math.round(STEPS * (1 + Math.max(-1, Math.min(1, values[n] / range))));
      const at = 3 * (u === u ? u : 2 * STEPS + 1);
      into[3 * n] = TABLE[at];
      into[3 * n + 1] = TABLE[at + 1];
      into[3 * n + 2] = TABLE[at + 2];
    }
  };

  // A map on the plane across an axis at a position, interpolated linearly across the plane and cubically in it (Catmull
  // and Rom 1974), as linear interpolation has visible creases; with about `most` points along the longer side.
  page.plane = function (map, axis, position, most = 240) {
    const [u, v] = [0, 1, 2].filter((d) => d !== axis), shape = map.shape;
    const strides = [shape[1] * shape[2], shape[2], 1];
    const w = Math.max(0, Math.min((position - map.origin[axis]) / map.spacing[axis], shape[axis] - 1));
    const low = Math.max(0, Math.min(Math.floor(w), shape[axis] - 2)), t = w - low;
    const one = low * strides[axis], two = shape[axis] > 1 ? one + strides[axis] : one;
    const [nu, nv] = [shape[u], shape[v]], side = [u, v].map((d) => (map.last[d] - map.origin[d]) || 1);
    const step = Math.max(...side) / (most - 1);
    const [mu, mv] = side.map((length) => Math.max(2, Math.min(most, Math.round(length / step) + 1)));
    const known = new Float32Array(nu * nv);
    for (let a = 0; a < nu; a++) for (let b = 0; b < nv; b++) {
      const n = a * strides[u] + b * strides[v];
      known[a * nv + b] = map.data[one + n] * (1 - t) + map.data[two + n] * t;
    }
    const rows = cubic(known, nu, nv, mv, nv, 1);
    const values = cubic(rows, mv, nu, mu, 1, mv);  // with the axes swapped
    return { u, v, mu, mv, at: (a, b) => values[b * mu + a] };
  };

  // Resample each of `lines` rows of n numbers, at row * stride + i * next, to m points; beyond its ends a row is
  // extrapolated linearly.
  function cubic(data, lines, n, m, stride, next) {
    const result = new Float32Array(lines * m);
    for (let b = 0; b < m; b++) {
      const x = b * (n - 1) / (m - 1), k = Math.max(0, Math.min(Math.floor(x), n - 2)), t = x - k;
      const weights = [t * (t * (2 - t) - 1) / 2, (t * t * (3 * t - 5) + 2) / 2, t * (t * (4 - 3 * t) + 1) / 2, t * t * (t - 1) / 2];
      for (let row = 0; row < lines; row++) {
        const at = (i) => data[row * stride + Math.min(i, n - 1) * next];
        const p = at(k), q = at(k + 1);
        const before = k > 0 ? at(k - 1) : 2 * p - q, after = k + 2 < n ? at(k + 2) : 2 * q - p;
        result[row * m + b] = weights[0] * before + weights[1] * p + weights[2] * q + weights[3] * after;
      }
    }
    return result;
  }

  // The plane as a mesh, seen from both sides.
  page.slice = function (map, axis, position) {
    const { u, v, mu, mv, at } = page.plane(map, axis, position);
    const positions = new Float32Array(3 * mu * mv), values = new Float32Array(mu * mv), faces = new Uint16Array(12 * (mu - 1) * (mv - 1));
    let f = 0;
    for (let a = 0; a < mu; a++) for (let b = 0; b < mv; b++) {
      const n = a * mv + b;
      positions[3 * n + axis] = position;
      positions[3 * n + u] = map.origin[u] + (map.last[u] - map.origin[u]) * a / (mu - 1);
      positions[3 * n + v] = map.origin[v] + (map.last[v] - map.origin[v]) * b / (mv - 1);
      values[n] = at(a, b);
      if (!a || !b) continue;
      for (const corner of [n - mv - 1, n - 1, n, n - mv - 1, n, n - mv, n - mv - 1, n, n - 1, n - mv - 1, n - mv, n]) faces[f++] = corner;
    }
    const group = { positions, values, faces, normals: new Float32Array(positions.length) };
    return [{ ...group, boxes: page.boxes(group) }];
  };
})(globalThis.vmdpotential);
