"""A deposited entry cut to a few residues: its crystal, and an assembly that its file lists."""

import gzip
from pathlib import Path

import gemmi

ENTRY = Path(__file__).parents[2] / "data" / "1hvr.pdb.gz"

#: The assembly: two copies, the second one moved along y, A.
ASSEMBLY, ALONG_Y = "9", 30


def crystal_file(path: Path, models: int = 1) -> Path:
    """Write the first residues of an entry in its cell (P 61) as mmCIF or PDB, with an assembly; return the path.

    Each further model is moved by 1 A along x and 0.5 A along z.
    """
    file = gemmi.read_pdb_string(gzip.decompress(ENTRY.read_bytes()))
    file.raw_remarks = []  # which list another assembly
    file.remove_ligands_and_waters()
    file[0].remove_chain("B")
    while len(file[0]["A"]) > 12:
        del file[0]["A"][-1]
    file.setup_entities()
    assembly, generator = gemmi.Assembly(ASSEMBLY), gemmi.Assembly.Gen()
    generator.chains = ["A"]
    generator.subchains = [chain.subchain_id() for chain in file[0].subchains()]
    for shift in (0, ALONG_Y):
        operator = gemmi.Assembly.Operator()
        operator.transform = gemmi.Transform(gemmi.Mat33(), gemmi.Vec3(0, shift, 0))
        generator.operators.append(operator)
    assembly.generators.append(generator)
    del file.assemblies[:]
    file.assemblies.append(assembly)
    for number in range(2, models + 1):
        model = file[0].clone()
        model.num = number
        for atom in (atom for chain in model for residue in chain for atom in residue):
            atom.pos += gemmi.Position(number - 1, 0, 0.5 * (number - 1))
        file.add_model(model)
    if path.suffix == ".pdb":
        file.write_pdb(str(path))
    else:
        file.make_mmcif_document().write_file(str(path))
    return path
