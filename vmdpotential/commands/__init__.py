"""Commands: one file each, with typed parameters, what to run, and the result."""
