"""Files that others read while we replace them, or that hold secrets."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from asyncjob_dev.errors import FolderUnusableError

TAIL_BYTES = 64 * 1024


def write_private(path: Path, text: str) -> None:
    """Put `text` at `path` in one step, readable by this user only.

    A reader sees the old text or the new, never half of it.
    """
    draft = path.with_name(f".{path.name}.new")
    draft.touch(mode=0o600)
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


@contextmanager
def translate_folder_errors(folder: Path) -> Iterator[None]:
    """Turn whatever the file system refuses inside into `FolderUnusableError`."""
    try:
        yield
    except OSError as error:
        raise FolderUnusableError(folder, error) from error


def tail(path: Path, lines: int = 20, start: int = 0) -> str:
    """Return the last `lines` of a log from byte `start` on, or a remark when there are none."""
    try:
        with path.open("rb") as log:
            log.seek(max(start, path.stat().st_size - TAIL_BYTES))
            text = log.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return "  (no log)"
    return "\n".join(f"  {line}" for line in text.splitlines()[-lines:]) or "  (empty log)"
