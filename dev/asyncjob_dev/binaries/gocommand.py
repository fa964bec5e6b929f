"""A running `go`, whose words are heard line by line and which ends with this process."""

import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from asyncjob_dev.process import bound_command

TAIL_LINES = 25
STOP_SECONDS = 10.0


class GoCommand:
    """Started at once; `on_line` gets each line of stderr, and says whether it needs no keeping."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        on_line: Callable[[str], bool],
    ) -> None:
        self._on_line = on_line
        self._printed: list[str] = []
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._process = subprocess.Popen(
            bound_command(argv),
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        assert self._process.stdout
        assert self._process.stderr
        self._readers = [
            _read(self._process.stdout, self._printed.append),
            _read(self._process.stderr, self._hear),
        ]

    def wait(self) -> int:
        """Return the exit code, once all it wrote has been read."""
        for reader in self._readers:
            reader.join()
        return self._process.wait()

    @property
    def failed(self) -> bool:
        """Whether it has ended with an error; not while it runs."""
        return bool(self._process.poll())

    def stop(self) -> None:
        """End it, if it still runs."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()

    @property
    def printed(self) -> str:
        """All of stdout."""
        return "".join(self._printed)

    @property
    def complaint(self) -> str:
        """The end of what it wrote besides progress, indented."""
        return "\n".join(f"  {line}" for line in self._tail)

    def _hear(self, line: str) -> None:
        text = line.rstrip("\n")
        if not self._on_line(text):
            self._tail.append(text)


def _read(stream: IO[str], take: Callable[[str], None]) -> threading.Thread:
    def read_all() -> None:
        with stream:
            for line in stream:
                take(line)

    thread = threading.Thread(target=read_all, name="go output", daemon=True)
    thread.start()
    return thread
