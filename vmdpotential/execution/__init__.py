"""Blocks of work and where they are computed: one way to submit them and to collect their results in order."""
