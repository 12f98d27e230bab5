# For recorder.tcl: files that VMD reads into molecules, and trajectories that it writes.

proc ::recorder::load {id path args} {
    variable molecules
    set type [expr {[dict exists $args type] ? [dict get $args type] : [string range [file extension $path] 1 end]}]
    if {[lsearch -exact {psf pdb pdbx dx ccp4} $type] < 0 || ![file readable $path]} {
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
                [string range $line 21 21] segname [string trim [string range $line 72 75]] altloc [string trim [string range $line 16 16]] charge 0.0 \
                mass 1.0 type X residue $residue]
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

# An mmCIF file with a row of words for each atom, as VMD 1.9.4 reads it: elements for names, and no cell.
proc ::recorder::load_pdbx {id path} {
    variable molecules
    set tags {}
    set result {}
    set places {}
    set residue -1
    set before {}
    foreach line [lines $path] {
        if {[string match _atom_site.* $line]} {
            lappend tags [string trim [string range $line 11 end]]
        }
        if {![string match ATOM* $line] && ![string match HETATM* $line]} {
            continue
        }
        foreach tag $tags word $line {
            set value($tag) [expr {$word in {. ?} ? {} : $word}]
        }
        set key [list $value(auth_asym_id) $value(auth_seq_id) $value(label_comp_id)]
        if {$key ne $before} {
            incr residue
            set before $key
        }
        lappend result [dict create name $value(type_symbol) resname $value(label_comp_id) resid $value(auth_seq_id) \
            insertion $value(pdbx_PDB_ins_code) chain $value(auth_asym_id) segname $value(auth_asym_id) charge 0.0 mass 1.0 \
            type X residue $residue occupancy 1.0 beta 0.0 element $value(type_symbol)]
        lappend places [list [single $value(Cartn_x)] [single $value(Cartn_y)] [single $value(Cartn_z)]]
    }
    dict set molecules($id) atoms $result
    dict lappend molecules($id) frames [list $places {0 0 0 90 90 90}]
}

proc ::recorder::load_dx {id path} {
    variable molecules
    set volume {}
    set values {}
    set deltas {}
    set reading 0
    set channel [open $path rb]
    set data [read $channel]
    close $channel
    if {[set at [string first "binary data follows\n" $data]] >= 0} {
        binary scan [string range $data [expr {$at + 20}] end] f* values
    }
    foreach line [split [string range $data 0 [expr {$at < 0 ? "end" : $at}]] \n] {
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
    set count [expr {$nx * $ny * $nz}]
    if {[llength $values] < $count || ($at < 0 && [llength $values] > $count)} {
        error "Unable to load file '$path' using file type 'dx'."
    }
    set values [lrange $values 0 $count-1]
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
    if {$type eq "pdb"} {
        ::recorder::write_pdb $path $frames [lsort -integer $rows] [dict get $molecules($id) atoms]
        return
    }
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

# Models of a PDB file, as VMD writes them: the cell of the first one.
proc ::recorder::write_pdb {path frames rows atoms} {
    set channel [open $path w]
    puts $channel [format "CRYST1%9.3f%9.3f%9.3f%7.2f%7.2f%7.2f P 1           1" {*}[lindex $frames 0 1]]
    foreach frame $frames {
        set serial 0
        foreach row $rows {
            set atom [lindex $atoms $row]
            foreach key {name resname chain resid segname altloc} {
                set $key [expr {[dict exists $atom $key] ? [dict get $atom $key] : ""}]
            }
            puts $channel [format "ATOM  %5d %-4s%1s%-4s%1s%4d    %8.3f%8.3f%8.3f%6.2f%6.2f      %-4s" \
                [expr {[incr serial] % 100000}] $name $altloc $resname $chain $resid {*}[lindex $frame 0 $row] 1 0 $segname]
        }
        puts $channel END
    }
    close $channel
}

proc ::recorder::put {channel record} {
    set length [binary format i [string length $record]]
    puts -nonewline $channel $length$record$length
}
