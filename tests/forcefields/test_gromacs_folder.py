"""Topologies of GROMACS: what they include is found where GROMACS finds it."""

from __future__ import annotations

from pathlib import Path

import pytest
from numpy.testing import assert_allclose

from vmdpotential.errors import InputError
from vmdpotential.io import read_topology
from vmdpotential.molecule.elements import fill_elements
from vmdpotential.plugins.forcefields import gromacs_folder

INSTALLED = Path("/usr/share/gromacs/top")

WATER = """[ moleculetype ]
SOL 2
[ atoms ]
1 OW 1 SOL OW  1 OXYGEN  15.9994 ; the charge is a macro
2 HW 1 SOL HW1 1 HYDROGEN 1.008
3 HW 1 SOL HW2 1 HYDROGEN 1.008
#ifndef FLEXIBLE
[ settles ]
1 1 0.1 0.16
#else
[ bonds ]
1 2 1 \\
  0.1 345000
1 3 1 0.1 345000
#endif
"""
FIELD = """#define OXYGEN -0.8
#define HALF 0.4
#define HYDROGEN HALF
[ defaults ]
1 2 yes 0.5 0.5
#include "atoms.itp"
"""
TOP = """; a system
#include "mine.ff/forcefield.itp"
#include "mine.ff/water.itp"
#ifdef POSRES
#include "absent.itp"
#endif
[ system ]
waters
[ molecules ]
SOL 2
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "library" / "mine.ff"
    folder.mkdir(parents=True)
    (folder / "forcefield.itp").write_text(FIELD)
    (folder / "water.itp").write_text(WATER)
    (folder / "atoms.itp").write_text("[ atomtypes ]\nOW 8 16 0 A 0.3 0.6\nHW 1 1 0 A 0 0\n")  # next to what names it
    monkeypatch.setenv("GMXLIB", f"{tmp_path / 'absent'}:{folder.parent}")
    return folder


def test_includes_are_found_by_gmxlib_and_beside_the_file(library: Path, tmp_path: Path,
                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "system.top"
    path.write_text(TOP)
    result = read_topology(path)
    assert result.atom_names.tolist() == ["OW", "HW1", "HW2"] * 2
    assert_allclose(result.charges, [-0.8, 0.4, 0.4] * 2, rtol=1e-7)
    assert gromacs_folder.folders()[0] == library.parent

    path.write_text(f"#define FLEXIBLE\n{TOP}")
    assert len(read_topology(path).topology.bonds) == 4
    (tmp_path / "mine.ff").mkdir()  # next to the file comes first
    (tmp_path / "mine.ff" / "water.itp").write_text(WATER.replace("HW1", "HX1"))
    assert read_topology(path).atom_names[1] == "HX1"

    monkeypatch.delenv("GMXLIB")
    monkeypatch.setenv("GMXDATA", str(tmp_path))
    library.parent.rename(tmp_path / "top")
    assert read_topology(path).atom_names[1] == "HX1"


def test_what_is_wrong_with_includes_is_said_in_one_line(library: Path, tmp_path: Path) -> None:
    path = tmp_path / "system.top"
    for text, said in (
        (TOP.replace("mine.ff/water", "nowhere"), "line 3: includes nowhere.itp, which is not in its folder"),
        ('#include "system.top"\n', "in a circle"),
        (TOP.replace("#endif", ""), "no #endif"),
        ("#else\n" + TOP, "line 1: #else without #ifdef"),
        ("#define A B B B\n#define B A A A\n[ A ]\n", "line 3: has more than"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=said) as caught:
            read_topology(path)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.skipif(not INSTALLED.is_dir(), reason=f"no {INSTALLED} (GROMACS' force fields)")
def test_force_field_of_an_installed_gromacs(tmp_path: Path) -> None:
    path = tmp_path / "system.top"
    path.write_text('#include "amber99sb-ildn.ff/forcefield.itp"\n#include "amber99sb-ildn.ff/tip3p.itp"\n'
                    '#include "amber99sb-ildn.ff/ions.itp"\n[ system ]\nsalt\n[ molecules ]\nSOL 2\nNA 1\nCL 1\n')
    result = fill_elements(read_topology(path))
    assert result.elements[-2:].tolist() == ["Na", "Cl"]
    assert_allclose(result.charges, [-0.834, 0.417, 0.417] * 2 + [1, -1], rtol=1e-7)
    assert result.topology.types[-2:].tolist() == ["Na", "Cl"]
