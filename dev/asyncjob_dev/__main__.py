"""`python -m asyncjob_dev`."""

import sys

from asyncjob.programs.interrupts import restore_sigint

restore_sigint()
# The imports take a second, in which Ctrl-C would show a traceback.
try:
    from asyncjob_dev.cli import main

    main()
except KeyboardInterrupt:
    sys.exit(130)
