# Display of a command's results: maps as volumes, ionized systems as molecules, figures as images. Representations are
# made in draw.tcl.

namespace eval ::vmdpotential::show {
    # type of VMD's reader by suffix; VMD has one reader for MRC and CCP4
    variable types {.dx dx .mrc ccp4 .ccp4 ccp4 .map ccp4 .cube cube .psf psf .pdb pdb .pqr pqr .cif pdbx}
    variable picture 0
    # molecule of the last drawn orbital
    variable orbital {}
}

# Return the program's options for the surface of a map, coloured in a range.
proc ::vmdpotential::show::surface_words {job given} {
    if {[dict get $job draws] ne "surface" || ([dict exists $given draw] ? [dict get $given draw] eq "isosurfaces"
            : [dict exists $given isovalue])} {
        return {}
    }
    return --tcl-surface=[expr {[dict exists $given range] ? [join [span [dict get $given range]] ,] : ""}]
}

# Return {the program's output options, the job}, with files in the job's folder unless the user names some.
proc ::vmdpotential::show::outputs {job given declared} {
    if {![dict exists $declared output] || [dict exists $given output]} {
        return [list {} $job]
    }
    set folder [dict get $job folder]
    set name [dict get [::vmdpotential::declarations] [dict get $job command] makes]
    set words {}
    switch -- [dict get $job draws] {
        surface - isosurfaces - live { set names $name.dx }
        orbital {
            set names $name.dx
            lappend words --atoms=[file join $folder nuclei.pdb]
        }
        figure - page { set names $name[dict get $declared output suffix] }
        ions {
            if {[dict exists $given dry_run] && [string is true -strict [dict get $given dry_run]]} {
                return [list {} $job]
            }
            # a PSF is written only if the molecule has charges
            set names [expr {[dict get $job charged] ? "$name.psf $name.pdb" : "$name.pdb"}]
        }
        default { set names {} }
    }
    foreach file $names {
        lappend words --output=[file join $folder $file]
    }
    return [list $words $job]
}

# Show the answer of the program and return it.
proc ::vmdpotential::show::result {job data} {
    foreach line [dict get $data report] {
        set line [::vmdpotential::job::named $job $line]
        # files in the job's folder are temporary
        if {[string first [dict get $job folder] $line] < 0} {
            ::vmdpotential::say $line
        }
    }
    set keep 0
    switch -- [dict get $job draws] {
        surface { set keep [show_map $job $data] }
        isosurfaces { set keep [show_volume $job $data] }
        ions { set data [show_ions $job $data] }
        orbital {
            set data [show_orbital $job $data]
            set keep 1
        }
        mesh {
            check_there [dict get $job molecule] "its surface is not drawn"
            forget [dict get $job molecule]
            set limits [dict get $data range]
            choose_colours $limits
            set made [draw_surface [dict get $job molecule] [dict get $data surface]]
            draw_labels $made [dict get $data labels]
            draw_legend $limits [dict get $data unit]
            ::vmdpotential::say "molecule $made: the surface, coloured from [format %g [lindex $limits 0]] (red) to\
                [format %g [lindex $limits 1]] (blue) [dict get $data meaning]"
            set keep 1
        }
        figure { set keep [show_figure $job [dict get $data figure]] }
        "" {
            set keep 1
            if {[dict exists $data maps] && [llength [series $data]]} {
                show_map $job $data
            }
        }
        default { set keep 1 }
    }
    if {[dict exists $data values] && [llength [dict get $data values]]} {
        show_values $job [dict get $data values]
    }
    if {$keep} {
        foreach name {structure.cif structure.psf frames.dcd frames.pdb answer.tcl} {
            file delete -- [file join [dict get $job folder] $name]
        }
    } else {
        ::vmdpotential::discard $job
    }
    return [dict remove $data surface]
}

proc ::vmdpotential::show::type_of {path} {
    variable types
    set suffix [string tolower [file extension $path]]
    return [expr {[dict exists $types $suffix] ? [dict get $types $suffix] : ""}]
}

proc ::vmdpotential::show::check_there {molecule else} {
    if {$molecule ni [molinfo list]} {
        error "molecule $molecule was deleted; $else"
    }
}

# Load a map into its molecule, and draw the surface coloured by it, or isosurfaces of both signs and a slice, in one
# colour scale.
proc ::vmdpotential::show::show_map {job data} {
    variable ::vmdpotential::maps
    check_there [dict get $job molecule] "the map has not been loaded"
    set job [made_whole $job $data]
    set molecule [dict get $job molecule]
    set file [lindex [series $data] 0 0]
    lappend maps($molecule) $file
    set type [type_of $file]
    if {$type eq ""} {
        ::vmdpotential::say "VMD has no reader for $file; name it .dx to see it" -warn
        return 1
    }
    # the molecule must be the last word: VMD ignores 'molid N' and would use the top molecule
    mol addfile $file type $type waitfor all $molecule
    set volume [expr {[molinfo $molecule get numvolumedata] - 1}]
    set given [dict get $job given]
    forget $molecule
    set limit [lindex [dict get $data [expr {[dict exists $data display_limit] ? "display_limit" : "range"}]] end]
    set limits [expr {[dict exists $data range] ? [dict get $data range] : [list [expr {-$limit}] $limit]}]
    choose_colours $limits
    lassign $limits low high
    set meaning [expr {[dict exists $data meaning] ? [dict get $data meaning] : [dict get $data unit]}]
    set parts {}
    if {[dict exists $data surface]} {
        set made [draw_surface $molecule [dict get $data surface]]
        draw_legend $limits [dict get $data unit]  ;# the medium does not fit; it is reported below
        if {![dict exists $given hide_water] || [dict get $given hide_water]} {
            hide_water $molecule
        }
        lappend parts "the surface, molecule $made, coloured from [format %g $low] (red) to [format %g $high] (blue) $meaning"
    }
    if {![dict exists $data surface] || ([dict exists $given draw] && [dict get $given draw] eq "all")} {
        set level [expr {[dict exists $given isovalue] ? abs([dict get $given isovalue]) : $limit}]
        draw_map $molecule $volume $level $limits
        lappend parts [format "isosurfaces at %g (blue) and %g (red), colours from %g to %g %s" \
            $level [expr {-$level}] $low $high $meaning]
    }
    ::vmdpotential::say "molecule $molecule, volume $volume: [join $parts {; }]"
    add_further $molecule $data
    return 1
}

# Return the maps of an answer, {file meaning} each; of one that is only in a file, it is the first of the files.
proc ::vmdpotential::show::series {data} {
    return [expr {[dict exists $data maps] ? [dict get $data maps] : [list [lrange [dict get $data files] 0 0]]}]
}

# Add the maps after the first one to a molecule, without drawing them.
proc ::vmdpotential::show::add_further {molecule data} {
    foreach entry [lrange [series $data] 1 end] {
        lassign $entry file meaning
        if {[type_of $file] ne ""} {
            mol addfile $file type [type_of $file] waitfor all $molecule
            ::vmdpotential::say "molecule $molecule, volume [expr {[molinfo $molecule get numvolumedata] - 1}]: $meaning"
        }
    }
}

# Return the job, for a new molecule if molecules were made whole for the map, so that its surface is where the map is.
proc ::vmdpotential::show::made_whole {job data} {
    if {![dict exists $data moved] || ![llength [dict get $data moved]]} {
        return $job
    }
    set source [dict get $job molecule]
    set file [file join [dict get $job folder] whole.pdb]
    set every [atomselect $source all frame [dict get $job frame]]
    $every writepdb $file
    $every delete
    set made [mol new $file type pdb waitfor all]
    file delete -- $file
    foreach run [dict get $data moved] {
        lassign $run first count x y z
        set part [atomselect $made "index [lrange [dict get $job atoms] $first [expr {$first + $count - 1}]]"]
        $part moveby [list $x $y $z]
        $part delete
    }
    mol rename $made "[lindex [molinfo $source get name] 0], made whole"
    mol off $source
    ::vmdpotential::say "molecule $made has the atoms where the map is; molecule $source is hidden"
    dict set job molecule $made
    return $job
}

# Load a density, or the energy of a probe, into its molecule, with the isosurfaces of the levels that the program names.
proc ::vmdpotential::show::show_volume {job data} {
    set molecule [dict get $job molecule]
    set file [lindex [dict get $data files] 0]
    set type [type_of $file]
    check_there $molecule "the map has not been loaded"
    if {$type eq ""} {
        ::vmdpotential::say "VMD has no reader for $file; name it .dx to see it" -warn
        return 1
    }
    mol addfile $file type $type waitfor all $molecule
    set volume [expr {[molinfo $molecule get numvolumedata] - 1}]
    forget $molecule
    foreach level [dict get $data levels] {
        add_map $molecule all [list Isosurface $level $volume 0 0 1 1] [list ColorID [expr {$level > 0 ? 23 : 30}]] \
            Transparent
        ::vmdpotential::say [format "molecule %s, volume %s: an isosurface at %g %s" $molecule $volume $level \
            [dict get $data unit]]
    }
    add_further $molecule $data
    return 1
}

# Load the nuclei and the map of an orbital or a density as a molecule with isosurfaces of both signs, which replaces the
# last one; return the answer with the molecule's number.
proc ::vmdpotential::show::show_orbital {job data} {
    variable orbital
    set view {center_matrix rotate_matrix scale_matrix global_matrix}
    set levels {}
    foreach level [dict get $data levels] {
        if {[dict exists $job given isovalue]} {
            set level [expr {($level < 0 ? -1 : 1) * abs([dict get $job given isovalue])}]
        }
        lappend levels $level
    }
    set nuclei [dict get $data structure_file]
    if {$nuclei eq ""} {
        ::vmdpotential::say "the map is in [dict get $data file]"
        return $data
    }
    if {$orbital in [molinfo list]} {
        set before [molinfo $orbital get $view]
        mol delete $orbital
    }
    set orbital [mol new $nuclei type [type_of $nuclei] waitfor all]
    set file [dict get $data file]
    mol addfile $file type [type_of $file] waitfor all $orbital
    mol rename $orbital [dict get $data quantity]
    if {[molinfo $orbital get numreps]} {
        mol delrep 0 $orbital  ;# VMD's default representation
    }
    represent $orbital all [list Licorice 0.15 12 12] Name Opaque
    set texts {}
    foreach level $levels {
        represent $orbital all [list Isosurface $level 0 0 0 1 1] [list ColorID [expr {$level > 0 ? 23 : 30}]] Transparent
        lappend texts [format "%g (%s)" $level [expr {$level > 0 ? "blue" : "red"}]]
    }
    if {[info exists before]} {
        molinfo $orbital set $view $before
    }
    ::vmdpotential::say "molecule $orbital: [dict get $data quantity], isosurface[expr {[llength $texts] > 1 ? "s" : ""}]\
        at [join $texts { and }] [dict get $data unit]"
    dict set data molecule $orbital
    return $data
}

# Colour atoms by values, such as energies of residues, which are stored in the field user of the frame.
proc ::vmdpotential::show::show_values {job values} {
    set molecule [dict get $job molecule]
    check_there $molecule "its atoms are not coloured"
    set atoms "index [dict get $job atoms]"
    set selection [atomselect $molecule $atoms frame [dict get $job frame]]
    set failed [catch {$selection set user $values} message]
    $selection delete
    if {$failed} {
        error $message
    }
    set limit 0.0
    foreach value $values {
        set limit [expr {max($limit, abs($value))}]
    }
    set limit [expr {$limit > 0 ? $limit : 1.0}]
    forget $molecule
    set number [add_map $molecule $atoms [list Licorice 0.3 12 12] User Opaque]
    mol scaleminmax $molecule $number [expr {-$limit}] $limit
    ::vmdpotential::say [format "molecule %s: the field user of frame %s holds the values, coloured from %.4g to %.4g\
        by VMD's colour scale" $molecule [dict get $job frame] [expr {-$limit}] $limit]
}

# Preview ions, or load the ionized system as a molecule; return the answer with the molecule's number.
proc ::vmdpotential::show::show_ions {job data} {
    if {[dict get $data dry_run]} {
        show_preview [dict get $job molecule] [dict get $data ions]
        return $data
    }
    clear_preview
    set source [dict get $job molecule]
    set there [expr {$source in [molinfo list]}]
    set loaded {}
    set failed [catch {
        foreach file [lsort -command by_topology [dict get $data files]] {
            set type [type_of $file]
            if {$type eq ""} {
                continue
            }
            if {$loaded eq ""} {
                set loaded [mol new $file type $type waitfor all]
            } else {
                mol addfile $file type $type waitfor all $loaded
            }
        }
    } message]
    if {$failed} {
        # a molecule without coordinates is removed
        catch {mol delete $loaded}
        error $message
    }
    if {$loaded ne ""} {
        set name "[expr {$there ? [lindex [molinfo $source get name] 0] : {molecule}}] with ions"
        mol rename $loaded $name
        dict set data molecule $loaded
        set summary "molecule $loaded: $name"
        if {[draw_ions $loaded [dict get $data ions]]} {
            append summary ", positive ions as blue spheres, negative red"
        }
        if {$there && [dict get $job complete]} {
            # the new molecule has all of its atoms
            mol off $source
            append summary "; molecule $source is hidden; show it with: mol on $source"
        }
        ::vmdpotential::say $summary
    }
    return $data
}

# Compare files for sorting: a PSF is first, as coordinates are added to it.
proc ::vmdpotential::show::by_topology {one two} {
    return [expr {([type_of $two] eq "psf") - ([type_of $one] eq "psf")}]
}

# Report the path of a figure and show it, if Tk can read PNG files.
proc ::vmdpotential::show::show_figure {job file} {
    variable picture
    ::vmdpotential::say "figure: $file"
    if {![info exists ::tk_version] || [package vcompare $::tk_version 8.6] < 0
            || [string tolower [file extension $file]] ne ".png"} {
        return 1
    }
    set window .vmdpotential_figure[incr picture]
    catch {
        set image [image create photo -file $file]
        # the resolution is for printing
        set factor [expr {int(ceil([image width $image] / 800.0))}]
        set small [image create photo]
        $small copy $image -subsample $factor $factor
        image delete $image
        toplevel $window
        wm title $window [file tail $file]
        pack [label $window.image -image $small]
        bind $window.image <Destroy> [list image delete $small]
    }
    return 1
}
