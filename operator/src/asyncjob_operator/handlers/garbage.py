"""Keeps Python's garbage collector from walking through all jobs again and again."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

YOUNG_GENERATION_THRESHOLD: Final = 10_000
"""New objects before the collector looks at them, where Python itself takes 700."""


@contextmanager
def freeze_gc() -> Iterator[None]:
    """Collect nothing while all jobs are listed, and leave what there is then out for good.

    Views of jobs have no cycles: reference counts alone free them. To walk through all of them but
    once would hold the event loop, for 60 ms with a hundred thousand objects. If the list fails,
    the collector is on as before.
    """
    gc.disable()
    try:
        yield
        gc.freeze()
        gc.set_threshold(YOUNG_GENERATION_THRESHOLD, *gc.get_threshold()[1:])
    finally:
        gc.enable()
