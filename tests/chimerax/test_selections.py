"""Selections inside a command are atom specifications; words of the program are what ChimeraX does not know."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from vmdpotential.parameters import Command

PEPTIDE = """\
CRYST1   40.000   40.000   40.000  90.00  90.00  90.00 P 1           1
HETATM    1 NA   NA  A   1       1.000   2.000   3.000  1.00  0.00          NA
HETATM    2 CL   CL  A   2       5.000   2.000   3.000  1.00  0.00          CL
HETATM    3 NA   NA  A   5       9.000   2.000   3.000  1.00  0.00          NA
HETATM    4 O    HOH W   3      20.000  20.000  20.000  1.00  0.00           O
HETATM    5 H1   HOH W   3      20.957  20.000  20.000  1.00  0.00           H
HETATM    6 H2   HOH W   3      19.760  20.927  20.000  1.00  0.00           H
END
"""


@pytest.fixture
def salt(opened, tmp_path):
    (tmp_path / "salt.pdb").write_text(PEPTIDE)
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
        with pytest.raises(UserError, match="enough"):
            do(f"potential {line}")
    rows = [getattr(text, "rows", None) for values in given for text in
            (values["between"] if "between" in values else [values["atoms"]])]
    for found, expected in zip(rows, ([3, 4, 5], None, [0, 1], [3, 4, 5], None, None, None, [0, 1, 2]), strict=True):
        assert_array_equal(np.array(found), np.array(expected))


def test_what_is_none_is_one_line(salt, do):
    from chimerax.core.errors import UserError

    for text, said in (("nonsense", "is no selection in the viewer's language"), ("/Z", "selects no atoms")):
        with pytest.raises(UserError, match=said):
            do(f"potential map #1 atoms {text}")
