package ifneeded vmdpotential 0.1.0 [list source [file join $dir vmdpotential.tcl]]
