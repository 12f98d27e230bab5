# Conversion of JSON to Tcl: objects become dictionaries, arrays lists, true and false 1 and 0, null an empty string.
# Text is never evaluated or substituted.

namespace eval ::vmdpotential::json {}

proc ::vmdpotential::json::parse {text} {
    set at 0
    set value [value $text at]
    skip $text at
    if {$at != [string length $text]} {
        fail $text $at
    }
    return $value
}

proc ::vmdpotential::json::fail {text at} {
    set excerpt [string map {\n { }} [string range $text $at [expr {$at + 20}]]]
    error "the program's answer is not valid JSON, at character $at: '[string trim $excerpt]'"
}

proc ::vmdpotential::json::skip {text name} {
    upvar 1 $name at
    regexp -indices -start $at {\A[ \t\r\n]*} $text found
    set at [expr {[lindex $found 1] + 1}]
}

proc ::vmdpotential::json::value {text name} {
    upvar 1 $name at
    skip $text at
    switch -- [string index $text $at] {
        "\{" { return [collect $text at "\}" 1] }
        "\[" { return [collect $text at "\]" 0] }
        "\"" { return [quoted $text at] }
    }
    foreach {word meaning} {true 1 false 0 null {}} {
        if {[string range $text $at [expr {$at + [string length $word] - 1}]] eq $word} {
            incr at [string length $word]
            return $meaning
        }
    }
    if {![regexp -indices -start $at {\A-?\d+(\.\d+)?([eE][-+]?\d+)?} $text found]} {
        fail $text $at
    }
    set number [string range $text $at [lindex $found 1]]
    set at [expr {[lindex $found 1] + 1}]
    return $number
}

# Return the members of an object (`pairs` is true) or array.
proc ::vmdpotential::json::collect {text name end pairs} {
    upvar 1 $name at
    incr at
    set items {}
    skip $text at
    if {[string index $text $at] eq $end} {
        incr at
        return $items
    }
    while 1 {
        if {$pairs} {
            skip $text at
            if {[string index $text $at] ne "\""} {
                fail $text $at
            }
            lappend items [quoted $text at]
            skip $text at
            if {[string index $text $at] ne ":"} {
                fail $text $at
            }
            incr at
        }
        lappend items [value $text at]
        skip $text at
        set mark [string index $text $at]
        incr at
        if {$mark eq $end} {
            return $items
        }
        if {$mark ne ","} {
            fail $text [expr {$at - 1}]
        }
    }
}

proc ::vmdpotential::json::quoted {text name} {
    upvar 1 $name at
    if {![regexp -indices -start $at {\A"((?:[^"\\]|\\.)*)"} $text all inner]} {
        fail $text $at
    }
    set at [expr {[lindex $all 1] + 1}]
    set raw [string range $text {*}$inner]
    if {[string first \\ $raw] < 0} {
        return $raw
    }
    set result {}
    set from 0
    while {[regexp -indices -start $from {\\(u[0-9a-fA-F]{4}|.)} $raw found letter]} {
        append result [string range $raw $from [expr {[lindex $found 0] - 1}]]
        set code [string range $raw {*}$letter]
        if {[string length $code] > 1} {
            scan [string range $code 1 end] %x number
            append result [format %c $number]
        } elseif {[dict exists {n \n t \t r \r b \b f \f} $code]} {
            append result [dict get [dict create n \n t \t r \r b \b f \f] $code]
        } else {
            append result $code
        }
        set from [expr {[lindex $found 1] + 1}]
    }
    return [append result [string range $raw $from end]]
}
