"""``python -m vmdpotential`` is the shell program."""

import sys

from vmdpotential.frontend.cli import main

sys.exit(main())
