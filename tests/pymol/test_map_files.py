"""Map files that this package writes, read by PyMOL."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from vmdpotential.grid.lattice import Grid, Lattice, Provenance
from vmdpotential.io.maps import write_map


@pytest.fixture
def written():
    """A map with no symmetry, tiny, huge and negative values, and an origin on the spacing (CCP4 needs that)."""
    values = np.random.default_rng(7).normal(size=(8, 9, 11)).astype(np.float32)
    values[0, 0, :5] = [1e-30, -3e8, 123456.789, 0, -1e-9]
    provenance = Provenance(method="direct", inputs=("a file.pdb", "it's.psf"), program="vmdpotential")
    return Grid(Lattice([-3, 4, 7.5], 0.5, (8, 9, 11)), values, "kT/e", 298.15, 1.0, provenance)


@pytest.mark.parametrize("suffix", [".dx", ".dx.gz", ".mrc", ".ccp4", ".map"])
@pytest.mark.parametrize("name", ["map", "name with spaces", "it's a 'map'"])
def test_origin_spacing_and_values(cmd, written, tmp_path, suffix, name):
    path = tmp_path / f"{name}{suffix}"
    write_map(written, path)
    cmd.set("normalize_ccp4_maps", 0)  # PyMOL would divide by the standard deviation
    cmd.load(str(path), "loaded")
    values = cmd.get_volume_field("loaded")
    assert values.shape == written.lattice.shape
    if ".dx" in suffix:
        assert_allclose(values, written.values, rtol=1e-5)
    else:
        assert_array_equal(values, written.values)
    assert_allclose(cmd.get_extent("loaded"), [written.lattice.origin, written.lattice.last], atol=1e-4)
