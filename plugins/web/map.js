// A map as the page stores it: 16-bit values on a lattice, node [i, j, k] at origin + spacing * (i, j, k).
"use strict";
window.vmdpotential = window.vmdpotential || {};

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

  async function unpack(text) {
    if (typeof DecompressionStream === "undefined") {
      throw new Error("this browser is too old to unpack the map; use one of 2023 or later");
    }
    const packed = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  class PotentialMap {
    constructor(content, values) {
      Object.assign(this, { ...content, data: values });
      this.last = this.origin.map((x, d) => x + this.spacing[d] * (this.shape[d] - 1));
    }

    static async read(content) {
      const bytes = await unpack(content.data);
      const count = content.shape[0] * content.shape[1] * content.shape[2];
      if (bytes.length !== 2 * count) throw new Error("the map in this page is damaged");
      const table = halfTable(), values = new Float32Array(count);
      for (let n = 0; n < count; n++) values[n] = table[(bytes[n] << 8) | bytes[count + n]] * content.scale;
      return new PotentialMap(content, values);
    }

    // trilinear interpolation; NaN outside
    sample(x, y, z) {
      const [nx, ny, nz] = this.shape;
      const low = [0, 0, 0], t = [0, 0, 0], at = [x, y, z];
      for (let d = 0; d < 3; d++) {
        const u = (at[d] - this.origin[d]) / this.spacing[d];
        if (!(u > -1e-6 && u < this.shape[d] - 1 + 1e-6)) return NaN;
        low[d] = Math.max(0, Math.min(Math.floor(u), this.shape[d] - 2));
        t[d] = Math.max(0, Math.min(u - low[d], 1));
      }
      const [i, j, k] = low, [a, b, c] = t, data = this.data;
      const dx = nx > 1 ? ny * nz : 0, dy = ny > 1 ? nz : 0, dz = nz > 1 ? 1 : 0;
      const n = (i * ny + j) * nz + k;
      const line = (m) => data[m] * (1 - c) + data[m + dz] * c;
      const plane = (m) => line(m) * (1 - b) + line(m + dy) * b;
      return plane(n) * (1 - a) + plane(n + dx) * a;
    }
  }

  page.PotentialMap = PotentialMap;

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
})(window.vmdpotential);
