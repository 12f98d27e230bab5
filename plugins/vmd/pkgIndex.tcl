package ifneeded vmdpotential 0.2.0a0 [list source [file join $dir vmdpotential.tcl]]
