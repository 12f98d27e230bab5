"""The command ``orbital``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from vmdpotential import progress
from vmdpotential.errors import UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.io.files import output as files
from vmdpotential.orbitals.evaluate import LENGTHS, density_map, orbital_map
from vmdpotential.orbitals.potential import potential_map
from vmdpotential.orbitals.read import read_wavefunction
from vmdpotential.orbitals.wavefunction import Wavefunction
from vmdpotential.parameters import Command, Option, Report
from vmdpotential.units import BOHR, DEFAULT_TEMPERATURE, POTENTIAL_UNITS


def orbital_(
    file: Annotated[Path, Option(
        "wave function of a quantum chemistry program: .molden, .fchk, .wfn, .wfx, .mkl", positional=True)],
    orbital: Annotated[str, Option(
        "orbital to compute: homo, lumo, homo-1, lumo+2 ..., or its number from 1", metavar="homo|lumo|N",
        front=True)] = "",
    channel: Annotated[str, Option(
        "electron spin of the orbital, where alpha and beta electrons have orbitals of their own",
        choices=("alpha", "beta"))] = "alpha",
    density: Annotated[bool, Option("compute the electron density instead of an orbital", front=True)] = False,
    spin: Annotated[bool, Option(
        "compute the density of alpha electrons minus that of beta electrons", front=True)] = False,
    potential: Annotated[bool, Option(
        "compute the electrostatic potential of the nuclei and electrons", front=True)] = False,
    spacing: Annotated[float, Option("distance between grid points", unit="A", low=0.01, high=100, front=True)] = 0.2,
    padding: Annotated[float, Option("margin around the nuclei", unit="A", low=0, high=1000)] = 4.0,
    like: Annotated[Path | None, Option(
        "map whose grid is used instead of spacing and padding", viewer=False, metavar="MAP")] = None,
    unit: Annotated[str, Option(
        "unit of length in the values: A^-3/2 and e/A^3, or bohr^-3/2 and e/bohr^3", choices=LENGTHS)] = "A",
    potential_unit: Annotated[str, Option("unit of the potential", choices=POTENTIAL_UNITS)] = "kT/e",
    temperature: Annotated[float, Option("for kT/e", unit="K", above=0, high=1e4)] = DEFAULT_TEMPERATURE,
    output: Annotated[Path | None, Option(
        "map file to write: .cube, .dx, .mrc, .npz ...", short="o", viewer=False, written=True)] = None,
    atoms: Annotated[Path | None, Option(
        "structure file to write with the nuclei, for viewers: .pdb, .cif, .gro", viewer=False, written=True)] = None,
    force: Annotated[bool, Option("replace files that exist", viewer=False)] = False,
) -> Report:
    """Compute a molecular orbital, an electron density or the electrostatic potential on a grid.

    The file states the basis functions (s to h shells, Cartesian or spherical) and the orbitals; every value is their
    sum, without a cutoff that could be seen.

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
    from vmdpotential.io.maps import check_map_format, put_map, read_map

    if output is None:
        raise UsageError("output", "a file is needed for the map", "such as {output orbital.cube}")
    if bool(orbital) + density + spin + potential != 1:
        raise UsageError("orbital", "one quantity is computed at a time",
                         "give one of {orbital}, {density}, {spin}, {potential}")
    check_map_format(output)
    written = [output] if atoms is None else [atoms, output]
    files.check(written, force)
    wavefunction = read_wavefunction(file)
    structure = wavefunction.structure()
    check_formats(structure, [] if atoms is None else [atoms])
    index = wavefunction.find(orbital, channel) if orbital else -1
    lattice = Lattice.around(wavefunction.positions, spacing, padding) if like is None else read_map(like).lattice
    check_map_format(output, lattice)
    start = time.perf_counter()
    with progress.clock() as clock:
        if potential:
            grid = potential_map(wavefunction, lattice, potential_unit, temperature)
        else:
            grid = (orbital_map(wavefunction, lattice, index, channel, unit) if orbital else
                    density_map(wavefunction, lattice, spin, unit))
    seconds = time.perf_counter() - start - clock.compiling
    write_structures(structure, [] if atoms is None else [atoms], force, {output: lambda place: put_map(grid, place)})
    total = None if potential else _integral(grid.values, lattice, unit, bool(orbital))
    low, high = float(grid.values.min()), float(grid.values.max())
    lines = [
        _contents(wavefunction),
        *([_orbital(wavefunction, index, channel)] if orbital else []),
        f"{' x '.join(map(str, lattice.shape))} points, "
        f"{' x '.join(f'{h:.4g}' for h in dict.fromkeys(lattice.spacing))} A apart",
        f"{low:.4g} to {high:.4g} {grid.unit}",
        f"{wavefunction.nuclear_charges.sum() - wavefunction.electrons:.4g} e in all" if total is None else
        f"integral over the grid: {total:.4f} of the squared orbital, which is 1 in all space" if orbital else
        f"integral over the grid: {total:.4f} electrons" + ("" if spin else f" of {wavefunction.electrons:g}"),
        f"{seconds:.2f} s", *(f"wrote {path}" for path in written),
    ]
    data = {
        "quantity": grid.provenance.quantity, "unit": grid.unit, "orbital": index + 1 if orbital else None,
        "channel": channel if orbital and not wavefunction.restricted else None,
        "energy": _energy(wavefunction, index, channel) if orbital else None,
        "electrons": wavefunction.electrons, "integral": total, "shape": list(lattice.shape),
        "origin": lattice.origin.tolist(), "spacing": lattice.spacing.tolist(),
        "minimum": low, "maximum": high,
        "display_limit": grid.display_limit(), "file": str(output),
        "structure_file": None if atoms is None else str(atoms), "seconds": seconds,
    }
    return Report(lines, data, {"grid": grid, "structure": structure})


def _integral(values: NDArray[np.float32], lattice: Lattice, unit: str, squared: bool) -> float:
    """Return the integral of the values, or of their squares, over the grid."""
    volume = float(np.prod(lattice.spacing / (BOHR if unit == "bohr" else 1.0)))
    total = sum(float(np.vdot(plane, plane)) if squared else float(plane.sum(dtype=np.float64)) for plane in values)
    return volume * total


def _contents(wavefunction: Wavefunction) -> str:
    functions = wavefunction.alpha.coefficients.shape[0]
    kind = "the same orbitals for both spins" if wavefunction.restricted else "orbitals for each spin"
    return (f"{wavefunction.name}: {len(wavefunction.numbers)} atoms, {functions} basis functions, "
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


command = Command.of(orbital_, "orbital")
