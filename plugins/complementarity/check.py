"""What `verify` checks of the complementarity of faces."""

from __future__ import annotations

import numpy as np

from vmdpotential.engines import Engine
from vmdpotential.maps.options import MethodOptions
from vmdpotential.molecule.structure import Structure
from vmdpotential.units import coulomb_constant

from .faces import face_value, find_interface

#: Permittivity of a medium without a boundary, in which potentials are sums.
_UNIFORM = 10.0


def check_faces(engine: Engine, seed: int) -> list[tuple[str, float, float]]:
    """Return errors of potentials on the faces of two rows of charges in a uniform medium, and of their correlation."""
    rng = np.random.default_rng(seed)
    along = np.arange(4) * 3.0
    positions = np.concatenate([np.stack([along, np.full(4, y), np.full(4, 0.3)], 1) for y in (0.0, 3.4)])
    charges = rng.uniform(-1, 1, 8)
    names, numbers = np.full(8, "C"), np.arange(8)
    structure = Structure(positions, names, names, numbers, numbers, elements=names, charges=charges,
                          radii=np.full(8, 1.7))
    first = np.arange(8) < 4
    solution = MethodOptions(dielectric=_UNIFORM, parameters={"inside": _UNIFORM, "salt": 0.0})
    made = find_interface(structure, first, ~first, solution, spacing=0.5, mesh_spacing=0.5, engine=engine.name)
    constant = coulomb_constant("kT/e", solution.temperature) / _UNIFORM
    errors, values = [], []
    for face, own in zip(made.faces, (first, ~first), strict=True):
        distances = np.linalg.norm(face.places[:, None] - positions, axis=2)
        sums = [constant * (charges[part] / distances[:, part]).sum(1) for part in (own, ~own)]
        errors += [np.sqrt(np.mean((value - exact) ** 2) / np.mean(exact**2))
                   for value, exact in zip((face.own, face.partner), sums, strict=True)]
        both = np.cov(np.stack(sums), aweights=face.areas, ddof=0)
        exact = both[0, 1] / np.sqrt(both[0, 0] * both[1, 1])
        values.append(abs(face_value(face.own, face.partner, face.areas) + exact))
    return [("potentials on faces in a uniform medium, exact sums", float(max(errors)), 1e-2),
            ("complementarity of faces, weighted covariance", float(max(values)), 2e-3)]
