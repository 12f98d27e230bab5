"""Lennard-Jones parameters, exclusions and 1-4 pairs of a structure, from its topology or from parameter files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from vmdpotential.errors import InputError
from vmdpotential.io import read_topology
from vmdpotential.io.files.text import buffered_stream, format_suffix, reading_file
from vmdpotential.io.structures.merge import merge_topology
from vmdpotential.molecule.conversions import StructureLike, as_structure
from vmdpotential.molecule.nonbonded import Nonbonded

from . import CHARMM_SUFFIXES, charmm, openmm

_KINDS = "CHARMM parameters (.prm, .str) with a PSF, or force fields of OpenMM (.xml)"


def nonbonded(structure: StructureLike, files: Sequence[Path] = (), scripts: bool = False) -> Nonbonded:
    """Return the nonbonded parameters of the atoms of a structure.

    Parameters
    ----------
    structure : Structure or path
        All atoms of the system, because exclusions follow from bonds, also those through atoms outside of a selection.
        Apply a selection to the result.
    files : sequence of Path
        Empty if the structure's topology is a prmtop or TPR. Otherwise CHARMM's parameter files (.prm, .par, .str,
        .rtf), OpenMM's force fields (.xml; those installed with OpenMM by name), or a System of these atoms (.xml);
        and the topology (PSF, prmtop, TPR), if the structure was read without one.
    scripts : bool
        Whether Python code in a force field of OpenMM may run; use it only for files that you trust like a program.

    Returns
    -------
    Nonbonded
        Lennard-Jones parameters, exclusions and 1-4 pairs.

    Raises
    ------
    InputError
        When no file has the parameters, files do not belong together, or types or residues are missing; the message
        lists them.
    BackendError
        When ParmEd or OpenMM is needed and not installed (extra ``forcefields``).

    Examples
    --------
    >>> structure = vp.assign_charges(vp.read_structure("data/dhfr.pdb.gz"))
    >>> terms = vp.nonbonded(structure, ["amber14-all.xml", "amber14/tip3p.xml"])
    >>> len(terms) == len(structure)
    True
    """
    structure = as_structure(structure)
    paths = [path if format_suffix(path) == ".xml" else buffered_stream(path) for path in map(Path, files)]
    parameters = [path for path in paths if format_suffix(path) in CHARMM_SUFFIXES]
    force_fields = [path for path in paths if format_suffix(path) == ".xml"]
    topologies = [path for path in paths if path not in parameters and path not in force_fields]
    if parameters and force_fields:
        raise InputError(f"{parameters[0]} and {force_fields[0]}: are for different programs", "give those for one")
    if len(topologies) > 1:
        raise InputError(f"{topologies[0]} and {topologies[1]}: are two topologies", "give one")
    for path in topologies:
        structure = merge_topology(structure, read_topology(path))
    where = structure.sources[-1] if structure.sources else "the structure"
    topology = structure.topology
    if parameters:
        result = charmm.nonbonded(structure, parameters)
    elif force_fields:
        result = openmm.nonbonded(structure, force_fields, scripts)
    elif topology is not None and topology.nonbonded is not None:
        with reading_file(Path(where)):
            result = topology.nonbonded()
    elif topology is not None and topology.source == "psf":
        raise InputError(f"{where}: a PSF has no Lennard-Jones parameters",
                         "give CHARMM's files (.prm, .str) or force fields of OpenMM (.xml) as {parameters}")
    else:
        raise InputError(f"{where}: has no Lennard-Jones parameters",
                         f"give a prmtop or TPR as {{topology}}, or {_KINDS} as {{parameters}}")
    if len(result) != len(structure):
        raise InputError(f"{where}: has parameters for {len(result)} atoms, but there are {len(structure)}",
                         f"give a topology of all these atoms, or {_KINDS}")
    if not all(np.isfinite(table).all() for table in (result.c6, result.c12, result.c6_14, result.c12_14)):
        raise InputError(f"{paths[0] if paths else where}: contains Lennard-Jones parameters that are not numbers",
                         "write it again")
    return result
