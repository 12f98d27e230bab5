"""The shell program, also as ``python -m vmdpotential``."""

import sys


def main() -> int:
    """Run the program with the arguments of the process, and return its exit code."""
    try:
        from vmdpotential.frontend import interrupts

        with interrupts.handled():
            from vmdpotential.frontend import cli

            return cli.main()
    except KeyboardInterrupt:  # before the program began
        print("vmdpotential: interrupted", file=sys.stderr)
        return 130
    finally:
        exec("")  # else python -m would end by a signal after an interrupt within exec(), as of imports


if __name__ == "__main__":
    sys.exit(main())
