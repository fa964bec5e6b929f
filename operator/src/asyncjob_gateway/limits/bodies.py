"""Bodies of requests, read up to a limit and no further."""

from starlette.requests import ClientDisconnect, Request

from asyncjob_gateway import kinds
from asyncjob_gateway.errors import RefusedError


async def bounded(request: Request, most: int) -> bytes:
    """Return the body, of so many bytes at most; raises RefusedError (413, 400).

    One that by its own word is too long is not read at all.
    """
    length = request.headers.get("content-length", "")
    found = bytearray()
    too_long = RefusedError(kinds.TOO_LARGE, f"the body has more than {most} bytes")
    if length.isdecimal() and int(length) > most:
        raise too_long
    try:
        async for chunk in request.stream():
            found += chunk
            if len(found) > most:
                raise too_long
    except ClientDisconnect as error:
        raise RefusedError(kinds.MALFORMED, "the body broke off") from error
    return bytes(found)
