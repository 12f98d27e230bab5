"""Damaged structures, frames and marks of membranes in the tasks that answer questions, with options right and wrong.

Patches, complementarity, energies of binding, titration, ions along a path, and membranes and voltages of maps: what
they compute of a damaged file is finite, or refused in one line. Which selections and options a file gets is determined
by its content, so that a violation is one file.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from vmdpotential import read_structure, registry, write_structure
from vmdpotential.molecule.structure import Structure
from vmdpotential.plugins.preparation.prepare import prepare_structure

from .seeds import frames, netcdf

Seeds = list[tuple[str, bytes]]

#: Pairs of selections, good and wrong, of a peptide of two chains.
BETWEEN = (("//A", "//B"), ("//A", "//B"), ("//A", "//B"), ("//A", "//A"), ("//A/1", "all"), ("//Z", "//B"),
           ("name CA", "name"), ("//B/8", "water"))
SETS = ("", "", "", "salt=0", "salt=-1", "membrane=auto", "membrane=20", "membrane=20,voltage=0.1", "voltage=1",
        "membrane=auto,voltage=nan", "gaussian=0.9", "gaussian=0.9,membrane=10", "nonlinear=1", "nonlinear=2",
        "Mg2+=0.1,Cl-=0.2", "Mg2+=0.1", "inside=1000", "probe=0", "pores=0,membrane=20",
        "membrane=auto,membrane_centre=2")
MUTANTS = ("A/2/ALA", "A/3/GLY", "A/2/TRP", "B/90/ALA", "A/2", "")
HEAVY = {"spacing": 2.0, "engine": "cpu"}


def _parameters(rng: Random) -> dict[str, Any]:
    """Return some of the values of the option ``set``, as the shell gives them."""
    text = rng.choice(SETS)
    return {"set": text} if text else {}


def _run(name: str, path: Path, **options: Any) -> None:
    """Run a command on a file; its table is finite."""
    report = registry.get("command", name)(structure=path, **options)
    for rows in (value for key, value in report.data.items() if key == "rows"):
        for row in rows:
            numbers = [value for value in row.values() if isinstance(value, float)]
            assert np.isfinite(numbers).all(), row


def _patches(path: Path) -> None:
    rng = Random(path.read_bytes())
    if rng.random() < 0.5:
        _run("surface", path, patches=rng.choice((1.0, 0.1, 50.0)), by=rng.choice(("patch", "residue", "atom")),
             spacing=2.0, mesh_spacing=1.5, engine="cpu", **_parameters(rng))
    else:
        _run("patches", path, threshold=rng.choice((1.0, 0.2)), mesh_spacing=1.5, **HEAVY, **_parameters(rng))


def _faces(path: Path) -> None:
    rng = Random(path.read_bytes())
    _run("complementarity", path, between=rng.choice(BETWEEN), mesh_spacing=1.5, **HEAVY, **_parameters(rng))


def _bound(path: Path) -> None:
    rng = Random(path.read_bytes())
    options: dict[str, Any] = {"between": rng.choice(BETWEEN), "solvent": rng.choice(("pb", "gb", "gb"))}
    options |= {"gb_model": rng.choice(("obc2", "gbn2"))} if options["solvent"] == "gb" else {"spacing": 2.0}
    if rng.random() < 0.3:
        options["mutate"] = (rng.choice(MUTANTS),)
    if rng.random() < 0.3:
        options["surface_tension"] = rng.choice((0.005, -1.0))
    _run("energy", path, engine="cpu", **options)


def _bound_frames(path: Path) -> None:
    """Read damaged frames of a good structure."""
    good = path.with_name("answers-good.pqr")
    if not good.exists():
        good.write_bytes(charged_peptide())
    rng = Random(path.read_bytes())
    if rng.random() < 0.7:
        _run("energy", good, trajectory=path, between=("//A", "//B"), solvent="gb", engine="cpu")
    else:
        _run("patches", good, trajectory=path, frames="0:2:1", mesh_spacing=2.0, **HEAVY)


def _titrated(path: Path) -> None:
    rng = Random(path.read_bytes())
    maps: dict[str, Any] = {}
    if rng.random() < 0.3:
        maps = {"map_ph": rng.choice(("7", "4,10", "4,4", "x")), "maps": path.with_name("maps.npz"), "force": True}
    _run("titrate", path, spacing=2.0, engine="cpu", ph=rng.choice(("0:14:2", "7", "7:3:1", "0:14:0", "x")),
         inside=rng.choice((20.0, 4.0, 200.0)), salt=rng.choice((0.1, 0.0)), **maps)


def _in_membrane(path: Path) -> None:
    """Find the membrane between damaged marks, and bring an ion through it."""
    rng = Random(path.read_bytes())
    _run("born", path, ion=rng.choice(("K+", "Na+", "Cl-", "Xx", "X2+")), along=rng.choice("zzx"), positions=2,
         spacing=2.0, engine="cpu", atoms=rng.choice(("all", "protein", "solute")), **(
             _parameters(rng) if rng.random() < 0.5 else {"set": "membrane=auto"}))


READ: dict[str, Callable[[Path], None]] = {
    "patches": _patches, "faces": _faces, "binding": _bound, "frames of binding": _bound_frames, "titrated": _titrated,
    "marks": _in_membrane}


# ---- seeds ---------------------------------------------------------------------------------------------------------


@functools.cache
def _entry() -> Structure:
    """Return five residues of each chain of a protein, which touch."""
    entry = read_structure(Path(__file__).parents[2] / "data" / "1hvr.pdb.gz")
    ends = np.isin(entry.residue_ids, [1, 2, 3, 97, 98])
    return entry.take(np.flatnonzero(np.isin(entry.chain_ids, ["A", "B"]) & ends & ~entry.hetero))


@functools.cache
def _written(structure: Structure, suffix: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"seed{suffix}"
        write_structure(structure, path)
        return path.read_bytes()


@functools.cache
def charged_peptide() -> bytes:
    """Return the peptide with hydrogens and charges, as PQR."""
    return _written(prepare_structure(_entry()).structure, ".pqr")


def _marked() -> bytes:
    """Return the peptide with marks of a membrane, as PQR."""
    text, lines = charged_peptide().decode(), []
    middle = _entry().positions.mean(0)
    for n, corner in enumerate(itertools.product((-20, 20), (-20, 20), (-10, 10))):
        x, y, z = middle + np.array(corner)
        lines.append(f"HETATM{900 + n:5d}  N   DUM {900 + n:5d}    {x:8.3f}{y:8.3f}{z:8.3f}  0.0000 1.0000\n")
    return text.replace("TER", "").replace("END", "").encode() + "".join(lines).encode()


def answers_seeds() -> dict[str, Seeds]:
    """Return the seeds of these kinds; none without the package that adds hydrogens."""
    if not importlib.util.find_spec("hydride"):
        return {}
    peptide = charged_peptide()
    bare = [(suffix, _written(_entry(), suffix)) for suffix in (".pdb", ".cif")]
    positions = prepare_structure(_entry()).structure.positions
    moving = [(".nc", netcdf(np.stack([positions] * 2)))]
    if importlib.util.find_spec("MDAnalysis"):
        moving += frames((".dcd", ".xtc"), positions)
    return {"patches": [(".pqr", peptide), bare[0]], "faces": [(".pqr", peptide), bare[1]],
            "binding": [(".pqr", peptide)], "titrated": bare, "marks": [(".pqr", _marked())],
            "frames of binding": moving}
