"""Where values are: lattices, maps on them, and planes through them."""
