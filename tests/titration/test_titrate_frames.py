"""Titration over frames, maps at values of pH, and sites of ligands."""

import csv
from dataclasses import replace
from pathlib import Path

import MDAnalysisTests.datafiles as datafiles
import numpy as np
import pytest
from helpers import shell
from matplotlib.figure import Figure

import vmdpotential as vp
from vmdpotential.errors import UsageError
from vmdpotential.io import read_map
from vmdpotential.io.trajectories.frames import LoadedFrames
from vmdpotential.plugins.titration.sites import titrated_structure
from vmdpotential.plugins.titration.titration import pka_values

#: A peptide of 28 residues with 7 sites, whose hydrogens are in the file, in 10 models.
PEPTIDE = Path(datafiles.__file__).parent / "data" / "nmr_neopetrosiamide.pdb"

#: Heavy atoms of acetic acid and of ethylamine, and hydrogens of methyl groups: elements and positions, A.
ACID = [("C", 0, 0, 0), ("C", 1.5, 0, 0), ("O", 2.1, 1.07, 0), ("O", 2.13, -1.06, 0)]
AMINE = [("C", 0, 0, 0), ("C", 1.52, 0, 0), ("N", 2.03, 1.38, 0)]
METHYL = [("H", -0.36, 1.03, 0), ("H", -0.36, -0.51, 0.89), ("H", -0.36, -0.51, -0.89)]
OF_ACID = [(1, 2, 1), (2, 3, 2), (2, 4, 1), (1, 5, 1), (1, 6, 1), (1, 7, 1)]
METHYLENE = [("H", 1.88, -0.52, 0.89), ("H", 1.88, -0.52, -0.89)]
ON_N = [("H", 1.68, 1.88, 0.82), ("H", 1.68, 1.88, -0.82), ("H", 3.04, 1.38, 0)]
OF_AMINE = [(1, 2, 1), (2, 3, 1), (1, 4, 1), (1, 5, 1), (1, 6, 1), (2, 7, 1), (2, 8, 1), (3, 9, 1), (3, 10, 1)]


def sdf(path, name, atoms, bonds, charge=""):
    lines = [name, "", "", f"{len(atoms):3d}{len(bonds):3d}  0  0  0  0  0  0  0  0999 V2000",
             *(f"{x:10.4f}{y:10.4f}{z:10.4f} {e:<3} 0  0" for e, x, y, z in atoms),
             *(f"{a:3d}{b:3d}{order:3d}  0" for a, b, order in bonds), *filter(None, [charge]), "M  END", "$$$$", ""]
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def forms(tmp_path_factory):
    """Files of acetic acid, acetate, ethylammonium and ethylamine."""
    folder = tmp_path_factory.mktemp("forms")
    return [sdf(folder / "acid.sdf", "ACY", [*ACID, *METHYL, ("H", 3.08, -0.9, 0)], [*OF_ACID, (4, 8, 1)]),
            sdf(folder / "acetate.sdf", "ACY", [*ACID, *METHYL], OF_ACID, "M  CHG  1   4  -1"),
            sdf(folder / "ammonium.sdf", "NEH", [*AMINE, *METHYL, *METHYLENE, *ON_N], [*OF_AMINE, (3, 11, 1)],
                "M  CHG  1   3   1"),
            sdf(folder / "amine.sdf", "NEH", [*AMINE, *METHYL, *METHYLENE, *ON_N[:2]], OF_AMINE)]


def with_ligands(structure, *ligands):
    """A structure with ligands: name, atoms and shift of each."""
    fields = ["positions", "atom_names", "residue_names", "residue_ids", "residue_index", "chain_ids", "elements",
              "segment_ids", "insertion_codes"]
    parts = {name: [getattr(structure, name)] for name in fields}
    for n, (name, atoms, shift) in enumerate(ligands):
        values = {"positions": np.array([row[1:] for row in atoms], float) + shift,
                  "atom_names": [f"{row[0]}{k}" for k, row in enumerate(atoms, 5)],
                  "residue_names": [name] * len(atoms),
                  "residue_ids": np.full(len(atoms), 200 + n),
                  "residue_index": np.full(len(atoms), structure.residue_count + n), "chain_ids": ["L"] * len(atoms),
                  "elements": [row[0] for row in atoms], "segment_ids": [""] * len(atoms),
                  "insertion_codes": [""] * len(atoms)}
        for field in fields:
            parts[field].append(np.asarray(values[field]))
    joined = {name: np.concatenate(values) for name, values in parts.items()}
    return vp.Structure(**joined)


@pytest.fixture(scope="module")
def peptide():
    return vp.read_structure(PEPTIDE)


@pytest.fixture(scope="module")
def alone(peptide):
    return vp.titrate(peptide, spacing=2.0, ph="2:12:2")


def test_curves_in_axes_of_the_user_have_the_names_of_their_groups(alone):
    axes = alone.plot(Figure().add_subplot())
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert len(names) == len(set(names)) > 2
    assert {"C-terminus", "N-terminus"} <= set(names)


def test_one_frame_is_the_structure_and_means_are_those_of_frames(peptide, alone, tmp_path):
    """Frames moved as a whole by the spacing of the coarse lattice have its values; others the mean of theirs."""
    shifted = LoadedFrames("shifted", [(peptide.positions + 4.0 * n, None) for n in range(2)])
    found = vp.titrate(peptide, shifted, spacing=2.0, ph="2:12:2")
    assert found.merged.count == 2
    assert found.pka == pytest.approx(alone.pka, abs=1e-3)
    assert found.protonated == pytest.approx(alone.protonated, abs=1e-3)
    assert np.array(found.table()["deviation"]) == pytest.approx(0, abs=1e-3)
    models = [tmp_path / f"{n}.pdb" for n in range(3)]
    for path, text in zip(models, PEPTIDE.read_text().split("ENDMDL")[:3], strict=True):
        path.write_text(text + "END\n")
    results = [vp.titrate(path, spacing=2.0, ph="2:12:2") for path in models]
    over = vp.titrate(PEPTIDE, PEPTIDE, frames=slice(0, 3), spacing=2.0, ph="2:12:2")
    # hydrogens that turn freely are where those of the first model are
    assert over.pka == pytest.approx(np.mean([each.pka for each in results], 0), abs=0.15)
    assert over.protonated == pytest.approx(np.mean([each.protonated for each in results], 0), abs=0.05)
    assert np.ptp([each.pka for each in results], 0).max() > 0.15


def test_standard_errors_and_workers(tmp_path, capsys):
    """A drawn trajectory of independent frames has the error of its spread; two processes do not change a digit."""
    structure = vp.read_structure(PEPTIDE)
    rng = np.random.default_rng(3)
    frames = [(structure.positions + rng.normal(0, 0.15, structure.positions.shape), None) for _ in range(12)]
    found = vp.titrate(structure, LoadedFrames("drawn", frames), spacing=2.0, ph="2:12:2")
    table = {name: np.array(column) for name, column in found.table().items()}
    known = np.isfinite(table["standard_error"])
    assert known.sum() >= 4
    expected = table["deviation"][known] / np.sqrt(12)
    assert (table["standard_error"][known] > 0.6 * expected).all()
    assert (table["standard_error"][known] < 2.5 * expected).all()
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    base = ["titrate", PEPTIDE, PEPTIDE, "--frames", "0:3", "--spacing", "2", "--ph", "7"]
    for path, more in ((one, []), (two, ["--workers", "2"])):
        assert shell(capsys, *base, "-o", path, "--curves", path.with_suffix(".curves.csv"), *more)[0] == 0
    assert one.read_bytes() == two.read_bytes()
    with one.with_suffix(".curves.csv").open() as stream:
        (row,) = csv.DictReader(stream)
    assert {"net_charge error", "ASP11 A error"} <= row.keys()


def test_maps_at_values_of_ph_have_the_mean_charges(peptide, tmp_path):
    """The flux of each is its net charge; between them are only the charges of sites."""
    found = vp.titrate(peptide, spacing=1.5, ph="4", map_ph="4,10", salt=0.0, maps=tmp_path / "m.v2.dx")
    names = [tmp_path / f"m.v2-ph{value}.dx" for value in (4, 10)]
    assert sorted(tmp_path.iterdir()) == sorted(names)
    assert [read_map(path).lattice.shape for path in names] == [grid.lattice.shape for grid in found.maps]
    assert list(found.objects)[1:3] == ["grid", "ph10"]
    assert [grid.provenance.state for grid in (*found.maps, read_map(names[0]))] == ["pH 4", "pH 10", "pH 4"]
    charges = found.merged["charges"].mean
    nets = charges.sum(1)
    assert nets[0] == pytest.approx(found.moments[0][0], abs=1e-6)
    # without salt, far away: difference of potentials is that of the net charges in water
    centre = found.titrated.structure.positions.mean(0)
    point = centre + np.array([60.0, 0, 0])
    values = [vp.potential_at(replace(found.titrated.structure, charges=row), point, method="pb", boundary="open",
                              spacing=1.5, parameters={"inside": 20.0, "salt": 0.0}) for row in charges]
    assert values[0] - values[1] == pytest.approx((nets[0] - nets[1]) * 560.7 / 78.5 / 60, rel=0.1)
    corner = found.maps[0].values[0, 0, 0] - found.maps[1].values[0, 0, 0]
    assert np.sign(corner) == np.sign(nets[0] - nets[1])
    for keywords in ({"map_ph": "4,4"}, {"map_ph": "x"}, {"map_ph": "99"}, {"maps": tmp_path / "n.dx"},
                     {"map_ph": "4", "trajectory": LoadedFrames("one", [(peptide.positions, None)])}):
        with pytest.raises(UsageError) as caught:
            vp.titrate(peptide, spacing=2.0, **keywords)
        assert caught.value.parameter == "map_ph"


def test_ligands_far_away_have_their_model_values_and_near_charges_others(peptide, forms):
    values = {"ACY": 4.76, "NEH": 10.6}
    far = with_ligands(peptide, ("ACY", ACID, [60.0, 0, 0]), ("NEH", AMINE, [0, 60.0, 0]))
    found = vp.titrate(far, spacing=1.5, charges=forms, model_pka=values, salt=0.5)
    pka = dict(zip(found.labels, found.pka, strict=True))
    assert pka["ACY200 L"] == pytest.approx(4.76, abs=0.05)
    assert pka["NEH201 L"] == pytest.approx(10.6, abs=0.05)
    net, _ = found.moments
    without = vp.titrate(peptide, spacing=1.5, salt=0.5)
    assert net[0] - without.moments[0][0] == pytest.approx(1, abs=0.02)  # at pH 0: acid and ammonium
    assert net[-1] - without.moments[0][-1] == pytest.approx(-1, abs=0.02)  # at pH 14: acetate and amine
    turned = [(element, -x, -y, -z) for element, x, y, z in AMINE]  # its nitrogen is 3 A from an oxygen
    pair = with_ligands(peptide, ("ACY", ACID, [60.0, 0, 0]), ("NEH", turned, [65.63, 5.05, 0]))
    close = vp.titrate(pair, spacing=1.5, charges=forms, model_pka=values, salt=0.5)
    pka = dict(zip(close.labels, close.pka, strict=True))
    assert pka["ACY200 L"] < 4.76 - 0.2  # an ion pair
    assert pka["NEH201 L"] > 10.6 + 0.2
    assert close.titrated.neutral[-19:].sum() == pytest.approx(0, abs=0.01)


def test_model_values_need_two_states_of_a_residue_that_is_there(peptide, forms):
    structure = with_ligands(peptide, ("ACY", ACID, [60.0, 0, 0]))
    for files, values, parameter in ((forms[:1], {"ACY": 4.8}, "charges"), ([], {"ACY": 4.8}, "charges"),
                                     (forms[:2], {"XYZ": 4.8}, "model_pka"),
                                     ([forms[0], forms[0]], {"ACY": 4.8}, "charges")):
        with pytest.raises(UsageError) as caught:
            vp.titrate(structure, spacing=2.0, charges=files, model_pka=values)
        assert caught.value.parameter == parameter
    found = vp.titrate(peptide, spacing=2.0, model_pka={"ASP": 5.0})
    assert {row["model_pka"] for row in found.entries()["sites"] if row["group"] == "ASP"} == {5.0}


def test_values_for_protonation_states_are_those_of_a_file_without_hydrogens(peptide):
    """Atoms of a file with hydrogens were counted as in one without."""
    from vmdpotential.plugins.preparation.draft import draft_of

    bare = peptide.take(np.flatnonzero(peptide.elements != "H"))
    found = [pka_values(each, draft_of(each, each.elements != "H"), ()) for each in (peptide, bare)]
    assert found[0].keys() == found[1].keys()
    labels = {site.label for site in titrated_structure(bare).sites}
    assert len(found[0]) == len(labels) == 7
    names = peptide.residue_names[peptide.residue_starts[:-1]]
    assert {(names[n], group) for n, group in found[0] if group in ("ASP", "ARG")} == {("ASP", "ASP"), ("ARG", "ARG")}
