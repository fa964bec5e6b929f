"""What a handler reports, on its way out of its process."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from asyncjob_worker.isolation.child_link import ReportSender, WorkerConnection
from asyncjob_worker.isolation.protocol import FrameDecoder


class Pair:
    """Both ends of the socket."""

    def __init__(self) -> None:
        self.worker, child = socket.socketpair()
        self._child = child
        self.reports = ReportSender(WorkerConnection(child))
        self._decoder = FrameDecoder()

    def received(self) -> list[Any]:
        """Return what has arrived since the last look."""
        self.worker.setblocking(False)
        try:
            return list(self._decoder.feed(self.worker.recv(100_000)))
        except BlockingIOError:
            return []

    def close(self) -> None:
        self.worker.close()
        self._child.close()


@pytest.fixture
def pair() -> Iterator[Pair]:
    pair = Pair()
    yield pair
    pair.close()


def test_the_first_report_goes_out_at_once(pair: Pair) -> None:
    pair.reports.progress(40, "half way")
    assert pair.received() == [{"is": "report", "progress": [40, "half way"]}]


def test_while_one_is_under_way_the_others_wait_and_the_newest_wins(pair: Pair) -> None:
    for row in range(5):
        pair.reports.progress(row, None)
        pair.reports.checkpoint({"row": row})
    assert pair.received() == [{"is": "report", "progress": [0, None]}]
    pair.reports.acknowledged()
    newest = {"is": "report", "progress": [4, None], "checkpoint": {"row": 4}}
    assert pair.received() == [newest]
    pair.reports.acknowledged()
    assert pair.received() == []


def test_an_empty_checkpoint_is_a_checkpoint(pair: Pair) -> None:
    pair.reports.checkpoint(None)
    assert pair.received() == [{"is": "report", "checkpoint": None}]


def test_what_is_left_at_the_end_is_handed_on_and_nothing_after_it(pair: Pair) -> None:
    pair.reports.progress(1, None)
    pair.reports.progress(99, None)
    pair.reports.close()
    pair.reports.progress(100, "a thread that the handler has left behind")
    assert [message["progress"] for message in pair.received()] == [[1, None], [99, None]]


def test_a_long_message_is_cut_before_it_is_sent(pair: Pair) -> None:
    pair.reports.progress(1, "x" * 100_000)
    assert len(pair.received()[0]["progress"][1]) <= 1024
