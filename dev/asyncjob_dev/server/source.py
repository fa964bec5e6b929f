"""Notices that Python files change, by looking at them now and then.

Looking works on every system and file system, and takes nothing that would have to be installed.
"""

import os
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

PAUSE_SECONDS = 0.5
SHARE = 0.05
"""Of the time that may go by looking: in a huge folder it is looked less often."""

Stamps = Mapping[str, tuple[int, int]]
"""Path → time of the last change, in ns, and size."""

_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages"})


def stamps(folder: Path) -> Stamps:
    """Return those of all Python files below, but for hidden folders and virtual environments."""
    return dict(_stamps(str(folder)))


def _stamps(folder: str) -> Iterator[tuple[str, tuple[int, int]]]:
    try:
        with os.scandir(folder) as found:
            entries = list(found)
    except OSError:  # gone meanwhile, or not for us
        return
    if any(one.name == "pyvenv.cfg" for one in entries):
        return
    for one in entries:
        try:
            if one.is_dir(follow_symlinks=False):
                if not one.name.startswith(".") and one.name not in _SKIPPED:
                    yield from _stamps(one.path)
            elif one.name.endswith(".py"):
                state = one.stat()
                yield one.path, (state.st_mtime_ns, state.st_size)
        except OSError:
            continue


def changed(before: Stamps, now: Stamps) -> list[str]:
    """Return the files that are new, gone, or other than they were."""
    return sorted(path for path in {*before, *now} if before.get(path) != now.get(path))


def changes(folder: Path, stopping: threading.Event) -> Iterator[list[str]]:
    """Yield the files that have changed, once no more do."""
    known = settled = stamps(folder)
    pause = PAUSE_SECONDS
    while not stopping.wait(pause):
        began = time.monotonic()
        now = stamps(folder)
        pause = max(PAUSE_SECONDS, (time.monotonic() - began) / SHARE)
        if now == known and now != settled:
            yield changed(settled, now)
            settled = now
        known = now
