"""Writes local files so that they appear whole or not at all, and survive a loss of power.

A job that refers to a result is safe in etcd; the file it refers to must not be less so.
"""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from asyncjob.offload.drivers import Driver


def write_file_atomically(driver: Driver, path: str, data: bytes) -> None:
    """Write a file under another name, then give it its own; makes its folder."""
    target = Path(path)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    driver.call("makedirs", str(target.parent), exist_ok=True)
    try:
        driver.call("pipe_file", str(draft), data)
        _fsync(draft)
        driver.call("mv", str(draft), path)
    except BaseException:
        # On a full disk each try would leave another half of it.
        with suppress(OSError):
            draft.unlink()
        raise
    _fsync(target.parent)


def _fsync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
