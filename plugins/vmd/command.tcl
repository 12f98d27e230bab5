# Conversion of the user's command to arguments of the program.

# Run one of the program's commands: check the words, write the atoms, start the child process.
proc ::vmdpotential::run_command {command words} {
    set all [options $command]
    set given [copies $all [parse_words $command $all $words]]
    set job [prepare $command $all $given]
    if {[dict get $job draws] eq "live"} {
        set molecule [live::start $job]
        return [expr {[dict exists $given wait] && [string is true -strict [dict get $given wait]] ? [live::wait] : $molecule}]
    }
    # in a file that is being sourced, the next line may need the result
    set waits [expr {[dict exists $given wait] ? [dict get $given wait] : [info script] ne ""}]
    set id [job::start $job]
    if {$waits} {
        return [job::wait $id]
    }
    return $id
}

# Return the options and values of a command's words; leading words without a dash are the selection or the maps.
proc ::vmdpotential::parse_words {command all words} {
    set given {}
    set leading {}
    while {[llength $words] && ![string match -* [lindex $words 0]]} {
        set words [lassign $words word]
        lappend leading $word
    }
    set files {}
    dict for {name declaration} $all {
        if {[dict get $declaration kind] in {map data} && [dict get $declaration positional]} {
            lappend files $name
        }
    }
    if {[llength $leading]} {
        if {[dict exists $all sel] && ($files eq "" || [dict get $all sel positional])} {
            if {[llength $leading] > 1} {
                error "potential $command: one selection is expected, and options begin with a dash;\
                    got '[join $leading {' '}]'"
            }
            dict set given sel [lindex $leading 0]
        } elseif {[dict get $all [lindex $files 0] several]} {
            dict set given [lindex $files 0] $leading
        } else {
            foreach name $files word $leading {
                if {$name eq ""} {
                    error "potential $command: '$word' is one name too many, and options begin with a dash"
                }
                if {$word ne ""} {
                    dict set given $name $word
                }
            }
        }
    }
    if {[llength $words] % 2} {
        error "potential $command: [lindex $words end] needs a value"
    }
    set own [dict create o output]
    dict for {name declaration} $all {
        foreach alias [dict get $declaration aliases] {
            dict set own $alias $name
        }
    }
    set typed {}
    foreach {option value} $words {
        set name [string map {- _} [string trimleft $option -]]
        set word $name
        if {[dict exists $own $name] && ![dict exists $all $name]} {
            set name [dict get $own $name]
        }
        if {![string match -* $option] || ![dict exists $all $name]} {
            error "potential $command: there is no option '$option'; it has -[join [dict keys $all] { -}]"
        }
        if {$value eq ""} {
            error "potential $command: $option is empty; give it a value, or leave it out"
        }
        # an option with several values is repeated, so that names may contain blanks
        if {[dict get $all $name several]} {
            dict lappend given $name $value
        } elseif {[dict exists $typed $name] && [dict get $typed $name] ne $word} {
            error "potential $command: -$word and -[dict get $typed $name] are one option; leave one of them out"
        } else {
            dict set typed $name $word
            dict set given $name $value
        }
    }
    return $given
}

# Return whether a command computes over the frames of its molecule.
proc ::vmdpotential::takes_frames {all given} {
    dict for {name option} $all {
        if {[dict get $option kind] eq "trajectory"} {
            return [expr {[dict get $option required] || [dict exists $given [option_with_role $all frames]]}]
        }
    }
    return 0
}

# Return the options, for a new molecule with the assembly or the cell if one is requested. The program makes it from
# the file of the molecule, which lists the operators, as VMD does not read them.
proc ::vmdpotential::copies {all given} {
    set words {}
    foreach role {assembly expansion} {
        set name [option_with_role $all $role]
        set value [expr {[dict exists $given $name] ? [dict get $given $name] : ""}]
        if {$value ne "" && $value ne [dict get $all $name default]} {
            dict set requested $role $value
            lappend words --$name=$value
        }
        dict unset given $name
    }
    if {![llength $words]} {
        return $given
    }
    if {[dict exists $given sel] && [is_selection [dict get $given sel]]} {
        error "-sel: atoms of an assembly or a cell are selected by text; [dict get $given sel] is of this molecule"
    }
    set molecule [find_molecule $given]
    foreach file [lindex [molinfo $molecule get filename] 0] type [lindex [molinfo $molecule get filetype] 0] {
        if {$type in {pdb pdbx} && [file exists $file]} {
            set source [full_path $file]
        }
    }
    if {![info exists source]} {
        error "molecule $molecule was not read from a PDB or mmCIF file, which lists the operators; load that"
    }
    if {[takes_frames $all $given]} {  # the new molecule would have only one frame; the program copies every frame
        if {[dict exists $requested expansion]} {
            error "-[option_with_role $all expansion]: VMD does not keep the space group of frames; use the shell, or\
                leave out -[option_with_role $all frames]"
        }
        set name [dict get $requested assembly]
        dict set given [option_with_role $all assembly] [expr {[string match *:* $name] ? $name : "$source:$name"}]
        return $given
    }
    set output [file join [job::make_folder] copies.pdb]
    set failed [catch {
        job::ask [find_program {}] prepare --prepare=never {*}$words --output=$output $source
        mol new $output type pdb waitfor all
    } made options]
    file delete -force -- [file dirname $output]
    if {$failed} {
        return -options $options $made
    }
    mol rename $made "copies of [molinfo $molecule get name]"
    mol off $molecule
    say "molecule $made has the copies ([molinfo $made get numatoms] atoms); molecule $molecule is hidden"
    dict set given mol $made
    return $given
}

# Return a job: the program's words, with the atoms written to the job's folder.
proc ::vmdpotential::prepare {command all given} {
    if {[dict exists $given isovalue]} {
        set level [dict get $given isovalue]
        if {![string is double -strict $level] || $level == 0 || $level != $level} {
            error "-isovalue '$level': a number other than 0 is needed"
        }
    }
    if {[dict exists $given range] && [dict get $all range own]} {
        show::span [dict get $given range]
    }
    dict for {name value} $given {
        set choices [dict get $all $name choices]
        if {[dict get $all $name own] && [llength $choices] && $value ni $choices} {
            error "-$name '$value': choose one of [join $choices {, }]"
        }
        if {[dict get $all $name own] && [dict get $all $name kind] eq "boolean" && ![string is boolean -strict $value]} {
            error "-$name '$value': use yes or no"
        }
    }
    # what a file has instead of atoms needs no molecule
    set molecule [expr {[dict exists $all file] && [dict get $all file kind] eq "data" ? -1 : [find_molecule $given]}]
    set draws [dict get [declarations] $command draws]
    set job [dict create command $command draws $draws molecule $molecule folder [job::make_folder] charged 0 complete 0]
    if {[catch {arguments $job $all $given} result options]} {
        discard $job
        return -options $options $result
    }
    return $result
}

# Remove the files of a job.
proc ::vmdpotential::discard {job} {
    catch {file delete -force -- [dict get $job folder]}
}

# Return the molecule of a selection returned by atomselect, or else of -mol.
proc ::vmdpotential::find_molecule {given} {
    if {[dict exists $given sel] && [is_selection [dict get $given sel]]} {
        return [[dict get $given sel] molid]
    }
    set molecule top
    if {[dict exists $given mol]} {
        set molecule [dict get $given mol]
    }
    if {$molecule eq "top"} {
        set molecule [molinfo top]
    }
    if {$molecule eq "-1"} {
        error "there is no molecule; load one first"
    }
    if {[lsearch -exact [molinfo list] $molecule] < 0} {
        error "there is no molecule $molecule; load one first"
    }
    return $molecule
}

# Return whether a word is a selection returned by atomselect.
proc ::vmdpotential::is_selection {word} {
    return [expr {[regexp {^atomselect\d+$} $word] && [llength [info commands ::$word]]}]
}

# Return the job with the arguments of the program.
proc ::vmdpotential::arguments {job all given} {
    set command [dict get $job command]
    set folder [dict get $job folder]
    set topology [option_with_role $all topology]
    set kinds {}
    foreach option [dict get [declarations] $command options] {
        lappend kinds [dict get $option name] $option
    }
    set words [list $command]
    set positions {}
    foreach {name option} $kinds {
        set kind [dict get $option kind]
        set wanted [expr {[dict get $option required] || [dict exists $given sel] || [dict exists $given mol]}]
        if {$kind eq "structure" && $wanted} {
            lassign [export::write [dict get $job molecule] $given $folder [expr {![dict exists $given $topology]}] \
                [dict exists $kinds force_field]] file written charged complete atoms number
            dict set job atoms $atoms
            dict set job frame $number
            dict set job charged $charged
            dict set job complete $complete
            if {[dict get $option positional]} {
                lappend positions $file
            } else {
                lappend words --$name=$file
            }
            set loaded [trajectory $job $all $given]
            if {$written ne "" && $topology ne ""} {
                lappend words --[string map {_ -} $topology]=$written
            }
        } elseif {$kind eq "data"} {
            if {![dict exists $given $name]} {
                error "potential $command: a $name is needed; give its name first, or as -$name"
            }
            lappend positions [full_path [dict get $given $name]]
        } elseif {$kind eq "map"} {
            set names {}
            if {[dict exists $given $name]} {
                set names [dict get $given $name]
            }
            if {[dict get $option positional]} {
                lappend positions {*}[find_maps $job $names [dict get $option required]]
            } elseif {[llength $names]} {  # a map whose grid is used
                lappend words --[string map {_ -} $name]=[lindex [find_maps $job $names 1] 0]
            }
        }
    }
    if {[info exists loaded] && $loaded ne ""} {
        lappend positions $loaded
    }
    set groups {}
    dict for {name value} $given {
        set option [dict get $all $name]
        set kind [dict get $option kind]
        if {([dict get $option own] && $kind ne "selection") || $kind in {map trajectory data}} {
            continue
        }
        set flag --[string map {_ -} $name]
        if {![dict get $option several]} {
            set value [list $value]
        }
        foreach item $value {
            switch -- $kind {
                boolean {
                    if {![string is boolean -strict $item]} {
                        error "-$name '$item': use yes or no"
                    }
                    lappend words [expr {$item ? $flag : "--no-[string range $flag 2 end]"}]
                }
                file {
                    set bundled [expr {[dict get $option bundled] && ![file exists $item]}]
                    lappend words $flag=[expr {$bundled ? $item : [full_path $item]}]
                }
                selection {
                    set rows {}
                    if {$item ne "all" && [dict exists $job atoms] && [lsearch -exact [dict get $option words] $item] < 0} {
                        set rows [export::rows $job $item]
                    }
                    if {[llength $rows]} {
                        # passed as a group of an index file, whose name must be on one line
                        set group [string map {; ,} [string trim [regsub -all {\s+} $item { }]]]
                        dict set groups $group $rows
                        set item "group \"$group\""
                    }
                    lappend words $flag=$item
                }
                default {
                    lappend words $flag=$item
                }
            }
        }
    }
    if {[dict size $groups]} {
        lappend words --index=[export::write_groups $folder $groups]
    }
    lassign [show::outputs $job $given $kinds] outputs job
    dict set job words [concat $words [show::surface_words $job $given] $outputs $positions]
    dict set job given $given
    return $job
}

# Return the trajectory file for a command: the named one, or one with the molecule's frames if these are requested or
# needed; otherwise nothing.
proc ::vmdpotential::trajectory {job all given} {
    foreach {name option} $all {
        if {[dict get $option kind] ne "trajectory"} {
            continue
        }
        if {[dict exists $given $name]} {
            return [full_path [dict get $given $name]]
        }
        if {[takes_frames $all $given]} {
            return [export::write_frames [dict get $job molecule] [dict get $job atoms] [dict get $job folder]]
        }
    }
    return ""
}

# Return a full path; a name that begins with ~ is no home folder.
proc ::vmdpotential::full_path {name} {
    if {[catch {file normalize $name} path]} {
        set path [file normalize ./$name]
    }
    return $path
}

# Return the files of maps: the named ones, or else the molecule's last one, made by a command or loaded.
proc ::vmdpotential::find_maps {job names required} {
    variable maps
    set found {}
    foreach name $names {
        set path [full_path $name]
        if {![file exists $path]} {
            error "there is no map '$name'; name a file, such as potential.dx"
        }
        lappend found $path
    }
    if {[llength $found]} {
        return $found
    }
    set molecule [dict get $job molecule]
    set known {}
    foreach file [lindex [molinfo $molecule get filename] 0] type [lindex [molinfo $molecule get filetype] 0] {
        if {[lsearch -exact {dx ccp4 mrc cube map} $type] >= 0 && [file exists $file]} {
            lappend known [full_path $file]
        }
    }
    if {[info exists maps($molecule)]} {
        foreach file $maps($molecule) {
            if {[file exists $file]} {
                lappend known $file
            }
        }
    }
    if {!$required && ![llength $known]} {
        return {}
    }
    if {![llength $known]} {
        error "molecule $molecule has no map; make one with 'potential map', or name a file"
    }
    return [list [lindex $known end]]
}
