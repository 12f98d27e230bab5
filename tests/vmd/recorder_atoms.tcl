# For recorder.tcl: selections of atoms, what they say and change, and values of maps where atoms are.

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
    set hydrogens [regexp {^\((.+)\) and hydrogen$} $words all words]
    set left_out {}
    regexp {^(.+) and not index ([\d ]+)$} $words all words left_out
    set dry [regexp {^\((.+)\) and not water$} $words all words]
    foreach atom [dict get $molecules($id) atoms] {
        incr row
        if {[lsearch -exact -integer $left_out $row] >= 0} {
            continue
        }
        if {$dry && [dict get $atom resname] in {TIP3 HOH WAT SOL}} {
            continue
        }
        if {$hydrogens && ![string match H* [dict get $atom name]]} {
            continue
        }
        switch -regexp -- $words {
            {^all$} { set chosen 1 }
            {^water$} { set chosen [expr {[dict get $atom resname] in {TIP3 HOH WAT SOL}}] }
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
                # its text is not evaluated again
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
        writepdb {
            set channel [open [lindex $args 0] w]
            set serial 0
            foreach values [::recorder::select $name $id $text $frame $rows get {name resname chain resid segname x y z}] {
                lassign $values atom residue chain number segment x y z
                puts $channel [format "ATOM  %5d %-4s %-4s%1s%4d    %8.3f%8.3f%8.3f%6.2f%6.2f      %-4s" \
                    [expr {[incr serial] % 100000}] $atom $residue $chain [expr {$number % 10000}] $x $y $z 1 0 $segment]
            }
            puts $channel END
            close $channel
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
                set atom [dict merge {altloc {}} $atom [list index $row]]
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
