"""Ions of several atoms in a .top: the molecule type that it defines, or no .top; grompp reads what is written."""

from pathlib import Path

import MDAnalysis
import numpy as np
import pytest
from messages import naming
from test_ions_templates import SULFATE, write_pqr
from test_write_gromacs import grompp, system  # noqa: F401  (fixtures)

from vmdpotential.errors import InputError
from vmdpotential.plugins.ions.command import command

pytestmark = pytest.mark.filterwarnings("ignore")  # the other programs warn

ITP = "[ moleculetype ]\nSulfate 3\n[ atoms ]\n" + "".join(
    f"{n} OW 1 SO4 {name} {n} {charge} {mass}\n" for n, (name, charge, mass) in
    enumerate([("S", 2.0, 32.06), *((f"O{k}", -1.0, 16.0) for k in range(1, 5))], 1)) + "[ bonds ]\n" + "".join(
        f"1 {n} 1 0.149 500000\n" for n in range(2, 6)) + "[ angles ]\n" + "".join(
            f"{i} 1 {j} 1 109.5 900\n" for i in range(2, 6) for j in range(i + 1, 6))


def options(folder: Path) -> dict[str, object]:
    return {"structure": folder / "system.gro", "topology": folder / "system.top", "ions": "SO4=2,SOD=2",
            "ion_template": f"SO4={write_pqr(folder / 'so4.pqr', SULFATE)}", "from_solute": 1, "between": 1,
            "site": "random", "seed": 2}


def define(folder: Path, text: str) -> None:
    (folder / "so4.itp").write_text(text)
    top = folder / "system.top"
    top.write_text(top.read_text(encoding="utf-8").replace(
        '#include "solute.itp"', '#include "so4.itp"\n#include "solute.itp"'), encoding="utf-8")


def test_grompp_reads_what_is_written(system, grompp):  # noqa: F811
    run, _ = grompp
    define(system, ITP)
    with (system / "em.mdp").open("a") as stream:  # for a small box
        stream.write("rlist = 0.6\nrcoulomb = 0.6\nrvdw = 0.6\nverlet-buffer-tolerance = -1\n")
    placed = command(output=[system / "out.gro", system / "out.top"], **options(system)).objects["structure"]
    assert "Sulfate             2" in (system / "out.top").read_text(encoding="utf-8").splitlines()
    run("grompp", "-f", "em.mdp", "-c", "out.gro", "-p", "out.top", "-o", "out.tpr", "-maxwarn", "2")
    theirs = MDAnalysis.Universe(str(system / "out.tpr")).atoms
    assert theirs.names.tolist() == placed.atom_names.tolist()
    ions = placed.residue_names == "SO4"
    assert ions.sum() == 10
    np.testing.assert_allclose(theirs.charges[ions], placed.charges[ions], atol=1e-3)
    assert len(theirs.bonds) >= 8


def test_what_the_top_does_not_define_is_refused_before_any_work(system):  # noqa: F811
    output = [system / "out.gro", system / "out.top"]
    with naming(InputError, "SO4 ", " S, O1, ") as caught:
        command(output=output, **options(system))
    assert "\n" not in str(caught.value)
    define(system, ITP.replace("O2 3 -1.0", "O2 3 -0.9"))
    with naming(InputError, "SO4 O2 is -0.9 e ", " Sulfate, ", " -1 e"):
        command(output=output, **options(system))
    assert not output[1].exists()
