"""Selections inside a command are atom specifications; words of the program are what ChimeraX does not know."""

import numpy as np
import pytest
from messages import naming
from numpy.testing import assert_allclose, assert_array_equal
from salt import pdb

from vmdpotential.parameters import Command


@pytest.fixture
def salt(opened, tmp_path):
    (tmp_path / "salt.pdb").write_text(pdb(("NA", 1), ("CL", 2), ("NA", 5)))
    return opened(tmp_path / "salt.pdb")


def test_a_map_of_some_atoms_is_that_of_these_alone(salt, do):
    part = do("potential map #1 atoms /A:1,5 spacing 2 boundary open unit V")
    alone = do("potential map /A:1,5 spacing 2 boundary open unit V name alone")
    assert_allclose(part.full_matrix(), alone.full_matrix(), rtol=1e-6)


def test_how_a_selection_is_told_apart(salt, do, log, monkeypatch):
    from chimerax.core.errors import UserError

    given = []

    def run(self, **values):
        given.append(values)
        raise UserError("enough")

    monkeypatch.setattr(Command, "__call__", run)
    for line in ("rdf #1 between :HOH,solute", "rdf #1 between /A:1-2,/W", "map #1 atoms solute",
                 "map #1 atoms ions", "map #1 atoms //A/2", "map #1 atoms /A@<10"):
        with naming(UserError, "enough"):
            do(f"potential {line}")
    rows = [getattr(text, "rows", None) for values in given for text in
            (values["between"] if "between" in values else [values["atoms"]])]
    for actual, expected in zip(rows, ([3, 4, 5], None, [0, 1], [3, 4, 5], None, None, None, [0, 1, 2]), strict=True):
        assert_array_equal(np.array(actual), np.array(expected))


def test_what_is_none_is_one_line(salt, do):
    from chimerax.core.errors import UserError

    for text, said in (("nonsense", "neither a selection in the viewer's language"), ("/Z", "selects no atoms")):
        with pytest.raises(UserError, match=said):
            do(f"potential map #1 atoms {text}")


def test_force_fields_are_files_or_names_of_those_that_come_with_openmm(salt, do, monkeypatch, tmp_path):
    from chimerax.core.errors import UserError

    given = []

    def run(self, **values):
        given.append(values["parameters"])
        raise UserError("enough")

    monkeypatch.setattr(Command, "__call__", run)
    own = tmp_path / "own.xml"
    own.touch()
    for text in (f"amber14-all.xml,{own}", "amber14/tip3p.xml"):
        with naming(UserError, "enough"):
            do(f"potential energy #1 between /A,/W parameters {text}")
    assert given == [["amber14-all.xml", str(own)], ["amber14/tip3p.xml"]]
