"""Serve the documentation on this machine, and render it again when a page changes."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Final

import click

from asyncjob_dev.errors import DevError

HOST: Final = "127.0.0.1"
SOURCES: Final = ("docs", "examples", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
"""What the site is made of, but for files that pages only show."""


class _Handler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is given
        """Say nothing: a page asks for dozens of files."""


@contextmanager
def serving(folder: Path, port: int = 0) -> Iterator[str]:
    """Serve the files below a folder on this machine alone; yield the address."""
    with ThreadingHTTPServer((HOST, port), partial(_Handler, directory=str(folder))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://{HOST}:{server.server_port}/"
        finally:
            server.shutdown()


def render_on_changes(
    render: Callable[[], object], changes: Iterable[object], say: Callable[[str], None] = click.echo
) -> None:
    """Render at each change; what is wrong is said, and the last good site stays."""
    for _ in changes:
        try:
            render()
        except DevError as error:
            say(str(error))
        else:
            say("rendered again")
