"""`python -m asyncjob.cli`."""

from asyncjob.cli.entry import main

main()
