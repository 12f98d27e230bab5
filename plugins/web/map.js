// A map in the page: 16-bit values on a lattice, node [i, j, k] at origin + spacing * (i, j, k).
"use strict";
globalThis.vmdpotential = globalThis.vmdpotential || {};

(function (page) {
  // value of every 16-bit pattern
  function halfTable() {
    const table = new Float32Array(65536);
    for (let bits = 0; bits < 65536; bits++) {
      const exponent = (bits >> 10) & 31, fraction = bits & 1023;
      const size = exponent === 0 ? fraction * 2 ** -24
        : exponent === 31 ? (fraction ? NaN : Infinity) : (1 + fraction / 1024) * 2 ** (exponent - 15);
      table[bits] = bits & 32768 ? -size : size;
    }
    return table;
  }

  // Unpack numbers of several bytes: the page has the highest bytes of all numbers, then the next ones.
  page.unpack = async function (text, Kind) {
    if (typeof DecompressionStream === "undefined") {
      throw new Error("this browser is too old to unpack the map; use one of 2023 or later");
    }
    const characters = atob(text), packed = new Uint8Array(characters.length);
    for (let n = 0; n < packed.length; n++) packed[n] = characters.charCodeAt(n);
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const planes = new Uint8Array(await new Response(stream).arrayBuffer());
    const size = Kind.BYTES_PER_ELEMENT, count = Math.floor(planes.length / size);
    if (size === 1) return new Kind(planes.buffer);
    const bytes = new Uint8Array(count * size);
    for (let b = 0; b < size; b++) {
      const plane = planes.subarray((size - 1 - b) * count, (size - b) * count);
      for (let n = 0, at = b; n < count; n++, at += size) bytes[at] = plane[n];
    }
    return new Kind(bytes.buffer);
  };

  class Lattice {
    constructor(content, values) {
      Object.assign(this, { ...content, data: values });
      if (values.length !== this.shape[0] * this.shape[1] * this.shape[2]) throw new Error("the map in this page is damaged");
      this.last = this.origin.map((x, d) => x + this.spacing[d] * (this.shape[d] - 1));
    }

    // trilinear interpolation; NaN outside
    sample(x, y, z) {
      const [nx, ny, nz] = this.shape, data = this.data;
      const u = (x - this.origin[0]) / this.spacing[0], v = (y - this.origin[1]) / this.spacing[1];
      const w = (z - this.origin[2]) / this.spacing[2], e = 1e-6;
      if (!(u > -e && u < nx - 1 + e && v > -e && v < ny - 1 + e && w > -e && w < nz - 1 + e)) return NaN;
      const i = Math.max(0, Math.min(Math.floor(u), nx - 2)), a = Math.max(0, Math.min(u - i, 1));
      const j = Math.max(0, Math.min(Math.floor(v), ny - 2)), b = Math.max(0, Math.min(v - j, 1));
      const k = Math.max(0, Math.min(Math.floor(w), nz - 2)), c = Math.max(0, Math.min(w - k, 1));
      const dx = nx > 1 ? ny * nz : 0, dy = ny > 1 ? nz : 0, dz = nz > 1 ? 1 : 0, n = (i * ny + j) * nz + k;
      const line = (m) => data[m] * (1 - c) + data[m + dz] * c;
      const plane = (m) => line(m) * (1 - b) + line(m + dy) * b;
      return plane(n) * (1 - a) + plane(n + dx) * a;
    }
  }

  page.Lattice = Lattice;

  page.readMap = async function (content) {
    const halves = await page.unpack(content.data, Uint16Array);
    const table = halfTable(), values = new Float32Array(halves.length);
    for (let n = 0; n < halves.length; n++) values[n] = table[halves[n]] * content.scale;
    return new Lattice(content, values);
  };

  // depths inside the molecular surface, in steps
  page.readDepth = async (content) => new Lattice(content, await page.unpack(content.data, Int8Array));

  // the smallest of some round numbers that is not below a value
  page.roundUp = function (value) {
    const power = 10 ** Math.floor(Math.log10(value));
    const step = [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find((s) => value <= s * power * (1 + 1e-9));
    return Number((step * power).toPrecision(2));
  };

  // 1, 2 or 5 times a power of ten
  page.round = function (value) {
    const power = 10 ** Math.floor(Math.log10(value)), lead = value / power;
    return Number(((lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10) * power).toPrecision(1));
  };

  page.show = (value, digits = 3) => {
    if (!Number.isFinite(value)) return "–";
    const size = Math.abs(value);
    const text = size !== 0 && (size >= 1e6 || size < 1e-3) ? value.toExponential(digits - 1)
      : String(Number(value.toPrecision(digits)));
    return text.replace("-", "−");
  };

  // text of a number with the decimals that show three digits of `size`, so that numbers of one kind look alike
  page.even = function (value, size) {
    if (!Number.isFinite(value)) return "–";
    const decimals = 2 - Math.floor(Math.log10(size || 1));
    if (decimals > 5 || decimals < -3) return value.toExponential(2).replace("-", "−");
    const text = value.toFixed(Math.max(0, decimals));
    return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
  };
})(globalThis.vmdpotential);
