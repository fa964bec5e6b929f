"""`python -m asyncjob_bench`."""

import sys

from asyncjob_bench.cli import command

try:
    command()
except KeyboardInterrupt:
    sys.exit(130)
