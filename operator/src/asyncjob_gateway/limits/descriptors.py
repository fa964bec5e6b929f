"""File descriptors: without one left, nobody is let in and nothing is asked of anybody."""

import resource
from typing import Final

SPARE_DESCRIPTORS: Final = 128
"""For logs, libraries, the metrics port, and connections that are being closed."""


def reserve_descriptors(connections: int, outgoing: int) -> int:
    """Let the process have enough descriptors; return how many connections there can be.

    `others` are the connections that it opens itself. Only the soft limit can be raised.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + outgoing + SPARE_DESCRIPTORS
    if hard != resource.RLIM_INFINITY:
        needed = min(needed, hard)
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    return max(1, min(connections, needed - outgoing - SPARE_DESCRIPTORS))
