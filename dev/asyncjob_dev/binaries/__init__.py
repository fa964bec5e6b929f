"""Finds the control plane's programs and those of monitoring, or makes them."""

from asyncjob_dev.binaries.installed import Binary
from asyncjob_dev.binaries.pins import MONITORING_TOOLS, SERVER_TOOLS, TOOLS
from asyncjob_dev.binaries.resolver import Resolver, default_resolver

__all__ = [
    "MONITORING_TOOLS",
    "SERVER_TOOLS",
    "TOOLS",
    "Binary",
    "Resolver",
    "default_resolver",
    "resolve",
]


def resolve(tool: str) -> Binary:
    """Return a program that is pinned, ready to run, with this process's resolver."""
    return default_resolver().resolve(tool)
