# Drawing of results: representations of maps, the coloured surface, its bar of colours, ions and their preview.

namespace eval ::vmdpotential::show {
    # molecules whose first surface has been drawn, so that their water is not hidden again
    variable without_water
    array set without_water {}
    # molecules of the surfaces, by the molecule of the map
    variable surfaces
    array set surfaces {}
}

# Return the limits of colours, {low high}, from one number, for both signs, or two numbers separated by a comma.
proc ::vmdpotential::show::span {text} {
    set numbers [split [string map {{ } {}} $text] ,]
    if {[llength $numbers] == 1 && [string is double -strict $text]} {
        set numbers [list [expr {-abs($text)}] [expr {abs($text)}]]
    }
    lassign $numbers low high
    if {[llength $numbers] != 2 || ![string is double -strict $low] || ![string is double -strict $high]
            || !($low < $high)} {
        error "-range '$text': a number such as 5 is needed, or two with the lower first, such as -5,5"
    }
    return $numbers
}

# Draw the surface of an answer as a molecule of its own that has no atoms, which the next map of the molecule replaces.
proc ::vmdpotential::show::draw_surface {molecule surface} {
    variable surfaces
    set view {center_matrix rotate_matrix scale_matrix global_matrix}
    set top [molinfo top]
    set made [mol new]
    set surfaces($molecule) $made
    set gone [list after idle ::vmdpotential::show::remove_surface $molecule]
    trace remove variable ::vmd_initialize_structure($molecule) write $gone
    trace add variable ::vmd_initialize_structure($molecule) write $gone
    mol rename $made "surface of [lindex [molinfo $molecule get name] 0]"
    graphics $made materials on
    graphics $made material Opaque
    set places [dict get $surface vertices]
    set normals [dict get $surface normals]
    set colours [dict get $surface colours]
    foreach {a b c} [dict get $surface triangles] {
        graphics $made tricolor [lindex $places $a] [lindex $places $b] [lindex $places $c] [lindex $normals $a] \
            [lindex $normals $b] [lindex $normals $c] [lindex $colours $a] [lindex $colours $b] [lindex $colours $c]
    }
    if {$top in [molinfo list]} {
        mol top $top
    }
    molinfo $made set $view [molinfo $molecule get $view]
    return $made
}

# Draw labels {text x y z} in a molecule of graphics.
proc ::vmdpotential::show::draw_labels {made labels} {
    if {[llength $labels]} {
        graphics $made color black
    }
    foreach label $labels {
        graphics $made text [lrange $label 1 3] [lindex $label 0] size 1.2 thickness 2
    }
}

# Remove the surface of a molecule; with further arguments, those of a trace, if the molecule was deleted.
proc ::vmdpotential::show::remove_surface {molecule args} {
    variable surfaces
    if {[info exists surfaces($molecule)] && (![llength $args] || $molecule ni [molinfo list])} {
        catch {mol delete $surfaces($molecule)}  ;# the user may have deleted it
        unset surfaces($molecule)
    }
}

# Set VMD's scale, which is one for all representations, to the colours of the other viewers: negative red, 0 white,
# positive blue, and equally strong at equal distances from 0.
proc ::vmdpotential::show::choose_colours {limits} {
    lassign $limits low high
    set stops [::vmdpotential::map_colours]
    set last [expr {[llength $stops] - 1}]
    set largest [expr {double(max(abs($low), abs($high)))}]
    set scale {}
    for {set number 0} {$number < 1024} {incr number} {
        set place [expr {(($low + ($high - $low) * $number / 1023.0) / $largest + 1) / 2 * $last}]
        set stop [expr {min(int($place), $last - 1)}]
        set colour [expr {33 + $number}]
        foreach one [lindex $stops $stop] two [lindex $stops [expr {$stop + 1}]] {
            lappend colour [format %.5f [expr {$one + ($two - $one) * ($place - $stop)}]]
        }
        lappend scale $colour
    }
    if {[catch {color change rgblist $scale}]} {  # before version 1.9.4
        catch {
            foreach colour $scale {
                color change rgb {*}$colour
            }
        }
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
    set water [atomselect $molecule water]
    set count [$water num]
    $water delete
    if {!$count} {
        return
    }
    for {set number 0} {$number < [molinfo $molecule get numreps]} {incr number} {
        if {[lindex [molinfo $molecule get [list "selection $number"]] 0] eq "all"
                && (![info exists shown($molecule)] || [mol repname $molecule $number] ni $shown($molecule))} {
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

# Draw two isosurfaces and a slice of a volume of a molecule, the slice in colours within limits.
proc ::vmdpotential::show::draw_map {molecule volume level limits} {
    # colours as of ions: positive blue2 (23), negative red3 (30); style: volume, no box, solid, every point, thin lines
    add_map $molecule all [list Isosurface $level $volume 0 0 1 1] [list ColorID 23] Transparent
    add_map $molecule all [list Isosurface [expr {-$level}] $volume 0 0 1 1] [list ColorID 30] Transparent
    # through the middle of the map, across z
    set slice [add_map $molecule all [list VolumeSlice 0.5 $volume 2 2] [list Volume $volume] Opaque]
    mol scaleminmax $molecule $slice {*}$limits
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

# Remove the surface and the representations of the last map, except those that the user has already removed.
proc ::vmdpotential::show::forget {molecule} {
    variable ::vmdpotential::shown
    remove_surface $molecule
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
