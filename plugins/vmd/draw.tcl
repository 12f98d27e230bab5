# Drawing of results: representations of maps, the coloured surface, its bar of colours, ions and their preview.

namespace eval ::vmdpotential::show {
    # molecules whose first surface has been drawn, so that their water is not hidden again
    variable without_water
    array set without_water {}
}

# Return the limits of colours, {low high}, from one number, for both signs, or two numbers separated by a comma.
proc ::vmdpotential::show::span {text option} {
    set numbers [split [string map {{ } {}} $text] ,]
    if {[llength $numbers] == 1 && [string is double -strict $text]} {
        set numbers [list [expr {-abs($text)}] [expr {abs($text)}]]
    }
    lassign $numbers low high
    if {[llength $numbers] != 2 || ![string is double -strict $low] || ![string is double -strict $high]
            || !($low < $high)} {
        error "[expr {$option ? "-range " : {}}]'$text': a number such as 5 is needed, or two with the lower first, such as -5,5"
    }
    return $numbers
}

# Return the atoms of a selection that have no part in a map: free ions, and marks of a membrane.
proc ::vmdpotential::show::without_part {job data selection} {
    set atoms [dict get $job atoms]
    foreach run [dict get $data surface_atoms] {
        lassign $run first count
        foreach index [lrange $atoms $first [expr {$first + $count - 1}]] {
            set kept($index) 1
        }
    }
    set others {}
    foreach index [$selection list] {
        if {[array size kept] && ![info exists kept($index)]} {
            lappend others $index
        }
    }
    return $others
}

# Draw the surface of the atoms that were computed, coloured by a volume.
proc ::vmdpotential::show::draw_surface {job data molecule volume limits} {
    set text all
    if {[dict exists $job given sel]} {
        set text [dict get $job given sel]
        # by indices, as the selection may have been deleted meanwhile
        if {[regexp {^atomselect\d+$} $text]} {
            set text "index [dict get $job atoms]"
        }
    }
    set solute "($text) and not water"
    set selection [atomselect $molecule $solute]
    if {![$selection num]} {
        set solute $text
    } elseif {[dict exists $data surface_atoms] && [llength [set others [without_part $job $data $selection]]]} {
        append solute " and not index $others"
    }
    $selection delete
    set all [atomselect $molecule $solute]
    set hydrogens [atomselect $molecule "($solute) and hydrogen"]
    # QuickSurf needs no other program, unlike other surfaces; these radii, densities and grid spacings resemble a
    # molecular surface. If most hydrogens are missing, the heavy atoms need larger radii.
    set radius [expr {3 * [$hydrogens num] < [$all num] ? 0.8 : 0.6}]
    $all delete
    $hydrogens delete
    choose_colours $limits
    set number [add_map $molecule $solute [list QuickSurf $radius 0.5 0.7 1] [list Volume $volume] Opaque]
    mol scaleminmax $molecule $number {*}$limits
}

# Set the colours of the other viewers: negative red, 0 white, positive blue. VMD has one scale for all representations,
# with three colours, which cannot be set before version 1.9.4.
proc ::vmdpotential::show::choose_colours {limits} {
    lassign $limits low high
    catch {
        if {[colorinfo scale method] ne "RWB"} {
            color scale method RWB
        }
        color scale midpoint [expr {$low < 0 && $high > 0 ? -$low / double($high - $low) : 0.5}]
        color scale colors RWB {*}[::vmdpotential::map_colours]
    }
}

# Hide the water of a molecule when its first surface is drawn, by changing representations of all atoms to all except
# water; later, the user's choice is kept.
proc ::vmdpotential::show::hide_water {molecule} {
    variable without_water
    variable ::vmdpotential::shown
    if {[info exists without_water($molecule)]} {
        return
    }
    set without_water($molecule) 1
    for {set number 0} {$number < [molinfo $molecule get numreps]} {incr number} {
        if {[lindex [molinfo $molecule get [list "selection $number"]] 0] eq "all"
                && [mol repname $molecule $number] ni $shown($molecule)} {
            mol modselect $number $molecule {not water}
            ::vmdpotential::say "the water of molecule $molecule is hidden; show it with:\
                mol modselect $number $molecule all"
        }
    }
}

# Draw VMD's bar of colours, if its plugin is installed, without changing the view.
proc ::vmdpotential::show::draw_legend {limits meaning} {
    set view {center_matrix rotate_matrix scale_matrix global_matrix}
    set top [molinfo top]
    foreach molecule [molinfo list] {
        set before($molecule) [molinfo $molecule get $view]
    }
    catch {
        package require colorscalebar
        # colour of the text: white, or black on a white background
        set text [expr {[colorinfo category Display Background] eq "white" ? 16 : 8}]
        # length, width, automatic limits, fixed on the screen, limits, labels (0 has one if their number is even),
        # colour of the text, format, position, molecule, and whether to replace the last bar
        ::ColorScaleBar::color_scale_bar 0.8 0.05 0 1 {*}$limits 4 $text 0 -1.0 -1.0 1 $top 0 1 $meaning
        mol top $top
    }
    foreach molecule [molinfo list] {
        # the bar is a molecule, too, and has been replaced
        if {[info exists before($molecule)]} {
            molinfo $molecule set $view $before($molecule)
        }
    }
}

# Draw two isosurfaces and a slice of a volume of a molecule, the slice in colours from -limit to limit.
proc ::vmdpotential::show::draw_map {molecule volume level limit} {
    # colours as of ions: positive blue2 (23), negative red3 (30); style: volume, no box, solid, every point, thin lines
    add_map $molecule all [list Isosurface $level $volume 0 0 1 1] [list ColorID 23] Transparent
    add_map $molecule all [list Isosurface [expr {-$level}] $volume 0 0 1 1] [list ColorID 30] Transparent
    # through the middle of the map, across z
    set slice [add_map $molecule all [list VolumeSlice 0.5 $volume 2 2] [list Volume $volume] Opaque]
    mol scaleminmax $molecule $slice [expr {-$limit}] $limit
}

# Add a representation of a map, which the next map will replace; return its number.
proc ::vmdpotential::show::add_map {molecule selection style colour material} {
    variable ::vmdpotential::shown
    set number [represent $molecule $selection $style $colour $material]
    lappend shown($molecule) [mol repname $molecule $number]
    return $number
}

# Add a representation without changing the defaults of the user's next one; return its number.
proc ::vmdpotential::show::represent {molecule selection style colour material} {
    mol addrep $molecule
    set number [expr {[molinfo $molecule get numreps] - 1}]
    mol modselect $number $molecule $selection
    mol modstyle $number $molecule {*}$style
    mol modcolor $number $molecule {*}$colour
    mol modmaterial $number $molecule $material
    return $number
}

# Remove the representations of the last map, except those that the user has already removed.
proc ::vmdpotential::show::forget {molecule} {
    variable ::vmdpotential::shown
    if {![info exists shown($molecule)]} {
        return
    }
    foreach name $shown($molecule) {
        set number [mol repindex $molecule $name]
        if {$number >= 0} {
            mol delrep $number $molecule
        }
    }
    unset shown($molecule)
}

# Draw the ions of an ionized system, which are its last atoms, as spheres; return whether there are any.
proc ::vmdpotential::show::draw_ions {molecule ions} {
    set count 0
    foreach ion $ions {incr count [dict get $ion atoms]}
    set index [expr {[molinfo $molecule get numatoms] - $count}]
    foreach ion $ions {
        for {set atom 0} {$atom < [dict get $ion atoms]} {incr atom} {
            lappend rows([expr {[dict get $ion charge] > 0}]) $index
            incr index
        }
    }
    # as in the preview: positive blue2 (colour 23), negative red3 (colour 30), the nearest to the other viewers' colours
    foreach {positive colour} {1 23 0 30} {
        if {[info exists rows($positive)]} {
            represent $molecule "index $rows($positive)" [list VDW 1.0 16] [list ColorID $colour] Opaque
        }
    }
    return [llength $ions]
}

# Draw a preview of ions.
proc ::vmdpotential::show::show_preview {molecule ions} {
    variable ::vmdpotential::preview
    check_there $molecule "the ions are not shown"
    clear_preview
    foreach ion $ions {
        set colour [expr {[dict get $ion charge] > 0 ? "blue2" : "red3"}]
        lappend preview [list $molecule [graphics $molecule color $colour]]
        lappend preview [list $molecule [graphics $molecule sphere [dict get $ion position] radius 1.5 resolution 16]]
        set text [format "%s %.0f kcal/mol" [dict get $ion name] [dict get $ion energy]]
        lappend preview [list $molecule [graphics $molecule text [dict get $ion position] $text size 0.8]]
    }
    ::vmdpotential::say "[llength $ions] ions shown as a preview (positive blue, negative red), nothing was written;\
        remove them with: potential clear"
}

proc ::vmdpotential::show::clear_preview {} {
    variable ::vmdpotential::preview
    foreach entry $preview {
        lassign $entry molecule id
        catch {graphics $molecule delete $id}  ;# the molecule may have been deleted
    }
    set preview {}
}
