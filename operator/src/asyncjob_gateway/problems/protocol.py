"""What cannot be read as HTTP is told as a problem, too: no app ever sees it."""

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from asyncjob_gateway import kinds
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.problems.answers import answer


class ProblemProtocol(H11Protocol):
    """HTTP/1.1, as uvicorn has it, but for the words in which it refuses."""

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  # ours say more
        """Say that the request is not HTTP, and hang up."""
        refusal = answer(RefusedError(kinds.NOT_HTTP), "")
        headers = [*refusal.raw_headers, (b"connection", b"close")]
        for event in (
            h11.Response(status_code=refusal.status_code, headers=headers),
            h11.Data(data=bytes(refusal.body)),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
