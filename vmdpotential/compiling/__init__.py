"""How kernels are made, kept and run: vector code, the cache of compiled kernels, threads."""
