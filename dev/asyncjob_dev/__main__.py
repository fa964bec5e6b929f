"""`python -m asyncjob_dev`."""

from asyncjob_dev.cli import main

main()
