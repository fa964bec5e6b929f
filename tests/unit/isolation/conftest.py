"""One loop and one set of processes for a file's tests: a process costs half a second."""

from collections.abc import AsyncIterator

import pytest_asyncio

from support.isolation import Shop


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shop() -> AsyncIterator[Shop]:
    shop = Shop()
    yield shop
    await shop.close()
