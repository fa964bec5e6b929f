"""Asks again who follows a stream: the answers are remembered as those for requests are."""

from typing import Final

from starlette.datastructures import Headers

from asyncjob.errors import AsyncJobError
from asyncjob_gateway import kinds
from asyncjob_gateway.auth import rights
from asyncjob_gateway.context import RequestContext
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.events.listener import StreamCaller

_ENDS_STREAM: Final = (kinds.UNAUTHENTICATED, kinds.FORBIDDEN)


def make_stream_caller(ctx: RequestContext, headers: Headers, address: str) -> StreamCaller:
    """Return who follows, by the headers and the address that said who asks.

    Where nobody can be asked whether they still may, they still do.
    """

    async def stands() -> bool:
        try:
            await ctx.app.authenticator.authenticate(headers, address)
            await ctx.require(rights.WATCH_JOBS)
        except RefusedError as error:
            return error.kind not in _ENDS_STREAM
        except AsyncJobError:
            return True
        return True

    return StreamCaller(ctx.caller, stands)
