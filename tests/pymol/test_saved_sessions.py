"""Sessions of PyMOL that are saved and opened again, also in a PyMOL of its own that did not make them."""

import numpy as np
import pymol2
import pytest
from numpy.testing import assert_allclose

from vmdpotential import registry
from vmdpotential.errors import BackendError, UsageError
from vmdpotential.plugins.pymol import commands
from vmdpotential.plugins.pymol.grids import read_grid
from vmdpotential.plugins.pymol.session import Session
from vmdpotential.units import coulomb_constant


@pytest.fixture
def ions(cmd):
    for n, charge in enumerate((1, -1)):
        cmd.pseudoatom("ions", name=f"C{n}", resi=n + 1, elem="C", pos=[5.0 * n, 0, 0.3])
        cmd.alter(f"ions and name C{n}", f"partial_charge={charge}")
    return cmd


@pytest.fixture
def reopened(ions, tmp_path):
    """Save the session, and open it in another PyMOL with the plugin."""
    other = pymol2.PyMOL()
    other.start()
    commands.register(other.cmd)

    def through_a_file():
        path = str(tmp_path / "saved.pse")
        ions.save(path)
        other.cmd.load(path)
        return other.cmd

    yield through_a_file
    if Session.of(other.cmd).live is not None:
        Session.of(other.cmd).end_live()
    other.stop()


def test_maps_keep_unit_and_medium_ramps_and_legends(ions, do, reopened):
    do("potential_map ions, m, spacing=0.5, medium=vacuum, unit=V, range=-3,3, isosurface=1")
    before = {name: ions.get_type(name) for name in ions.get_names()}
    header = dict(Session.of(ions).header("m"))
    label = []
    ions.iterate("m_legend", "found.append(label)", space={"found": label})
    other = reopened()
    assert {name: other.get_type(name) for name in other.get_names()} == before
    assert Session.of(other).header("m") == header
    assert read_grid(other, "m", header).unit == "V"
    other.iterate("m_legend", "found.append(label)", space={"found": label})
    assert label[0] == label[1]
    assert "V, vacuum" in " ".join(label[1].split())
    ramps = [next(entry for entry in cmd.get_session("m_ramp", partial=1)["names"] if entry and entry[0] == "m_ramp")
             for cmd in (ions, other)]
    assert str(ramps[0][5][1:]) == str(ramps[1][5][1:])  # values, colours, and the map that it refers to
    assert other.get_setting_text("surface_color", "m_surface") in ("m_ramp", str(other.get_color_index("m_ramp")))
    # the next run takes the place of this one, whose objects are known
    commands.adapt(next(c for c in commands.viewer_commands() if c.name == "map"))(
        "ions", "m", spacing="1", medium="vacuum", _self=other)
    assert "m_positive" not in other.get_names()


def test_a_group_is_one_result(ions, do):
    do("potential_map ions, m, spacing=1, medium=vacuum")
    assert set(ions.get_object_list("m_group") or []) <= {"m_surface", "m_legend"}
    part = ions.get_session("m_group", partial=1)
    saved = {entry[0] for entry in part["names"] if entry}
    ions.delete("m_group")
    assert ions.get_names() == ["ions"]
    ions.set_session(part, partial=1)
    assert set(ions.get_names()) == {"ions", *saved}


def test_a_live_map_continues(ions, do, reopened):
    do("potential_live ions, padding=6, medium=explicit, isosurface=40")
    other = reopened()
    live = Session.of(other).live
    assert live is not None
    other.translate([0.5, 1, 0], "ions and name C1", camera=0)
    live.wait()
    assert live.running
    values, low = other.get_volume_field("live"), np.array(other.get_extent("live")[0])
    nodes = np.random.default_rng(3).integers(0, values.shape, (50, 3))
    distances = np.linalg.norm((low + nodes)[:, None] - other.get_coords("ions", 1), axis=2)
    exact = coulomb_constant("kT/e") * (np.array([1, -1]) / distances.clip(0.01)).sum(1)
    assert_allclose(values[tuple(nodes.T)], exact, atol=3e-3 * np.abs(exact).max())


@pytest.mark.parametrize("failure", [UsageError("command", "is unknown"), BackendError("the command cannot be loaded")])
def test_a_session_opens_though_its_live_map_has_no_command(ions, do, reopened, monkeypatch, capfd, failure):
    do("potential_live ions, padding=6, medium=explicit")

    def refuse(*words):
        raise failure

    monkeypatch.setattr(registry, "get", refuse)
    other = reopened()
    out, error = capfd.readouterr()
    assert str(failure) in out + error
    assert "Traceback" not in out + error
    assert Session.of(other).live is None
    assert other.count_atoms("ions") == 2


def test_a_file_without_these_data_ends_the_live_map(ions, do, reopened):
    other = reopened()
    assert Session.of(other).live is None
    assert Session.of(other).records == {}
    do("potential_live ions, padding=6, medium=explicit")
    ions.reinitialize("store_defaults")
    before = Session.of(ions).live
    assert before.running
    ions.set_session(other.get_session())
    assert not before.running
    assert Session.of(ions).live is None
