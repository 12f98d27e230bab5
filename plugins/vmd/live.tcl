# The live map: a child process that keeps running, receives the coordinates whenever they have changed, and answers with
# a map. The next coordinates are sent when the map has arrived: frames that pass meanwhile are skipped. When other atoms
# are selected or their properties have changed, a new child receives them as files. VMD cannot remove a volume from a
# molecule, so each map is a separate molecule, which replaces the last one.

namespace eval ::vmdpotential::live {
    # the running live map, a dictionary; empty for none
    variable now {}
    # changed whenever a map has been shown or the live map has ended, for 'wait'
    variable changed 0
    # milliseconds between two checks for changes
    variable look 200
    # smallest ratio of the time between two comparisons of the atoms' properties to the time that one takes
    variable pause 20
    variable timer {}
    # the properties on which the atoms of a map, their charges and their radii depend
    variable properties {name resname resid insertion chain segname element charge mass type}
    # VMD's variables that change with a molecule, and the commands called then
    variable traces {
        vmd_frame ::vmdpotential::live::moved
        vmd_initialize_structure ::vmdpotential::live::edited
        vmd_molecule ::vmdpotential::live::edited
    }
}

# Start the live map, which replaces the molecule `map` if it is given; a running one is stopped. The user is informed
# by the line `why`.
proc ::vmdpotential::live::start {job {map -1} {why {}}} {
    variable now
    variable timer
    variable look
    variable traces
    if {$why eq ""} {
        stop
        set why "the map follows molecule [dict get $job molecule]; 'potential live off' ends it"
    } else {
        release
    }
    dict set job answer [file join [dict get $job folder] answer.tcl]
    set channel [::vmdpotential::job::open_child $job]
    fconfigure $channel -blocking 0 -buffering full -translation {auto binary}
    set molecule [dict get $job molecule]
    set text all
    if {[dict exists $job given sel]} {
        set text [dict get $job given sel]
        if {[::vmdpotential::is_selection $text]} {
            set text [$text text]
        }
    }
    set now [dict create job $job channel $channel molecule $molecule map $map busy 1 due 0 \
        sent {} count 0 start {} errors {} bytes [bytes_of [dict get $job atoms]] text $text identity {} compare 0 \
        missing 0 reported 0]
    dict set now identity [identity]
    fileevent $channel readable ::vmdpotential::live::readable
    foreach {variable command} $traces {
        trace add variable ::${variable}($molecule) write $command
    }
    set timer [after $look ::vmdpotential::live::poll]
    ::vmdpotential::gui::update_live
    ::vmdpotential::say $why
    return $molecule
}

# Request a map after VMD has changed the frame.
proc ::vmdpotential::live::moved {args} {
    variable now
    if {$now ne ""} {
        dict set now due 1
        send
    }
}

# Compare the atoms at the next check, after VMD has changed or deleted the molecule.
proc ::vmdpotential::live::edited {args} {
    variable now
    if {$now ne ""} {
        dict set now compare 0
    }
}

proc ::vmdpotential::live::poll {} {
    variable now
    variable timer
    variable look
    if {$now ne ""} {
        set timer [after $look ::vmdpotential::live::poll]
        check
    }
}

# Check for a deleted molecule, and for what VMD does not report: other atoms or properties of atoms, and moved atoms.
proc ::vmdpotential::live::check {} {
    variable now
    variable pause
    if {![exists]} {
        continue_with_another
        return
    }
    if {[dict get $now busy]} {
        return
    }
    set time [clock milliseconds]
    if {$time >= [dict get $now compare]} {
        set changed [expr {[identity] ne [dict get $now identity]}]
        dict set now compare [expr {$time + $pause * ([clock milliseconds] - $time)}]
        if {$changed} {
            set molecule [dict get $now molecule]
            restart [dict get $now job given] "the atoms of molecule $molecule have changed; the map follows them"
            return
        }
    }
    moved
}

# Return whether the molecule exists.
proc ::vmdpotential::live::exists {} {
    variable now
    return [expr {[dict get $now molecule] in [molinfo list]}]
}

# Return the numbers and the properties of the atoms that are selected now. A text that selects no atoms or is no longer
# valid changes nothing, nor does a selection that was deleted.
proc ::vmdpotential::live::identity {} {
    variable now
    variable properties
    set text [expr {[dict exists $now job given sel] ? [dict get $now job given sel] : "all"}]
    set given [::vmdpotential::is_selection $text]
    if {$given} {
        set selection $text
    } else {
        if {[regexp {^atomselect\d+$} $text]} {
            set text "index [dict get $now job atoms]"
        }
        if {[catch {atomselect [dict get $now molecule] $text} selection]} {
            return [dict get $now identity]
        }
    }
    set result [list [$selection list]]
    foreach property $properties {
        set values [$selection get $property]
        # as bytes, because comparing numbers as text is slow
        lappend result [expr {$property in {charge mass} ? [binary format f* $values] : $values}]
    }
    if {![$selection num]} {
        set result [dict get $now identity]
    }
    if {!$given} {
        $selection delete
    }
    return $result
}

# Restart with the atoms that are now selected; the next map replaces the last one.
proc ::vmdpotential::live::restart {given why} {
    variable now
    if {[catch {
        ::vmdpotential::prepare live [::vmdpotential::options live] $given
    } message] || [catch {start $message [dict get $now map] $why} message]} {
        end $message
    }
}

# Continue with the top molecule, or else the newest one, after the followed one was deleted, as where a mutant replaces
# it; if there is none, wait for one.
proc ::vmdpotential::live::continue_with_another {} {
    variable now
    variable changed
    set before [dict get $now molecule]
    foreach molecule [concat [molinfo top] [lsort -integer -decreasing [molinfo list]]] {
        if {$molecule >= 0 && [molinfo $molecule get numatoms] && [molinfo $molecule get numframes]} {
            set given [dict get $now job given]
            dict set given mol $molecule
            dict unset given frame
            if {[dict exists $given sel]} {
                dict set given sel [dict get $now text]
            }
            restart $given "molecule $before was deleted; the map follows molecule $molecule"
            return
        }
    }
    if {![dict get $now missing]} {
        dict set now missing 1
        incr changed
        ::vmdpotential::say "molecule $before was deleted; the map will follow the next one;\
            'potential live off' ends it"
    }
}

# Return the cell and the positions of the shown frame, the latter as VMD's 32-bit numbers, because comparing a system's
# coordinates as text takes a tenth of a second.
proc ::vmdpotential::live::coordinates {} {
    variable now
    set molecule [dict get $now molecule]
    set all [gettimestep $molecule [molinfo $molecule get frame]]
    set packed {}
    foreach {first last} [dict get $now bytes] {
        append packed [string range $all $first $last]
    }
    return [list [molinfo $molecule get {a b c alpha beta gamma}] $packed]
}

# Return the ranges of the atoms' bytes among those of all atoms, {first last ...}, one for consecutive atoms.
proc ::vmdpotential::live::bytes_of {atoms} {
    set pieces {}
    set before -2
    foreach atom $atoms {
        if {$atom != $before + 1} {
            if {$before >= 0} {
                lappend pieces [expr {12 * $begin}] [expr {12 * $before + 11}]
            }
            set begin $atom
        }
        set before $atom
    }
    return [lappend pieces [expr {12 * $begin}] [expr {12 * $before + 11}]]
}

# Return whether two frames have the same cell and positions, without making text of them.
proc ::vmdpotential::live::same {one other} {
    return [expr {[lindex $one 0] eq [lindex $other 0] && [lindex $one 1] eq [lindex $other 1]}]
}

# Send the shown coordinates, if they have changed and the last map has arrived.
proc ::vmdpotential::live::send {} {
    variable now
    if {[dict get $now busy] || ![dict get $now due] || ![exists]} {
        return
    }
    dict set now due 0
    if {[catch {coordinates} found]} {
        end $found
        return
    }
    if {[same $found [dict get $now sent]]} {
        return
    }
    dict set now sent $found
    dict set now busy 1
    lassign $found cell positions
    if {[catch {
        set channel [dict get $now channel]
        puts -nonewline $channel "frame [molinfo [dict get $now molecule] get frame] $cell\n"
        puts -nonewline $channel $positions
        flush $channel
    } message]} {
        end $message
    }
}

# Read the lines that the child has written, or its end.
proc ::vmdpotential::live::readable {} {
    variable now
    set channel [dict get $now channel]
    while {$now ne "" && [gets $channel line] >= 0} {
        set line [::vmdpotential::job::named [dict get $now job] [encoding convertfrom utf-8 $line]]
        if {[regexp {^map \S+ (\S+) (\S+) (\d+)$} $line all limit colours moved]} {
            tell_moved $moved
            if {[catch {show $limit $colours} message]} {
                end $message
                return
            }
        } elseif {[string match "vmdpotential: *" $line]} {
            dict lappend now errors [string range $line 14 end]
        } elseif {[string match "warning: *" $line]} {
            ::vmdpotential::say $line -warn
        }
    }
    if {$now ne "" && [eof $channel]} {
        end [lindex [concat [list "the program has ended"] [dict get $now errors]] end]
    }
}

# Tell once that the atoms of a map are elsewhere than those of the molecule.
proc ::vmdpotential::live::tell_moved {count} {
    variable now
    if {$count && ![dict get $now reported]} {
        dict set now reported 1
        set atoms [expr {$count == 1 ? "atom" : "atoms"}]
        ::vmdpotential::say "the live map is that of whole molecules, made by moving $count $atoms across the periodic\
            cell; 'pbc join fragment -molid [dict get $now molecule]' makes the shown molecules whole as well" -warn
    }
}

# Show a map in place of the last one, with the same representations.
proc ::vmdpotential::live::show {limit colours} {
    variable now
    variable changed
    if {![exists]} {
        return  ;# the next check continues with another molecule
    }
    set molecule [dict get $now molecule]
    set before [dict get $now map]
    if {$before >= 0 && $before ni [molinfo list]} {
        error "the map was deleted"
    }
    set top [molinfo top]
    # without VMD's lines about each map
    catch {set level [vmdcon -loglevel]; vmdcon -loglevel warn}
    set failed [catch {mol new [file join [dict get $now job folder] live.dx] type dx waitfor all} new]
    catch {vmdcon -loglevel $level}
    if {$failed} {
        error $new
    }
    mol rename $new "live potential of [lindex [molinfo $molecule get name] 0]"
    mol top $top
    set view {center_matrix rotate_matrix scale_matrix global_matrix}
    molinfo $new set $view [molinfo $molecule get $view]
    while {[molinfo $new get numreps]} {
        mol delrep 0 $new
    }
    if {$before >= 0} {
        for {set number 0} {$number < [molinfo $before get numreps]} {incr number} {
            lassign [molinfo $before get [list "rep $number" "color $number" "material $number"]] style colour material
            set rep [::vmdpotential::show::represent $new all $style $colour $material]
            mol scaleminmax $new $rep {*}[mol scaleminmax $before $number]
        }
        mol delete $before
    } else {
        set given [dict get $now job given]
        set level [expr {[dict exists $given isovalue] ? abs([dict get $given isovalue]) : $limit}]
        set limits [expr {[dict exists $given range] ? [::vmdpotential::show::span [dict get $given range]]
            : [list -$colours $colours]}]
        ::vmdpotential::show::choose_colours $limits
        ::vmdpotential::show::draw_map $new 0 $level $limits
    }
    if {[dict get $now start] eq ""} {
        dict set now start [clock milliseconds]
        if {![llength [dict get $now sent]]} {
            dict set now sent [coordinates]
        }
    }
    dict set now map $new
    dict set now busy 0
    dict incr now count
    incr changed
    if {[dict get $now due]} {
        # later, so that VMD can draw first
        after 1 ::vmdpotential::live::send_if
    }
}

proc ::vmdpotential::live::send_if {} {
    variable now
    if {$now ne ""} {
        send
    }
}

# Return when the map is up to date; raise an error if there is no live map, or no molecule.
proc ::vmdpotential::live::wait {} {
    variable now
    if {$now eq ""} {
        error "there is no live map"
    }
    edited
    check
    while {$now ne "" && ![dict get $now missing] && ([dict get $now busy] || [dict get $now due])} {
        vwait ::vmdpotential::live::changed
        if {$now ne ""} {
            check
        }
    }
    if {$now eq ""} {
        variable reason
        error $reason
    }
    if {[dict get $now missing]} {
        error "there is no molecule; load one first"
    }
    return [dict get $now map]
}

# Stop the live map for a reason that is reported to the user.
proc ::vmdpotential::live::end {why} {
    variable reason
    set reason "the live map has ended: $why"
    stop
    ::vmdpotential::say $reason -err
}

# Stop the live map, keeping the last map, and return the number of maps.
proc ::vmdpotential::live::stop {} {
    variable now
    if {$now eq ""} {
        return 0
    }
    set last $now
    release
    set count [dict get $last count]
    if {$count > 1} {
        set seconds [expr {([clock milliseconds] - [dict get $last start]) / 1000.0}]
        ::vmdpotential::say [format "the live map has ended after %d maps in %.1f s" $count $seconds]
    }
    return $count
}

# End the child and the traces.
proc ::vmdpotential::live::release {} {
    variable now
    variable timer
    variable changed
    variable traces
    set last $now
    set now {}
    ::vmdpotential::gui::update_live
    after cancel $timer
    foreach {variable command} $traces {
        trace remove variable ::${variable}([dict get $last molecule]) write $command
    }
    set channel [dict get $last channel]
    catch {fileevent $channel readable {}}
    catch {close $channel}
    ::vmdpotential::discard [dict get $last job]
    incr changed
}
