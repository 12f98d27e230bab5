# Electrostatic potential maps, ion placement and slice images inside VMD.
#
#   package require vmdpotential
#   potential help
#
# VMD's own Python is not used: the commands write the atoms to a folder of their own, run the program vmdpotential
# as a child process, and load what it made. Which options a command has, their defaults and their help are asked of
# the program, so that commands of other packages appear here too. Works with Tcl 8.5 and later, with and without Tk.

package provide vmdpotential 0.1.0

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

foreach ::vmdpotential::part {json export run show gui} {
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

# Return the words that start the program, given or found: set by hand, in VMDPOTENTIAL, written by
# 'vmdpotential install vmd', or in the search path.
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
        error "the program vmdpotential is not found; install it (pip install), then say\
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
        error "$where: '$path' is no program that can be run; name the program vmdpotential with its folder"
    }
    return [linsert $words 0 $full]
}

# Return what the program declares: a dictionary of commands.
proc ::vmdpotential::declarations {} {
    variable declared
    set words [find_program {}]
    if {[lindex $declared 0] ne $words} {
        set answer [job::ask $words plugins --declarations --json]
        set declared [list $words [json::parse $answer]]
        dict for {name reason} [dict get [lindex $declared 1] broken] {
            say "$name is left out: $reason" -warn
        }
    }
    return [dict get [lindex $declared 1] commands]
}

# Return the options of a command as VMD offers them, {name declaration ...}: what concerns the molecule first.
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
        foreach option $declared {
            if {[dict get $option kind] eq "structure" && ![dict get $option required]} {
                set atoms ""
            }
        }
        lappend ours [list sel text $atoms {atoms: a selection, or what atomselect returned}] \
            {frame text now {frame of the molecule: now, first, last or a number}}
    }
    lappend ours {mol text top {molecule}}
    if {$command eq "map"} {
        lappend ours {isovalue number {} {where isosurfaces are drawn, with both signs; a round value unless given}}
    }
    lappend ours {wait boolean {} {return when it is done; without it, VMD stays usable meanwhile}}
    foreach entry $ours {
        lassign $entry name kind default help
        dict set all $name [dict create name $name kind $kind several 0 required 0 positional 0 viewer 1 \
            default $default help $help unit {} choices {} own 1]
    }
    foreach option $declared {
        set name [dict get $option name]
        if {[dict get $option kind] ne "structure" && ![dict exists $all $name]} {
            dict set option own 0
            dict set all $name $option
        }
    }
    return $all
}

proc ::vmdpotential::usage {} {
    say "usage: potential COMMAND ?SELECTION or MAP? ?-OPTION VALUE ...?"
    dict for {name command} [declarations] {
        say [format "  %-8s %s" $name [dict get $command summary]]
    }
    say "  help COMMAND  the options of a command"
    say "  program PATH  which program is run"
    say "  stop, wait    end what is running, or wait for it; jobs lists it"
    say "  clear         take the preview of ions away"
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

# Return the help of an option in one line.
proc ::vmdpotential::describe {declaration} {
    dict with declaration {
        set details {}
        if {[llength $choices]} {
            lappend details [join $choices |]
        }
        if {$unit ne ""} {
            lappend details $unit
        }
        if {$default ne ""} {
            lappend details "default $default"
        }
        if {[llength $details]} {
            append help " ([join $details {, }])"
        }
        return $help
    }
}

# Run one of the program's commands: check the words, write the atoms, start the child.
proc ::vmdpotential::run_command {command words} {
    set all [options $command]
    set given [parse_words $command $all $words]
    set job [prepare $command $all $given]
    if {[dict exists $given wait] && [dict get $given wait] ne ""} {
        set waits [dict get $given wait]
        if {![string is boolean -strict $waits]} {
            discard $job
            error "-wait '$waits': say 1 or 0"
        }
    } else {
        # in a file that is being sourced, the next line may need the result
        set waits [expr {[info script] ne ""}]
    }
    set id [job::start $job]
    return [expr {$waits ? [job::wait $id] : $id}]
}

# Return {option values}: leading words without a dash are the selection or the maps.
proc ::vmdpotential::parse_words {command all words} {
    set given {}
    set leading {}
    while {[llength $words] && ![string match -* [lindex $words 0]]} {
        set words [lassign $words word]
        lappend leading $word
    }
    set required {}
    dict for {name declaration} $all {
        if {[dict get $declaration kind] eq "map"} {
            set required $name
        }
    }
    if {[llength $leading]} {
        if {[dict exists $all sel] && ($required eq "" || $command ne "slice")} {
            if {[llength $leading] > 1} {
                error "potential $command: one selection is expected, and options begin with a dash;\
                    got '[join $leading {' '}]'"
            }
            dict set given sel [lindex $leading 0]
        } else {
            dict set given $required $leading
        }
    }
    if {[llength $words] % 2} {
        error "potential $command: [lindex $words end] needs a value"
    }
    foreach {option value} $words {
        set name [string map {- _} [string trimleft $option -]]
        if {$name eq "o"} {
            set name output
        }
        if {![string match -* $option] || ![dict exists $all $name]} {
            error "potential $command: there is no option '$option'; it has -[join [dict keys $all] { -}]"
        }
        # what may be several is repeated, one value each, so that a blank in a name separates nothing
        if {[dict get $all $name several]} {
            dict lappend given $name $value
        } else {
            dict set given $name $value
        }
    }
    return $given
}

# Return a job: the program's words, with the atoms written to a folder of its own.
proc ::vmdpotential::prepare {command all given} {
    set molecule [find_molecule $given]
    set job [dict create command $command molecule $molecule folder [job::make_folder] selected {} charged 0]
    if {[catch {arguments $job $all $given} result options]} {
        discard $job
        return -options $options $result
    }
    return $result
}

# Remove what a job wrote.
proc ::vmdpotential::discard {job} {
    catch {file delete -force -- [dict get $job folder]}
}

# Return the molecule of -mol, or of a selection that was made before.
proc ::vmdpotential::find_molecule {given} {
    if {[dict exists $given sel] && [is_selection [dict get $given sel]]} {
        return [[dict get $given sel] molid]
    }
    set molecule top
    if {[dict exists $given mol] && [dict get $given mol] ne ""} {
        set molecule [dict get $given mol]
    }
    if {$molecule eq "top"} {
        set molecule [molinfo top]
    }
    if {[lsearch -exact [molinfo list] $molecule] < 0} {
        error "there is no molecule [expr {$molecule eq {-1} ? {} : $molecule}]; load one first"
    }
    return $molecule
}

# Tell whether a word is a selection that atomselect returned.
proc ::vmdpotential::is_selection {word} {
    return [expr {[regexp {^atomselect\d+$} $word] && [llength [info commands ::$word]]}]
}

# Return the job with the arguments of the program.
proc ::vmdpotential::arguments {job all given} {
    set command [dict get $job command]
    set folder [dict get $job folder]
    set kinds {}
    foreach option [dict get [declarations] $command options] {
        lappend kinds [dict get $option name] $option
    }
    set words [list $command --json]
    set positions {}
    foreach {name option} $kinds {
        set kind [dict get $option kind]
        set wanted [expr {[dict get $option required] || [dict exists $given sel] || [dict exists $given mol]}]
        if {$kind eq "structure" && $wanted} {
            set topology [expr {[dict exists $given topology] && [dict get $given topology] ne ""}]
            lassign [export::write [dict get $job molecule] $given $folder [expr {!$topology}]] file written charged
            dict set job charged $charged
            if {[dict get $option positional]} {
                lappend positions $file
            } else {
                lappend words --$name=$file
            }
            if {$written ne "" && [lsearch -exact $kinds topology] >= 0} {
                lappend words --topology=$written
            }
        } elseif {$kind eq "map"} {
            set names {}
            if {[dict exists $given $name]} {
                set names [dict get $given $name]
            }
            foreach file [find_maps $job $names [dict get $option required]] {
                lappend positions $file
            }
        }
    }
    dict for {name value} $given {
        set option [dict get $all $name]
        if {[dict get $option own] || [dict get $option kind] eq "map" || $value eq ""} {
            continue
        }
        set flag --[string map {_ -} $name]
        foreach item [expr {[dict get $option several] ? $value : [list $value]}] {
            switch -- [dict get $option kind] {
                boolean {
                    if {![string is boolean -strict $item]} {
                        error "-$name '$item': say yes or no"
                    }
                    lappend words [expr {$item ? $flag : "--no-[string range $flag 2 end]"}]
                }
                file {
                    lappend words $flag=[full_path $item]
                }
                default {
                    lappend words $flag=$item
                }
            }
        }
    }
    lassign [show::outputs $job $given $kinds] outputs job
    dict set job words [concat $words $outputs $positions]
    dict set job given $given
    return $job
}

# Return a full path; a name is never a user's home or an option.
proc ::vmdpotential::full_path {name} {
    if {[catch {file normalize $name} path]} {
        set path [file normalize ./$name]
    }
    return $path
}

# Return the files of maps: those named, else the last one made of the molecule or loaded into it.
proc ::vmdpotential::find_maps {job names required} {
    variable maps
    set found {}
    foreach name $names {
        set path [full_path $name]
        if {![file exists $path]} {
            error "there is no map '$name'; name a file, such as potential.dx"
        }
        lappend found $path
    }
    if {[llength $found] || !$required} {
        return $found
    }
    set molecule [dict get $job molecule]
    set known {}
    foreach file [lindex [molinfo $molecule get filespec] 0] type [lindex [molinfo $molecule get filetype] 0] {
        if {[lsearch -exact {dx ccp4 mrc cube map} $type] >= 0 && [file exists $file]} {
            lappend known [full_path $file]
        }
    }
    if {[info exists maps($molecule)]} {
        foreach file $maps($molecule) {
            if {[file exists $file]} {
                lappend known $file
            }
        }
    }
    if {![llength $known]} {
        error "molecule $molecule has no map; make one with 'potential map', or name a file"
    }
    return [list [lindex $known end]]
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
