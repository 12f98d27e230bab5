"""Commands, each in a module with its typed parameters, the function that runs it, and its result."""
