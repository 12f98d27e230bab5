"""Kernels in C++ that is also CUDA C: how they are compiled when the package is built, and run on the CPU."""
