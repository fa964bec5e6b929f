"""Callbacks for tests that want none, where the product's wiring always gives one."""

from asyncjob.app.child_jobs import NoChildJobs


def ignore(*_: object) -> None:
    """Take what is told, and do nothing."""


def no_children(_held: object) -> NoChildJobs:
    """Return what submits no child jobs."""
    return NoChildJobs()
