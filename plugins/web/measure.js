// Highlighted residues, chosen by name or by a click, and distances between points chosen in the view.
"use strict";

(function (page) {
  const $ = (id) => document.getElementById(id);

  // The residues that a text names: its parts, separated by commas, consist of words of a residue's label (ASP 27 A),
  // and numbers may be a range (25-30). An error names the first part that matches no residue.
  page.residuesOf = function (atoms, text) {
    const names = new Set(atoms.residueNames.words.map((word) => word.toUpperCase()));
    const chains = new Set(atoms.chains.words);
    const found = new Set();
    for (const part of text.split(",").map((piece) => piece.trim()).filter(Boolean)) {
      const tests = part.split(/\s+/).map((word) => {
        const range = /^(-?\d+)-(-?\d+)$/.exec(word);
        if (range) return (r) => Number(atoms.numbers.of(r)) >= Number(range[1]) && Number(atoms.numbers.of(r)) <= Number(range[2]);
        if (/^-?\d/.test(word)) return (r) => String(atoms.numbers.of(r)) === word;
        if (chains.has(word)) return (r) => atoms.chains.of(r) === word;
        if (names.has(word.toUpperCase())) return (r) => atoms.residueNames.of(r).toUpperCase() === word.toUpperCase();
        throw new Error(`No residue or chain is called ${word}.`);
      });
      const before = found.size;
      for (let r = 0; r < atoms.residueCount; r++) if (tests.every((test) => test(r))) found.add(r);
      if (found.size === before) throw new Error(`No residue is ${part}.`);
    }
    return [...found].sort((a, b) => a - b);
  };

  // ASP 27 A
  const named = page.named = (atoms, r) => [atoms.residueNames.of(r), atoms.numbers.of(r), atoms.chains.of(r)].filter(Boolean).join(" ");

  page.bindMeasure = function (scene, atoms, announce) {
    let first = null;

    function showResidues(residues, centre) {
      scene.highlight(residues);
      if (!residues.length) return announce("");
      const few = residues.slice(0, 4).map((r) => named(atoms, r)).join(", ");
      announce(`${residues.length === 1 ? "1 residue" : `${residues.length} residues`}: ${few}${residues.length > 4 ? " …" : ""}`);
      if (!centre) return;
      const middle = [0, 0, 0];
      let count = 0;
      for (const r of residues) for (let n = atoms.starts[r]; n < atoms.starts[r + 1]; n++, count++) {
        atoms.place(n).forEach((x, d) => { middle[d] += x; });
      }
      scene.centre(middle.map((x) => x / count));
    }

    $("residues").addEventListener("change", () => {
      try {
        showResidues(page.residuesOf(atoms, $("residues").value), true);
        $("residues").removeAttribute("aria-invalid");
      } catch (error) {
        $("residues").setAttribute("aria-invalid", "true");
        announce(error.message);
      }
    });
    $("measure").addEventListener("change", () => {
      first = null;
      announce($("measure").checked ? "Choose two points in the view." : "");
    });
    $("clear").addEventListener("click", () => {
      first = null;
      $("residues").value = "";
      $("residues").removeAttribute("aria-invalid");
      $("distances").replaceChildren();
      showResidues([]);
      scene.clearLines();
      announce("");
    });

    // Handle a click on a point in the view; return whether it was used.
    return function chosen(point, label, atom) {
      if ($("measure").checked) {
        if (!first) {
          first = { point, label };
          announce(`From ${label}: choose the second point.`);
          return true;
        }
        const distance = Math.hypot(...point.map((x, d) => x - first.point[d]));
        const row = document.createElement("li");
        row.textContent = `${first.label} to ${label}: ${distance.toFixed(2)} Å`;
        $("distances").append(row);
        scene.line(first.point, point, `${distance.toFixed(2)} Å`);
        announce(row.textContent);
        first = null;
        return true;
      }
      if (atom !== undefined) {
        const r = atoms.residueOf(atom);
        $("residues").value = named(atoms, r);
        scene.highlight([r]);
      }
      return false;
    };
  };
})(globalThis.vmdpotential);
