"""The other files that commands read: trajectories, parameters, systems, charges, index files, cells, caches ...

Each kind has its seeds, and a function that reads a file as the commands do. What a package that is not installed reads
is left out.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import itertools
import shutil
import tempfile
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import numpy as np

from vmdpotential import cache
from vmdpotential.execution import blocks
from vmdpotential.execution.work import Work
from vmdpotential.grid.lattice import Lattice
from vmdpotential.io import open_map, read_structure, read_topology, write_map, write_structure
from vmdpotential.io.files.cellfile import read_cell
from vmdpotential.io.files.ndx import read_groups
from vmdpotential.io.files.points import read_points
from vmdpotential.io.structures import symmetry
from vmdpotential.io.trajectories.frames import Trajectory
from vmdpotential.molecule.elements import fill_elements
from vmdpotential.molecule.structure import Structure
from vmdpotential.plugins.batch import inputs as batch
from vmdpotential.plugins.forcefields import charmm, ion_parameters
from vmdpotential.plugins.forcefields.forcefield import nonbonded
from vmdpotential.plugins.forcefields.residue_charges import read_residue_charges
from vmdpotential.plugins.formats.amber_coordinates import read_restart
from vmdpotential.plugins.orbitals.evaluate import density_map
from vmdpotential.plugins.orbitals.read import read_wavefunction
from vmdpotential.plugins.preparation.components import find_component
from vmdpotential.plugins.preparation.prepare import prepare_structure
from vmdpotential.plugins.probes.ligands import read_ligand
from vmdpotential.preparation.charged import charge_structure

from .answers import READ as TASKS
from .answers import answers_seeds
from .seeds import ITP, MOL2, NAMES, grid, netcdf, system
from .seeds import frames as written_frames

Seeds = list[tuple[str, bytes]]

TYPES = ["NH1", "CT1", "C", "O", "SOD", "OT", "HT"]
PARAMETERS = "\n".join([
    "* made up", "*", "ATOMS", *(f"MASS {-1} {name} 12.011" for name in TYPES), "", "BONDS", "C O 600.0 1.2", "",
    "NONBONDED nbxmod 5 atom cdiel -", "cutnb 14.0 ctofnb 12.0 e14fac 1.0",
    *(f"{name} 0.0 -0.{k + 1} 1.{k} 0.0 -0.05 1.1 ! comment" for k, name in enumerate(TYPES)), "",
    "NBFIX", "SOD O -0.075 3.2", "", "END", ""])
STREAM = "* a stream\n*\nread rtf card append\n* t\n*\n36 1\nMASS -1 SOD 22.99\nend\n\nread para card flex append\n" \
         + PARAMETERS.removesuffix("END\n") + "end\nreturn\n"
FORCE_FIELD = """<ForceField>
 <AtomTypes><Type name="na" class="NA" element="Na" mass="22.99"/></AtomTypes>
 <Residues><Residue name="NA"><Atom name="NA" type="na"/></Residue></Residues>
 <NonbondedForce coulomb14scale="0.8333" lj14scale="0.5">
  <Atom type="na" charge="1.0" sigma="0.2" epsilon="0.1"/>
 </NonbondedForce>
</ForceField>
"""
FRCMOD = "ions for TIP3P\nMASS\nNa+ 22.99\n\nNONBON\nNa+  1.369  0.0874393  JC\nCl-  2.513  0.0355910\n\n"
TOP = """[ defaults ]
1 2 yes 0.5 0.8333
#define MASS 15.9994
[ atomtypes ]
OW 8 MASS -0.834 A 0.3 0.6
HW 1 1.008 0.417 A 0.1 0.1
""" + ITP + """#ifdef POSRES
[ position_restraints ]
1 1 1000 1000 1000
#endif
[ system ]
water
[ molecules ]
SOL 2
"""
XSC = "# NAMD extended system\n#$LABELS step a_x a_y a_z b_x b_y b_z c_x c_y c_z o_x o_y o_z\n" \
      "1000 20 0 0 0 21 0 0 -1 22 0.5 0.5 0.5\n"
NAMD = "structure a.psf\ncellBasisVector1 20.0 0 0 ;# A\ncellBasisVector2 0 21 0\ncellBasisVector3 = 0 -1 22\n"
NDX = "[ System ]\n1 2 3 4 5 6 7 8 9 10 11\n[ Protein and more ]\n1 2 3 4 ; comment\n[ None ]\n"
LIGAND = "# O2, A and kcal/mol\nO1 -0.605 0 0 3.02 0.097\nO2 0.605 0 0 3.02 0.097 # alike\n"
POINTS = "x,y,z,name\n1.0,2.0,3.0,a\n# comment\n4 5 6 b\n"
CHARGES = "residue,atom,charge\nALA,N,-0.47 # comment\nALA CA 0.07\n"
COLUMNS = (*batch.FIRST_COLUMNS, *batch.LAST_COLUMNS)
DATA = Path(__file__).parents[1] / "data"
REMARK_350 = """REMARK 350 BIOMOLECULE: 1
REMARK 350 APPLY THE FOLLOWING TO CHAINS: A, W
REMARK 350   BIOMT1   1  1.000000  0.000000  0.000000        0.00000
REMARK 350   BIOMT2   1  0.000000  1.000000  0.000000        0.00000
REMARK 350   BIOMT3   1  0.000000  0.000000  1.000000        0.00000
REMARK 350   BIOMT1   2 -1.000000  0.000000  0.000000       30.00000
REMARK 350   BIOMT2   2  0.000000 -1.000000  0.000000       30.00000
REMARK 350   BIOMT3   2  0.000000  0.000000  1.000000        0.00000
"""
TABLE = ",".join(COLUMNS) + "\n" + ",".join(["a.pdb", *["1"] * (len(COLUMNS) - 1)]) + "\n"


def ions() -> Structure:
    """Return two ions, which force fields and systems are for."""
    names = np.array(["NA", "NA"])
    return Structure(np.array([[0.0, 0, 0], [5, 0, 0]]), names, names, np.array([1, 2]), np.array([0, 1]),
                     sources=("ions.pdb",))


class _Work(Work):
    """Numbers of frames, as a work on blocks of them."""

    def block(self, numbers: range) -> dict[str, np.ndarray]:
        return {"numbers": np.array(numbers, np.float64)}

    def identity(self) -> tuple[str, ...]:
        return ("numbers",)


def _run(folder: Path, resume: bool) -> blocks.BlockResults:
    return blocks.BlockResults(_Work(), range(4), size=4, folder=folder, resume=resume)


def _written(function: Callable[[Path], object], name: str) -> bytes:
    """Return what a function writes to a path."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        function(path)
        return path.read_bytes()


# ---- how each kind is read -----------------------------------------------------------------------------


def _trajectory(path: Path) -> None:
    for frame in itertools.islice(Trajectory(path, len(NAMES)), 5):
        assert np.isfinite(frame.positions).all()
        assert frame.positions.shape == (len(NAMES), 3)
    trajectory = Trajectory(path, len(NAMES), slice(-1, None))
    assert len(list(trajectory.part(trajectory.numbers()))) == 1


def _parameters(path: Path) -> None:
    _check(nonbonded(system(), [path]))
    charmm.ion_parameters(path, ions(), ["SOD"])


def _force_field(path: Path) -> None:
    _check(nonbonded(ions(), [path]))


def _system(path: Path) -> None:
    structure, _ = charge_structure(ions(), "auto", "auto", [path])
    assert np.isfinite(structure.known_charges).all()
    _check(nonbonded(structure, [path]))


def _check(terms) -> None:
    assert all(np.isfinite(table).all() for table in (terms.c6, terms.c12, terms.c6_14, terms.c12_14))


def _topology(path: Path) -> None:
    """Read charges and Lennard-Jones of a prmtop, a TOP or a TPR."""
    structure = read_topology(path)
    if structure.topology is not None and structure.topology.nonbonded is not None:
        _check(nonbonded(structure))


def _charges(path: Path) -> None:
    for residue in read_residue_charges(path):
        assert np.isfinite(list(residue.charges.values())).all()


def _groups(path: Path) -> None:
    for rows in read_groups(path, len(NAMES)).values():
        assert ((rows >= 0) & (rows < len(NAMES))).all()


def _cell(path: Path) -> None:
    assert 0 < read_cell(path).volume < np.inf


def _points(path: Path) -> None:
    places, names = read_points(path)
    assert len(places) == len(names)
    assert np.isfinite(places).all()


def _ligand(path: Path) -> None:
    ligand = read_ligand(path)
    assert np.isfinite(ligand.positions).all()
    assert ((ligand.sigma > 0) & (ligand.epsilon > 0)).all()


def _ion_parameters(path: Path) -> None:
    assert all(np.isfinite(values).all() for values in ion_parameters._of_amber(path).values())


def _copies(path: Path) -> None:
    """Build the assembly that a file lists, or the cell of a crystal where it lists none."""
    structure = read_structure(path)
    data = path.read_bytes()
    listed = b"assembly" in data or b"REMARK 350" in data
    made = (symmetry.assembly(structure, path, "1") if listed else symmetry.crystal(structure)).of_structure(structure)
    assert len(made)
    assert np.isfinite(made.positions).all()


def _velocities(path: Path) -> None:
    velocities = read_restart(path)[2]
    assert velocities is None or np.isfinite(velocities).all()


def _block(path: Path) -> None:
    """Go on after a run that was stopped: damaged blocks are computed again."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        shutil.copy(path, Path(folder) / "block-000000000-000000003.npz")
        results = list(_run(Path(folder), True))
        assert len(results) == 1


def _cache(path: Path) -> None:
    """Read what is kept of compiled kernels: what it was, or nothing."""
    shutil.copy(path, cache.folder("fuzz") / "entry")
    assert cache.read("entry", "fuzz") in (None, b"compiled" * 20)


def _batch(path: Path) -> None:
    for row in batch._former(path, True).values():
        assert set(row) >= set(COLUMNS)


def _opened_map(path: Path) -> None:
    grid = open_map(path, 0)
    assert np.isfinite(grid.values).all()


def _zarr(member: str, path: Path) -> None:
    """Read a Zarr map, which is a folder, of which one file is damaged."""
    folder = path.with_name(f"{path.name}.zarr")
    try:
        for name, data in zarr_files().items():
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(path.read_bytes() if name == member else data)
        _opened_map(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def zarr_files() -> dict[str, bytes]:
    """Return the files of a small Zarr map by their names in its folder; without coordinates, which are not read."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "seed.zarr"
        write_map(grid(), place)
        return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*")
                if path.is_file() and path.relative_to(place).parts[0] in ("zarr.json", "0")}


def _wave_function(path: Path) -> None:
    wavefunction = read_wavefunction(path)
    lattice = Lattice.around(wavefunction.positions[:1], 2.0, 2.0)
    assert np.isfinite(density_map(wavefunction, lattice).values).all()


def _bare(path: Path) -> None:
    """Complete a structure without hydrogens: every atom that is read is kept, or counted among those left out."""
    structure = fill_elements(read_structure(path))
    made = prepare_structure(structure)
    done, left = made.structure, made.left_out
    assert np.isfinite(done.positions).all()
    assert np.isfinite(done.known_charges).all()
    assert (done.radii >= 0).all()
    hydrogen = np.isin(structure.elements, ["H", "D"])
    dropped = sum(count for what, count in left.items() if "hydrogens" not in what)
    added = sum(len(row.added_atoms) for row in made.rows)
    assert (~hydrogen).sum() + added == (done.elements != "H").sum() + dropped
    kept = sum(row.kept_hydrogens for row in made.rows)
    assert hydrogen.sum() == kept + sum(count for what, count in left.items() if "hydrogens" in what)
    assert len(made.rows) == done.residue_count


READ: dict[str, Callable[[Path], None]] = {
    "bare structure": _bare,
    "trajectory": _trajectory, "parameters": _parameters, "force field": _force_field, "system": _system,
    "parameters of a topology": _topology, "charges": _charges, "groups": _groups, "cell": _cell, "points": _points,
    "parameters of ions": _ion_parameters, "block": _block, "cache": _cache, "batch": _batch, "opened map": _opened_map,
    "wave function": _wave_function, "ligand": _ligand, "copies": _copies, "velocities": _velocities,
    **TASKS,
}
if importlib.util.find_spec("zarr"):
    READ |= {f"zarr {name.replace('/', ' ')}": functools.partial(_zarr, name) for name in zarr_files()}


# ---- seeds ---------------------------------------------------------------------------------------------


def more_seeds(known: dict[str, Seeds]) -> dict[str, Seeds]:
    """Return the seeds of these kinds, from those of structures and maps and of their own."""
    structures, frames = dict(known["structure"]), dict(known["frame"])
    by_suffix = {suffix: data for files in known.values() for suffix, data in files}
    twice = [(".pdb", [data for suffix, data in known["structure"] if suffix == ".pdb"][-1]),
             (".gro", structures[".gro"] * 2), (".cif", structures[".cif"])]
    seeds: dict[str, Seeds] = {
        "trajectory": [(suffix, frames[suffix]) for suffix in (".dcd", ".xtc", ".trr") if suffix in frames],
        "charges": [(".mol2", MOL2.encode()), (".itp", ITP.encode()), (".xml", FORCE_FIELD.encode()),
                    (".csv", CHARGES.encode()),
                    *((".sdf", (DATA / f"acetate_{name}.sdf").read_bytes()) for name in ("other_title", "v3000"))],
        "copies": _with_assemblies(known["structure"][0][1]),
        "velocities": [(".rst7", _moving(frames[".rst7"])), (".ncrst", netcdf(system().positions, moving=True))],
        "groups": [(".ndx", NDX.encode())], "cell": [(".xsc", XSC.encode()), (".conf", NAMD.encode())],
        "points": [(".csv", POINTS.encode())],
        "ligand": [(".txt", LIGAND.encode())],
        "parameters of ions": [(".frcmod", FRCMOD.encode())],
        "parameters of a topology": [(".top", TOP.encode())],
        "cache": [(".entry", hashlib.sha256(b"compiled" * 20).digest() + b"compiled" * 20)],
        "batch": [(".csv", TABLE.encode())],
        "block": [(".npz", _written(_write_block, "block.npz"))],
        "opened map": [(suffix, by_suffix[suffix]) for suffix in (".mrc", ".ccp4", ".npz", ".dx")],
    }
    if importlib.util.find_spec("MDAnalysis"):
        seeds["trajectory"] += [*twice, *written_frames((".ncdf",))]
        if importlib.util.find_spec("h5py"):
            seeds["trajectory"].append((".h5md", _written(_write_h5md, "seed.h5md")))
    if importlib.util.find_spec("parmed"):
        seeds["parameters"] = [(".prm", PARAMETERS.encode()), (".str", STREAM.encode()), (".par", PARAMETERS.encode())]
    if importlib.util.find_spec("openmm"):
        seeds["force field"] = [(".xml", FORCE_FIELD.encode())]
        seeds["system"] = [(".xml", _openmm_system())]
    if place := importlib.util.find_spec("openmmtools"):
        folder = Path(str(place.origin)).parent / "data" / "alanine-dipeptide-gbsa"
        seeds["parameters of a topology"].append((".prmtop", (folder / "alanine-dipeptide.prmtop").read_bytes()))
    if ".tpr" in structures:
        seeds["parameters of a topology"].append((".tpr", structures[".tpr"]))
    if importlib.util.find_spec("hydride"):
        seeds["bare structure"] = _bare_structures()
    if importlib.util.find_spec("zarr"):
        for name, data in zarr_files().items():
            seeds[f"zarr {name.replace('/', ' ')}"] = [(".json" if name.endswith(".json") else ".chunk", data)]
    seeds |= answers_seeds()
    seeds["structure"] = [(".molden", (DATA / "ecp_core.molden").read_bytes()), (".cube", _cube())]
    if importlib.util.find_spec("iodata"):
        examples = resources.files("iodata.test.data")
        seeds["wave function"] = [(Path(name).suffix, (examples / name).read_bytes()) for name in (
            "h2o_sto3g.fchk", "h2o_sto3g.wfn", "lih_cation_rohf.wfx", "h_donly_cart_cfour.molden", "h2_sto3g.mkl")]
    return seeds


def _with_assemblies(pdb: bytes) -> Seeds:
    """Return a structure that lists an assembly of two copies, as PDB and mmCIF, and one of a crystal."""
    import gemmi

    listed = REMARK_350.encode() + pdb
    structure = gemmi.read_pdb_string(listed.decode())
    structure.setup_entities()
    return [(".pdb", listed), (".cif", structure.make_mmcif_document().as_string().encode()), (".pdb", pdb)]


def _write_h5md(path: Path) -> None:
    """Write two frames as H5MD (P. de Buyl, P. H. Colberg, F. Hoefling, Comput. Phys. Commun. 185 (2014) 1546)."""
    import h5py

    with h5py.File(path, "w") as file:
        file.create_group("h5md").attrs["version"] = [1, 1]
        atoms = file.create_group("particles/trajectory")
        atoms.create_group("box").attrs.update(dimension=3, boundary=["periodic"] * 3)
        for name, values in (("position", np.stack([system().positions] * 2)),
                             ("box/edges", np.stack([20.0 * np.eye(3)] * 2))):
            element = atoms.create_group(name)
            element["step"], element["time"], element["value"] = [0, 1], [0.0, 1.0], values.astype(np.float32)
            element["value"].attrs["unit"] = "Angstrom"
            element["time"].attrs["unit"] = "ps"


def _moving(restart: bytes) -> bytes:
    """Return a restart with velocities, which are between its positions and its box."""
    *lines, box = restart.splitlines(keepends=True)
    return b"".join([*lines, *lines[2:], box])


def _cube() -> bytes:
    """Return a map with two nuclei as a cube file."""
    head = _written(lambda path: write_map(grid(), path), "seed.cube").splitlines(keepends=True)
    atoms = [b"    8    8.000000    0.000000    0.000000    0.000000\n",
             b"    1    1.000000    1.800000    0.000000    0.000000\n"]
    count = int(head[2].split()[0])
    head[2] = b"%5d" % len(atoms) + head[2][5:]
    return b"".join([*head[:6], *atoms, *head[6 + count :]])


def _bare_structures() -> Seeds:
    """Return a peptide, a ligand, a nucleotide, a sugar, an ion and a water, without hydrogens, as PDB and mmCIF."""
    entry = read_structure(Path(__file__).parents[2] / "data" / "1hvr.pdb.gz")
    keep = (entry.residue_names == "XK2") | ((entry.residue_ids < 8) & (entry.chain_ids == "A"))
    parts = [(entry.atom_names[keep], entry.elements[keep], entry.residue_names[keep], entry.positions[keep])]
    for place, name in enumerate(("DG", "NAG", "SO4"), 1):
        ideal = find_component(name)
        count = len(ideal.atoms)
        parts.append((ideal.atoms, ideal.elements, [name] * count, ideal.positions + 40 * place))
    parts.append((["ZN", "O"], ["Zn", "O"], ["ZN", "HOH"], np.array([[5.0, 5, 60], [5, 9, 60]])))
    find_component("no name")  # the dictionary is loaded before processes are made
    names, elements, residues = (np.concatenate([part[k] for part in parts]) for k in range(3))
    number = np.cumsum(np.concatenate([[True], (residues[1:] != residues[:-1]) | (names[1:] == "N")]))
    made = Structure(np.concatenate([part[3] for part in parts]), names, residues, number, number - 1,
                     elements=elements, chain_ids=np.full(len(names), "A"))
    return [(suffix, _written(lambda path: write_structure(made, path), f"seed{suffix}"))
            for suffix in (".pdb", ".cif")]


def _write_block(path: Path) -> None:
    run = _run(path.parent / "blocks", False)
    (block,) = run.blocks
    run._keep(block, run.work.block(block), 1.0)
    shutil.copy(run._place(block), path)


@functools.cache
def _openmm_system() -> bytes:
    import openmm as program

    made, force = program.System(), program.NonbondedForce()
    for _ in range(2):
        made.addParticle(22.99)
        force.addParticle(1.0, 0.2, 0.1)
    force.addException(0, 1, 0.5, 0.2, 0.05)
    made.addForce(force)
    made.addForce(program.CMMotionRemover())
    return program.XmlSerializer.serialize(made).encode()
