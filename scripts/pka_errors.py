#!/usr/bin/env python3
"""Compare pKa values with measured ones, as the theory of titration does.

    scripts/pka_errors.py             model compounds, PROPKA, and `titrate` at permittivities of 4, 8, 20 and 40
    scripts/pka_errors.py 10 20       other permittivities of the protein
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import vmdpotential as vp

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))
from measured_pka import PROTEINS, differences, propka_differences

INSIDE = [float(value) for value in sys.argv[1:]] or [4.0, 8.0, 20.0, 40.0]

all_of: dict[str, list[np.ndarray]] = {}
for name, protein in PROTEINS.items():
    acids = np.array([site.startswith(("ASP", "GLU", "HIS")) or site.endswith("C-") for site in protein.values])
    made = {f"permittivity {inside:g}": vp.titrate(protein.structure(), inside=inside) for inside in INSIDE}
    rows = {"model compounds": differences(protein, next(iter(made.values())), "model_pka"),
            "PROPKA": propka_differences(protein),
            **{label: differences(protein, titration) for label, titration in made.items()}}
    for label, each in rows.items():
        all_of.setdefault(label, []).append(each)
        print(f"{name:18} {label:16} {len(each):2} values: rmse {np.sqrt(np.mean(each**2)):.2f}, mean "
              f"{np.abs(each).mean():.2f}, largest {np.abs(each).max():.1f}, rmse of acids and HIS "
              f"{np.sqrt(np.mean(each[acids]**2)):.2f}", flush=True)
for label, parts in all_of.items():
    each = np.concatenate(parts)
    print(f"{'all':18} {label:16} {len(each):2} values: rmse {np.sqrt(np.mean(each**2)):.2f}, mean "
          f"{np.abs(each).mean():.2f}")
