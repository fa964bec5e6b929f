"""A web server on the loopback address that has one file and gives parts of it, as asked to."""

import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Final, Self

HOLD_SECONDS: Final = 60.0
_RANGE: Final = re.compile(r"bytes=(\d+)-(\d+)")


class FileServer:
    """Serves `content` at `url`; while `held`, parts beyond the first wait, and are counted.

    While `status` is set, every request is answered with it.
    """

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.status = 0
        self.waiting = threading.Semaphore(0)
        self.parts: list[tuple[int, int]] = []
        self._go_on = threading.Event()
        self._go_on.set()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def folder(self) -> str:
        """The address of the folder that the file is in."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/files"

    @property
    def url(self) -> str:
        """The address of the file."""
        return f"{self.folder}/items.jsonl"

    def hold(self) -> None:
        """Answer no request for a later part until `release`."""
        self._go_on.clear()

    def release(self) -> None:
        """Answer what was held."""
        self._go_on.set()

    def await_part(self, seconds: float = HOLD_SECONDS) -> bool:
        """Wait until a request is held; return whether one was."""
        return self.waiting.acquire(timeout=seconds)

    def take_part(self, first: int, last: int) -> bytes:
        """Return a part once it may be given."""
        self.parts.append((first, last))
        if first and not self._go_on.is_set():
            self.waiting.release()
            self._go_on.wait(HOLD_SECONDS)
        return self.content[first : last + 1]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, files: FileServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = files


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        files = self.server.files
        asked = _RANGE.fullmatch(self.headers.get("Range", ""))
        size, body = len(files.content), files.content
        code, part = files.status or 200, {}
        if asked and not files.status:
            first, last = int(asked[1]), min(int(asked[2]), size - 1)
            code, body = 206, files.take_part(first, last)
            part = {"Content-Range": f"bytes {first}-{last}/{size}"}
        self.close_connection = True
        try:
            self.send_response(code)
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("ETag", f'"{size}"')
            self.send_header("Content-Length", str(len(body) if code in {200, 206} else 0))
            for name, value in part.items():
                self.send_header(name, value)
            self.end_headers()
            if with_body and code in {200, 206}:
                self.wfile.write(body)
        except OSError:
            return  # whoever asked is gone

    def log_message(self, *_: object) -> None:
        """Be silent."""
