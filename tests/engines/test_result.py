"""What a sum gives: maps on the host, and those on a GPU, whose kernels run on the host here."""

import numpy as np
import pytest

from vmdpotential.sums.cuda.result import DeviceResult
from vmdpotential.sums.result import HostResult

SHAPE = (5, 7, 70)  # more than a block of threads, and no multiple of one


@pytest.fixture(params=["host", "device"])
def make(request):
    """Return a function that makes a result of maps."""
    if request.param == "host":
        return HostResult
    gpu = request.getfixturevalue("gpu")
    return lambda maps: DeviceResult(gpu, gpu.keep(maps), maps.shape, gpu.timers())


def random_maps(count, seed=0, scale=1.0, offset=0.0):
    return (offset + scale * np.random.default_rng(seed).normal(size=(count, *SHAPE))).astype(np.float32)


@pytest.mark.parametrize("count", [1, 4])
def test_values_and_field(make, count):
    maps = random_maps(count)
    result = make(maps)
    np.testing.assert_array_equal(result.values(), maps[0])
    if count == 1:
        assert result.field() is None
    else:
        np.testing.assert_array_equal(result.field(), maps[1:])
    assert result.values().dtype == np.float32


@pytest.mark.parametrize("count", [1, 4])
def test_values_at_points(make, count):
    maps = random_maps(count)
    indices = np.random.default_rng(1).integers(0, SHAPE, (300, 3))
    result = make(maps).at(indices)
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, maps[(slice(None), *indices.T)])


@pytest.mark.parametrize("scale", [1.0, 1e-25, 1e30])
def test_mean_squares(make, scale):
    """Squares of 1e30 are more than float32 holds, those of 1e-25 less."""
    maps = random_maps(4, scale=scale)
    exact = np.mean(np.square(maps, dtype=np.float64), axis=(1, 2, 3))
    np.testing.assert_allclose(make(maps).mean_squares(), [exact[0], exact[1:].sum()], rtol=1e-5)
    np.testing.assert_allclose(make(maps[:1]).mean_squares(), exact[:1], rtol=1e-5)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("part", [0, 2])
def test_a_value_that_is_none_shows_in_the_mean_squares(make, value, part):
    maps = random_maps(4)
    maps[part, 3, 2, 1] = value
    finite = np.isfinite(make(maps).mean_squares())
    assert finite.tolist() == [part != 0, part == 0]


@pytest.mark.parametrize("count", [1, 4])
def test_mean_and_variance_are_those_of_numpy(make, count):
    frames = [random_maps(count, seed, 0.1, offset=50.0) for seed in range(9)]
    result = make(frames[0]).new_sums()
    for frame in frames:
        result.add(make(frame))
    assert result.count == 9
    stack = np.array(frames, np.float64)
    take = (lambda a: a[0]) if count == 1 else (lambda a: a)
    assert result.mean().dtype == np.float64
    np.testing.assert_allclose(result.mean(), take(stack.mean(0)), rtol=1e-12)
    np.testing.assert_allclose(result.variance(), take(stack.var(0)), rtol=1e-5)


def test_a_variance_far_smaller_than_the_mean_keeps_its_digits(make):
    """Near an atom a potential of 1e6 that changes by 1."""
    frames = [random_maps(1, seed, 1.0, offset=1e6) for seed in range(5)]
    result = make(frames[0]).new_sums()
    for frame in frames:
        result.add(make(frame))
    stack = np.array(frames, np.float64)[:, 0]
    np.testing.assert_allclose(result.variance(), stack.var(0), rtol=1e-9)
    np.testing.assert_allclose(result.mean(), stack.mean(0), rtol=1e-14)


def test_sums_take_results_from_elsewhere(make):
    """A map that did not fit its GPU is on the host."""
    first, second = random_maps(4, 1), random_maps(4, 2)
    result = make(first).new_sums()
    result.add(HostResult(second))
    result.add(make(first))
    np.testing.assert_allclose(result.mean(), (first.astype(float) + second) / 2, rtol=1e-12)
    np.testing.assert_allclose(result.variance(), np.array([first, second], float).var(0), rtol=1e-9)


def test_one_of_a_kind_is_singular():
    from vmdpotential.errors import count_of

    assert [count_of(n, "frame") for n in (0, 1, 2, "1")] == ["0 frames", "1 frame", "2 frames", "1 frame"]
