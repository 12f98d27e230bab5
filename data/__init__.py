"""Data that the package reads at run time; README.md says where it comes from."""
