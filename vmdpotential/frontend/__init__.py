"""All that knows what an option looks like: the shell program, declarations for viewers, installing plugins."""
