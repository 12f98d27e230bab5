"""What users ask of pairs of atoms: energies and forces between selections, distances."""
