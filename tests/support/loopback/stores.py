"""Stores for tests, on loopback: a good S3, and one that fails as it is told to."""

import threading
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from moto.server import ThreadedMotoServer

BUCKET = "jobs"
OK = 200
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing-secret",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
NO_TRIES_OF_ITS_OWN = {"config_kwargs": {"retries": {"max_attempts": 1}}}


@contextmanager
def good_s3() -> Iterator[str]:
    """Run an S3 with one bucket; yields its address."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        url = "http://{}:{}".format(*server.get_host_and_port())
        _make_bucket(url)
        yield url
    finally:
        server.stop()


def _make_bucket(url: str) -> None:
    scope = "Credential=testing/20260101/us-east-1/s3/aws4_request"
    headers = {"Authorization": f"AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature=x"}
    request = urllib.request.Request(f"{url}/{BUCKET}", method="PUT", headers=headers)
    with urllib.request.urlopen(request) as answer:
        answer.read()


class FaultyS3:
    """An S3 that answers with `codes` in turn, the last for ever; 0 means that it never answers.

    Answered with 200, it keeps objects and gives them back.
    """

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)
        self.requests: list[str] = []
        self.objects: dict[str, bytes] = {}
        self.asked = threading.Event()
        self._over = threading.Event()
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
        self._over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def options(self) -> Mapping[str, Any]:
        """What its driver is made with."""
        port = self._server.server_address[1]
        return {"endpoint_url": f"http://127.0.0.1:{port}", **NO_TRIES_OF_ITS_OWN}

    def answer(self, request: str) -> int:
        """Return the code that a request is answered with, or hang."""
        self.requests.append(request)
        self.asked.set()
        code = self.codes.pop(0) if len(self.codes) > 1 else self.codes[0]
        if code == 0:
            self._over.wait(30)
        return code or 503


class _Server(ThreadingHTTPServer):
    def __init__(self, store: FaultyS3) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.store = store


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        code = self.server.store.answer(f"PUT {self.path}")
        if code == OK:
            self.server.store.objects[self.path] = data
        self._send(code, b"")

    def do_GET(self) -> None:
        code = self.server.store.answer(f"{self.command} {self.path}")
        found = self.server.store.objects.get(self.path)
        self._send(404 if found is None and code == OK else code, found or b"")

    def do_HEAD(self) -> None:
        self.do_GET()

    def _send(self, code: int, body: bytes) -> None:
        self.close_connection = True
        try:
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Location", "/elsewhere")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)
        except OSError:
            return  # whoever asked is gone

    def log_message(self, *_: object) -> None:
        """Be silent."""
