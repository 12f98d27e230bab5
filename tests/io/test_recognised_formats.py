"""Formats of structures are recognised by their content, and warnings of readers are logged."""

from __future__ import annotations

import gzip
import logging
import shutil

import pytest
from messages import naming
from structure_files import MDA

from vmdpotential import io, registry
from vmdpotential.errors import UsageError
from vmdpotential.io.files import recognise
from vmdpotential.io.structures import StructureWriter
from vmdpotential.io.structures.pdb import read_pdb
from vmdpotential.io.structures.pdbwrite import write_pdb

RECOGNISED = [
    ("adk_closed.pdb", "pdb"), ("1hvr.pdb", "pdb"), ("5digitResid.pdb", "pdb"), ("adk_open.pqr", "pqr"),
    ("1A2C.pqr", "pqr"), ("mmcif/1YJP.cif", "mmcif"), ("4x8u.pdbx", "mmcif"), ("adk_oplsaa.gro", "gro"),
    ("two_water_gro.gro", "gro"), ("adk.psf", "psf"), ("SiN_tric_namd.psf", "psf"), ("Amber/ache.prmtop", "prmtop"),
    ("Amber/posfor.top", "prmtop"), ("Amber/test.inpcrd", "amber-coordinates"), ("adk_oplsaa.tpr", "mdanalysis"),
    ("Amber/parmed_ala2_solv.rst7", "amber-coordinates"), ("Amber/ace_tip3p.nc", "amber-coordinates"),
    ("adk_oplsaa.xtc", "frames"), ("adk_oplsaa.trr", "frames"), ("SiN_tric_namd.dcd", "frames"),
    ("gromacs_ala10.top", "gromacs-topology"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), RECOGNISED)
def test_formats_are_recognised_by_content(tmp_path, name, kind):
    shutil.copy(MDA / name, tmp_path / "file with blanks")
    assert recognise.kind_of(tmp_path / "file with blanks") == kind
    assert recognise.kind_of(MDA / name) == kind
    (tmp_path / "packed.gz").write_bytes(gzip.compress((MDA / name).read_bytes()[:200_000]))
    assert recognise.kind_of(tmp_path / "packed.gz") == kind


def test_warnings_are_logged_not_printed(capsys, caplog):
    caplog.set_level(logging.WARNING)
    io.read_structure(MDA / "4E43.pdb")
    assert capsys.readouterr().out == ""
    assert caplog.records[0].name.startswith("vmdpotential.")


def test_a_plugin_reads_and_writes_a_format_of_its_own(tmp_path, monkeypatch):
    for kind, entry in (("structure_reader", read_pdb), ("structure_writer", StructureWriter(write_pdb))):
        registry.available(kind)  # loads the plugins
        monkeypatch.setitem(registry._entries[kind], ".own", entry)
    structure = io.read_structure(MDA / "1hvr.pdb")
    io.write_structure(structure, tmp_path / "a.own")
    assert io.read_structure(tmp_path / "a.own").atom_names.tolist() == structure.atom_names.tolist()
    with naming(UsageError, "cannot be written"):
        io.write_structure(structure, tmp_path / "a.other")
