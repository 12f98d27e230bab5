"""Energy maps of probe atoms in a structure, and free-energy maps of small molecules over frames."""
