"""A collector of spans on loopback: takes what OTLP exporters send, and keeps it."""

import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Seen:
    """One span; ids are hexadecimal, `parent` is empty at the root of a trace."""

    name: str
    trace_id: str
    span_id: str
    parent: str
    service: str
    attributes: dict[str, str]
    failed: bool
    seconds: float


class Collector:
    """A context manager; `spans` grows as they come."""

    def __init__(self) -> None:
        self.spans: list[Seen] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.take(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """Return what OTEL_EXPORTER_OTLP_ENDPOINT is to be."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def named(self, name: str) -> list[Seen]:
        """Return the spans of that name, the oldest first."""
        return [span for span in self.spans if span.name == name]

    def take(self, request: ExportTraceServiceRequest) -> None:
        """Keep the spans of a request."""
        for resource in request.resource_spans:
            about = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
            for scope in resource.scope_spans:
                for span in scope.spans:
                    self.spans.append(
                        Seen(
                            span.name,
                            span.trace_id.hex(),
                            span.span_id.hex(),
                            span.parent_span_id.hex(),
                            about["service.name"],
                            {
                                pair.key: pair.value.string_value or str(pair.value.int_value)
                                for pair in span.attributes
                            },
                            span.status.code == span.status.STATUS_CODE_ERROR,
                            (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
                        )
                    )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
