"""Maps of the energy of probes: atoms of a ligand with a structure, and small molecules over frames."""
