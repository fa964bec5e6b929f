"""An API to call from `api.call`: it takes so many requests a second, and each order once.

Start it with `python -m examples.limited_api`; it knows `--per-second` and `--port`.
"""

import argparse
import time
from collections import deque
from collections.abc import Callable

from aiohttp import web

Allows = Callable[[], bool]


class PerSecond:
    """Allows so many requests within any second."""

    def __init__(self, count: int, now: Callable[[], float] = time.monotonic) -> None:
        self._recent: deque[float] = deque(maxlen=count)
        self._now = now

    def __call__(self) -> bool:
        """Return whether one more is allowed."""
        now = self._now()
        if len(self._recent) == self._recent.maxlen and now - self._recent[0] < 1:
            return False
        self._recent.append(now)
        return True


def build(allows: Allows) -> web.Application:
    """Return the API: POST an order with an `Idempotency-Key`, GET all of them."""
    orders: dict[str, object] = {}

    async def create(request: web.Request) -> web.Response:
        if not allows():
            return web.Response(status=429, text="slow down", headers={"Retry-After": "1"})
        key = request.headers["Idempotency-Key"]
        number = list(orders).index(key) + 1 if key in orders else len(orders) + 1
        orders.setdefault(key, await request.json())
        return web.json_response({"order": number}, status=201)

    async def show(_request: web.Request) -> web.Response:
        return web.json_response(orders)

    api = web.Application()
    api.add_routes([web.post("/orders", create), web.get("/orders", show)])
    return api


def main() -> None:
    """Serve it on this machine."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--per-second", type=int, default=2)
    options.add_argument("--port", type=int, default=8000)
    given = options.parse_args()
    web.run_app(build(PerSecond(given.per_second)), host="127.0.0.1", port=given.port)


if __name__ == "__main__":
    main()
