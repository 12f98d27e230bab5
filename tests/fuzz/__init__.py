"""Damaged files for every reader: what is read is sound, or one line says what is wrong.

Small files made by our own writers (and by hand where we write none) are mutated with their structure in mind, and
read in a child process with a limit on its memory and a clock. A result or an error of ours is right, where the error
is one printable line of at most 300 characters with the file's name; anything else is a violation: another exception,
a warning, more memory than the plan, more than ten seconds, a crash.

    python -m fuzz --count 200000 --seed 7                   in tests/; the long mode
    python -m fuzz --kind "bare structure"                   files of one kind alone
    python -m fuzz --seed 7 --only 1234                      one case again, with its traceback
    python -m fuzz --kills 100 --seed 7                      commands that are ended by a signal; see fuzz.kills
    python -m fuzz --systems 500 --seed 7                    random systems; see fuzz.systems
    python -m fuzz --tools 10000 --seed 7                    calls of the tools for agents; see fuzz.tools
    python -m fuzz --kind titrated                           a task on damaged files; see fuzz.answers
    pytest tests/fuzz                                        what every run of the tests does

Every case is made by its seed and its index alone. A violation is kept as a file, and its name is printed; once it is
understood it becomes a small case of its own in ``tests/io/test_broken_files.py``.
"""
