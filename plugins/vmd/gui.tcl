# The dialog, for VMD with Tk: a page for each command of the program, with a field for each option it declares. It only
# makes the words of a command; running it is the same as typing it.

namespace eval ::vmdpotential::gui {
    variable window .vmdpotential
    # text of a field, by {command option}
    variable field
    variable job {}
    array set field {}
    # commands in the order of their pages
    variable pages {}
    # whether a map follows, and how much of a job is done, for the box and the bar
    variable live 0
    variable done 0
}

# Open the dialog, or bring it to the front; return its window, as VMD's menu wants.
proc ::vmdpotential::gui::show {} {
    variable window
    if {[winfo exists $window]} {
        wm deiconify $window
        raise $window
        return $window
    }
    toplevel $window
    wm title $window "Electrostatic potential and ions"
    ttk::frame $window.all -padding 8
    pack $window.all -fill both -expand 1
    fill
    return $window
}

# Fill the window: with the pages, or with what is missing.
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
    ttk::notebook $window.all.pages
    set pages {}
    foreach command [dict keys $commands] {
        set page $window.all.pages.page[llength $pages]
        lappend pages $command
        ttk::frame $page -padding 8
        $window.all.pages add $page -text [string totitle $command]
        page $page $command
    }
    ttk::label $window.all.help -wraplength 720 -justify left -anchor nw -text " \n "
    ttk::frame $window.all.buttons
    foreach {name label command} {
        run Run ::vmdpotential::gui::run
        preview "Preview ions" {::vmdpotential::gui::run 1}
        clear "Clear preview" {::potential clear}
        stop Stop ::vmdpotential::gui::stop
    } {
        pack [ttk::button $window.all.buttons.$name -text $label -command $command] -side left -padx 4
    }
    # on: the live map of its page; off: its end
    ttk::checkbutton $window.all.buttons.live -text "Live map" -variable ::vmdpotential::gui::live \
        -command ::vmdpotential::gui::switch_live
    ttk::progressbar $window.all.buttons.bar -maximum 100 -variable ::vmdpotential::gui::done -length 160
    ttk::label $window.all.buttons.status -text {} -anchor w
    pack $window.all.buttons.live $window.all.buttons.bar -side left -padx 4
    pack $window.all.buttons.status -side left -fill x -expand 1
    ttk::frame $window.all.log
    # small, so that the table of ions fits
    text $window.all.log.text -height 9 -width 112 -wrap word -state disabled -takefocus 1 \
        -font [list {*}[lrange [font actual TkFixedFont] 0 1] -size 8] \
        -yscrollcommand [list $window.all.log.bar set]
    $window.all.log.text tag configure -err -foreground #b00000
    ttk::scrollbar $window.all.log.bar -command [list $window.all.log.text yview]
    pack $window.all.log.bar -side right -fill y
    pack $window.all.log.text -side left -fill both -expand 1
    pack $window.all.pages -fill x
    pack $window.all.help -fill x -pady 4
    pack $window.all.buttons -fill x -pady 4
    pack $window.all.log -fill both -expand 1
    bind $window.all.pages <<NotebookTabChanged>> ::vmdpotential::gui::refresh
    set ::vmdpotential::job::listener ::vmdpotential::gui::listen
    refresh
}

# Ask for the program where it was not found.
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

# One page: what everybody sets, and the rest when it is asked for.
proc ::vmdpotential::gui::page {page command} {
    set front {}
    set folded {}
    dict for {name declaration} [::vmdpotential::options $command] {
        if {$name ni {wait dry_run}} {
            dict set [expr {[dict get $declaration front] ? "front" : "folded"}] $name $declaration
        }
    }
    ttk::frame $page.front
    fields $page.front $command $front
    pack $page.front -fill x
    if {[dict size $folded]} {
        ttk::button $page.fold -style Toolbutton -text "\u25b8 Advanced" -command [list ::vmdpotential::gui::fold $page]
        ttk::frame $page.folded
        fields $page.folded $command $folded
        pack $page.fold -anchor w -pady {4 0}
    }
}

# Show what is folded, or fold it again.
proc ::vmdpotential::gui::fold {page} {
    if {[winfo manager $page.folded] eq ""} {
        pack $page.folded -fill x
        $page.fold configure -text "\u25be Advanced"
    } else {
        pack forget $page.folded
        $page.fold configure -text "\u25b8 Advanced"
    }
    fit
}

# Give the pages the height of the highest, of those that are folded and the one in front.
proc ::vmdpotential::gui::fit {} {
    variable window
    update idletasks
    set book $window.all.pages
    set height 0
    foreach page [$book tabs] {
        if {$page eq [$book select] || ![winfo exists $page.folded] || [winfo manager $page.folded] eq ""} {
            set height [expr {max($height, [winfo reqheight $page])}]
        }
    }
    $book configure -height $height
}

# Fields of options in two columns.
proc ::vmdpotential::gui::fields {page command all} {
    variable field
    variable window
    set rows [expr {([dict size $all] + 1) / 2}]
    set number 0
    dict for {name declaration} $all {
        set column [expr {$number / $rows * 2}]
        set row [expr {$number % $rows}]
        set key [list $command $name]
        if {![info exists field($key)]} {
            set field($key) [dict get $declaration default]
        }
        set label $page.label_$name
        set box $page.field_$name
        set unit [dict get $declaration unit]
        set text [string map {_ { }} $name]
        if {$unit ne ""} {
            append text " ($unit)"
        }
        ttk::label $label -text $text -anchor e
        input $box $key $declaration
        grid $label -row $row -column $column -sticky e -padx {8 4} -pady 1
        grid $box -row $row -column [expr {$column + 1}] -sticky ew -pady 1
        set help [list $window.all.help configure -text "$name: [::vmdpotential::describe $declaration]"]
        foreach widget [concat $label $box [winfo children $box]] {
            # the help is text of the program, or of another package's command: % in it is no field of an event
            bind $widget <Enter> [string map {% %%} $help]
            bind $widget <FocusIn> [string map {% %%} $help]
        }
        incr number
    }
    grid columnconfigure $page {1 3} -weight 1
}

# The widget of a field.
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
        ttk::checkbutton $box -variable $variable -onvalue yes -offvalue no
    } elseif {$kind eq "file" || $kind eq "map"} {
        ttk::frame $box
        set several [dict get $declaration several]
        ttk::entry $box.entry -textvariable $variable -width 14
        if {$several} {
            # names of files, as a list that only the button makes, so that a blank in a name separates nothing
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

# Let the user choose a file; without a choice, a list of files is emptied.
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

# The command on the page that is shown.
proc ::vmdpotential::gui::current {} {
    variable window
    variable pages
    return [lindex $pages [$window.all.pages index current]]
}

# Return the words of a command: fields that are not as declared.
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
        } elseif {[lsearch -exact {file map} [dict get $declaration kind]] >= 0} {
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
    } elseif {$command ne "live"} {
        set job $result
    }
    refresh
}

# The box was clicked: start the live map of its page, or end what follows.
proc ::vmdpotential::gui::switch_live {} {
    variable live
    variable window
    variable pages
    if {$live} {
        $window.all.pages select [lsearch -exact $pages live]
        run
    } else {
        ::vmdpotential::live::stop
    }
    update_live
}

# Let the box say whether a map follows.
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

# A job has started, goes on, or has ended.
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

# Add a line to the log of the dialog, where it is open; level as for vmdcon.
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

# Buttons that make sense now.
proc ::vmdpotential::gui::refresh {} {
    variable window
    variable job
    fit
    set previews [dict exists [::vmdpotential::options [current]] dry_run]
    foreach {name usable} [list run [expr {$job eq ""}] preview [expr {$job eq "" && $previews}] \
            clear $previews stop [expr {$job ne ""}]] {
        $window.all.buttons.$name state [expr {$usable ? "!disabled" : "disabled"}]
    }
}
