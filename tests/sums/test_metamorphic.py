"""A few random systems of tests/support/metamorphic.py, and that it sees what is wrong."""

import metamorphic
import numpy as np
import pytest


@pytest.mark.parametrize("kind", metamorphic.CHECKS)
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_random_systems(kind, seed):
    assert metamorphic.run(kind, seed) == ([], "")


@pytest.mark.slow
def test_equal_sites_do_not_depend_on_the_order_of_atoms():
    # two sites whose potentials differ by 5e-7 e/A: the order in the file decided which was taken
    assert metamorphic.run("ions", 77497) == ([], "")


def test_a_wrong_sum_is_seen(monkeypatch, capsys):
    from vmdpotential import potential_at, potential_map

    def shifted(structure, points, **options):  # a potential that depends on where the system is
        return potential_at(structure, points, **options) * (1 + 1e-6 * structure.positions[0, 0])

    def leaking(structure, **options):  # and a map on the order of the atoms
        grid = potential_map(structure, **options)
        grid.values[...] += np.float32(0.1 * structure.positions[0, 2])
        return grid

    monkeypatch.setattr(metamorphic, "potential_at", shifted)
    assert any("translate" in line for line in metamorphic.run("points", 1)[0])
    monkeypatch.setattr(metamorphic, "potential_map", leaking)
    assert any("permute" in line for line in metamorphic.run("maps", 1)[0])
    assert metamorphic.main(["--only", "maps", "--count", "1", "--seed", "1"]) == 1
    assert "--only maps --count 1 --seed 1: map" in capsys.readouterr().out
