"""``python -m vmdpotential`` is the shell program."""

import sys

from vmdpotential.cli import main

sys.exit(main())
