# What the plugin needs of VMD, for tests where there is none: molecules from PSF, PDB and DX files, selections,
# representations and graphics. It behaves as VMD's source does, odd sides included: numbers are single precision, and
# 'mol addfile' takes the molecule from the last word alone. Every call is appended to ::recorder::calls.

namespace eval ::recorder {
    variable calls {}
    variable top -1
    variable next 0
    variable selections 0
    variable graphic 0
    variable names 0
    variable level info
    # molecule -> its data
    variable molecules
    array set molecules {}
}

foreach part {files atoms} {
    source [file join [file dirname [file normalize [info script]]] recorder_$part.tcl]
}

proc ::recorder::record {args} {
    variable calls
    lappend calls $args
}

# Return and forget the calls whose first words match.
proc ::recorder::take {pattern} {
    variable calls
    set found [lsearch -all -inline -glob $calls $pattern]
    set calls {}
    return $found
}

# A number as VMD holds it.
proc ::recorder::single {number} {
    binary scan [binary format f $number] f number
    return $number
}

proc ::recorder::lines {path} {
    set channel [open $path r]
    set text [read $channel]
    close $channel
    return [split $text \n]
}

proc vmdcon {args} {
    variable ::recorder::level
    if {[lindex $args 0] eq "-loglevel"} {
        set level [lindex [concat $level [lrange $args 1 end]] end]
        return $level
    }
    ::recorder::record vmdcon {*}$args
}

proc vmd_install_extension {package callback path {window {}}} {
    ::recorder::record vmd_install_extension $package $callback $path $window
    package require $package
}

proc ::recorder::molecule {word} {
    variable molecules
    variable top
    if {$word eq "top"} {
        set word $top
    }
    if {![info exists molecules($word)]} {
        error "mol: no molecule exists with id $word"
    }
    return $word
}

proc mol {command args} {
    variable ::recorder::molecules
    variable ::recorder::top
    variable ::recorder::next
    ::recorder::record mol $command {*}$args
    switch -- $command {
        new {
            set id $next
            incr next
            set molecules($id) [dict create name [file tail [lindex $args 0]] atoms {} bonds {} angles {} \
                files {} types {} reps {} volumes {} frames {} frame 0 drawn 1]
            set top $id
            set ::vmd_molecule($id) 1
            if {[llength $args]} {
                ::recorder::load $id {*}$args
            }
            set ::vmd_initialize_structure($id) 1
            return $id
        }
        addfile {
            # options are pairs; only a word left over at the end is the molecule
            set id $top
            if {[llength $args] % 2 == 0} {
                set id [::recorder::molecule [lindex $args end]]
                set args [lrange $args 0 end-1]
            }
            ::recorder::load $id {*}$args
            return $id
        }
        delete {
            set deleted [lindex $args 0]
            if {$deleted eq "all"} {
                set deleted [array names molecules]
            }
            foreach word $deleted {
                unset molecules([::recorder::molecule $word])
            }
            if {![info exists molecules($top)]} {
                set top [lindex [concat -1 [lsort -integer [array names molecules]]] end]
            }
            # what scripts trace, once the molecules are gone
            foreach id $deleted {
                set ::vmd_initialize_structure($id) 0
                set ::vmd_molecule($id) 0
            }
        }
        on - off {
            dict set molecules([::recorder::molecule [lindex $args 0]]) drawn [expr {$command eq "on"}]
        }
        top {
            set top [::recorder::molecule [lindex $args 0]]
        }
        rename {
            dict set molecules([::recorder::molecule [lindex $args 0]]) name [lindex $args 1]
        }
        addrep {
            variable ::recorder::names
            set id [::recorder::molecule [lindex $args 0]]
            dict lappend molecules($id) reps [dict create name rep[incr names]]
        }
        delrep {
            lassign $args number id
            set id [::recorder::molecule $id]
            dict set molecules($id) reps [lreplace [dict get $molecules($id) reps] $number $number]
        }
        modstyle - modcolor - modselect - modmaterial {
            set args [lassign $args number id]
            set id [::recorder::molecule $id]
            set reps [dict get $molecules($id) reps]
            if {$number >= [llength $reps]} {
                error "mol $command: no such rep $number"
            }
            set rep [lindex $reps $number]
            dict set rep [string range $command 3 end] [join $args]
            dict set molecules($id) reps [lreplace $reps $number $number $rep]
        }
        scaleminmax {
            set args [lassign $args id number]
            set id [::recorder::molecule $id]
            set reps [dict get $molecules($id) reps]
            set rep [lindex $reps $number]
            if {![llength $args]} {
                return [expr {[dict exists $rep scale] ? [dict get $rep scale] : {0.0 1.0}}]
            }
            dict set rep scale $args
            dict set molecules($id) reps [lreplace $reps $number $number $rep]
        }
        repname {
            lassign $args id number
            return [dict get [lindex [dict get $molecules([::recorder::molecule $id]) reps] $number] name]
        }
        repindex {
            lassign $args id name
            set number -1
            foreach rep [dict get $molecules([::recorder::molecule $id]) reps] {
                incr number
                if {[dict get $rep name] eq $name} {
                    return $number
                }
            }
            return -1
        }
        default {
            error "mol: the recorder does not know '$command'"
        }
    }
    return
}

proc molinfo {args} {
    variable ::recorder::molecules
    variable ::recorder::top
    if {[llength $args] == 1} {
        switch -- [lindex $args 0] {
            top { return $top }
            list { return [lsort -integer [array names molecules]] }
            num { return [array size molecules] }
        }
    }
    lassign $args id get keywords frame number
    if {$get eq "set" && $keywords eq "frame" && [llength $args] == 4} {
        dict set molecules([::recorder::molecule $id]) frame $frame
        # what scripts trace
        set ::vmd_frame($id) $frame
        return
    }
    if {$get eq "set"} {
        foreach keyword $keywords value $frame {
            dict set molecules([::recorder::molecule $id]) $keyword $value
        }
        return
    }
    if {$get ne "get" || ($frame ne "" && $frame ne "frame") || [llength $args] > 5} {
        error "molinfo: called with unknown command"
    }
    set id [::recorder::molecule $id]
    set data $molecules($id)
    # a frame that is not there has no cell
    set cell [lindex [dict get $data frames] [expr {$number eq "" ? [dict get $data frame] : $number}] 1]
    if {$cell eq ""} {
        set cell {0 0 0 90 90 90}
    }
    set result {}
    foreach keyword $keywords {
        switch -- $keyword {
            name { lappend result [dict get $data name] }
            numreps { lappend result [llength [dict get $data reps]] }
            numvolumedata { lappend result [llength [dict get $data volumes]] }
            numatoms { lappend result [llength [dict get $data atoms]] }
            numframes { lappend result [llength [dict get $data frames]] }
            frame { lappend result [dict get $data frame] }
            drawn { lappend result [dict get $data drawn] }
            filename { lappend result [dict get $data files] }
            filetype { lappend result [dict get $data types] }
            a { lappend result [format %f [lindex $cell 0]] }
            b { lappend result [format %f [lindex $cell 1]] }
            c { lappend result [format %f [lindex $cell 2]] }
            alpha { lappend result [format %f [lindex $cell 3]] }
            beta { lappend result [format %f [lindex $cell 4]] }
            gamma { lappend result [format %f [lindex $cell 5]] }
            angles { lappend result [dict get $data angles] }
            dihedrals - impropers - crossterms { lappend result {} }
            center_matrix - rotate_matrix - scale_matrix - global_matrix {
                lappend result [expr {[dict exists $data $keyword] ? [dict get $data $keyword] : "matrix of $id"}]
            }
            default {
                if {![regexp {^(rep|color|material|selection) (\d+)$} $keyword all what number]} {
                    error "molinfo: cannot find molinfo attribute '$keyword'"
                }
                set key [dict get {rep style color color material material selection select} $what]
                lappend result [dict get [lindex [dict get $data reps] $number] $key]
            }
        }
    }
    return $result
}

# The positions of all atoms of a frame, as bytes.
proc gettimestep {molecule frame} {
    variable ::recorder::molecules
    set places [lindex [dict get $molecules([::recorder::molecule $molecule]) frames] $frame 0]
    return [binary format f* [concat {*}$places]]
}

proc graphics {molecule command args} {
    variable ::recorder::graphic
    ::recorder::molecule $molecule
    ::recorder::record graphics $molecule $command {*}$args
    if {$command eq "delete"} {
        return
    }
    return [incr graphic]
}
