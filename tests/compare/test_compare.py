"""Comparison of maps against scipy and closed forms."""

import json
from dataclasses import replace

import numpy as np
import pytest
from messages import naming
from scipy.stats import pearsonr

from vmdpotential import errors
from vmdpotential.frontend import cli
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.io.maps import read_map, write_map
from vmdpotential.plugins.compare.similarity import map_similarity
from vmdpotential.units import coulomb_constant

LATTICE = Lattice(np.array([-3.0, 0, 1]), np.array([0.5, 0.6, 0.7]), (12, 11, 10))


def some_map(seed=1, lattice=LATTICE):
    return Grid(lattice, np.random.default_rng(seed).normal(size=lattice.shape), "kT/e", 300.0)


def ramp(lattice, unit="kT/e"):
    """Return a map that a trilinear interpolation keeps."""
    return Grid(lattice, (lattice.points() @ [1.0, -2.0, 0.5]).reshape(lattice.shape), unit, 300.0)


def test_indices_equal_their_definitions():
    a, b = some_map(1), some_map(2)
    b = b.with_values(0.7 * a.values + b.values + 0.2)
    result = map_similarity(a, a - b)
    x, y = a.values.ravel().astype(float), b.values.ravel().astype(float)
    assert result.points == x.size
    assert result.correlation == pytest.approx(pearsonr(x, y).statistic, rel=1e-5)
    assert result.hodgkin == pytest.approx(2 * (x * y).sum() / (x * x + y * y).sum(), rel=1e-5)
    assert result.slope == pytest.approx(np.linalg.lstsq(x[:, None], y, rcond=None)[0][0], rel=1e-5)
    assert result.rms == pytest.approx(np.sqrt(((x - y) ** 2).mean()), rel=1e-5)
    assert (result.mean, result.largest) == pytest.approx(((x - y).mean(), np.abs(x - y).max()), rel=1e-4)
    same, opposite = (map_similarity(a, a - a.with_values(s * a.values)) for s in (1, -1))
    assert (same.correlation, same.hodgkin, same.rms) == pytest.approx((1, 1, 0))
    assert (opposite.correlation, opposite.hodgkin) == pytest.approx((-1, -1))


def test_maps_of_other_points_are_interpolated_and_what_lies_beyond_is_left_out():
    other = Lattice(LATTICE.origin + np.array([1.1, 0.1, 0.1]), np.array([0.41, 0.43, 0.37]), (40, 40, 40))
    result = ramp(LATTICE) - ramp(other)
    inside = (LATTICE.points() >= other.origin - 1e-9).all(1)
    np.testing.assert_allclose(result.values.ravel()[inside], 0, atol=1e-5)
    assert np.isnan(result.values.ravel()[~inside]).all()
    assert map_similarity(ramp(LATTICE), result).points == inside.sum()
    with pytest.raises(errors.InputError):
        _ = ramp(LATTICE) - ramp(Lattice(np.full(3, 90.0), np.ones(3), (4, 4, 4)))


def test_the_unit_of_a_file_must_not_contradict_the_unit_that_it_states(tmp_path, capsys):
    stated, silent = tmp_path / "stated.npz", tmp_path / "silent.npz"
    write_map(some_map(1), stated)
    write_map(replace(some_map(2), unit="", temperature=None), silent)
    for maps, unit, code in (((stated, stated), "kT/e", 0), ((stated, stated), "V", 2), ((silent, stated), "V", 0),
                             ((silent, stated), "kT/e", 0)):
        assert cli.main(["compare", *map(str, maps), "--unit-of-file", unit]) == code
        assert (f"--unit-of-file V: {stated} states its own unit, kT/e" in capsys.readouterr().err) == (code == 2)


def test_units_are_converted_or_refused():
    a = some_map()
    volts = replace(a, values=a.values * coulomb_constant("V") / coulomb_constant("kT/e", 300.0), unit="V",
                    temperature=None)
    assert np.abs((a - volts).values).max() < 1e-5 * np.abs(a.values).max()
    with naming(errors.InputError, "units"):
        _ = a - replace(a, unit="e/A^3")
    with naming(errors.InputError, "temperature"):
        _ = a - replace(a, temperature=None)


def test_the_command(tmp_path, capsys):
    write_map(some_map(1), tmp_path / "a.npz")
    write_map(some_map(2), tmp_path / "b.npz")
    call = ["compare", str(tmp_path / "a.npz"), str(tmp_path / "b.npz"), "--json"]
    assert cli.main([*call, "-o", str(tmp_path / "d.npz"), "--figure", str(tmp_path / "f.svg")]) == 0
    said = json.loads(capsys.readouterr().out)
    written = read_map(tmp_path / "d.npz")
    np.testing.assert_allclose(written.values, some_map(1).values - some_map(2).values, atol=1e-6)
    assert "difference" in written.provenance.quantity
    assert said["rms"] == pytest.approx(np.sqrt((written.values**2).mean()), rel=1e-5)
    assert said["same_lattice"]
    assert "<svg" in (tmp_path / "f.svg").read_text()
    atom = f"ATOM      1  C   UNK A   1    {-1:8.3f}{3:8.3f}{4:8.3f}  1.00  0.00           C"
    (tmp_path / "one.pdb").write_text(f"{atom}\nEND\n")
    assert cli.main([*call, "--structure", str(tmp_path / "one.pdb"), "--away", "1.5", "--within", "2.5"]) == 0
    distance = np.linalg.norm(LATTICE.points() - [-1, 3, 4], axis=1)
    assert json.loads(capsys.readouterr().out)["points"] == ((distance >= 1.5) & (distance <= 2.5)).sum()
    assert cli.main([*call, "--away", "2"]) == 2
