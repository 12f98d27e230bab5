"""From a deposited structure without most of its hydrogens to a coloured surface, in one command."""

import gzip
from pathlib import Path

import gemmi
import pytest

ENTRY = Path(__file__).resolve().parents[2] / "data" / "1hvr.pdb.gz"


@pytest.fixture(params=["pdb", "cif"])
def entry(request, tmp_path, opened):
    path = tmp_path / f"1hvr.{request.param}"
    content = gzip.decompress(ENTRY.read_bytes())
    if request.param == "pdb":
        path.write_bytes(content)
    else:
        gemmi.read_pdb_string(content).make_mmcif_document().write_file(str(path))
    return opened(path)


def test_one_command_draws_the_surface(session, do, log, entry):
    count = entry.num_atoms
    do("potential map #1 spacing 1")
    text = " ".join(text for _, text in log.entries)
    assert text.count("prepared at pH 7") == 1
    assert "approximate charges for CSO, XK2" in text
    assert entry.num_atoms == count
    surface = next(model for model in session.models.list() if " surface, " in model.name)
    assert "-5 to 5 kT/e" in surface.name
    assert len({tuple(colour) for colour in surface.vertex_colors}) > 100


def test_hydrogens_that_chimerax_adds_are_understood(session, opened, do, log, tmp_path):
    addh = pytest.importorskip("chimerax.addh.cmd")
    from chimerax.atomic import AtomicStructures

    path = tmp_path / "1hvr.pdb"
    path.write_bytes(gzip.decompress(ENTRY.read_bytes()))
    model = opened(path)
    before = model.num_atoms
    addh.cmd_addh(session, AtomicStructures([model]))
    assert model.num_atoms > before + 1000
    do("potential map #1 spacing 2")
    text = " ".join(text for _, text in log.entries)
    assert "added 0 hydrogens" in text or "prepared" not in text
