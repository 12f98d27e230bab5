"""The command ``probe``: maps of the energy of probe atoms, and of the free energy of a small molecule over frames."""

from __future__ import annotations

from vmdpotential.commands.gridded import lattice_like
from vmdpotential.commands.options import LikeGrid, Source, TrajectoryOptions
from vmdpotential.errors import UsageError
from vmdpotential.frames.options import Execution
from vmdpotential.maps.options import Engine
from vmdpotential.parameters import Command, check_output, warn_unused
from vmdpotential.results import Result

from ..pairs.between import ParameterOptions
from .atoms import map_atoms
from .free_energy import map_ligand
from .options import InsertionOptions, ProbeOptions, ProbeOutput, ProbeRun

#: Default grid spacings, A, for a molecule over frames and for probe atoms; the latter is AutoGrid's.
_LIGAND_SPACING, _PROBE_SPACING = 1.0, 0.375


def probe_(
    source: Source,
    trajectory: TrajectoryOptions = TrajectoryOptions(),
    options: ProbeOptions = ProbeOptions(),
    like: LikeGrid = None,
    force_field: ParameterOptions = ParameterOptions(),
    insertion: InsertionOptions = InsertionOptions(),
    engine: Engine = "auto",
    outputs: ProbeOutput = ProbeOutput(),
    execution: Execution = Execution(),
) -> Result:
    """Compute the energy of probe atoms, or the free energy of a small molecule, at every grid point.

    Probe atoms are mapped around one structure: AutoDock's types give the maps of AutoGrid, and others the
    Lennard-Jones energy of the structure's own force field. The free energy of a molecule relative to vacuum is that of
    inserting it into the frames of a trajectory without it (implicit ligand sampling), with Lennard-Jones energies
    only.

    Raises
    ------
    InputError
        For atoms without charges or Lennard-Jones parameters, or a trajectory of other atoms.
    MemoryPlanError
        When the map does not fit into memory.
    """
    probe, ligand = options.probe, options.ligand
    if bool(probe) == bool(ligand):
        raise UsageError("probe", "probe atoms and a molecule cannot be combined" if probe else
                         "neither probe atoms nor a molecule were given", "give {probe C HD}, or {ligand O2}")
    check_output(outputs.output, source.structure, "map", "o2.dx")
    if probe and (trajectory.trajectory is not None or trajectory.frames is not None or outputs.paths is not None):
        raise UsageError("trajectory", "frames are not used for probe atoms, which are mapped around one structure",
                         "give {ligand}, or leave out {trajectory}, {frames} and {paths}")
    if probe:
        warn_unused(("fit", "boundary", "orientations", "places", "temperature", "stat"), "no {ligand} is given")
    if like is not None:
        warn_unused(("around",), "the grid is that of {like}")
    structure, all_frames = source.with_frames(trajectory)
    spacing = options.spacing or (_LIGAND_SPACING if ligand else _PROBE_SPACING)
    run = ProbeRun(structure, options, lattice_like(like), spacing, engine, outputs, source.cell is not None)
    if probe:
        return map_atoms(run, source, force_field)
    return map_ligand(run, insertion, all_frames, force_field.terms(structure), execution)


command = Command.of(probe_, "probe", draws="isosurfaces", examples=(
    "probe protein.pdb --probe C HD OA e -o receptor.map",
    "probe system.prmtop trajectory.xtc --ligand O2 --spacing 2 -o oxygen.dx --paths minima.csv",
), python="""\
>>> structure = vp.read_structure("data/1hvr.pdb.gz")
>>> energies = vp.probe(structure, probe=["C"], spacing=2.0)
>>> energies.grid.unit
'kcal/mol'""")
