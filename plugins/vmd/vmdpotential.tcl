# Electrostatic potential maps, ion placement and slice images inside VMD.
#
#   package require vmdpotential
#   potential help
#
# VMD's Python is not used: the commands write the atoms to a temporary folder, run the program vmdpotential as a child
# process, and load its results. The program declares the options of its commands with their defaults and help, so that
# commands of other packages are available, too. Works with Tcl 8.5 and later, with and without Tk.

package provide vmdpotential 0.2.0a0

namespace eval ::vmdpotential {
    variable folder [file dirname [file normalize [info script]]]
    # words that start the program as set by 'potential program', or empty
    variable program {}
    # {words that start the program, its declarations}, read once
    variable declared {}
    # maps of each molecule, and names of the representations that show the last one
    variable maps
    variable shown
    array set maps {}
    array set shown {}
    # graphics of the preview of ions, {molecule id} each
    variable preview {}
}

foreach ::vmdpotential::part {program options command export run show draw live gui} {
    source [file join $::vmdpotential::folder $::vmdpotential::part.tcl]
}

# The command for users.
proc potential {args} {
    if {[catch {::vmdpotential::main $args} result options]} {
        # the user gets one line, without a stack trace of this plugin
        return -code error -errorcode [dict get $options -errorcode] $result
    }
    return $result
}

# Open the dialog; called by VMD's menu.
proc vmdpotential_tk {} {
    return [::vmdpotential::gui::show]
}

proc ::vmdpotential::main {words} {
    variable program
    set rest [lassign $words name]
    switch -- $name {
        "" {
            usage
            error "potential: a command is needed; see potential help"
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

# Write text to VMD's console, or to standard output without one, and to the dialog if it is open.
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

# Add the dialog to VMD's menus, if there is Tk.
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
