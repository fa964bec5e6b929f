"""What strangers may do to a gateway, all at once: a program of its own, cheap and bounded in time.

`python -m support.tenants.strangers PORT SECONDS TOKEN`: half heads and half bodies that are
kept open, bad tokens, and bodies at the size limit under a token without rights. Says in JSON
what it did.
"""

import asyncio
import json
import secrets
import sys
from collections import Counter
from contextlib import suppress

SLOW = 128
"""Connections with half a head, and as many with half a body."""

BAD_TOKENS = 145
"""Per second."""

BIG = b"[" + b"[]," * 1_398_100 + b"0]"
HALF_HEAD = b"GET /api/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
HALF_BODY = (
    b"POST /dashboard/sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\n\r\nt"
)

done: Counter[str] = Counter()


async def slow(port: int, what: str, sent: bytes) -> None:
    """Keep a connection open whose request never ends; begin again when hung up on."""
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            done[what] += 1
            try:
                writer.write(sent)
                while await reader.read(65536):
                    pass
            finally:
                writer.close()
        await asyncio.sleep(0.05)


async def bad_tokens(port: int) -> None:
    """Send requests with tokens that are none, at this rate whenever they are answered."""
    loop = asyncio.get_running_loop()
    begun, count = loop.time(), 0
    async with asyncio.TaskGroup() as group:
        while True:
            group.create_task(_bad_token(port))
            done["bad token"] += 1
            count += 1
            await asyncio.sleep(max(0.0, begun + count / BAD_TOKENS - loop.time()))


async def _bad_token(port: int) -> None:
    try:
        status = await _ask(port, secrets.token_urlsafe(32), b"")
        done[f"bad token {status}"] += 1
    except OSError:
        done["bad token hung up on"] += 1


async def big_bodies(port: int, token: str) -> None:
    """Send bodies at the limit."""
    while True:
        with suppress(OSError):
            done[f"big body {await _ask(port, token, BIG)}"] += 1
        await asyncio.sleep(0.25)


async def _ask(port: int, token: str, body: bytes) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        method = "POST /api/v1/jobs/batch" if body else "GET /api/v1/jobs"
        head = f"{method} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        answer = await reader.readline()
        await writer.drain()
        return answer[9:12].decode()
    finally:
        writer.close()


async def main(port: int, seconds: float, token: str) -> None:
    """Do all of it for so long."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
            for _ in range(SLOW):
                group.create_task(slow(port, "half head", HALF_HEAD))
                group.create_task(slow(port, "half body", HALF_BODY))
            group.create_task(bad_tokens(port))
            group.create_task(big_bodies(port, token))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]))
    print(json.dumps(done))  # noqa: T201  # its answer
