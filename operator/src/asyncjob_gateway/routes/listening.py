"""Asks again who follows a stream: the answers are remembered as those for requests are."""

from typing import Final

from starlette.datastructures import Headers

from asyncjob.errors import AsyncJobError
from asyncjob_gateway import kinds
from asyncjob_gateway.auth import rights
from asyncjob_gateway.context import Visit
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.events.listener import Listener

_OVER: Final = (kinds.UNAUTHENTICATED, kinds.FORBIDDEN)


def listener(visit: Visit, headers: Headers, address: str) -> Listener:
    """Return who follows, by the headers and the address that said who asks.

    Where nobody can be asked whether they still may, they still do.
    """

    async def stands() -> bool:
        try:
            await visit.context.authenticator.identify(headers, address)
            await visit.demand(rights.WATCH)
        except RefusedError as error:
            return error.kind not in _OVER
        except AsyncJobError:
            return True
        return True

    return Listener(visit.caller, stands)
