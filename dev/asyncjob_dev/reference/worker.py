"""The tables of the worker's page, from its command line and its metrics."""

from asyncjob_dev.reference.blocks import table
from asyncjob_worker.cli import run
from asyncjob_worker.metrics import TABLE
from asyncjob_worker.options import documented


def options() -> str:
    """Return the table of options: variable, default, meaning."""
    return table(
        ("Option", "Variable", "Default", "Meaning"),
        [
            (f"`{option.flag}`", f"`{option.variable}`", option.default, option.meaning)
            for option in documented(run)
        ],
    )


def metrics() -> str:
    """Return the table of metrics: kind, labels, help."""
    return table(
        ("Metric", "Type", "Labels", "Meaning"),
        [
            (
                f"`{spec.shown_as}`",
                spec.kind.value,
                ", ".join(f"`{label}`" for label in spec.labels),
                spec.help,
            )
            for spec in TABLE
        ],
    )
