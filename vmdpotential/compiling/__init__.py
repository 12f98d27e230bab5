"""Compiled kernels: vector code, the cache of compiled functions, and threads."""
