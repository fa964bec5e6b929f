"""Lets `python -m asyncjob_worker` run the command `asyncjob-worker`."""

from asyncjob_worker.cli import main

main(prog_name="asyncjob-worker")
