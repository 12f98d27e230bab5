"""Velocities of Amber's restarts: NetCDF (of whatever scale) and text, read and written, whole or none."""

from pathlib import Path

import numpy as np
import pytest
from MDAnalysisTests import datafiles
from scipy.io import netcdf_file

from vmdpotential import io
from vmdpotential.io.structures.amber_coordinates import VELOCITY, read_coordinates

AMBER = Path(datafiles.PDB).parent / "Amber"
TOP, COORDINATES = AMBER / "parmed_ala2_solv.parm7", AMBER / "parmed_ala2_solv.rst7"


def restart(path: Path, positions: np.ndarray, velocities: np.ndarray, scale: float | None) -> None:
    """Write a NetCDF restart as Amber does."""
    with netcdf_file(str(path), "w") as file:
        file.Conventions, file.ConventionVersion = "AMBERRESTART", "1.0"
        file.createDimension("atom", len(positions))
        file.createDimension("spatial", 3)
        file.createVariable("coordinates", "d", ("atom", "spatial"))[:] = positions
        variable = file.createVariable("velocities", "d", ("atom", "spatial"))
        variable[:] = velocities / (scale or 1.0)
        if scale:
            variable.scale_factor = scale


@pytest.mark.parametrize("scale", [VELOCITY, None])
def test_a_netcdf_restart_goes_on_as_text(scale: float | None, tmp_path: Path) -> None:
    positions, _ = read_coordinates(COORDINATES)
    velocities = np.random.default_rng(1).normal(0, 5, positions.shape)
    restart(tmp_path / "a.ncrst", positions, velocities, scale)
    structure = io.read_structure(tmp_path / "a.ncrst", TOP)
    np.testing.assert_allclose(structure.velocities, velocities, rtol=1e-7)
    np.testing.assert_array_equal(structure.positions, positions)
    io.write_structure(structure, tmp_path / "a.rst7")
    np.testing.assert_allclose(io.read_structure(tmp_path / "a.rst7", TOP).velocities, velocities, atol=2e-6)


def test_velocities_that_are_none_are_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    positions, _ = read_coordinates(COORDINATES)
    velocities = np.zeros_like(positions)
    velocities[3] = np.nan
    restart(tmp_path / "a.ncrst", positions, velocities, VELOCITY)
    assert io.read_structure(tmp_path / "a.ncrst", TOP).velocities is None
    assert "not all atoms have velocities" in caplog.text
