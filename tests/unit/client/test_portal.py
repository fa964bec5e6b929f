"""The thread behind a sync client: what closing does to those who still wait."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from asyncjob.client.portal import Portal


@pytest.fixture
def portal() -> Iterator[Portal]:
    portal = Portal()
    yield portal
    portal.close()


async def seven() -> int:
    return 7


def test_closing_ends_the_wait_of_another_thread(portal: Portal) -> None:
    begun, told = threading.Event(), list[BaseException]()

    async def for_ever() -> None:
        begun.set()
        await asyncio.Event().wait()

    def wait() -> None:
        with pytest.raises(RuntimeError) as caught:
            portal.run(for_ever())
        told.append(caught.value)

    waiter = threading.Thread(target=wait, daemon=True)
    waiter.start()
    assert begun.wait(10)
    portal.close()
    waiter.join(10)
    assert [str(error) for error in told] == ["the client is closed; make another one"]


def test_a_closed_portal_says_so_and_may_be_closed_again(portal: Portal) -> None:
    ends: list[str] = []

    async def last() -> None:
        ends.append("closed")

    assert portal.run(seven()) == 7
    portal.close(last)
    portal.close(last)
    assert ends == ["closed"]
    with pytest.raises(RuntimeError, match="the client is closed"):
        portal.run(seven())
