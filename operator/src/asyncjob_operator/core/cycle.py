"""Jobs that wait for one another: the shortest way from a job back to itself."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

MAX_EDGES_FOLLOWED: Final = 2000
"""So many dependencies are followed: about a millisecond."""


def find_cycle(
    start: str, waits_for: Callable[[str], Iterable[str]], limit: int = MAX_EDGES_FOLLOWED
) -> tuple[str, ...]:
    """Return the jobs of the cycle, `start` first, or nothing if there is none within the limit."""
    came_from: dict[str, str] = {}
    queue, followed = deque([start]), 0
    while queue and followed < limit:
        here = queue.popleft()
        for there in waits_for(here):
            followed += 1
            if there == start:
                return _path(start, here, came_from)
            if there not in came_from:
                came_from[there] = here
                queue.append(there)
    return ()


def _path(start: str, end: str, came_from: dict[str, str]) -> tuple[str, ...]:
    way = [end]
    while way[-1] != start:
        way.append(came_from[way[-1]])
    return tuple(reversed(way))
