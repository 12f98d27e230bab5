# Electrostatic potential maps, ion placement and slice images inside VMD.
#
#   package require vmdpotential
#   potential help
#
# VMD's own Python is not used: the commands write the atoms to a folder of their own, run the program vmdpotential
# as a child process, and load what it made. Which options a command has, their defaults and their help are asked of
# the program, so that commands of other packages appear here too. Works with Tcl 8.5 and later, with and without Tk.

package provide vmdpotential 0.2.0a0

namespace eval ::vmdpotential {
    variable folder [file dirname [file normalize [info script]]]
    # words that start the program; empty: found when it is first needed
    variable program {}
    # {program words, what it declared}, asked once
    variable declared {}
    # molecule -> maps that were made of it, and the representations that show the last one
    variable maps
    variable shown
    array set maps {}
    array set shown {}
    # ids of graphics that preview ions, as {molecule id}
    variable preview {}
}

foreach ::vmdpotential::part {json program options command export run show draw live gui} {
    source [file join $::vmdpotential::folder $::vmdpotential::part.tcl]
}

# The command for users.
proc potential {args} {
    if {[catch {::vmdpotential::main $args} result options]} {
        # an error is one line for the user, and not a trace of this plugin
        return -code error -errorcode [dict get $options -errorcode] $result
    }
    return $result
}

# What VMD's menu calls.
proc vmdpotential_tk {} {
    return [::vmdpotential::gui::show]
}

proc ::vmdpotential::main {words} {
    variable program
    set rest [lassign $words name]
    switch -- $name {
        "" {
            usage
            error "potential: name a command; see potential help"
        }
        help {
            return [eval_help $rest]
        }
        program {
            if {[llength $rest]} {
                set program [find_program $rest]
            }
            return [find_program {}]
        }
        stop - wait - jobs {
            return [job::$name {*}$rest]
        }
        live {
            switch -- [lindex $rest 0] {
                off - stop { return [live::stop] }
                wait { return [live::wait] }
                on { set rest [lrange $rest 1 end] }
            }
        }
        clear {
            return [show::clear_preview]
        }
    }
    return [run_command $name $rest]
}

# Say something to the user, in VMD's console where there is one, and in the dialog when it is open.
proc ::vmdpotential::say {text {level -info}} {
    gui::log $text $level
    foreach line [split $text \n] {
        if {[llength [info commands ::vmdcon]]} {
            ::vmdcon $level "vmdpotential) $line"
        } else {
            puts "vmdpotential) $line"
        }
    }
}

# Put the dialog into VMD's menus, once; without Tk there is nothing to do.
proc ::vmdpotential::install_menus {} {
    if {![info exists ::tk_version] || ![llength [info commands ::vmd_install_extension]]} {
        return
    }
    foreach {window path} {
        vmdpotential "Analysis/Electrostatic Potential"
        vmdpotential_ions "Modeling/Electrostatic Potential and Ions"
    } {
        ::vmd_install_extension vmdpotential vmdpotential_tk $path $window
    }
}
