# How results are drawn in VMD: representations of maps, the coloured surface, its bar of colours, ions and their preview.

namespace eval ::vmdpotential::show {
    # molecules whose water was hidden with their first surface
    variable without_water
    array set without_water {}
}

# Return the limits of colours, {low high}, for one number of both signs or two with a comma.
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

# Draw the surface of the atoms without water, coloured by a volume.
proc ::vmdpotential::show::draw_surface {job molecule volume limits} {
    set text all
    if {[dict exists $job given sel]} {
        set text [dict get $job given sel]
        # also of a selection that has been deleted meanwhile
        if {[regexp {^atomselect\d+$} $text]} {
            set text "index [dict get $job atoms]"
        }
    }
    set solute "($text) and not water"
    set selection [atomselect $molecule $solute]
    if {![$selection num]} {
        set solute $text
    }
    $selection delete
    set all [atomselect $molecule $solute]
    set hydrogens [atomselect $molecule "($solute) and hydrogen"]
    # radii, density, grid and quality that come near to a molecular surface; it needs no other program. Where most
    # hydrogens are missing, heavy atoms have to cover them.
    set radius [expr {3 * [$hydrogens num] < [$all num] ? 0.8 : 0.6}]
    $all delete
    $hydrogens delete
    choose_colours $limits
    set number [add_map $molecule $solute [list QuickSurf $radius 0.5 0.7 1] [list Volume $volume] Opaque]
    mol scaleminmax $molecule $number {*}$limits
}

# Choose the colours of the other viewers: red is negative, white 0. VMD has one scale for all that is drawn, and three
# colours of it; its versions before 1.9.4 have none to choose.
proc ::vmdpotential::show::choose_colours {limits} {
    lassign $limits low high
    catch {
        if {[colorinfo scale method] ne "RWB"} {
            color scale method RWB
        }
        color scale midpoint [expr {$low < 0 && $high > 0 ? -$low / double($high - $low) : 0.5}]
        color scale colors RWB {*}[dict get [::vmdpotential::media] colours]
    }
}

# Hide the water of a molecule with its first surface: what shows all atoms shows all but water. Shown again by the user,
# it stays shown.
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

# Draw VMD's own bar of colours, where its plugin is, and leave the view as it was.
proc ::vmdpotential::show::draw_legend {limits meaning} {
    set view {center_matrix rotate_matrix scale_matrix global_matrix}
    set top [molinfo top]
    foreach molecule [molinfo list] {
        set before($molecule) [molinfo $molecule get $view]
    }
    catch {
        package require colorscalebar
        # white text, black on a white background
        set text [expr {[colorinfo category Display Background] eq "white" ? 16 : 8}]
        # length, width, own limits, in its place on the screen, limits, steps (0 is one of an even number), text, decimal, where, instead of the last
        ::ColorScaleBar::color_scale_bar 0.8 0.05 0 1 {*}$limits 4 $text 0 -1.0 -1.0 1 $top 0 1 $meaning
        mol top $top
    }
    foreach molecule [molinfo list] {
        # the bar, which is a molecule too, is another one now
        if {[info exists before($molecule)]} {
            molinfo $molecule set $view $before($molecule)
        }
    }
}

# Draw a volume of a molecule, in colours from -limit to limit.
proc ::vmdpotential::show::draw_map {molecule volume level limit} {
    # as ions: positive blue2 (colour 23), negative red3 (30); style: volume, no box, solid, every point, thin lines
    add_map $molecule all [list Isosurface $level $volume 0 0 1 1] [list ColorID 23] Transparent
    add_map $molecule all [list Isosurface [expr {-$level}] $volume 0 0 1 1] [list ColorID 30] Transparent
    # through the middle of the map, across z
    set slice [add_map $molecule all [list VolumeSlice 0.5 $volume 2 2] [list Volume $volume] Opaque]
    mol scaleminmax $molecule $slice [expr {-$limit}] $limit
}

# Add a representation of a map, which the next map replaces; return its number.
proc ::vmdpotential::show::add_map {molecule selection style colour material} {
    variable ::vmdpotential::shown
    set number [represent $molecule $selection $style $colour $material]
    lappend shown($molecule) [mol repname $molecule $number]
    return $number
}

# Add a representation without touching what the next one of the user's will look like; return its number.
proc ::vmdpotential::show::represent {molecule selection style colour material} {
    mol addrep $molecule
    set number [expr {[molinfo $molecule get numreps] - 1}]
    mol modselect $number $molecule $selection
    mol modstyle $number $molecule {*}$style
    mol modcolor $number $molecule {*}$colour
    mol modmaterial $number $molecule $material
    return $number
}

# Remove the representations of the map before; the user may have removed some.
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

# Draw where ions would be.
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
        catch {graphics $molecule delete $id}  ;# the molecule may be gone
    }
    set preview {}
}
