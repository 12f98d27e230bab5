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
    # molecule -> its data
    variable molecules
    array set molecules {}
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
            ::recorder::load $id {*}$args
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
            if {[lindex $args 0] eq "all"} {
                array unset molecules
            } else {
                unset molecules([::recorder::molecule [lindex $args 0]])
            }
            if {![info exists molecules($top)]} {
                set top [lindex [concat -1 [lsort -integer [array names molecules]]] end]
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
            filespec { lappend result [dict get $data files] }
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
                if {![regexp {^(rep|color|material) (\d+)$} $keyword all what number]} {
                    error "molinfo: cannot find molinfo attribute '$keyword'"
                }
                set key [dict get {rep style color color material material} $what]
                lappend result [dict get [lindex [dict get $data reps] $number] $key]
            }
        }
    }
    return $result
}

proc ::recorder::load {id path args} {
    variable molecules
    set type [expr {[dict exists $args type] ? [dict get $args type] : [string range [file extension $path] 1 end]}]
    if {[lsearch -exact {psf pdb dx ccp4} $type] < 0 || ![file readable $path]} {
        error "Unable to load file '$path' using file type '$type'."
    }
    load_$type $id $path
    dict lappend molecules($id) files $path
    dict lappend molecules($id) types $type
}

proc ::recorder::load_psf {id path} {
    variable molecules
    set lines [lines $path]
    set atoms {}
    set at [lsearch -glob $lines "*!NATOM*"]
    set count [lindex [lindex $lines $at] 0]
    set residue -1
    set before {}
    foreach line [lrange $lines [expr {$at + 1}] [expr {$at + $count}]] {
        lassign [regexp -all -inline {\S+} $line] serial segment resid resname name type charge mass
        regexp {^(-?\d+)(.*)$} $resid all resid insertion
        if {[list $segment $resid $resname] ne $before} {
            incr residue
            set before [list $segment $resid $resname]
        }
        lappend atoms [dict create name $name resname $resname resid $resid insertion $insertion chain X \
            segname $segment element X occupancy 0.0 beta 0.0 charge [single $charge] \
            mass [single $mass] type $type residue $residue]
    }
    dict set molecules($id) atoms $atoms
    foreach {title key size} {!NBOND bonds 2 !NTHETA angles 3} {
        set at [lsearch -glob $lines "*$title*"]
        set count [expr {[lindex [lindex $lines $at] 0] * $size}]
        set numbers {}
        while {[llength $numbers] < $count} {
            lappend numbers {*}[lindex $lines [incr at]]
        }
        set terms {}
        for {set from 0} {$from < $count} {incr from $size} {
            set term [expr {$key eq "bonds" ? {} : "unknown"}]
            foreach number [lrange $numbers $from [expr {$from + $size - 1}]] {
                lappend term [expr {$number - 1}]
            }
            lappend terms $term
        }
        dict set molecules($id) $key $terms
    }
}

proc ::recorder::load_pdb {id path} {
    variable molecules
    set atoms [dict get $molecules($id) atoms]
    set empty [expr {![llength $atoms]}]
    set row 0
    set result {}
    set places {}
    set cell {0 0 0 90 90 90}
    set residue -1
    set before {}
    foreach line [lines $path] {
        if {[string match CRYST1* $line]} {
            set cell {}
            foreach number [lrange $line 1 6] {
                lappend cell [single $number]
            }
        }
        if {![string match ATOM* $line] && ![string match HETATM* $line]} {
            continue
        }
        if {$empty} {
            set resid [string trim [string range $line 22 25]]
            if {[string range $line 17 26] ne $before} {
                incr residue
                set before [string range $line 17 26]
            }
            set atom [dict create name [string trim [string range $line 12 15]] resname \
                [string trim [string range $line 17 20]] resid $resid insertion [string range $line 26 26] chain \
                [string range $line 21 21] segname [string trim [string range $line 72 75]] charge 0.0 mass 1.0 \
                type X residue $residue]
        } else {
            set atom [lindex $atoms $row]
        }
        set place {}
        foreach {first last} {30 37 38 45 46 53} {
            lappend place [single [string trim [string range $line $first $last]]]
        }
        lappend places $place
        foreach {key first last} {occupancy 54 59 beta 60 65} {
            dict set atom $key [single [string trim [string range $line $first $last]]]
        }
        dict set atom element [string totitle [string trim [string range $line 76 77]]]
        lappend result $atom
        incr row
    }
    if {!$empty && $row != [llength $atoms]} {
        error "Unable to load file '$path' using file type 'pdb'."
    }
    dict set molecules($id) atoms $result
    dict lappend molecules($id) frames [list $places $cell]
    dict set molecules($id) frame [expr {[llength [dict get $molecules($id) frames]] - 1}]
}

proc ::recorder::load_dx {id path} {
    variable molecules
    set volume {}
    set values {}
    set deltas {}
    set reading 0
    foreach line [lines $path] {
        if {$reading} {
            if {![string is double -strict [lindex $line 0]]} {
                set reading 0
            } else {
                lappend values {*}$line
            }
        } elseif {[regexp {^object 1 class gridpositions counts (\d+) (\d+) (\d+)} $line all nx ny nz]} {
            dict set volume counts [list $nx $ny $nz]
        } elseif {[string match origin* $line]} {
            dict set volume origin [lrange $line 1 3]
        } elseif {[string match delta* $line]} {
            lappend deltas [lindex $line [expr {[llength $deltas] + 1}]]
        } elseif {[string match "object 3*" $line]} {
            set reading 1
        }
    }
    if {[llength $values] != $nx * $ny * $nz} {
        error "Unable to load file '$path' using file type 'dx'."
    }
    dict set volume deltas $deltas
    dict set volume values $values
    dict lappend molecules($id) volumes $volume
}

# A map as our program writes it: orthogonal, columns along x, the place in the MRC's ORIGIN.
proc ::recorder::load_ccp4 {id path} {
    variable molecules
    set channel [open $path rb]
    set data [read $channel]
    close $channel
    binary scan $data i3x16i3f3 counts intervals lengths
    binary scan $data @196f3 origin
    lassign $counts nx ny nz
    binary scan $data @92i extension
    binary scan [string range $data [expr {1024 + $extension}] end] f* stored
    set values {}
    for {set i 0} {$i < $nx} {incr i} {
        for {set j 0} {$j < $ny} {incr j} {
            for {set k 0} {$k < $nz} {incr k} {
                lappend values [lindex $stored [expr {($k * $ny + $j) * $nx + $i}]]
            }
        }
    }
    set deltas {}
    foreach length $lengths number $intervals {
        lappend deltas [expr {$length / $number}]
    }
    dict lappend molecules($id) volumes [dict create counts $counts origin $origin deltas $deltas values $values]
}

# Write frames as VMD does: with cells.
proc animate {what type path args} {
    variable ::recorder::molecules
    ::recorder::record animate $what $type $path {*}$args
    set id [::recorder::molecule [lindex $args end]]
    set rows [[dict get [lrange $args 0 end-1] sel] list]
    set frames [dict get $molecules($id) frames]
    set channel [open $path wb]
    set header [binary format a4i9fi10 CORD [list [llength $frames] 0 1 0 0 0 0 0 0] 1.0 {1 0 0 0 0 0 0 0 0 24}]
    set title [binary format ia80 1 recorder]
    foreach record [list $header $title [binary format i [llength $rows]]] {
        ::recorder::put $channel $record
    }
    foreach frame $frames {
        lassign $frame places cell
        lassign $cell a b c alpha beta gamma
        ::recorder::put $channel [binary format d6 [list $a $gamma $b $beta $alpha $c]]
        foreach axis {0 1 2} {
            set column {}
            foreach row $rows {
                lappend column [lindex $places $row $axis]
            }
            ::recorder::put $channel [binary format f* $column]
        }
    }
    close $channel
}

proc ::recorder::put {channel record} {
    set length [binary format i [string length $record]]
    puts -nonewline $channel $length$record$length
}

# The value of a volume at a point, from the eight nodes around it.
proc ::recorder::interpolate {volume point} {
    set base {}
    set parts {}
    foreach x $point origin [dict get $volume origin] delta [dict get $volume deltas] count [dict get $volume counts] {
        set u [expr {($x - $origin) / double($delta)}]
        if {$u < 0 || $u > $count - 1} {
            return nan
        }
        set low [expr {min(int(floor($u)), $count - 2)}]
        lappend base $low
        lappend parts [expr {$u - $low}]
    }
    lassign $base i j k
    lassign $parts u v w
    lassign [dict get $volume counts] nx ny nz
    set values [dict get $volume values]
    set result 0.0
    foreach {a b c} {0 0 0 0 0 1 0 1 0 0 1 1 1 0 0 1 0 1 1 1 0 1 1 1} {
        set weight [expr {($a ? $u : 1 - $u) * ($b ? $v : 1 - $v) * ($c ? $w : 1 - $w)}]
        set value [lindex $values [expr {(($i + $a) * $ny + $j + $b) * $nz + $k + $c}]]
        set result [expr {$result + $weight * $value}]
    }
    return $result
}

proc atomselect {molecule text args} {
    variable ::recorder::molecules
    variable ::recorder::selections
    set id [::recorder::molecule $molecule]
    set frame [expr {[dict exists $args frame] ? [dict get $args frame] : "now"}]
    # what is no number counts as 0, and a frame that is not there as the last
    if {[string match -* $frame]} {
        error "atomselect: bad frame number in input, must be 'first', 'last', 'now', or a non-negative number"
    }
    set rows {}
    set row -1
    set words $text
    set dry [regexp {^\((.+)\) and not water$} $text all words]
    foreach atom [dict get $molecules($id) atoms] {
        incr row
        if {$dry && [dict get $atom resname] in {TIP3 HOH WAT SOL}} {
            continue
        }
        switch -regexp -- $words {
            {^all$} { set chosen 1 }
            {^none$} { set chosen 0 }
            {^index [\d ]+$} { set chosen [expr {[lsearch -exact -integer [lrange $words 1 end] $row] >= 0}] }
            {^resname \w+$} { set chosen [expr {[dict get $atom resname] eq [lindex $words 1]}] }
            {^segname \w+$} { set chosen [expr {[dict get $atom segname] eq [lindex $words 1]}] }
            default { error "atomselect: cannot parse selection text: $text" }
        }
        if {$chosen} {
            lappend rows $row
        }
    }
    set name atomselect$selections
    incr selections
    proc ::$name {command args} "::recorder::select [list $name $id $text $frame $rows] \$command {*}\$args"
    return $name
}

proc ::recorder::select {name id text frame rows command args} {
    variable molecules
    switch -- $command {
        num { return [llength $rows] }
        list { return $rows }
        molid { return $id }
        text { return $text }
        frame {
            if {[llength $args]} {
                # its text is not evaluated anew
                proc ::$name {command args} "::recorder::select [list $name $id $text [lindex $args 0] $rows] \$command {*}\$args"
                return
            }
            return $frame
        }
        delete {
            rename ::$name {}
            return
        }
        moveby {
            set number [dict get $molecules($id) frame]
            lassign [lindex [dict get $molecules($id) frames] $number] places cell
            foreach row $rows {
                set place {}
                foreach x [lindex $places $row] step [lindex $args 0] {
                    lappend place [single [expr {$x + $step}]]
                }
                lset places $row $place
            }
            dict set molecules($id) frames [lreplace [dict get $molecules($id) frames] $number $number \
                [list $places $cell]]
            return
        }
        getbonds {
            foreach row $rows {
                set partners($row) {}
            }
            foreach bond [dict get $molecules($id) bonds] {
                lassign $bond one two
                if {[info exists partners($one)]} { lappend partners($one) $two }
                if {[info exists partners($two)]} { lappend partners($two) $one }
            }
            set result {}
            foreach row $rows {
                lappend result $partners($row)
            }
            return $result
        }
        get {
            set atoms [dict get $molecules($id) atoms]
            set count [llength [dict get $molecules($id) frames]]
            switch -- $frame {
                now { set number [dict get $molecules($id) frame] }
                last { set number [expr {$count - 1}] }
                default { set number [expr {[string is digit -strict $frame] ? min($frame, $count - 1) : 0}] }
            }
            set places [lindex [dict get $molecules($id) frames] $number 0]
            set result {}
            foreach row $rows {
                set atom [lindex $atoms $row]
                lassign [lindex $places $row] x y z
                dict set atom x $x
                dict set atom y $y
                dict set atom z $z
                set values {}
                foreach key [lindex $args 0] {
                    if {[regexp {^interpvol(\d+)$} $key all volume]} {
                        lappend values [interpolate [lindex [dict get $molecules($id) volumes] $volume] \
                            [list [dict get $atom x] [dict get $atom y] [dict get $atom z]]]
                    } else {
                        lappend values [dict get $atom $key]
                    }
                }
                if {[llength $values] == 1} {
                    set values [lindex $values 0]
                }
                lappend result $values
            }
            return $result
        }
        set {
            lassign $args key values
            set atoms [dict get $molecules($id) atoms]
            if {[llength $values] == 1} {
                set values [lrepeat [llength $rows] [lindex $values 0]]
            }
            foreach row $rows value $values {
                set atom [lindex $atoms $row]
                dict set atom $key $value
                lset atoms $row $atom
            }
            dict set molecules($id) atoms $atoms
            return
        }
    }
    error "atomselect: the recorder does not know '$command'"
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
