"""File layer: reading of plain and compressed files with one-line errors, and writing of complete files."""
