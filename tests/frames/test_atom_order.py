"""Models whose atoms are in another order are refused, because frames are taken by the order of atoms."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from messages import naming

from vmdpotential.commands.average import command as average
from vmdpotential.commands.map import command as map_
from vmdpotential.errors import InputError
from vmdpotential.io import read_structure
from vmdpotential.io.structures.growrite import write_gro
from vmdpotential.io.trajectories.atom_order import check_order

DATA = Path(__file__).parents[1] / "data"
OPTIONS = {"method": "direct", "spacing": 4.0, "padding": 2.0}


def test_models_of_another_order_are_refused(tmp_path):
    with naming(InputError, "model 1 "):
        average(structure=DATA / "models.pdb", trajectory=DATA / "models_other_order.pdb", fit="none",
                output=tmp_path / "x.dx", **OPTIONS)
    with naming(InputError, "model 1 "):
        map_(structure=DATA / "models_other_order.pdb", frame=1, output=tmp_path / "x.dx", **OPTIONS)


def models(path, *structures):
    """Write models of a PDB or an mmCIF file."""
    gemmi = pytest.importorskip("gemmi")
    made = gemmi.Structure()
    for number, structure in enumerate(structures, 1):
        model = structure.to_gemmi()[0]
        model.num = number
        made.add_model(model)
    if path.suffix == ".pdb":
        made.write_pdb(str(path))
    else:
        made.make_mmcif_document().write_file(str(path))


@pytest.mark.parametrize("suffix", [".pdb", ".cif", ".gro"])
def test_a_file_in_another_order_than_the_structure_is_refused(tmp_path, suffix):
    structure = read_structure(DATA / "models.pdb")
    structure = structure.take(structure.residue_names != "HOH")
    order = np.arange(len(structure))
    order[[1, 2]] = 2, 1
    swapped = structure.take(order)
    path = tmp_path / f"x{suffix}"
    for right, frames in ((True, (structure, structure)), (False, (swapped, swapped)), (False, (structure, swapped))):
        if suffix == ".gro":
            parts = [tmp_path / f"{n}.gro" for n in range(2)]
            for part, frame in zip(parts, frames, strict=True):
                write_gro(frame, part)
            path.write_text("".join(part.read_text() for part in parts))
        else:
            models(path, *frames)
        if right:
            check_order(path, structure)
        else:
            with pytest.raises(InputError) as caught:
                check_order(path, structure)
            assert str(path) in str(caught.value)


def test_other_names_of_the_same_atoms_are_no_other_order(tmp_path):
    structure = read_structure(DATA / "models.pdb")
    names = structure.atom_names.astype("<U4")
    names[structure.atom_names == "H"] = "HN"
    check_order(DATA / "models.pdb", replace(structure, atom_names=names))
    check_order(DATA / "models.pdb", replace(structure, residue_ids=structure.residue_ids + 10))
