"""The map that follows what PyMOL shows, without a window: `potential_live wait` looks, as its timer does."""

import logging

import numpy as np
import pytest

from vmdpotential.plugins.pymol.session import Session
from vmdpotential.units import coulomb_constant, debye_length

CHARGES = (1.0, -1.0, 0.5)


@pytest.fixture
def moving(cmd, do):
    """An object of three charges in three states, followed."""
    for n, charge in enumerate(CHARGES):
        cmd.pseudoatom("ions", name=f"C{n}", resi=n + 1, elem="C", pos=[6.0 * n, 0, 0.3])
        cmd.alter(f"ions and name C{n}", f"partial_charge={charge}")
    start = cmd.get_coords("ions", 1)
    for state in range(1, 4):
        cmd.load_coordset(start + [[2 * state, 2 * state * n, 0] for n in range(3)], "ions", state)
    cmd.frame(1)
    yield do("potential_live ions, padding=6, cut=z=0, isosurface=40, medium=explicit")
    if Session.of(cmd).live is not None:
        do("potential_live off")


def check(cmd, state):
    """Compare the map at some of its points with Coulomb's law for the atoms as they are."""
    values = cmd.get_volume_field("live")
    low = np.array(cmd.get_extent("live")[0])
    nodes = np.random.default_rng(1).integers(0, values.shape, (50, 3))
    positions = cmd.get_coords("ions", state)
    distances = np.linalg.norm((low + nodes)[:, None] - positions, axis=2)
    exact = coulomb_constant("kT/e") * (np.array(CHARGES) / distances.clip(0.01)).sum(1)
    assert np.sqrt(np.mean((values[tuple(nodes.T)] - exact) ** 2)) < 2e-3 * np.sqrt(np.mean(exact**2))


def test_it_follows(cmd, do, moving):
    assert "potential_live off" in moving
    live = Session.of(cmd).live
    check(cmd, 1)
    cmd.isolevel("live_positive", 33)
    cmd.color("green", "live_positive")
    for state in (2, 3):
        cmd.frame(state)
        assert "VTKm" not in do("potential_live wait", "ray 16, 12")  # nor a line for every surface that is contoured
        check(cmd, state)
    assert cmd.isolevel("live_positive", query=1) == pytest.approx(33)
    assert live.live_map.plans > 1  # the third frame left the box that was planned
    before = live.latest.asked
    do("potential_live wait")
    assert live.latest.asked == before  # nothing has moved
    cmd.translate([1, 0.5, 0], "ions and name C1", state=3, camera=0)
    do("potential_live wait")
    check(cmd, 3)
    assert {"live", "live_ramp", "live_positive", "live_negative", "live_cut"} < set(cmd.get_names("objects"))
    assert "ended after" in do("potential_live off")
    assert not live.running
    assert "there is no live map" in do("potential_live off")


def test_what_was_warned_of_is_not_printed_for_every_frame(cmd, do, moving, monkeypatch, capfd):
    monkeypatch.setattr(logging.getLogger("vmdpotential"), "propagate", False)  # to handlers that only tests have
    do("potential_live off")
    cmd.set_symmetry("ions", 1, 1, 1, 90, 90, 90, "P 1", state=0)
    assert "placeholder" in do("potential_live ions, padding=6, medium=explicit")
    cmd.frame(2)
    live = Session.of(cmd).live
    before = live.latest.asked
    capfd.readouterr()
    live.wait()  # as the timer does, which is not a command
    assert live.latest.asked > before
    assert not capfd.readouterr().err


def test_atoms_that_are_elsewhere_in_the_map_are_told_once(cmd, do):
    """Two atoms in contact, of which one is moved by the cell in the second and third state."""
    for n, charge in enumerate((1.0, -0.5)):
        cmd.pseudoatom("pair", name=f"C{n}", elem="C", pos=[3.0 * n, 0.2, 0.3])
        cmd.alter(f"pair and name C{n}", f"partial_charge={charge}")
    cmd.set_symmetry("pair", 30, 31, 32, 90, 90, 90, "P 1")
    for state in (2, 3):
        cmd.load_coordset(np.add(cmd.get_coords("pair", 1), [[0, 0, 0], [30, 0, 0.5 * state]]), "pair", state)
    cmd.frame(1)
    words = "moving 1 atom across the periodic cell"
    assert words not in do("potential_live pair, padding=6, spacing=2", "potential_live wait")
    cmd.frame(2)
    assert words in do("potential_live wait")
    low, high = np.array(cmd.get_extent("live"))
    assert high[0] - low[0] < 30  # around both, which are in contact
    cmd.frame(3)
    assert words not in do("potential_live wait")
    do("potential_live off")


def test_default_follows_in_water(cmd, do):
    """Born's ion, with a radius of mbondi2, in two states; then its state of charge changes, as by another pH."""
    cmd.pseudoatom("ion", name="C", elem="C", pos=[0.1, 0.2, 0.3])
    cmd.alter("ion", "partial_charge=1")
    cmd.load_coordset(np.add(cmd.get_coords("ion", 1), [3.0, 0, 0]), "ion", 2)
    cmd.frame(1)
    do("potential_live ion, padding=8")
    for state in (1, 2):
        cmd.frame(state)
        do("potential_live wait")
        check_born(cmd, state, 1.0)
    cmd.alter("ion", "partial_charge=-2")
    do("potential_live wait")
    check_born(cmd, 2, -2.0)
    assert "water" in Session.of(cmd).live.live_map.first.provenance.medium
    do("potential_live off")


def check_born(cmd, state, charge):
    """Compare the map with Born's ion in 0.15 M of salt, out to where the first ions' centres are."""
    values = cmd.get_volume_field("live")
    nodes = np.indices(values.shape).reshape(3, -1).T
    r = np.linalg.norm(np.array(cmd.get_extent("live")[0]) + nodes - cmd.get_coords("ion", state), axis=1)
    chosen = (r > 2.7) & (r < 3.7)
    kappa, start = 1 / debye_length(0.15, 298.15, 78.5), 1.7 + 2.0
    exact = charge * coulomb_constant("kT/e") / 78.5 * (1 / r[chosen] - kappa / (1 + kappa * start))
    assert np.sqrt(np.mean((values.ravel()[chosen] - exact) ** 2)) < 0.1 * np.sqrt(np.mean(exact**2))


def test_another_selection(cmd, do, moving):
    cmd.remove("name C2")
    do("potential_live wait")
    live = Session.of(cmd).live
    assert live.live_map.atoms == 2
    cmd.delete("live")
    cmd.frame(2)
    assert "the map live was deleted or replaced" in do("potential_live wait")
    assert not live.running


def test_a_surface_is_contoured_anew(cmd, do, moving, tmp_path):
    """What is drawn differs after a frame, and is the same as what is made from nothing."""
    def picture(name):
        cmd.png(str(tmp_path / name), 120, 90, ray=1)
        from PIL import Image

        with Image.open(tmp_path / name) as image:
            return np.array(image.convert("RGB"), np.int16)

    cmd.hide("everything", "ions")
    cmd.disable("live_ramp")
    cmd.set("transparency", 0)
    first = picture("first.png")
    cmd.frame(2)
    do("potential_live wait")
    second = picture("second.png")
    assert abs(first - second).max() > 50
    level = cmd.isolevel("live_positive", query=1)
    view = cmd.get_view()
    cmd.delete("live_positive")
    cmd.delete("live_negative")
    for name, sign, colour in (("more", 1, "0x2f6db5"), ("less", -1, "0xc8372d")):
        cmd.isosurface(name, "live", sign * level)
        cmd.color(colour, name)
        cmd.set("transparency", 0.4, name)
    cmd.set_view(view)
    assert np.mean(abs(second - picture("again.png"))) < 2
    for name in ("more", "less"):
        cmd.disable(name)
    third = picture("third.png")
    cmd.frame(1)
    do("potential_live wait")
    assert abs(third - picture("fourth.png")).max() > 50  # the cut alone
