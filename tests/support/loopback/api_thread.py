"""An aiohttp application on the loopback address, in a thread, for tests that are no coroutines."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web


@contextmanager
def serving(api: web.Application) -> Iterator[str]:
    """Serve it, and give its address."""
    loop = asyncio.new_event_loop()
    runner = web.AppRunner(api)
    thread = threading.Thread(target=loop.run_forever, name="api", daemon=True)
    thread.start()

    async def start() -> str:
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port, *_ = runner.addresses[0]
        return f"http://{host}:{port}"

    try:
        yield asyncio.run_coroutine_threadsafe(start(), loop).result(10)
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
