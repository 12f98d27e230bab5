"""Charges of structures, completed where atoms are missing, and positions of added atoms in other frames."""
