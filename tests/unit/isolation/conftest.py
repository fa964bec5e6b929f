"""One loop and one set of processes for a file's tests: a process costs half a second."""

from collections.abc import AsyncIterator

import pytest_asyncio

from support.parts.isolation import IsolatedAttempts


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def attempts() -> AsyncIterator[IsolatedAttempts]:
    attempts = IsolatedAttempts()
    yield attempts
    await attempts.close()
