"""Means over frames and their errors, on series whose correlation time is known."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import slow, water

from vmdpotential import registry
from vmdpotential.frames import errors_of_means, statistics
from vmdpotential.frames.errors_of_means import spanned_correlation_times
from vmdpotential.frames.statistics import BlockMean, FrameMean, Moments
from vmdpotential.io.trajectories.frames import LoadedFrames
from vmdpotential.molecule.cell import Cell

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from coverage_of_errors import KINDS, USES, coverage


def autoregressive(frames, columns, time, seed):
    """Return series (frames, columns) of variance 1 whose correlation falls as exp(-t / time), about means of 5."""
    rng = np.random.default_rng(seed)
    keep = np.exp(-1 / time) if time else 0.0
    noise = rng.normal(size=(frames, columns)) * np.sqrt(1 - keep**2)
    noise[0] /= np.sqrt(1 - keep**2)
    for n in range(1, frames):
        noise[n] += keep * noise[n - 1]
    return noise + 5.0


def true_error(frames, time):
    lags = np.arange(1, frames)
    return np.sqrt((1 + 2 * np.sum((1 - lags / frames) * np.exp(-lags / time))) / frames) if time else frames**-0.5


def test_moments_are_numpys_however_they_are_merged():
    values = np.random.default_rng(0).normal(1e6, 1, (50, 3, 4))
    whole, part = Moments.none((3, 4)), Moments.none((3, 4))
    for first, last in ((0, 0), (0, 7), (7, 8), (8, 50)):
        whole.merge(Moments.of(values[first:last]))
    for value in values:
        part.add(value)
    for made in (whole, part):
        assert made.count == 50
        np.testing.assert_allclose(made.mean, values.mean(0), rtol=1e-14)
        np.testing.assert_allclose(made.variance(), values.var(0), rtol=1e-9)
    assert np.isnan(Moments.none(()).variance())


@pytest.mark.parametrize("time", [0, 2, 10, 40])
def test_inefficiency_is_that_of_the_correlation_time(time):
    keep = np.exp(-1 / time) if time else 0.0
    results = [errors_of_means.inefficiency(autoregressive(2000, 50, time, seed)) for seed in range(5)]
    assert np.mean(results) == pytest.approx((1 + keep) / (1 - keep), rel=0.06)
    single = [errors_of_means.correlation_time(autoregressive(4000, 1, time, seed)[:, 0]) for seed in range(20)]
    assert np.mean(single) == pytest.approx(keep / (1 - keep), rel=0.15, abs=0.03)


@pytest.mark.parametrize("time", slow([0, 3, 10, 20], [3, 20]))
def test_standard_error_of_a_map(time):
    """Of 400 points in 80 blocks, for several seeds: the true one, wider because the correlation time is uncertain."""
    frames, size, columns = 2000, 25, 400
    true, means = true_error(frames, time), []
    for seed in range(6):
        values = autoregressive(frames, columns, time, seed)
        blocks = BlockMean(spread=False)
        for start in range(0, frames, size):
            part = values[start : start + size]
            blocks.add(len(part), part.mean(0))
        np.testing.assert_allclose(blocks.mean, values.mean(0))
        assert 1 < np.sqrt(np.mean(blocks.uncertainty().error ** 2)) / true < 1.4
        assert 0.9 < np.sqrt(np.mean(errors_of_means.uncertainty_of_mean(values).error ** 2)) / true < 1.4
        means.append(values.mean(0) - 5.0)
    assert np.sqrt(np.mean(np.square(means))) == pytest.approx(true, rel=0.1)


def test_what_has_no_error():
    blocks = BlockMean()
    blocks.add(3, [1.0, 2.0], [0.0, 3.0])
    assert blocks.uncertainty() is None
    np.testing.assert_allclose(blocks.deviation(), [0, 1])
    assert errors_of_means.uncertainty_of_mean([1.0]) is None
    assert FrameMean().uncertainty() is None
    constant = np.full((50, 2), 3.0)
    assert errors_of_means.inefficiency(constant) == pytest.approx(1)
    assert (errors_of_means.uncertainty_of_mean(constant).error == 0).all()
    walk = np.arange(100.0)
    assert errors_of_means.uncertainty_of_mean(walk) is None
    both = errors_of_means.uncertainties_of_means(np.stack([walk, np.sin(37 * walk**2)], 1))
    assert np.isnan(both.error).tolist() == [True, False]


#: Every kind in every use, and every other length in each kind and in one of the uses.
INTERVALS = [(kind, use, 200) for kind in KINDS for use in sorted(USES)] + [
    (kind, sorted(USES)[(row + column) % len(USES)], frames)
    for row, frames in enumerate((20, 50, 1000)) for column, kind in enumerate(KINDS)]


@pytest.mark.nightly
@pytest.mark.parametrize(("kind", "use", "frames"), slow(INTERVALS, [each for each in INTERVALS if each[2] > 20]))
def test_a_stated_interval_holds_the_mean(kind, use, frames):
    """Of 300 series: 90 % where they span five correlation times; few of shorter ones have a wrong interval."""
    for spans in (np.inf, 50, 20, 12, 5, 1):
        stated, near, held = coverage(use, frames, spans, 300, kind)
        assert stated - held <= 0.1
        if spans >= 12:
            assert near / stated >= 0.55
        if spans >= 5:
            assert held / stated >= 0.88  # 90 %, less the deviation of so few series
        if spans == 20:
            assert stated >= 0.7 if kind == "drift" else stated >= 0.78
        if spans >= 50:
            assert stated >= 0.95


@pytest.mark.parametrize(("spans", "least", "most"), [(200, 0.65, 0.8), (50, 0.68, 0.85), (10, 0.55, 0.75),
                                                      (5, 0.35, 0.6)])
def test_an_error_is_that_of_two_thirds(spans, least, most):
    """Of 1,000 series that span so many correlation times; fewer than 30 % of those that span 5 have an error."""
    stated, near, held = coverage("field", 200, spans, 1000)
    assert least < near / stated < most
    assert held / stated > 0.9
    assert (stated > 0.97) if spans >= 50 else stated < (0.6 if spans == 10 else 0.3)


@pytest.mark.parametrize("half", [slice(0, 49), slice(49, 98)])
def test_error_of_half_a_trajectory(half):
    """Adenylate kinase closes: its size drifts and has no error; that of bonds has one."""
    mda = pytest.importorskip("MDAnalysis", reason="MDAnalysis is not installed")
    files = pytest.importorskip("MDAnalysisTests.datafiles", reason="MDAnalysisTests is not installed")
    universe = mda.Universe(files.PSF, files.DCD)
    carbons, oxygens = (universe.select_atoms(f"protein and not resid 214 and name {name}") for name in "CO")
    sizes, bonds = [], []
    for _ in universe.trajectory[half]:
        sizes.append(universe.atoms.radius_of_gyration())
        bonds.append(np.linalg.norm(carbons.positions - oxygens.positions, axis=1).mean())
    assert errors_of_means.uncertainty_of_mean(sizes) is None
    assert errors_of_means.uncertainty_of_mean(bonds) is not None


def test_large_arrays_are_merged_in_parts():
    size = 9 * statistics.PART + 5
    values = np.random.default_rng(0).normal(size=(4, size))
    blocks = BlockMean(np.arange(20))
    for part in (values[:3], values[3:]):
        blocks.add(len(part), part.mean(0), Moments.of(part).m2)
    np.testing.assert_allclose(blocks.mean, values.mean(0), atol=1e-12)
    np.testing.assert_allclose(blocks.deviation(), values.std(0), rtol=1e-9)


@pytest.mark.parametrize(("frames", "time"), [(24, 2), (30, 3)])
def test_a_short_series_is_known_to_be_short(frames, time):
    result = np.mean([errors_of_means.inefficiency(autoregressive(frames, 4000, time, seed)) for seed in range(3)])
    assert result == pytest.approx(frames * true_error(frames, time) ** 2, rel=0.1)


def test_the_error_of_one_curve_does_not_depend_on_others():
    series = np.stack([autoregressive(200, 8, 0, 0), autoregressive(200, 8, 5, 1)], 1)
    alone = errors_of_means.uncertainty_of_mean(series[:, 0]).error
    np.testing.assert_allclose(alone, errors_of_means.uncertainty_of_mean(series[:, 0].copy()).error)
    # a series that is slower than those that it is looked at with has its own correlation time
    mixed = np.concatenate([autoregressive(1000, 30, 0, 2), autoregressive(1000, 1, 10, 3)], axis=1)
    error = errors_of_means.uncertainty_of_mean(mixed).error
    assert error[-1] > 2.5 * np.median(error)


def test_a_series_without_an_error_states_its_frames_and_correlation_times():
    """Times of 20 frames: 90 frames span 4.5 of them, which so short series show only roughly."""
    series = autoregressive(90, 400, 20.0, 3)
    assert 2.5 < spanned_correlation_times(series) < 9
    frames, blocks = FrameMean(), BlockMean()
    for row in series:
        frames.add(row)
        blocks.add(1, row, np.zeros(400))
    for mean in (frames, blocks):
        numbers = re.findall(r"[\d.]+", mean.too_short())
        assert (int(numbers[0]), float(numbers[1])) == (90, pytest.approx(spanned_correlation_times(series), rel=0.05))
        assert int(numbers[4]) == pytest.approx(10 * 90 / spanned_correlation_times(series),
                                                rel=0.01)  # frames that would do
    assert spanned_correlation_times(series[:3]) is None


@pytest.mark.parametrize("time", [0, 10])
def test_reports_state_the_number_of_independent_frames(time):
    """The variance of a frame over that of the mean; fewer by the uncertainty of the correlation time."""
    mean = FrameMean()
    for row in autoregressive(2000, 60, time, 7):
        mean.add(row)
    stated = np.array([int(re.search(r"worth (\d+) independent", mean.explanation(n))[1]) for n in range(60)])
    assert 0.5 < np.median(stated) * true_error(2000, time) ** 2 < 1


@pytest.mark.parametrize(("name", "options"), [
    ("average", {"spacing": 3.0, "method": "pme", "tolerance": 1e-3}), ("density", {"smear": 1.5}),
    ("profile", {"spacing": 3.0})])
def test_commands_without_an_error_name_the_correlation_times(name, options):
    box = water(12.0, Cell.from_parameters(12, 12, 12))
    frames = [(box.positions + 0.05 * n, box.cell) for n in range(12)]
    result = registry.get("command", name)(structure=box, trajectory=LoadedFrames("drifting", frames), **options)
    (text,) = [line for line in result.lines if line.startswith("no standard error")]
    assert 1 < float(re.search(r"12 frames span about ([\d.]+) correlation times", text)[1]) <= 12
    assert all(int(needed) > 12 for needed in re.findall(r"here (\d+) frames", text))
