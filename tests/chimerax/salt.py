"""PDB files of ions, 4 A apart, and a water far away; what a user sees of a model."""


def pdb(*ions):
    """Return the text of a file: ions as element and residue number, in chain A."""
    rows = [(element, element, f"A{number:4}", 1 + 4 * n, 2, 3, element) for n, (element, number) in enumerate(ions)]
    rows += [(name, "HOH", "W   3", *place, name[0]) for name, place in (
        ("O", (20, 20, 20)), ("H1", (20.957, 20, 20)), ("H2", (19.76, 20.927, 20)))]
    lines = ["CRYST1   40.000   40.000   40.000  90.00  90.00  90.00 P 1           1"]
    for serial, (name, residue, where, x, y, z, element) in enumerate(rows, 1):
        lines.append(f"HETATM{serial:5} {name:<4} {residue:<3} {where}    {x:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00"
                     f"          {element:>2}")
    return "\n".join([*lines, "END", ""])


IONS = pdb(("NA", 1), ("CL", 2))


def state(model):
    """Return what a user sees of a structure, to find out whether it has changed."""
    atoms = model.atoms
    return (model.name, model.id_string, atoms.names.tolist(), atoms.coords.tolist(), atoms.colors.tolist(),
            atoms.draw_modes.tolist(), model.num_bonds, model.position.matrix.tolist(), model.display,
            [getattr(atom, "charge", None) for atom in atoms.instances(instantiate=False) if atom])
