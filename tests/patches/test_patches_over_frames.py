"""Patches over frames: means of those of single frames, by the command ``surface``, and rigid motion."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import TOOLS, shell
from MDAnalysisTests.datafiles import DCD, PSF

import vmdpotential as vp
from vmdpotential import read_structure
from vmdpotential.engines import get_engine
from vmdpotential.io.trajectories.frames import LoadedFrames
from vmdpotential.plugins.patches.check import check_dipole
from vmdpotential.plugins.patches.correspondence import corresponding_residues

FOLDER = TOOLS / "alanine-dipeptide-explicit"
OPTIONS = {"atoms": "protein", "threshold": 0.2, "least": 1.0, "within": 5.0, "spacing": 1.0, "mesh_spacing": 0.6}
SIGNS = ("positive", "negative")


@pytest.fixture(scope="module")
def peptide():
    return read_structure(FOLDER / "alanine-dipeptide.crd", topology=FOLDER / "alanine-dipeptide.prmtop")


def moved(structure, count, size=0.4):
    rng = np.random.default_rng(6)
    return LoadedFrames("moved", [(structure.positions + rng.normal(0, size, 3)
                                   + rng.normal(0, 0.1, structure.positions.shape), structure.cell)
                                  for _ in range(count)])


def of_surface(structure):
    """Areas in patches by sign and residue, and of all patches, by the command ``surface`` of one structure."""
    alone = structure.take(np.flatnonzero(vp.select(structure, "protein")))
    made = vp.surface(alone, medium="water", spacing=1.0, padding=4.0, patches=0.2, mesh_spacing=0.6, method="pb")
    areas, totals = np.zeros((2, alone.residue_count)), np.zeros((2, 3))
    for patch in made.areas:
        if patch.area >= 1.0:
            n = int(patch.name[0] == "-")
            areas[n, patch.owners] += patch.area * patch.shares
            totals[n] += patch.area, 1, 0
            totals[n, 2] = max(totals[n, 2], patch.area)
    return areas, totals


def test_one_structure_has_the_patches_of_the_command_surface(peptide):
    found = vp.patches(peptide, **OPTIONS)
    areas, totals = of_surface(peptide)
    assert areas.any(1).all()
    assert found.areas == pytest.approx(areas, rel=1e-6)
    assert found.merged["totals"].moments.mean == pytest.approx(totals, rel=1e-6)
    assert found.uncertainty is None
    assert {*found.occupancies.ravel().tolist()} <= {0.0, 1.0}
    assert (found.occupancies == (areas >= 5.0)).all()


def test_means_and_occupancies_are_those_of_the_frames(peptide):
    frames = moved(peptide, 3)
    found = vp.patches(peptide, frames, **OPTIONS)
    each = [of_surface(replace(peptide, positions=frame.positions)) for frame in frames.part(range(3))]
    assert found.merged.count == 3
    assert found.areas == pytest.approx(np.mean([areas for areas, _ in each], axis=0), rel=1e-6)
    assert found.occupancies == pytest.approx(np.mean([areas >= 5.0 for areas, _ in each], axis=0))
    data = found.data
    for n, sign in enumerate(SIGNS):
        for k, name in enumerate(("area", "patches", "largest")):
            assert data[f"{sign}_{name}"] == pytest.approx(np.mean([totals[n, k] for _, totals in each]), rel=1e-6)


def test_a_molecule_that_the_cell_splits_has_the_patches_of_the_whole_one(peptide):
    """Frames of a simulation are wrapped atom by atom."""
    lengths = np.diagonal(peptide.cell.vectors)
    middle = peptide.positions[vp.select(peptide, "protein")].mean(0)
    split = replace(peptide, positions=(peptide.positions - middle) % lengths)
    shifted = replace(peptide, positions=peptide.positions - middle)
    one, two = (vp.patches(shifted, LoadedFrames("frames", [(made.positions, peptide.cell)]), **OPTIONS)
                for made in (split, shifted))
    for sign in SIGNS:
        assert one.data[f"{sign}_area"] == pytest.approx(two.data[f"{sign}_area"], rel=0.05)


@pytest.mark.slow
def test_frames_of_a_protein_by_the_command(tmp_path, monkeypatch, capsys):
    """Adenylate kinase, from the trajectory of a transition."""
    monkeypatch.chdir(tmp_path)
    code, out, _ = shell(capsys, "patches", PSF, DCD, "--frames", "0:98:16", "--spacing", "1.5", "--mesh-spacing", "1",
                         "--json", "-o", "patches.csv", "--figure", "patches.png")
    assert code == 0
    data = json.loads(out)
    assert data["frames"] == 7
    rows = {row["name"]: row for row in data["rows"]}
    for sign in SIGNS:
        assert sum(row[f"{sign}_area"] for row in rows.values()) == pytest.approx(data[f"{sign}_area"], rel=1e-6)
        assert data[f"{sign}_area"] > data[f"{sign}_largest"] > 0
        assert all(0 <= row[f"{sign}_occupancy"] <= 1 for row in rows.values())
    charges = {"LYS": "positive", "ARG": "positive", "ASP": "negative", "GLU": "negative"}
    for name, sign in charges.items():
        chosen = [row for label, row in rows.items() if label.rpartition("/")[2].startswith(name)]
        other = SIGNS[sign == "positive"]
        assert np.mean([row[f"{sign}_area"] for row in chosen]) > np.mean([row[f"{other}_area"] for row in chosen])
    with Path("patches.csv").open(newline="", encoding="utf-8") as stream:
        assert len(list(csv.DictReader(stream))) == len(rows)
    assert Path("patches.png").stat().st_size > 5_000


def test_the_check_of_verify_passes():
    ((_, error, limit),) = check_dipole(get_engine("cpu"), 1)
    assert error < limit


def chain(names, chains):
    """Residues of one atom each."""
    count = len(names)
    return vp.Structure(np.zeros((count, 3)), np.full(count, "CA"), np.array(names), np.arange(count), np.arange(count),
                        chain_ids=np.array(chains))


def test_residues_correspond_by_sequence():
    """A substitution, a deletion, an insertion, another protonation state, and the beginning of another chain."""
    first = chain(["MET", "ALA", "LYS", "HIS", "GLY", "TRP", "SER", "ASP", "ALA", "LYS"], ["A"] * 8 + ["B"] * 2)
    second = chain(["ALA", "GLU", "HIE", "GLY", "TRP", "PRO", "SER", "ALA", "LYS"], ["A"] * 7 + ["B"] * 2)
    assert corresponding_residues(first, second).tolist() == [-1, 0, 1, 2, 3, 4, 6, -1, 7, 8]
    same = corresponding_residues(first, first)
    assert same.tolist() == list(range(10))


def test_another_structure_has_the_areas_of_its_own_run(tmp_path, capsys):
    """Lysozyme's beginning and the same with a residue cut back to alanine."""
    from vmdpotential.io import write_structures

    whole = vp.read_structure("data/1aki.pdb.gz")
    part = whole.take(np.flatnonzero(whole.residue_ids < 16))
    kept = (part.residue_ids != 13) | np.isin(part.atom_names, ["N", "CA", "C", "O", "CB"])
    changed = part.take(np.flatnonzero(kept))
    mutant = replace(changed, residue_names=np.where(changed.residue_ids == 13, "ALA", changed.residue_names))
    paths = [tmp_path / "wild.pdb", tmp_path / "mutant.pdb"]
    for path, structure in zip(paths, (part, mutant), strict=True):
        write_structures(structure, [path])
    options = ["--spacing", "1.5", "--mesh-spacing", "0.8", "--threshold", "0.5", "--least", "5"]
    code, out, _ = shell(capsys, "patches", paths[0], "--others", paths[1], *options, "--json", "-o",
                         tmp_path / "joined.csv")
    assert code == 0
    rows = {row["name"]: row for row in json.loads(out)["rows"]}
    code, out, _ = shell(capsys, "patches", paths[1], *options, "--json", "-o", tmp_path / "alone.csv")
    alone = {row["name"]: row for row in json.loads(out)["rows"]}
    (site,) = [name for name in rows if "LYS13" in name]
    assert rows[site]["mutant residue"] == site.replace("LYS", "ALA")
    assert rows[site]["mutant positive_area"] < rows[site]["positive_area"]
    for row in rows.values():
        for sign in SIGNS:
            assert row[f"mutant {sign}_area"] == pytest.approx(alone[row["mutant residue"]][f"{sign}_area"], abs=1e-6)
    code, _, err = shell(capsys, "patches", PSF, DCD, "--others", paths[0])
    assert code == 2
    assert "--others" in err
