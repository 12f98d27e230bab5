# Location of the program, and its declarations.

# Return the words that start the program. Without `given` words, these are the ones set by 'potential program', the
# environment variable VMDPOTENTIAL, the file written by 'vmdpotential install vmd', or the program in the search path.
proc ::vmdpotential::find_program {given} {
    variable program
    variable folder
    if {[llength $given]} {
        return [check_program $given "potential program"]
    }
    if {[llength $program]} {
        return $program
    }
    if {[info exists ::env(VMDPOTENTIAL)] && $::env(VMDPOTENTIAL) ne ""} {
        return [check_program [list $::env(VMDPOTENTIAL)] "the environment variable VMDPOTENTIAL"]
    }
    set path [file join $folder program.txt]
    if {[file readable $path]} {
        set channel [open $path r]
        fconfigure $channel -encoding utf-8
        set words [split [string trimright [read $channel] \n] \n]
        close $channel
        return [check_program $words $path]
    }
    set found [auto_execok vmdpotential]
    if {$found eq ""} {
        error "the program vmdpotential is not found; install it (pip install), then type\
            'potential program PATH' or set the environment variable VMDPOTENTIAL"
    }
    return [list [lindex $found 0]]
}

# Return the words with the first as a full path.
proc ::vmdpotential::check_program {words where} {
    set words [lassign $words path]
    if {[llength [file split $path]] == 1 && ![file exists $path]} {
        set path [lindex [auto_execok $path] 0]
    }
    set full [file normalize $path]
    if {$path eq "" || ![file executable $full] || [file isdirectory $full]} {
        error "$where: '$path' is not an executable program; give the path of the program vmdpotential"
    }
    return [linsert $words 0 $full]
}

# Return the commands that the program declares, as a dictionary.
proc ::vmdpotential::declarations {} {
    variable declared
    set words [find_program {}]
    if {[lindex $declared 0] ne $words} {
        set declared [list $words [job::ask $words plugins --declarations]]
        dict for {name reason} [dict get [lindex $declared 1] broken] {
            say "$name is left out: $reason" -warn
        }
    }
    return [dict get [lindex $declared 1] commands]
}

# Return equidistant colours of maps from the most negative value via 0 to the most positive: red, green, blue, 0 to 1.
proc ::vmdpotential::map_colours {} {
    variable declared
    declarations
    return [dict get [lindex $declared 1] colours]
}
