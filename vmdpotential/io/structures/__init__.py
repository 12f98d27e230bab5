"""Files of structures: coordinates, with names and cells."""
