"""HTTP/1.1, as uvicorn has it, but for what it leaves open: whom it waits for, and its words.

What cannot be read as HTTP is told as a problem, too: no app ever sees it.
"""

import asyncio
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from asyncjob_gateway import kinds
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.limits.connections import ConnectionState, ConnectionTable
from asyncjob_gateway.problems.answers import problem_response


class GatewayHttpProtocol(H11Protocol):
    """One connection. It tells `connections` what it waits for; the app may hang up on it."""

    connections_: ClassVar[ConnectionTable]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.app_state = {**self.app_state, "hang_up": self.abort}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """Take a place among the connections."""
        super().connection_made(transport)
        self.connections_.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Make room for another."""
        self.connections_.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on; the first byte of a head begins the time that the whole of it has."""
        if not self._is_responding:
            self.connections_.set_state(self, ConnectionState.READING_HEAD)
        super().data_received(data)

    def handle_events(self) -> None:
        """Read requests; one that is there is the app's business, unless its answer is stuck."""
        super().handle_events()
        if self._is_responding and not self.flow.write_paused:
            self.connections_.set_state(self, ConnectionState.PROCESSING)

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of one that was answered before its end."""
        self.connections_.set_state(
            self, ConnectionState.WRITING if self.transport.is_closing() else ConnectionState.IDLE
        )
        super().on_response_complete()

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection on which no other request has come."""
        self.connections_.set_state(self, ConnectionState.WRITING)
        super().timeout_keep_alive_handler()

    def pause_writing(self) -> None:
        """Note that the peer takes nothing."""
        self.connections_.set_state(self, ConnectionState.WRITING)
        super().pause_writing()

    def resume_writing(self) -> None:
        """Note that it does again."""
        self.connections_.set_state(
            self, ConnectionState.PROCESSING if self._is_responding else ConnectionState.IDLE
        )
        super().resume_writing()

    def abort(self) -> None:
        """Close the connection at once; an app that still answers finds its peer gone."""
        if self.cycle is not None:
            self.cycle.disconnected = True
        self.transport.abort()

    @property
    def _is_responding(self) -> bool:
        cycle = getattr(self, "cycle", None)  # uvicorn says that it always has one
        return cycle is not None and not cycle.response_complete

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  # ours say more
        """Say that the request is not HTTP, and hang up."""
        self.connections_.set_state(self, ConnectionState.WRITING)
        refusal = problem_response(RefusedError(kinds.NOT_HTTP), "")
        headers = [*refusal.raw_headers, (b"connection", b"close")]
        for event in (
            h11.Response(status_code=refusal.status_code, headers=headers),
            h11.Data(data=bytes(refusal.body)),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def protocol_class(connections: ConnectionTable) -> type[GatewayHttpProtocol]:
    """Return the protocol of a server's connections: uvicorn makes one for each by itself."""

    class Counted(GatewayHttpProtocol):
        connections_ = connections

    return Counted
