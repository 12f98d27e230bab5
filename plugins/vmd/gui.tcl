# The dialog, for VMD with Tk: a page for each command of the program, with a field for each of its options. It runs the
# same command that the user could type.

namespace eval ::vmdpotential::gui {
    variable window .vmdpotential
    # texts of the fields, by {command option}
    variable field
    variable job {}
    array set field {}
    # commands in the order of their pages, and the initial size of a page in pixels
    variable pages {}
    variable height 330
    variable width 740
    # whether there is a live map, for the check box, and the progress of a job in percent
    variable live 0
    variable done 0
}

# Open the dialog, or bring it to the front; return its window, which VMD's menu needs.
proc ::vmdpotential::gui::show {} {
    variable window
    if {[winfo exists $window]} {
        wm deiconify $window
        raise $window
        return $window
    }
    toplevel $window
    wm title $window "Electrostatic potential - vmdpotential"
    ttk::frame $window.all -padding 8
    wm geometry $window -20-60  ;# at the edge of the screen, not over the molecule
    pack $window.all -fill both -expand 1
    fill
    return $window
}

# Fill the window with the pages, or with a message if the program is missing.
proc ::vmdpotential::gui::fill {} {
    variable window
    variable pages
    foreach child [winfo children $window.all] {
        destroy $child
    }
    if {[catch {::vmdpotential::declarations} commands]} {
        ttk::label $window.all.missing -text $commands -wraplength 480 -justify left
        ttk::button $window.all.locate -text "Locate the program ..." -command ::vmdpotential::gui::locate
        pack $window.all.missing $window.all.locate -side top -anchor w -pady 6
        return
    }
    # pages are chosen from a list, because more than a dozen tabs would not fit
    ttk::style layout Plain.TNotebook.Tab null
    # in the default theme, boxes are so small that checked ones are hard to distinguish
    ttk::style configure Large.TCheckbutton -indicatordiameter 14 -indicatorsize 14
    ttk::notebook $window.all.pages -style Plain.TNotebook
    set pages {}
    set titles {}
    foreach command [dict keys $commands] {
        set page $window.all.pages.page[llength $pages]
        lappend pages $command
        lappend titles [string totitle $command]
        ttk::frame $page -padding {8 8 0 8}
        $window.all.pages add $page -text [lindex $titles end]
        page $page $command
    }
    ttk::frame $window.all.choice
    ttk::label $window.all.choice.label -text Command
    ttk::combobox $window.all.choice.box -values $titles -state readonly -width 18 -height 30
    pack $window.all.choice.label $window.all.choice.box -side left -padx {0 8}
    bind $window.all.choice.box <<ComboboxSelected>> {
        $::vmdpotential::gui::window.all.pages select [%W current]
        %W selection clear
    }
    ttk::frame $window.all.buttons
    foreach {name label command} {
        run Run ::vmdpotential::gui::run
        preview "Preview ions" {::vmdpotential::gui::run 1}
        clear "Clear preview" {::potential clear}
        stop Stop ::vmdpotential::gui::stop
    } {
        pack [ttk::button $window.all.buttons.$name -text $label -command $command] -side left -padx 4
    }
    # starts the live map with the options of its page, or stops it
    ttk::checkbutton $window.all.buttons.live -text "Live map" -style Large.TCheckbutton \
        -variable ::vmdpotential::gui::live -command ::vmdpotential::gui::switch_live
    ttk::progressbar $window.all.buttons.bar -maximum 100 -variable ::vmdpotential::gui::done -length 160
    # of a small width, so that long texts, which the log shows too, do not make the window wider
    ttk::label $window.all.buttons.status -text {} -anchor w -width 12
    pack $window.all.buttons.live $window.all.buttons.bar -side left -padx 4
    pack $window.all.buttons.status -side left -fill x -expand 1
    ttk::frame $window.all.log
    # small letters, so that the table of ions fits
    text $window.all.log.text -height 9 -width 112 -wrap word -state disabled -takefocus 1 \
        -font [list {*}[lrange [font actual TkFixedFont] 0 1] -size 8] \
        -yscrollcommand [list $window.all.log.bar set]
    $window.all.log.text tag configure -err -foreground #b00000
    ttk::scrollbar $window.all.log.bar -command [list $window.all.log.text yview]
    pack $window.all.log.bar -side right -fill y
    pack $window.all.log.text -side left -fill both -expand 1
    pack $window.all.choice -fill x -pady {0 6}
    pack $window.all.pages -fill both -expand 1
    pack $window.all.buttons -fill x -pady 4
    pack $window.all.log -fill both -expand 1
    bind $window.all.pages <<NotebookTabChanged>> ::vmdpotential::gui::refresh
    set ::vmdpotential::job::listener ::vmdpotential::gui::listen
    refresh
}

# Let the user locate the program if it was not found.
proc ::vmdpotential::gui::locate {} {
    variable window
    set path [tk_getOpenFile -parent $window -title "The program vmdpotential"]
    if {$path eq ""} {
        return
    }
    if {[catch {::potential program $path} message]} {
        tk_messageBox -parent $window -icon error -message $message
        return
    }
    fill
}

# Make the page of a command, which can be scrolled: the important options, and the others under Advanced.
proc ::vmdpotential::gui::page {page command} {
    variable height
    variable width
    set front {}
    set folded {}
    dict for {name declaration} [::vmdpotential::options $command] {
        if {$name ni {wait dry_run}} {
            dict set [expr {[dict get $declaration front] ? "front" : "folded"}] $name $declaration
        }
    }
    set ground [ttk::style lookup TFrame -background]
    canvas $page.view -highlightthickness 0 -borderwidth 0 -height $height -width $width -background $ground \
        -yscrollincrement 24 -yscrollcommand [list ::vmdpotential::gui::scrolled $page.bar]
    ttk::scrollbar $page.bar -command [list $page.view yview]
    grid $page.view -row 0 -column 0 -sticky nsew
    grid columnconfigure $page 0 -weight 1
    grid rowconfigure $page 0 -weight 1
    set all [ttk::frame $page.view.all]
    $page.view create window 0 0 -anchor nw -window $all
    bind $all <Configure> [list ::vmdpotential::gui::reach $page.view]
    ttk::label $all.summary -text [dict get [::vmdpotential::declarations] $command summary].
    pack $all.summary -anchor w -pady {0 4}
    ttk::frame $all.front
    fields $all.front $command $front
    pack $all.front -anchor w
    if {[dict size $folded]} {
        ttk::button $all.fold -style Toolbutton -text "\u25b8 Advanced" -command [list ::vmdpotential::gui::fold $all]
        ttk::frame $all.folded
        fields $all.folded $command $folded
        pack $all.fold -anchor w -pady {4 0}
    }
    foreach widget [concat [list $all] [winfo children $all] [winfo children $all.front] \
            [expr {[winfo exists $all.folded] ? [winfo children $all.folded] : {}}]] {
        bind $widget <Button-4> [list $page.view yview scroll -2 units]
        bind $widget <Button-5> [list $page.view yview scroll 2 units]
        if {[winfo class $widget] ne "TCombobox"} {
            bind $widget <MouseWheel> "$page.view yview scroll \[expr {%D < 0 ? 2 : -2}\] units"
        }
    }
}

# Set the scrolling range of a page to its content.
proc ::vmdpotential::gui::reach {view} {
    $view configure -scrollregion [list 0 0 [winfo reqwidth $view.all] [winfo reqheight $view.all]]
    if {[winfo reqheight $view.all] <= [winfo height $view]} {
        $view yview moveto 0
    }
}

# Show a scroll bar if the content is larger than the window.
proc ::vmdpotential::gui::scrolled {bar first last} {
    if {$first <= 0 && $last >= 1} {
        grid forget $bar
    } else {
        grid $bar -row 0 -column 1 -sticky ns
    }
    $bar set $first $last
}

# Show or hide the advanced options.
proc ::vmdpotential::gui::fold {all} {
    if {[winfo manager $all.folded] eq ""} {
        pack $all.folded -anchor w
        $all.fold configure -text "\u25be Advanced"
    } else {
        pack forget $all.folded
        $all.fold configure -text "\u25b8 Advanced"
    }
}

# Make the fields of options, each with its help next to it.
proc ::vmdpotential::gui::fields {page command all} {
    variable field
    set row 0
    dict for {name declaration} $all {
        set key [list $command $name]
        if {![info exists field($key)]} {
            set field($key) [dict get $declaration default]
        }
        # the same labels as in other viewers
        set text [string map {_ { }} [string map {|sel| selection |mol| molecule | {}} |$name|]]
        ttk::label $page.label_$name -text $text -anchor w -width 16
        input $page.field_$name $key $declaration
        ttk::label $page.help_$name -text [::vmdpotential::describe $declaration 1] -wraplength 400 -justify left \
            -foreground #5a6068
        grid $page.label_$name -row $row -column 0 -sticky w -pady 2
        set sides [expr {[dict get $declaration kind] eq "boolean" ? "w" : "ew"}]
        grid $page.field_$name -row $row -column 1 -sticky $sides -pady 2
        grid $page.help_$name -row $row -column 2 -sticky w -padx {10 4} -pady 2
        incr row
    }
    grid columnconfigure $page 1 -minsize 190
}

# Make the widget of a field.
proc ::vmdpotential::gui::input {box key declaration} {
    set variable ::vmdpotential::gui::field($key)
    set choices [dict get $declaration choices]
    set kind [dict get $declaration kind]
    if {[lindex $key 1] eq "mol"} {
        ttk::combobox $box -textvariable $variable -width 18 \
            -postcommand [list ::vmdpotential::gui::list_molecules $box]
    } elseif {[llength $choices]} {
        ttk::combobox $box -textvariable $variable -values $choices -state readonly -width 18
    } elseif {$kind eq "boolean"} {
        ttk::checkbutton $box -style Large.TCheckbutton -variable $variable -onvalue yes -offvalue no
    } elseif {$kind in {file map data}} {
        ttk::frame $box
        set several [dict get $declaration several]
        ttk::entry $box.entry -textvariable $variable -width 14
        if {$several} {
            # only the button changes the list of files, so that names may contain blanks
            $box.entry configure -state readonly
        }
        ttk::button $box.choose -text ... -width 3 -command [list ::vmdpotential::gui::choose $key $several]
        pack $box.choose -side right
        pack $box.entry -side left -fill x -expand 1
    } else {
        ttk::entry $box -textvariable $variable -width 20
    }
}

proc ::vmdpotential::gui::list_molecules {box} {
    set values top
    foreach molecule [molinfo list] {
        lappend values "$molecule: [lindex [molinfo $molecule get name] 0]"
    }
    $box configure -values $values
}

# Let the user choose a file; if the choice is cancelled, a list of files is emptied.
proc ::vmdpotential::gui::choose {key several} {
    variable field
    variable window
    if {[lsearch -exact {output table} [lindex $key 1]] >= 0} {
        set path [tk_getSaveFile -parent $window -confirmoverwrite 0]
    } else {
        set path [tk_getOpenFile -parent $window]
    }
    if {$several} {
        if {$path eq ""} {
            set field($key) {}
        } else {
            lappend field($key) $path
        }
    } elseif {$path ne ""} {
        set field($key) $path
    }
}

# Return the command of the shown page.
proc ::vmdpotential::gui::current {} {
    variable window
    variable pages
    return [lindex $pages [$window.all.pages index current]]
}

# Return the options of a command for the fields with other values than the defaults.
proc ::vmdpotential::gui::words {command} {
    variable field
    set words {}
    dict for {name declaration} [::vmdpotential::options $command] {
        set key [list $command $name]
        if {![info exists field($key)] || $field($key) eq [dict get $declaration default]} {
            continue
        }
        set value $field($key)
        if {$name eq "mol"} {
            regexp {^\s*(\d+)} $value all value
        }
        if {![dict get $declaration several]} {
            lappend words -$name $value
        } elseif {[dict get $declaration kind] in {file map}} {
            foreach item $value {
                lappend words -$name $item
            }
        } else {
            foreach item [regexp -all -inline {\S+} $value] {
                lappend words -$name $item
            }
        }
    }
    return $words
}

proc ::vmdpotential::gui::run {{preview 0}} {
    variable job
    set command [current]
    set words [concat [words $command] -wait 0]
    if {$preview} {
        lappend words -dry_run yes
    }
    if {[catch {::vmdpotential::run_command $command $words} result]} {
        ::vmdpotential::say $result -err
    } elseif {![follows $command]} {
        set job $result
    }
    refresh
}

# Return whether the map of a command follows the atoms.
proc ::vmdpotential::gui::follows {command} {
    return [expr {[dict get [::vmdpotential::declarations] $command draws] eq "live"}]
}

# Start the live map with the options of its page, or stop it, after a click on the check box.
proc ::vmdpotential::gui::switch_live {} {
    variable live
    variable window
    variable pages
    if {$live} {
        foreach command $pages {
            if {[follows $command]} {
                $window.all.pages select [lsearch -exact $pages $command]
            }
        }
        run
    } else {
        ::vmdpotential::live::stop
    }
    update_live
}

# Set the check box according to whether there is a live map.
proc ::vmdpotential::gui::update_live {} {
    variable live
    set live [expr {$::vmdpotential::live::now ne ""}]
}

proc ::vmdpotential::gui::stop {} {
    variable job
    if {$job ne "" && [catch {::potential stop $job} message]} {
        ::vmdpotential::say $message -err
    }
}

# Show in the dialog that a job has started, reports progress, or has ended.
proc ::vmdpotential::gui::listen {id event text} {
    variable window
    variable job
    variable done
    if {[winfo exists $window.all.buttons.status]} {
        $window.all.buttons.status configure -text $text
    }
    if {$event eq "progress"} {
        regexp {(\d+) %} $text all done
        return
    }
    set done 0
    if {$id eq $job && $event ne "started"} {
        set job {}
    }
    if {[winfo exists $window.all.log.text]} {
        refresh
    }
}

# Add text to the log of the dialog, if it is open; levels are those of vmdcon.
proc ::vmdpotential::gui::log {text level} {
    variable window
    set log $window.all.log.text
    if {![llength [info commands ::winfo]] || ![winfo exists $log]} {
        return
    }
    $log configure -state normal
    $log insert end $text\n $level
    $log configure -state disabled
    $log see end
}

# Update the buttons for the shown page and the running job.
proc ::vmdpotential::gui::refresh {} {
    variable window
    variable job
    $window.all.choice.box current [$window.all.pages index current]
    set previews [dict exists [::vmdpotential::options [current]] dry_run]
    foreach {name usable} [list run [expr {$job eq ""}] preview [expr {$job eq "" && $previews}] \
            clear $previews stop [expr {$job ne ""}]] {
        $window.all.buttons.$name state [expr {$usable ? "!disabled" : "disabled"}]
    }
    foreach name {preview clear} {
        # only on pages with a preview
        if {$previews} {
            pack $window.all.buttons.$name -side left -padx 4 -before $window.all.buttons.stop
        } else {
            pack forget $window.all.buttons.$name
        }
    }
}
