"""The table of the worker's page, from its command line."""

from asyncjob_dev.reference.blocks import table
from asyncjob_worker.cli import run
from asyncjob_worker.options import documented_options


def worker_options() -> str:
    """Return the table of options: variable, default, meaning."""
    return table(
        ("Option", "Variable", "Default", "Meaning"),
        [
            (f"`{option.flag}`", f"`{option.variable}`", option.default, option.meaning)
            for option in documented_options(run)
        ],
    )
