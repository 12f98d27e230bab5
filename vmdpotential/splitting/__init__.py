"""The mathematics of split sums: splines, windows, mesh geometry, levels and images."""
