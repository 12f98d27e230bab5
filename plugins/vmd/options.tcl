# Options of commands: those that the program declares, and those of the molecule and its display in VMD; usage and help.

# Return the options of a command in VMD, {name declaration ...}, with those of the molecule first.
proc ::vmdpotential::options {command} {
    set commands [declarations]
    if {![dict exists $commands $command]} {
        error "there is no command '$command'; choose one of [join [dict keys $commands] {, }],\
            help, program, stop, wait, jobs, clear"
    }
    set all {}
    set declared [dict get $commands $command options]
    foreach option $declared {
        set kinds([dict get $option kind]) 1
    }
    set ours {}
    if {[info exists kinds(structure)]} {
        set atoms all
        set purpose "atoms of the system"
        foreach option $declared {
            if {[dict get $option kind] ne "structure"} {
                continue
            }
            set positional(sel) [dict get $option positional]
            if {![dict get $option required]} {
                set atoms ""
                set purpose [dict get $option help]
            }
        }
        lappend ours [list sel text $atoms "$purpose: a selection, or the result of atomselect"] \
            {frame text now {frame of the molecule: now, first, last or a number} 0}
    }
    if {![info exists kinds(data)]} {
        lappend ours {mol text top {molecule to use: top, or its number} 0}
    }
    lappend ours {wait boolean {} {whether to return only when it is done; otherwise VMD stays usable meanwhile}}
    foreach entry $ours {
        lassign $entry name kind default help front
        set leads [expr {[info exists positional($name)] && $positional($name)}]
        dict set all $name [dict create name $name kind $kind several 0 required 0 positional $leads viewer 1 \
            aliases {} suffix {} front [expr {$front ne "0"}] default $default help $help unit {} choices {} words {} \
            bundled 0 role {} own 1]
    }
    foreach option [dict get $commands $command display] {
        dict set option own 1
        dict set all [dict get $option name] $option
    }
    foreach option $declared {
        set name [dict get $option name]
        # options only for the shell are left out
        if {[dict get $option kind] ne "structure" && ![dict get $option shell] && ![dict exists $all $name]} {
            dict set option own 0
            dict set all $name $option
        }
    }
    return $all
}

# Return the name of the option with a role, which the program declares; empty if there is none.
proc ::vmdpotential::option_with_role {all role} {
    dict for {name declaration} $all {
        if {[dict get $declaration role] eq $role} {
            return $name
        }
    }
    return ""
}

proc ::vmdpotential::usage {} {
    say "usage: potential COMMAND ?SELECTION or MAP? ?-OPTION VALUE ...?"
    dict for {name command} [declarations] {
        say [format "  %-8s %s" $name [dict get $command summary]]
    }
    say "  help COMMAND  the options of a command"
    say "  program PATH  show or set which program is run"
    say "  stop, wait    end what is running, or wait for it; jobs lists it"
    say "  live off      end the live map; live wait waits until it is up to date"
    say "  clear         remove the preview of ions"
}

proc ::vmdpotential::eval_help {words} {
    if {![llength $words]} {
        return [usage]
    }
    set name [lindex $words 0]
    set all [options $name]
    say [dict get [declarations] $name description]
    say ""
    dict for {option declaration} $all {
        say [format "  -%-14s %s" $option [describe $declaration]]
    }
}

# Return the help of an option in one line; a field of the dialog shows choices and default itself.
proc ::vmdpotential::describe {declaration {field 0}} {
    dict with declaration {
        set details {}
        if {!$field && [llength $choices]} {
            lappend details [join $choices |]
        }
        if {$unit ne ""} {
            lappend details $unit
        }
        if {!$field && $default ne ""} {
            lappend details "default $default"
        }
        if {[llength $details]} {
            append help " ([join $details {, }])"
        }
        return $help
    }
}
