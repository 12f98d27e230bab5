"""Executors: blocks of work are submitted to threads, processes, GPUs or a cluster, and results return in order."""
