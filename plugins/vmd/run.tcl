# The program as a child process, started through a pipe, so that VMD stays usable; its progress is shown line by line,
# and it can be stopped. A job is a dictionary; running jobs are in the array `running`.

namespace eval ::vmdpotential::job {
    variable last 0
    variable running
    # {whether it failed, result or error message} by id; set when a job ends, which is what 'wait' waits for
    variable ended
    # folder of this session, with a folder for each job
    variable session {}
    # command of the dialog, called when a job has started, reports progress or has ended
    variable listener {}
    # time of the last message, as progress is reported only every ten seconds
    variable said 0
    array set running {}
    array set ended {}
}

# Evaluate a script that starts the program, without the variables that VMD's launcher sets for VMD, which would break the
# program's Python.
proc ::vmdpotential::job::outside {script} {
    array set before [array get ::env]
    array unset ::env LD_LIBRARY_PATH
    array unset ::env PYTHON*
    set ::env(PYTHONIOENCODING) utf-8
    set code [catch {uplevel 1 $script} result options]
    array unset ::env PYTHONIOENCODING
    array set ::env [array get before]
    return -options $options $result
}

# Run the program, for commands that take no time, and return its answer.
proc ::vmdpotential::job::ask {program args} {
    if {[catch {outside {exec {*}$program {*}$args --tcl << {}}} text options]
            && [lindex [dict get $options -errorcode] 0] ne "NONE"} {
        # the program's own message, or else the first line of Tcl's
        set lines [split [string trim $text] \n]
        set own [lsearch -all -inline -glob $lines vmdpotential:*]
        error "[lindex $program 0] failed: [lindex [concat $own $lines] 0]"
    }
    # an error without a code is Tcl's word for warnings, which follow the answer
    return [check_answer [lindex [split $text \n] 0]]
}

# Start the program and return the channel of its standard streams. It ends when the channel is closed. Tcl reads words
# that begin with < > | as redirections, so text from users follows --option= or is a full path.
proc ::vmdpotential::job::open_child {job} {
    if {[catch {outside {
        open |[concat [::vmdpotential::find_program {}] [dict get $job words] [list --tcl=[dict get $job answer] 2>@1]] r+
    }} channel]} {
        ::vmdpotential::discard $job
        error "the program cannot be started: $channel"
    }
    return $channel
}

# Return an answer of the program, which is a dictionary.
proc ::vmdpotential::job::check_answer {text} {
    if {[catch {dict size $text}]} {
        error "the program's answer cannot be read: '[string range [string trim [string map {\n { }} $text]] 0 20]'"
    }
    return $text
}

proc ::vmdpotential::job::read_file {path} {
    set channel [open $path r]
    fconfigure $channel -encoding utf-8
    set text [read $channel]
    close $channel
    return $text
}

# Return a new folder that only this user can read; it is removed when VMD exits.
proc ::vmdpotential::job::make_folder {} {
    variable session
    variable last
    if {$session eq "" || ![file isdirectory $session]} {
        set session [make_private_folder]
        # VMD sets vmd_quit when it exits
        trace add variable ::vmd_quit write ::vmdpotential::job::leave
        trace add execution exit enter ::vmdpotential::job::leave
    }
    set folder [file join $session [incr last]]
    file mkdir $folder
    return $folder
}

# Return a new and empty folder of this user, in the folder for temporary files.
proc ::vmdpotential::job::make_private_folder {} {
    set place /tmp
    foreach name {TMP TEMP TMPDIR} {
        if {[info exists ::env($name)] && [file isdirectory $::env($name)]} {
            set place [file normalize $::env($name)]
        }
    }
    # nobody else can have made the folder if it is no link, belongs to this user, and is empty once it is closed to others
    for {set number 0} {$number < 20} {incr number} {
        set folder [file join $place vmdpotential.[pid].[clock microseconds].[expr {int(1e9 * rand())}]]
        if {[catch {file type $folder}] && ![catch {file mkdir $folder}] && [file type $folder] eq "directory"
                && [file owned $folder]} {
            if {$::tcl_platform(platform) eq "unix"} {
                file attributes $folder -permissions 0700
            }
            if {[lsearch -not -regexp [glob -nocomplain -tails -directory $folder * .*] {^\.\.?$}] < 0} {
                return $folder
            }
        }
    }
    error "no folder for temporary files can be made in $place; set the environment variable TMPDIR to another one"
}

# End all children and remove all files when VMD exits.
proc ::vmdpotential::job::leave {args} {
    variable session
    variable running
    catch {::vmdpotential::live::stop}
    foreach id [array names running] {
        catch {close [dict get $running($id) channel]}
    }
    catch {file delete -force -- $session}
    set session {}
}

# Start a job and return its id.
proc ::vmdpotential::job::start {job} {
    variable running
    variable ended
    variable last
    set id [incr last]
    dict set job answer [file join [dict get $job folder] answer.tcl]
    set channel [open_child $job]
    dict set job channel $channel
    dict set job errors {}
    set running($id) $job
    unset -nocomplain ended($id)
    fconfigure $channel -blocking 0 -buffering line -encoding utf-8
    fileevent $channel readable [list ::vmdpotential::job::readable $id]
    tell $id started "[dict get $job command] is running; 'potential stop' ends it"
    return $id
}

proc ::vmdpotential::job::tell {id event text} {
    variable listener
    variable said
    if {$event ne "progress" || [clock seconds] - $said >= 10} {
        set said [clock seconds]
        ::vmdpotential::say $text [expr {$event eq "failed" ? "-err" : $event eq "warning" ? "-warn" : "-info"}]
    }
    if {$listener ne "" && $event ne "warning"} {
        catch {{*}$listener $id $event $text}
    }
}

# Read the lines that a child has written, or its end.
proc ::vmdpotential::job::readable {id} {
    variable running
    set channel [dict get $running($id) channel]
    while {[gets $channel line] >= 0} {
        set line [named $running($id) $line]
        if {[string match "vmdpotential: *" $line]} {
            dict lappend running($id) errors [string range $line 14 end]
        } elseif {[string match "warning: *" $line]} {
            tell $id warning $line
        } elseif {[string trim $line] ne ""} {
            tell $id progress $line
        }
    }
    if {[eof $channel]} {
        finish $id
    }
}

# Read the result of a finished job and show it, or stop a job; any error becomes the job's error.
proc ::vmdpotential::job::finish {id {stopped 0}} {
    variable running
    variable ended
    set job $running($id)
    unset running($id)
    set channel [dict get $job channel]
    fconfigure $channel -blocking [expr {!$stopped}]  ;# closing waits for the program, unless it is stopped
    set failed [catch {close $channel} message]
    if {$stopped} {
        set failed 1
        set message "[dict get $job command] was stopped"
    } elseif {$failed} {
        # a killed program has reported nothing; then Tcl's message is kept
        set message [lindex [concat [list $message] [dict get $job errors]] end]
    } else {
        set failed [catch {
            ::vmdpotential::show::result $job [check_answer [read_file [dict get $job answer]]]
        } message]
    }
    if {$failed} {
        ::vmdpotential::discard $job
        tell $id failed $message
    } else {
        tell $id done "[dict get $job command] is done"
    }
    set ended($id) [list $failed $message]
}

# Return a message of the program, with the molecule in place of its temporary files.
proc ::vmdpotential::job::named {job text} {
    set names {}
    foreach file {structure.cif structure.psf frames.dcd frames.pdb} {
        lappend names [file join [dict get $job folder] $file] "molecule [dict get $job molecule]"
    }
    return [string map $names $text]
}

# Wait until a job, by default the last one started, has ended; return its result or raise its error.
proc ::vmdpotential::job::wait {{id {}}} {
    variable running
    variable ended
    if {$id eq ""} {
        set id [lindex [lsort -integer [concat [array names running] [array names ended]]] end]
        if {$id eq ""} {
            return {}
        }
    }
    if {![info exists running($id)] && ![info exists ended($id)]} {
        error "there is no job '$id'"
    }
    while {![info exists ended($id)]} {
        vwait ::vmdpotential::job::ended($id)
    }
    lassign $ended($id) failed result
    if {$failed} {
        return -code error $result
    }
    return $result
}

# Return the running jobs, as {id command ...}.
proc ::vmdpotential::job::jobs {} {
    variable running
    set list {}
    foreach id [lsort -integer [array names running]] {
        lappend list $id [dict get $running($id) command]
    }
    return $list
}

# Stop a job, or all of them and the live map: at the end of its input, the program ends.
proc ::vmdpotential::job::stop {{id {}}} {
    variable running
    set ids [list $id]
    if {$id eq ""} {
        ::vmdpotential::live::stop
        set ids [array names running]
    }
    foreach id $ids {
        if {![info exists running($id)]} {
            error "there is no running job '$id'"
        }
        finish $id 1
    }
    return [llength $ids]
}
