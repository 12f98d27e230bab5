"""Van der Waals parameters, exclusions and 1-4 pairs of a structure, from its topology or from parameter files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from vmdpotential.errors import InputError
from vmdpotential.io import read_topology
from vmdpotential.io.files.text import held, reading, suffix
from vmdpotential.io.structures.merge import merge
from vmdpotential.io.topologies import charmm, openmm
from vmdpotential.molecule.conversions import StructureLike, as_structure
from vmdpotential.molecule.nonbonded import Nonbonded

_KINDS = "CHARMM parameters (.prm, .str) with a PSF, or force fields of OpenMM (.xml)"


def nonbonded(structure: StructureLike, files: Sequence[Path] = (), scripts: bool = False) -> Nonbonded:
    """Return how the atoms of a structure act on each other without bonds.

    Parameters
    ----------
    structure : Structure
        All atoms of the system: exclusions go by bonds, which may lead over atoms that a selection leaves out. Take
        the selection of the result.
    files : sequence of Path
        None, where the structure's topology is a prmtop or TPR. Else CHARMM's parameter files (.prm, .par, .str,
        .rtf), or OpenMM's force fields (.xml, also by the names of those that come with it) or a System of these atoms
        (.xml), and, where the structure came without it, the topology (PSF, prmtop, TPR).
    scripts : bool
        Whether Python code in a force field of OpenMM may run: only for files that are trusted as a program is.

    Returns
    -------
    Nonbonded
        Lennard-Jones parameters, exclusions and 1-4 pairs.

    Raises
    ------
    InputError
        When nothing says the parameters, files do not fit, or types or residues are missing; all of them are listed.
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
    paths = [path if suffix(path) == ".xml" else held(path) for path in map(Path, files)]
    parameters = [path for path in paths if suffix(path) in charmm.SUFFIXES]
    force_fields = [path for path in paths if suffix(path) == ".xml"]
    topologies = [path for path in paths if path not in parameters and path not in force_fields]
    if parameters and force_fields:
        raise InputError(f"{parameters[0]} and {force_fields[0]}: are parameters of two programs", "give those of one")
    if len(topologies) > 1:
        raise InputError(f"{topologies[0]} and {topologies[1]}: are two topologies", "give one")
    for path in topologies:
        structure = merge(structure, read_topology(path))
    where = structure.sources[-1] if structure.sources else "the structure"
    topology = structure.topology
    if parameters:
        result = charmm.nonbonded(structure, parameters)
    elif force_fields:
        result = openmm.nonbonded(structure, force_fields, scripts)
    elif topology is not None and topology.nonbonded is not None:
        with reading(Path(where)):
            result = topology.nonbonded()
    elif topology is not None and topology.source == "psf":
        raise InputError(f"{where}: a PSF has no Lennard-Jones parameters",
                         "give CHARMM's files (.prm, .str) or force fields of OpenMM (.xml) as {parameters}")
    else:
        raise InputError(f"{where}: has no Lennard-Jones parameters",
                         f"give a prmtop or TPR as {{topology}}, or {_KINDS} as {{parameters}}")
    if len(result) != len(structure):
        raise InputError(f"{where}: has parameters of {len(result)} atoms, and there are {len(structure)}",
                         f"give a topology of all these atoms, or {_KINDS}")
    if not all(np.isfinite(table).all() for table in (result.c6, result.c12, result.c6_14, result.c12_14)):
        raise InputError(f"{paths[0] if paths else where}: holds Lennard-Jones parameters that are no numbers",
                         "write it again")
    return result
