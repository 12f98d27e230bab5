# Writing of VMD's atoms to files without loss: an mmCIF file (positions, names, residues, segments, elements, cell)
# and, if there are charges, a PSF (charges, types, masses and all bonded terms). VMD's own writers round charges,
# truncate names or omit the segment.

namespace eval ::vmdpotential::export {
    # VMD's numbers have single precision; writing 7 digits restores numbers of up to 7 digits from the original file
    variable keywords {name resname resid insertion chain segname element x y z occupancy beta charge mass type}
}

# Write the selected atoms of a command, also to a PSF if `topology` is true and they have charges; `needed` is true if
# the command needs charges. Return {structure file, PSF or empty, whether the atoms have charges, whether they are all
# atoms of the molecule, their indices, the frame}.
proc ::vmdpotential::export::write {molecule given folder topology needed} {
    set text all
    set frame now
    if {[dict exists $given sel]} {
        set text [dict get $given sel]
        if {[::vmdpotential::is_selection $text]} {
            set frame [$text frame]
            # by indices: its text could select other atoms in another frame
            set text "index [$text list]"
            if {$text eq "index "} {
                error "selection '[dict get $given sel]' has no atoms; select others"
            }
        }
    }
    if {[dict exists $given frame]} {
        set frame [dict get $given frame]
    }
    set number [frame_number $molecule $frame]
    if {[catch {atomselect $molecule $text frame $number} selection]} {
        error "selection '$text': $selection"
    }
    set every [atomselect $molecule all frame $number]
    set failed [catch {
        if {![$selection num]} {
            error "selection '$text' has no atoms in frame $frame; select others"
        }
        set left_out [alternates $every [$selection list]]
        if {[llength $left_out]} {
            ::vmdpotential::say "molecule $molecule: [llength $left_out] atoms of alternate locations are left out" -warn
            foreach name {selection every} {
                set kept [atomselect $molecule "index [without [[set $name] list] $left_out]" frame $number]
                [set $name] delete
                set $name $kept
            }
        }
        concat [write_atoms $molecule $selection $every $number $folder $topology $needed] \
            [list [$selection list] $number]
    } result options]
    $selection delete
    $every delete
    if {$failed} {
        return -options $options $result
    }
    return $result
}

# Return the atoms that are left out where a file lists alternate locations, as of a file: in every residue, the location
# with the largest sum of occupancies is kept, and the first of equals. One of which atoms are chosen precedes others.
proc ::vmdpotential::export::alternates {every chosen} {
    if {[lsearch -exact -not [$every get altloc] {}] < 0} {
        return {}
    }
    foreach index $chosen {
        set is_chosen($index) 1
    }
    set before {}
    set run 0
    set runs {}
    foreach atom [$every get {altloc index resid insertion chain segname occupancy}] {
        lassign $atom location index resid insertion chain segment occupancy
        if {[list $resid $insertion $chain $segment] ne $before} {
            set before [list $resid $insertion $chain $segment]
            incr run
        }
        if {$location eq ""} {
            continue
        }
        if {![dict exists $runs $run $location]} {
            dict set runs $run $location {}
            array set rank [list $run,$location,chosen 0 $run,$location,sum 0.0]
        }
        dict set runs $run $location [concat [dict get $runs $run $location] $index]
        set rank($run,$location,sum) [expr {$rank($run,$location,sum) + $occupancy}]
        if {[info exists is_chosen($index)]} {
            set rank($run,$location,chosen) 1
        }
    }
    set result {}
    dict for {run locations} $runs {
        set best [lindex $locations 0]
        dict for {location atoms} $locations {
            set more [expr {$rank($run,$location,chosen) - $rank($run,$best,chosen)}]
            if {$more > 0 || ($more == 0 && $rank($run,$location,sum) > $rank($run,$best,sum))} {
                set best $location
            }
        }
        lappend result {*}[concat {*}[dict values [dict remove $locations $best]]]
    }
    return $result
}

# Return the numbers of a list that are not in another one.
proc ::vmdpotential::export::without {numbers others} {
    foreach number $others {
        set is_other($number) 1
    }
    set result {}
    foreach number $numbers {
        if {![info exists is_other($number)]} {
            lappend result $number
        }
    }
    return $result
}

# Write all frames of the atoms, with their cells, and return the file: models if VMD read all coordinates from PDB files,
# as missing atoms are added to models, and otherwise a DCD.
proc ::vmdpotential::export::write_frames {molecule atoms folder} {
    set last [expr {[molinfo $molecule get numframes] - 1}]
    set type pdb
    foreach read [lindex [molinfo $molecule get filetype] 0] {
        if {$read ni {pdb dx ccp4 cube}} {
            set type dcd
        }
    }
    set file [file join $folder frames.$type]
    set selection [atomselect $molecule "index $atoms"]
    set failed [catch {
        animate write $type $file beg 0 end $last skip 1 waitfor all sel $selection $molecule
    } message]
    $selection delete
    if {$failed || ![file exists $file]} {
        error "the frames of molecule $molecule cannot be written: $message"
    }
    return $file
}

# Return the numbers, from 1, of the atoms of a job that a text in VMD's language selects; nothing for other text.
proc ::vmdpotential::export::rows {job text} {
    if {[catch {atomselect [dict get $job molecule] $text frame [dict get $job frame]} selection]} {
        return {}
    }
    foreach index [$selection list] {
        set chosen($index) 1
    }
    $selection delete
    set rows {}
    set row 0
    foreach index [dict get $job atoms] {
        incr row
        if {[info exists chosen($index)]} {
            lappend rows $row
        }
    }
    if {![llength $rows]} {
        error "selection '$text' has no atoms among those of the computation; select others"
    }
    return $rows
}

# Write groups of atoms, {name rows ...}, as an index file of GROMACS and return its name.
proc ::vmdpotential::export::write_groups {folder groups} {
    set path [file join $folder selections.ndx]
    set channel [open $path w]
    fconfigure $channel -encoding utf-8
    dict for {name rows} $groups {
        puts $channel "\[ $name \]\n[join $rows \n]"
    }
    close $channel
    return $path
}

# Return the number of a frame. VMD itself would use the last frame for a missing one, and the first for a word.
proc ::vmdpotential::export::frame_number {molecule word} {
    set count [molinfo $molecule get numframes]
    if {!$count} {
        error "molecule $molecule has no coordinates; load some with mol addfile"
    }
    switch -- $word {
        now { return [molinfo $molecule get frame] }
        first { return 0 }
        last { return [expr {$count - 1}] }
    }
    if {![regexp {^\d{1,9}$} $word] || [scan $word %d number] != 1 || $number >= $count} {
        set numbers [expr {$count > 1 ? "0 to [expr {$count - 1}]" : "0"}]
        error "-frame $word: molecule $molecule has $count frame[expr {$count > 1 ? "s" : ""}]; use now, first, last or\
            $numbers"
    }
    return $number
}

proc ::vmdpotential::export::write_atoms {molecule selection every number folder topology needed} {
    variable keywords
    set cell [molinfo $molecule get {a b c alpha beta gamma} frame $number]
    set structure [file join $folder structure.cif]
    set complete [expr {[$selection num] == [$every num]}]
    set charged [expr {$topology && [has_charges $molecule $selection $every $needed]}]
    if {$topology && $needed && !$charged && !$complete} {
        # charges will be those of templates: all atoms are written, as they determine the force field
        array set chosen {}
        foreach index [$selection list] {
            set chosen($index) 1
        }
        set marks {}
        foreach index [$every list] {
            lappend marks [info exists chosen($index)]
        }
        set atoms [$every get $keywords]
        check_names $molecule $atoms
        write_cif $structure $atoms $cell $marks
        return [list $structure {} 0 0]
    }
    set atoms [$selection get $keywords]
    check_names $molecule $atoms
    write_cif $structure $atoms $cell {}
    if {!$charged} {
        return [list $structure {} 0 $complete]
    }
    set psf [file join $folder structure.psf]
    write_psf $psf $molecule $atoms [terms $molecule $selection]
    return [list $structure $psf 1 $complete]
}

# Raise an error for atoms of an mmCIF file with elements as names: VMD's reader (1.9.4) does not read atom names.
proc ::vmdpotential::export::check_names {molecule atoms} {
    if {"pdbx" ni [lindex [molinfo $molecule get filetype] 0]} {
        return
    }
    foreach atom $atoms {
        if {![string equal -nocase [lindex $atom 0] [lindex $atom 6]]} {
            return
        }
    }
    set file [lindex [molinfo $molecule get filename] 0 0]
    error "VMD does not read atom names from mmCIF files; convert the file to PDB, and load that:\
        vmdpotential prepare --prepare never $file -o [file rootname [file tail $file]].pdb"
}

# Return whether the selected atoms have charges; atoms without charges have 0 in VMD. Residues in which all charges are
# 0 count as residues without charges if they are the majority of a molecule's residues; otherwise the zeros are kept.
# If charges are `needed`, there are warnings for unusual ones.
proc ::vmdpotential::export::has_charges {molecule selection every needed} {
    if {!$needed} {
        return [expr {[lsearch -exact -real -not [$selection get charge] 0] >= 0}]
    }
    set sum 0.0
    foreach residue [$every get residue] charge [$every get charge] {
        set sum [expr {$sum + $charge}]
        incr charged($residue) [expr {$charge != 0}]
    }
    foreach residue [$selection get residue] {
        set chosen($residue) 1
    }
    foreach residue [added_hydrogens $molecule $every] {
        if {[info exists chosen($residue)]} {
            error "residue $residue of molecule $molecule has hydrogens without a charge in VMD, and its other atoms have\
                charges; give all of them charges by -topology, or set all charges to 0 for those of templates"
        }
    }
    set without 0
    foreach {residue count} [array get charged] {
        incr without [expr {!$count}]
    }
    set all [array size charged]
    if {$without == $all} {
        ::vmdpotential::say "the charges of molecule $molecule are all 0 in VMD; force-field templates give others" -warn
        return 0
    }
    if {abs($sum - round($sum)) > 0.01} {
        ::vmdpotential::say [format "the charges of molecule %s sum to %.3f e in VMD, which is no integer; are they\
            guesses, or is a part missing?" $molecule $sum] -warn
    }
    if {2 * $without <= $all} {
        if {$without} {
            ::vmdpotential::say "the charges of $without of $all residues of molecule $molecule are 0 in VMD, and are\
                taken as they are" -warn
        }
        return 1
    }
    set missing 0
    foreach residue [$selection get residue] {
        incr missing [expr {!$charged($residue)}]
    }
    if {$missing && $missing < [$selection num]} {
        error "$missing of [$selection num] atoms of molecule $molecule have no charge in VMD, and the others have; give\
            all of them charges by -topology, select atoms of one kind, or set all charges to 0 for those of templates"
    }
    return [expr {!$missing}]
}

# Return the residues, in VMD's numbers, to which hydrogens with a charge of 0 were added: all of its hydrogens have none,
# or some do and the residue's charge is not a whole number, while other atoms have charges.
proc ::vmdpotential::export::added_hydrogens {molecule every} {
    set hydrogens [atomselect $molecule "(all) and hydrogen"]
    foreach index [$hydrogens list] {
        set is_hydrogen($index) 1
    }
    $hydrogens delete
    set zero {}
    foreach index [$every list] residue [$every get residue] charge [$every get charge] {
        if {![info exists total($residue)]} {
            array set total [list $residue 0.0]
            array set charged [list $residue 0]
            array set known [list $residue 0]
        }
        set total($residue) [expr {$total($residue) + $charge}]
        incr charged($residue) [expr {$charge != 0}]
        if {[info exists is_hydrogen($index)]} {
            incr known($residue) [expr {$charge != 0}]
            if {$charge == 0} {
                dict set zero $residue 1
            }
        }
    }
    set result {}
    foreach residue [dict keys $zero] {
        set whole [expr {abs($total($residue) - round($total($residue))) < 0.01}]
        if {$charged($residue) && (!$known($residue) || !$whole)} {
            lappend result $residue
        }
    }
    return $result
}

# Return a name as one word of printable ASCII, for file formats.
proc ::vmdpotential::export::word {text empty} {
    set text [regsub -all {[^!-~]} [join [regexp -all -inline {\S+} $text] _] _]
    # without expr, which would read names such as 1E2 and 007 as numbers
    if {$text eq ""} {
        return $empty
    }
    return $text
}

# Return a name as a value of an mmCIF file.
proc ::vmdpotential::export::quote {text} {
    set text [word $text ?]
    if {[regexp {^[A-Za-z0-9+*][A-Za-z0-9+*:.,/()-]*$} $text]
            && ![regexp -nocase {^(data|save|loop|stop|global)_} $text]} {
        return $text
    }
    # a quote ends a value only before a blank, and there are no blanks inside
    if {[string index $text 0] eq "\""} {
        return '$text'
    }
    if {$text ne "?"} {
        set text "\"$text\""
    }
    return $text
}

proc ::vmdpotential::export::write_cif {path atoms cell marks} {
    set lines [list data_vmd]
    set lengths [lrange $cell 0 2]
    if {[lindex $lengths 0] > 0 && [lindex $lengths 1] > 0 && [lindex $lengths 2] > 0} {
        foreach name {length_a length_b length_c angle_alpha angle_beta angle_gamma} value $cell {
            lappend lines [format "_cell.%s %.5f" $name $value]
        }
    }
    lappend lines loop_
    foreach name {group_PDB id type_symbol label_atom_id label_alt_id label_comp_id label_asym_id label_entity_id
            label_seq_id auth_seq_id pdbx_PDB_ins_code auth_asym_id vmdpotential_segment_id Cartn_x Cartn_y Cartn_z
            occupancy B_iso_or_equiv} {
        lappend lines _atom_site.$name
    }
    if {[llength $marks]} {
        lappend lines _atom_site.vmdpotential_selected
    }
    set row 0
    foreach atom $atoms mark $marks {
        lassign $atom name resname resid insertion chain segment element x y z occupancy beta
        # names repeat, so their text in the file is cached
        set key [list $name $resname $insertion $chain $segment $element]
        if {![info exists labels($key)]} {
            if {$element eq "" || $element eq "X"} {
                set element ?
            }
            set labels($key) [list \
                "[quote $element] [quote [word $name X]] . [quote [word $resname X]] [quote $chain] 1 ." \
                "[quote $insertion] [quote $chain] [quote $segment]"]
        }
        lappend lines [format "ATOM %d %s %d %s %.5f %.5f %.5f %.2f %.2f %s" [incr row] [lindex $labels($key) 0] $resid \
            [lindex $labels($key) 1] $x $y $z $occupancy $beta $mark]
    }
    write_lines $path $lines
}

# Return {bonds angles dihedrals impropers cross-terms} of the selected atoms, as flat lists of their numbers from 1.
proc ::vmdpotential::export::terms {molecule selection} {
    set row 0
    foreach index [$selection list] {
        set rows($index) [incr row]
    }
    set bonds {}
    foreach index [$selection list] partners [$selection getbonds] {
        foreach partner $partners {
            if {$partner > $index && [info exists rows($partner)]} {
                lappend bonds $rows($index) $rows($partner)
            }
        }
    }
    set result [list $bonds]
    foreach kind {angles dihedrals impropers crossterms} {
        set found {}
        if {[catch {lindex [molinfo $molecule get $kind] 0} entries]} {
            set entries {}  ;# older versions of VMD do not have them
        }
        foreach entry $entries {
            if {$kind ne "crossterms"} {
                set entry [lrange $entry 1 end]  ;# the first is the type
            }
            set here {}
            foreach index $entry {
                if {![info exists rows($index)]} {
                    break
                }
                lappend here $rows($index)
            }
            if {[llength $here] == [llength $entry]} {
                lappend found {*}$here
            }
        }
        lappend result $found
    }
    return $result
}

proc ::vmdpotential::export::write_psf {path molecule atoms terms} {
    lassign $terms bonds angles dihedrals impropers crossterms
    set lines [list "PSF EXT CMAP XPLOR" "" [format "%10d !NTITLE" 1] \
        " REMARKS charges from the VMD molecule $molecule" "" [format "%10d !NATOM" [llength $atoms]]]
    set row 0
    foreach atom $atoms {
        lassign $atom name resname resid insertion chain segment element x y z occupancy beta charge mass type
        set key [list $name $resname $chain $segment $type]
        if {![info exists labels($key)]} {
            set labels($key) [list [format %-8s [word $segment [word $chain SYS]]] [format "%-8s %-8s %-6s" \
                [word $resname X] [word $name X] [word $type [word $name X]]]]
        }
        lappend lines [format "%10d %s %-8s %s %14.7g %13.5f %11d" [incr row] [lindex $labels($key) 0] \
            $resid[string trim $insertion] [lindex $labels($key) 1] $charge $mass 0]
    }
    foreach {name list size per_line} [list "NBOND: bonds" $bonds 2 8 "NTHETA: angles" $angles 3 9 \
            "NPHI: dihedrals" $dihedrals 4 8 "NIMPHI: impropers" $impropers 4 8 "NCRTERM: cross-terms" $crossterms 8 8] {
        lappend lines "" [format "%10d !%s" [expr {[llength $list] / $size}] $name]
        for {set from 0} {$from < [llength $list]} {incr from $per_line} {
            set line ""
            foreach number [lrange $list $from [expr {$from + $per_line - 1}]] {
                append line [format "%10d" $number]
            }
            lappend lines $line
        }
    }
    write_lines $path $lines
}

proc ::vmdpotential::export::write_lines {path lines} {
    set channel [open $path w]
    fconfigure $channel -encoding utf-8 -translation lf
    if {[catch {puts $channel [join $lines \n]} message]} {
        catch {close $channel}
        error "$path: cannot be written ($message)"
    }
    close $channel
}
