"""Tasks over the frames of a trajectory: means with their errors, profiles, fields; in blocks, on several machines."""
