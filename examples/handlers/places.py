"""Where handlers read and write files: relative to the worker's folder, and written in one step."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from asyncjob import Category, Fail


def target_path(wanted: Path, suffix: str) -> Path:
    """Return where to write; raises Fail outside the worker's folder or with another suffix.

    Whoever may create jobs must not be able to overwrite whatever the worker may write.
    """
    base = Path.cwd().resolve()
    path = (base / wanted).resolve()
    if not path.is_relative_to(base):
        raise Fail(
            f"target {wanted} lies outside the worker's folder", category=Category.PERMISSION
        )
    if path.suffix != suffix:
        raise Fail(f"target {wanted} does not end in {suffix}", category=Category.VALIDATION)
    return path


@contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """Open a draft, for text, that takes the place of `path` only once it is complete."""
    with drafted(path) as draft, draft.open("w", encoding="utf-8", newline="\n") as stream:
        yield stream


@contextmanager
def drafted(path: Path) -> Iterator[Path]:
    """Give the path of a draft that takes the place of `path` only once it is complete.

    So a handler may be run again at any time: a reader sees the old file or the new one, and two
    attempts at once cannot mix their lines.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    draft = Path(name)
    os.close(handle)
    try:
        yield draft
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
