"""CMAP files on a disk that is full: HDF5 would crash, and end the program."""

import errno

import numpy as np
import pytest

from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.io.maps.cmap import write_cmap

pytest.importorskip("h5py")
resource = pytest.importorskip("resource", reason="a limit on the size of files needs Unix")


@pytest.mark.parametrize("edge", [4, 40])
def test_a_full_disk_is_an_error(tmp_path, edge):
    grid = Grid(Lattice(np.zeros(3), np.ones(3), (edge,) * 3), np.ones((edge,) * 3, np.float32), unit="V")
    path, limits = tmp_path / "map.cmap", resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limits[1]))
    try:
        with pytest.raises(OSError) as caught:
            write_cmap(path, grid)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.errno == errno.EFBIG
    assert path.stat().st_size <= 1024
    write_cmap(path, grid)
