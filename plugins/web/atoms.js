// The atoms: positions, names, and their input for 3Dmol.js.
"use strict";

(function (page) {
  const BACKBONE = new Set(["CA", "P", "O5'", "C1'"]);  // atoms that determine ribbons
  const [FEW, MANY] = [1500, 3500];  // atoms drawn at a time: to the end of a chain, and at most

  class Atoms {
    static async read(content) {
      const atoms = new Atoms(), { residues } = content;
      atoms.count = content.atoms;
      atoms.residueCount = residues.count;
      const named = async ({ words, index }) => {
        const numbers = await page.unpack(index, Uint32Array);
        return { words, index: numbers, of: (n) => words[numbers[n]] };
      };
      [atoms.names, atoms.elements, atoms.residueNames, atoms.numbers, atoms.chains] = await Promise.all(
        [content.names, content.elements, residues.names, residues.numbers, residues.chains].map(named));
      const lengths = await page.unpack(residues.lengths, Uint32Array);
      atoms.kinds = await page.unpack(residues.kinds, Uint8Array);
      const steps = await page.unpack(content.places, Int32Array);
      atoms.places = new Float64Array(3 * atoms.count);
      for (let d = 0, at = 0; d < 3; d++) {
        for (let n = 0, place = 0; n < atoms.count; n++) {
          place += steps[at++];
          atoms.places[3 * n + d] = Math.round(place * content.step * 1e6) / 1e6;
        }
      }
      atoms.radii = Float32Array.from(atoms.elements.index, (n) => content.elements.radii[n] || 1);
      atoms.starts = new Uint32Array(residues.count + 1);
      for (let r = 0; r < residues.count; r++) atoms.starts[r + 1] = atoms.starts[r] + lengths[r];
      return atoms;
    }

    place(n) {
      return [...this.places.subarray(3 * n, 3 * n + 3)];
    }

    residueOf(n) {
      let [low, high] = [0, this.residueCount];
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (this.starts[middle] <= n) low = middle; else high = middle;
      }
      return low;
    }

    // ASP 27 A, CB
    label(n) {
      const r = this.residueOf(n);
      return `${[this.residueNames.of(r), this.numbers.of(r), this.chains.of(r)].filter(Boolean).join(" ")}, ${this.names.of(n)}`;
    }

    // the atom whose sphere is the nearest to a point
    nearest([x, y, z]) {
      let best = Infinity, found = -1;
      for (let n = 0, at = 0; n < this.count; n++, at += 3) {
        const dx = this.places[at] - x, dy = this.places[at + 1] - y, dz = this.places[at + 2] - z;
        const gap = Math.sqrt(dx * dx + dy * dy + dz * dz) - this.radii[n];
        if (gap < best) [best, found] = [gap, n];
      }
      return found;
    }

    hasRibbon(r) {
      if (this.kinds[r] !== 1) return false;
      for (let n = this.starts[r]; n < this.starts[r + 1]; n++) if (BACKBONE.has(this.names.of(n))) return true;
      return false;
    }

    get waters() {
      if (this.waterCount === undefined) this.waterCount = this.kinds.reduce((sum, kind) => sum + (kind === 2), 0);
      return this.waterCount;
    }

    // first and last residue of each part that is drawn at a time, by default without waters
    parts(waters) {
      const parts = [];
      let first = -1, count = 0;
      const close = (r) => {
        if (first >= 0) parts.push([first, r]);
        first = -1;
        count = 0;
      };
      for (let r = 0; r < this.residueCount; r++) {
        const wet = this.kinds[r] === 2 && !waters, ends = r && this.chains.index[r] !== this.chains.index[r - 1];
        const full = count > MANY && !ends;
        if (wet || full || (ends && count > FEW)) close(r);
        if (wet) continue;
        if (first < 0) first = full ? r - 1 : r;  // parts overlap by a residue, so that ribbons are continuous
        count += this.starts[r + 1] - this.starts[r];
      }
      close(this.residueCount);
      return parts;
    }

    // Residues as PDB text, only for drawing: numbered from 1, so that the numbers fit into their columns.
    pdb([first, end]) {
      const lines = [];
      let chain = 0;
      for (let r = first; r < end; r++) {
        if (r > first && this.chains.index[r] !== this.chains.index[r - 1]) chain = (chain + 1) % 26;
        const kind = this.hasRibbon(r) ? "ATOM  " : "HETATM", number = String(1 + (r - first) % 9999).padStart(4);
        const residue = this.residueNames.of(r).slice(0, 3).padStart(3), letter = String.fromCharCode(65 + chain);
        for (let n = this.starts[r]; n < this.starts[r + 1]; n++) {
          const name = this.names.of(n).slice(0, 4), element = this.elements.of(n);
          const [x, y, z] = [0, 1, 2].map((d) => this.places[3 * n + d].toFixed(3).padStart(8).slice(0, 8));
          lines.push(`${kind}${String(n - this.starts[first] + 1).padStart(5)} ${
            (name.length < 4 && element.length < 2 ? ` ${name}` : name).padEnd(4)} ${residue} ${letter}${number}    ${x}${y}${z}`
            + `  1.00  0.00          ${element.toUpperCase().padStart(2)}`);
        }
      }
      return lines.join("\n");
    }

    // the first atom of each water as a small tetrahedron, which is fast to draw
    points(size = 0.3) {
      const corners = [[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], groups = [];
      const waters = [];
      for (let r = 0; r < this.residueCount; r++) if (this.kinds[r] === 2) waters.push(this.starts[r]);
      for (let start = 0; start < waters.length; start += 16000) {
        const some = waters.slice(start, start + 16000), count = 4 * some.length;
        const group = { positions: new Float32Array(3 * count), normals: new Float32Array(3 * count), faces: new Uint16Array(3 * count) };
        some.forEach((atom, n) => {
          corners.forEach((corner, c) => corner.forEach((x, d) => {
            group.positions[12 * n + 3 * c + d] = this.places[3 * atom + d] + size * x;
            group.normals[12 * n + 3 * c + d] = x / Math.sqrt(3);
          }));
          [0, 1, 2, 0, 3, 1, 0, 2, 3, 1, 3, 2].forEach((c, k) => { group.faces[12 * n + k] = 4 * n + c; });
        });
        groups.push({ ...group, boxes: page.boxes(group) });
      }
      return groups;
    }
  }

  page.Atoms = Atoms;
})(globalThis.vmdpotential);
