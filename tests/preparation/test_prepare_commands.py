"""Structures that are completed by commands: prepare, and what needs charges; models, frames and batches."""

import csv
import json
import re
from dataclasses import replace

import gemmi
import numpy as np
import pytest
from entries import DATA, ENTRIES
from helpers import shell

from vmdpotential import registry
from vmdpotential.io import read_structure, write_structure
from vmdpotential.plugins.preparation.components import find_component
from vmdpotential.plugins.preparation.prepare import prepare_structure


def test_map_prepares_by_itself(tmp_path, capsys):
    words = ["map", ENTRIES["1YJP"], "--spacing", "2", "-o", tmp_path / "map.npz", "--json"]
    code, out, _ = shell(capsys, *words)
    report = json.loads(out)
    assert code == 0
    assert report["prepared"]
    assert abs(report["net_charge"]) < 1e-6
    code, out, _ = shell(capsys, "surface", ENTRIES["1YJP"], tmp_path / "map.npz", "-o", tmp_path / "table.csv",
                         "--spacing", "1", "--json")
    assert code == 0
    assert json.loads(out)["prepared"]
    assert shell(capsys, *words, "--force", "--prepare", "never")[0] == 2


@pytest.mark.slow
def test_every_command_takes_the_pka_of_propka(tmp_path, capsys):
    """One of the two aspartates that HIV protease's inhibitors bind to is neutral by PROPKA."""
    charges = {}
    for pka in ("model", "propka"):
        charges[pka] = prepare_structure(read_structure(ENTRIES["1HVR"]), pka=pka).structure.net_charge
        output = tmp_path / f"{pka}.npz"
        code, out, _ = shell(capsys, "map", ENTRIES["1HVR"], "--pka", pka, "--spacing", "3", "--screened", "0.15", "-o",
                             output, "--json")
        assert code == 0
        np.testing.assert_allclose(json.loads(out)["net_charge"], charges[pka], atol=1e-3)
    assert round(charges["propka"] - charges["model"]) == 1
    words = ["field", ENTRIES["1HVR"], "--at", "resname XK2", "--screened", "0.15"]
    assert shell(capsys, *words, "--pka", "propka", "-o", tmp_path / "field.csv")[0] == 0
    assert shell(capsys, *words, "--prepare", "never", "-o", tmp_path / "other.csv")[0] == 2
    for command in ("surface", "energy", "live", "prepare", "field"):
        assert {"ph", "pka"} <= {item.name for item in registry.get("command", command).parameters}


@pytest.mark.parametrize("name", ["3KPR", "4E43"])
def test_what_a_file_without_hydrogens_lacks_is_not_listed(name, tmp_path, capsys):
    path = ENTRIES.get(name, DATA / "mmcif" / "3KPR.cif.gz")
    code, _, error = shell(capsys, "map", path, "--prepare", "never", "-o", tmp_path / "map.npz")
    assert code == 2
    assert "hydrogens" in error
    assert len(error) < 800  # with the path and a warning
    code, _, error = shell(capsys, "map", path, "--atoms", "resname NO9", "-o", tmp_path / "map.npz")
    assert code == 2
    named = {residue for residue in read_structure(path).residue_names.tolist() if residue in error}
    assert len(named - {"HOH"}) >= 5  # of many, the number of the others
    assert re.search(r"and \d+ more", error)


def test_command_prepare_writes_structure_and_table(tmp_path, capsys):
    pqr, table = tmp_path / "out.pqr", tmp_path / "out.csv"
    code, out, _ = shell(capsys, "prepare", ENTRIES["7ETN"], "-o", pqr, table, "--json")
    report = json.loads(out)
    assert code == 0
    written = read_structure(pqr)
    assert len(written) == report["atoms"]
    assert abs(written.net_charge - report["net_charge"]) < 1e-3
    assert len(table.read_text().splitlines()) == 1 + len(report["residues"])


def test_without_its_packages_the_extra_is_named(monkeypatch, tmp_path, capsys):
    import vmdpotential.extras as extras

    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(extras, "import_module", absent)
    code, _, error = shell(capsys, "map", ENTRIES["1YJP"], "-o", tmp_path / "map.npz")
    assert code == 2
    assert extras.install_command("prepare") in error
    assert shell(capsys, "prepare", ENTRIES["1YJP"], "-o", tmp_path / "out.pqr")[0] == 4


@pytest.mark.slow
def test_a_batch_of_models_without_hydrogens(tmp_path, capsys):
    folder = tmp_path / "models"
    folder.mkdir()
    model = gemmi.read_structure(str(ENTRIES["1YJP"]))
    model.remove_waters()
    for number, confidence in enumerate((95.0, 40.0)):
        for residue in model[0][0]:
            for atom in residue:
                atom.b_iso = confidence
        model.make_mmcif_document().write_file(str(folder / f"model{number}.cif"))
    code, out, _ = shell(capsys, "batch", "map", folder, "-o", tmp_path / "maps", "--spacing", "2", "--boundary",
                         "open", "--workers", "1", "--json")
    assert code == 0
    assert json.loads(out)["done"] == 2
    with (tmp_path / "maps" / "report.csv").open(newline="") as stream:
        assert all("hydrogens" in row["prepared"] for row in csv.DictReader(stream))
    first, second = (np.load(tmp_path / "maps" / f"model{n}.npz")["values"] for n in (0, 1))
    np.testing.assert_array_equal(first, second)


@pytest.fixture(scope="module")
def turned_models(tmp_path_factory):
    """A file of two models without hydrogens, of which the second is the first one turned and moved."""
    folder = tmp_path_factory.mktemp("models")
    file = gemmi.read_structure(str(ENTRIES["1YJP"]))
    file.remove_waters()
    file.cell = gemmi.UnitCell()
    second = file[0].clone()
    second.num = 2
    for chain in second:
        for residue in chain:
            for atom in residue:
                x, y, z = atom.pos.tolist()
                atom.pos = gemmi.Position(7 - y, 3 + x, z - 2)
    file.add_model(second)
    file.write_pdb(str(folder / "models.pdb"))
    file.make_mmcif_document().write_file(str(folder / "models.cif"))
    return folder


@pytest.mark.parametrize("kind", ["pdb", "cif"])
def test_models_of_a_file_are_completed_and_added_atoms_follow(kind, turned_models, tmp_path, capsys):
    """The field at the atoms of a model that is turned is the same, turned."""
    path = turned_models / f"models.{kind}"
    code, out, _ = shell(capsys, "field", path, path, "--at", "all", "--exclude", "residue", "--json", "-o",
                         tmp_path / "field.npz")
    assert code == 0
    assert "hydrogens" in json.loads(out)["prepared"]
    with np.load(tmp_path / "field.npz") as result:
        assert len(result["places"]) > 100
        (a, b), potential = result["field"][:, 0], result["potential"][:, 0]
    np.testing.assert_allclose(b, np.stack([-a[:, 1], a[:, 0], a[:, 2]], axis=1), atol=2e-3 * np.abs(a).max())
    np.testing.assert_allclose(potential[1], potential[0], atol=2e-3 * np.abs(potential).max())


def test_means_over_models_without_hydrogens(turned_models, tmp_path, capsys):
    path = turned_models / "models.pdb"
    words = ["--spacing", "2", "--screened", "0.15", "-o"]
    code, out, _ = shell(capsys, "average", path, path, *words, tmp_path / "mean.npz", "--stat", "mean,std", "--json")
    assert code == 0
    assert json.loads(out)["prepared"]
    with np.load(tmp_path / "mean.npz") as mean, np.load(tmp_path / "mean_std.npz") as spread:
        largest = np.abs(mean["values"]).max()
        assert spread["values"].max() < 0.01 * largest  # aligned, they are the same
        values = mean["values"]
    assert shell(capsys, "map", path, *words, tmp_path / "one.npz", "--like", tmp_path / "mean.npz")[0] == 0
    with np.load(tmp_path / "one.npz") as stored:
        np.testing.assert_allclose(values, stored["values"], atol=0.01 * largest)
    code, out, _ = shell(capsys, "density", path, path, "--of", "charge", "--spacing", "1", "-o", tmp_path / "rho.npz",
                         "--json")
    assert code == 0
    assert json.loads(out)["prepared"]


@pytest.mark.parametrize("command", ["average", "field", "density"])
def test_nothing_is_added_to_frames_of_a_simulation(command, turned_models, tmp_path, capsys):
    import MDAnalysis

    path, frames = turned_models / "models.pdb", tmp_path / "frames.dcd"
    MDAnalysis.Universe(str(path)).atoms.write(str(frames), frames="all")
    more = {"field": ["--at", "name CA"], "density": ["--of", "charge"]}.get(command, [])
    code, _, error = shell(capsys, command, path, frames, *more, "-o", tmp_path / "out.npz")
    assert code == 2
    assert "--topology" in error
    assert not (tmp_path / "out.npz").exists()
    # that of one model alone is not refused
    assert shell(capsys, command, path, path, *more, "--prepare", "never", "-o", tmp_path / "out.npz")[0] == 2


def test_a_live_map_of_a_file_without_hydrogens(tmp_path):
    structure = read_structure(ENTRIES["1YJP"])
    live = registry.get("command", "live")
    made = live(structure=structure, spacing=2.0).objects["live"]
    assert made.atoms == len(structure)
    shifted = made.update(structure.positions + np.array([0.0, 0.0, 0.1]))
    assert np.isfinite(shifted.values).all()


@pytest.mark.parametrize("kind", ["sdf", "mol2"])
def test_a_file_of_a_ligand_fixes_what_is_refused(kind, tmp_path, capsys):
    """A model with a ligand that no dictionary has: its file needs neither the same names nor the same places."""
    from rdkit import Chem

    entry = read_structure(ENTRIES["1HVR"])
    ligand = entry.take(entry.residue_names == "XK2")
    names = np.array([f"{element}Q{n}" for n, element in enumerate(ligand.elements)])
    bare = replace(ligand, atom_names=names, residue_names=np.full(len(names), "LG9Q"))
    write_structure(bare, tmp_path / "model.cif")
    code, _, error = shell(capsys, "prepare", tmp_path / "model.cif", "-o", tmp_path / "out.pqr")
    assert code == 3
    assert "LG9Q" in error

    actual = find_component("XK2")
    molecule = Chem.RWMol()
    for element, charge in zip(actual.elements, actual.charges.tolist(), strict=True):
        molecule.AddAtom(Chem.Atom(element))
        molecule.GetAtomWithIdx(molecule.GetNumAtoms() - 1).SetFormalCharge(charge)
    for a, b, order in actual.bonds.tolist():
        molecule.AddBond(a, b, {1: Chem.BondType.SINGLE, 5: Chem.BondType.SINGLE}.get(order, Chem.BondType.DOUBLE))
    Chem.SanitizeMol(molecule)
    whole = Chem.AddHs(molecule)
    whole.SetProp("_Name", "LG9Q")
    path = tmp_path / f"ligand.{kind}"
    if kind == "sdf":
        Chem.MolToMolFile(whole, str(path))
    else:
        Chem.Kekulize(whole, clearAromaticFlags=True)
        lines = ["@<TRIPOS>MOLECULE", "LG9Q", f"{whole.GetNumAtoms()} {whole.GetNumBonds()} 1", "SMALL", "USER_CHARGES",
                 "@<TRIPOS>ATOM"]
        lines += [f"{n} {atom.GetSymbol()}{n} 0 0 0 {atom.GetSymbol()} 1 LG9Q {0.001 * n:.4f}"
                  for n, atom in enumerate(whole.GetAtoms(), 1)]
        orders = [(bond.GetBeginAtomIdx() + 1, bond.GetEndAtomIdx() + 1, round(bond.GetBondTypeAsDouble()))
                  for bond in whole.GetBonds()]
        lines += ["@<TRIPOS>BOND", *(f"{n} {a} {b} {order}" for n, (a, b, order) in enumerate(orders, 1))]
        path.write_text("\n".join(lines))
    words = ["prepare", tmp_path / "model.cif", "-o", tmp_path / "out.pqr", "--charges", path, "--json"]
    code, out, _ = shell(capsys, *words)
    assert code == 0
    report = json.loads(out)
    assert report["atoms"] == whole.GetNumAtoms()
    assert path.name in report["residues"][0]["charges"]
    made = read_structure(tmp_path / "out.pqr")
    assert [name for name in made.atom_names if "Q" in name] == names.tolist()
    if kind == "mol2":
        count = whole.GetNumAtoms()
        np.testing.assert_allclose(np.sort(made.charges), 0.001 * np.arange(1, count + 1), atol=2e-4)
    else:
        expected = prepare_structure(ligand).structure
        np.testing.assert_allclose(np.sort(made.charges), np.sort(expected.known_charges), atol=2e-3)
