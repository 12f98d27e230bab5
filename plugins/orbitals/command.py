"""The command ``orbital``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import progress
from vmdpotential.commands.gridded import GridResult, lattice_like
from vmdpotential.commands.options import Force, Like
from vmdpotential.errors import UsageError, count_of
from vmdpotential.figures.colours import initial_isovalue, isosurface_levels
from vmdpotential.grid.lattice import Lattice
from vmdpotential.io.files import output as files
from vmdpotential.maps.options import Engine, GridOptions
from vmdpotential.parameters import Command, Option, check_output, warn_unused
from vmdpotential.units import BOHR, DEFAULT_TEMPERATURE, POTENTIAL_UNITS

from .evaluate import LENGTHS, density_map, orbital_map
from .potential import potential_map
from .read import read_again, read_wavefunction
from .wavefunction import Wavefunction


@dataclass(frozen=True, kw_only=True)
class OrbitalOutput:
    """Files of a map and of its nuclei."""

    output: Annotated[Path | None, Option(
        "map file to write: .cube, .dx, .mrc, .npz ...", short="o", viewer=False, written=True, suffix=".cube")] = None
    atoms: Annotated[Path | None, Option(
        "structure file to write, with the nuclei of the molecule: .pdb, .cif, .gro",
        viewer=False, written=True, heading="output")] = None
    force: Force = False


@dataclass(frozen=True, kw_only=True)
class OrbitalPotential:
    """Options of the electrostatic potential of a molecule from its wave function."""

    potential: Annotated[bool, Option(
        "compute the electrostatic potential of the nuclei and electrons", front=True)] = False
    potential_unit: Annotated[str, Option(
        "unit of the potential", choices=POTENTIAL_UNITS, heading="quantum chemistry")] = "kT/e"
    temperature: Annotated[float, Option(
        "temperature of kT in the unit kT/e", unit="K", above=0, high=1e4, heading="medium")] = DEFAULT_TEMPERATURE


@dataclass(frozen=True, kw_only=True)
class OrbitalGrid(GridOptions):
    """Points of a map around the nuclei of a molecule."""

    spacing: Annotated[float, Option(
        "distance between grid points", unit="A", low=0.01, high=100, heading="main options")] = 0.2
    padding: Annotated[float, Option(
        "margin of the grid around the nuclei", unit="A", low=0, high=1000, heading="grid")] = 4.0


@dataclass(frozen=True, kw_only=True)
class OrbitalValues:
    """Engine, and unit of orbitals and densities."""

    engine: Engine = "auto"
    unit: Annotated[str, Option(
        "unit of length in the values: A^-3/2 and e/A^3, or bohr^-3/2 and e/bohr^3", choices=LENGTHS,
        heading="output")] = "A"


def orbital_(
    file: Annotated[Path | Wavefunction, Option(
        "wave function of a quantum chemistry program: .molden, .fchk, .wfn, .wfx, .mkl", positional=True,
        front=True, data=read_again)],
    orbital: Annotated[str, Option(
        "orbital to compute: homo, lumo, homo-1, lumo+2 ..., or its number from 1", metavar="homo|lumo|N",
        front=True)] = "",
    channel: Annotated[str, Option(
        "spin of the orbital, if alpha and beta electrons have separate orbitals",
        choices=("alpha", "beta"), heading="quantum chemistry")] = "alpha",
    density: Annotated[bool, Option("compute the electron density instead of an orbital", front=True)] = False,
    spin: Annotated[bool, Option(
        "compute the density of alpha electrons minus that of beta electrons", heading="quantum chemistry")] = False,
    of_potential: OrbitalPotential = OrbitalPotential(),
    grid: OrbitalGrid = OrbitalGrid(),
    like: Like = None,
    values: OrbitalValues = OrbitalValues(),
    output: OrbitalOutput = OrbitalOutput(),
) -> OrbitalMap:
    """Compute a molecular orbital, an electron density or the electrostatic potential on a grid.

    The file contains the basis functions (s to h shells, Cartesian or spherical) and the orbitals. Basis functions are
    neglected only where they are too small to matter.

    Raises
    ------
    UsageError
        For options that do not fit together, or an orbital that does not exist.
    InputError
        For a file that cannot be read or has no orbitals.
    BackendError
        When iodata is not installed.
    MemoryPlanError
        When the map does not fit into memory.
    """
    from vmdpotential.io import check_formats, write_structures
    from vmdpotential.io.maps import check_map_format, put_map

    from ..formats.cube import Nuclei, is_cube, write_cube

    path, atoms, force = output.output, output.atoms, output.force
    engine, unit = values.engine, values.unit
    check_output(path, file, "map", "orbital.cube")
    potential = of_potential.potential
    if bool(orbital) + density + spin + potential != 1:
        raise UsageError("orbital", "only one quantity is computed at a time",
                         "give one of {orbital}, {density}, {spin}, {potential}")
    if path is not None:
        check_map_format(path)
    written = [name for name in (atoms, path) if name is not None]
    files.check(written, force)
    wavefunction = read_wavefunction(file) if isinstance(file, Path) else file
    structure = wavefunction.structure()
    check_formats(structure, [] if atoms is None else [atoms])
    index = wavefunction.find(orbital, channel) if orbital else -1
    if not orbital or wavefunction.restricted:
        warn_unused(("channel",), "alpha and beta electrons have the same orbitals" if orbital else
                    "it only chooses an {orbital}")
    warn_unused(("unit",) if potential else ("potential_unit", "temperature"),
                "it is for orbitals and densities; use {potential_unit}" if potential else "only a {potential} has it")
    lattice = lattice_like(like) or Lattice.around(wavefunction.positions, grid.spacing, grid.padding)
    if path is not None:
        check_map_format(path, lattice)
    with progress.clock() as clock:
        if potential:
            made = potential_map(wavefunction, lattice, of_potential.potential_unit, of_potential.temperature,
                                 engine)
        else:
            made = (orbital_map(wavefunction, lattice, index, channel, unit, engine) if orbital else
                    density_map(wavefunction, lattice, spin, unit, engine))
    def put(place: Path) -> None:
        if is_cube(place):
            write_cube(place, made, Nuclei(wavefunction.numbers, wavefunction.nuclear_charges, wavefunction.positions))
        else:
            put_map(made, place)

    maps = {} if path is None else {path: put}
    write_structures(structure, [] if atoms is None else [atoms], force, maps)
    total = None if potential else _integral(made.values, lattice, unit, bool(orbital))
    return OrbitalMap(
        grid=made, structure=structure, wavefunction=wavefunction, orbital=index + 1 if orbital else None, spin=spin,
        channel=channel if orbital and not wavefunction.restricted else None, integral=total,
        energy=_energy(wavefunction, index, channel) if orbital else None, seconds=clock.seconds, file=path,
        structure_file=atoms, words=_orbital(wavefunction, index, channel) if orbital else "", files=written)


class OrbitalMap(GridResult):
    """Map of an orbital, an electron density or a potential from quantum chemistry."""

    orbital: int | None
    channel: str | None
    energy: float | None
    wavefunction: Wavefunction
    integral: float | None
    file: Path | None
    structure_file: Path | None
    spin: bool
    words: str

    display_limit = cached_property(lambda self: initial_isovalue(self.grid))

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {
            "quantity": self.grid.provenance.quantity, "engine": self.grid.provenance.engine, "orbital": self.orbital,
            "channel": self.channel, "energy": self.energy, "electrons": self.wavefunction.electrons,
            "integral": self.integral, "file": self.file, "structure_file": self.structure_file,
            "display_limit": self.display_limit, "levels": list(isosurface_levels(self.grid))}

    def text(self) -> Iterator[str]:
        """Yield the contents of the file, and the map's range and integral."""
        from ..formats.cube import ATOMIC_UNITS, is_cube

        wavefunction = self.wavefunction
        yield _contents(wavefunction)
        if self.orbital:
            yield self.words
        yield self.points
        yield f"{self.minimum:.4g} to {self.maximum:.4g} {self.grid.unit}"
        if self.file is not None and is_cube(self.file) and self.grid.unit in ATOMIC_UNITS:
            yield f"the cube file is in atomic units, {ATOMIC_UNITS[self.grid.unit][0]}, as other programs expect"
        if self.integral is None:
            yield f"net charge {wavefunction.nuclear_charges.sum() - wavefunction.electrons:.4g} e"
        elif self.orbital:
            yield f"integral over the grid: {self.integral:.4f} of the squared orbital, which is 1 in all space"
        else:
            yield (f"integral over the grid: {self.integral:.4f} electrons"
                   + ("" if self.spin else f" of {wavefunction.electrons:g}"))
        yield f"{self.seconds:.2f} s on the {self.grid.provenance.engine} engine"


def _integral(values: NDArray[np.float32], lattice: Lattice, unit: str, squared: bool) -> float:
    """Return the integral of the values, or of their squares, over the grid."""
    volume = float(np.prod(lattice.spacing / (BOHR if unit == "bohr" else 1.0)))
    total = sum(float(np.vdot(plane, plane)) if squared else float(plane.sum(dtype=np.float64)) for plane in values)
    return volume * total


def _contents(wavefunction: Wavefunction) -> str:
    functions = wavefunction.alpha.coefficients.shape[0]
    kind = "the same orbitals for both spins" if wavefunction.restricted else "orbitals for each spin"
    return (f"{wavefunction.name}: {count_of(len(wavefunction.numbers), 'atom')}, {functions} basis functions, "
            f"{wavefunction.electrons:g} electrons, {kind}")


def _energy(wavefunction: Wavefunction, index: int, channel: str) -> float | None:
    energies = wavefunction.channel(channel).energies
    return None if energies is None else float(energies[index])


def _orbital(wavefunction: Wavefunction, index: int, channel: str) -> str:
    energy = _energy(wavefunction, index, channel)
    occupation = wavefunction.channel(channel).occupations[index]
    spin = "" if wavefunction.restricted else f" ({channel})"
    return f"orbital {index + 1}{spin}, occupation {occupation:.4g}" + (
        "" if energy is None else f", energy {energy:.6g} hartree")


command = Command.of(orbital_, "orbital", draws="orbital", examples=(
    "orbital molecule.molden --orbital homo -o homo.cube",
    "orbital molecule.molden --potential --spacing 0.5 -o potential.cube",
), python="""\
>>> from pyscf import gto, scf
>>> from pyscf.tools import molden
>>> molden.from_scf(scf.RHF(gto.M(atom="H 0 0 0; H 0 0 0.74", verbose=0)).run(), "h2.molden")
>>> vp.orbital("h2.molden", orbital="homo", spacing=0.5).grid.unit
'A^-3/2'""")
