"""Feeds a program and takes what it writes, without ever waiting for it longer than told."""

import os
import selectors
import subprocess
from collections.abc import Callable
from contextlib import suppress
from typing import IO

CHUNK_BYTES = 64 * 1024


class Pipes:
    """The three pipes of a program; closed at the end."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        stdin: bytes,
        on_stdout: Callable[[bytes], None],
        on_stderr: Callable[[bytes], None],
    ) -> None:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        self._selector = selectors.DefaultSelector()
        self._unwritten = memoryview(stdin)
        self._add(process.stdout, selectors.EVENT_READ, self._reader(on_stdout))
        self._add(process.stderr, selectors.EVENT_READ, self._reader(on_stderr))
        self._add(process.stdin, selectors.EVENT_WRITE, self._write)
        self._files = (process.stdin, process.stdout, process.stderr)

    @property
    def are_open(self) -> bool:
        """Whether the program, or one that it started, still holds any of them."""
        return bool(self._selector.get_map())

    def serve(self, seconds: float) -> bool:
        """Move what can be moved, waiting so long for something; return whether there was any."""
        ready = self._selector.select(seconds)
        for key, _ in ready:
            key.data(key.fileobj)
        return bool(ready)

    def close(self) -> None:
        """Let go of all of them."""
        self._selector.close()
        for file in self._files:
            with suppress(OSError):
                file.close()

    def _add(self, file: IO[bytes], event: int, move: Callable[[IO[bytes]], None]) -> None:
        os.set_blocking(file.fileno(), False)
        self._selector.register(file, event, move)

    def _reader(self, take: Callable[[bytes], None]) -> Callable[[IO[bytes]], None]:
        def read(file: IO[bytes]) -> None:
            data = os.read(file.fileno(), CHUNK_BYTES)
            if data:
                take(data)
            else:
                self._selector.unregister(file)

        return read

    def _write(self, file: IO[bytes]) -> None:
        try:
            self._unwritten = self._unwritten[
                os.write(file.fileno(), self._unwritten[:CHUNK_BYTES]) :
            ]
        except BrokenPipeError:
            self._unwritten = self._unwritten[:0]  # it does not want to know
        if not self._unwritten:
            self._selector.unregister(file)
            file.close()
