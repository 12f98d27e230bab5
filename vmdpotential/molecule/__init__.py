"""What a structure is: atoms, cell, topology, selections, names, residues and charges."""
