"""`python -m asyncjob.cli`."""

from asyncjob.cli import main

main()
