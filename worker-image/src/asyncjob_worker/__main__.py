"""`python -m asyncjob_worker` is `asyncjob-worker`."""

from asyncjob_worker.cli import main

main(prog_name="asyncjob-worker")
