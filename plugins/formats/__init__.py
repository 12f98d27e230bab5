"""Further formats: cube, OME-Zarr and AutoDock's maps, meshes, Molden, Amber's coordinates and NetCDF trajectories.

They register through the entry-point group ``vmdpotential.plugins``, as those of any other package.
"""

from __future__ import annotations


def register() -> None:
    """Register readers and writers."""
    from vmdpotential import registry

    for suffix in (".cube", ".cub"):
        registry.register("map_format", suffix, f"{__name__}.cube:CUBE")
    for suffix in (".ome.zarr", ".zarr"):
        registry.register("map_format", suffix, f"{__name__}.omezarr:ZARR")
    registry.register("map_format", "autodock", f"{__name__}.autodock:AUTODOCK")
    for suffix in (".glb", ".ply"):
        registry.register("mesh_writer", suffix, f"{__name__}.meshes:write_{suffix[1:]}")
    registry.register("structure_reader", "cube", f"{__name__}.cube:read_atoms")
    registry.register("structure_reader", "molden", f"{__name__}.molden:read_molden")
    registry.register("structure_reader", "amber-coordinates", f"{__name__}.amber_coordinates:read_restart")
    for suffix in (".nc", ".ncdf", ".netcdf", ".ncrst"):
        registry.register("trajectory_format", suffix, f"{__name__}.amber_coordinates:NETCDF")
    for suffix in (".rst7", ".inpcrd"):
        registry.register("structure_writer", suffix, f"{__name__}.rst7write:WRITER")
