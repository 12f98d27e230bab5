"""Tasks over the frames of a trajectory: means with errors, profiles and fields, computed in blocks of frames."""
