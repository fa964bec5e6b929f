"""The watch of jobs loses nothing, whatever ends it."""

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from asyncjob.errors import ApiError, ExpiredError, UnknownOutcomeError
from asyncjob.kube import KubeSession, WatchEvent
from asyncjob_operator.controllers import job_informer
from asyncjob_operator.controllers.job_informer import JobWatch

Part = WatchEvent | ApiError


class Enough(Exception):  # noqa: N818 - no error: there are no more watches to play
    """The last watch has been played."""


class Server:
    """Plays watches, each a list of events that may end with an error.

    A script, as the API server in memory does not break a watch between two given events.
    """

    def __init__(self, *watches: list[Part]) -> None:
        self.begun: list[tuple[str, str]] = []
        self._watches = list(watches)

    async def watch(
        self,
        _session: KubeSession,
        path: str,
        params: dict[str, str],
        *,
        gather_seconds: float,
    ) -> AsyncIterator[WatchEvent]:
        assert gather_seconds == job_informer.GATHER_SECONDS
        self.begun.append((path, params["resourceVersion"]))
        if len(self.begun) > len(self._watches):
            raise Enough
        for part in self._watches[len(self.begun) - 1]:
            if isinstance(part, ApiError):
                raise part
            yield part


def event(kind: str, version: int) -> WatchEvent:
    return WatchEvent(kind, {"metadata": {"uid": "a", "resourceVersion": str(version)}})


class JobInformerHarness:
    """A watch, what it handed on, and how often it compared."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *watches: list[Part]) -> None:
        self.server = Server(*watches)
        monkeypatch.setattr(job_informer, "watch", self.server.watch)
        self.seen: list[tuple[str, str]] = []
        self.compared: list[str | None] = []
        self.signs: list[str | None] = []
        self.watch = JobWatch(
            cast("KubeSession", None), self._saw, self._compare, self.signs.append
        )

    @property
    def versions(self) -> list[str]:
        return [version for _, version in self.server.begun]

    def _saw(self, kind: str, obj: Any) -> None:
        self.seen.append((kind, obj["metadata"]["resourceVersion"]))

    async def _compare(self, namespace: str | None) -> str:
        self.compared.append(namespace)
        return f"compared-{len(self.compared)}"


async def test_it_goes_on_where_the_list_ended_and_then_where_the_last_watch_did(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first: list[Part] = [event("ADDED", 11), event("DELETED", 12), event("BOOKMARK", 15)]
    harness = JobInformerHarness(monkeypatch, first, [event("MODIFIED", 16)], [])
    harness.watch.resume_from("ns", "10")
    with pytest.raises(Enough):
        await harness.watch.run("ns")
    assert harness.versions == ["10", "15", "16", "16"]
    assert harness.seen == [("ADDED", "11"), ("DELETED", "12"), ("MODIFIED", "16")]
    assert harness.compared == []
    assert harness.server.begun[0][0].endswith("/namespaces/ns/asyncjobs")


@pytest.mark.parametrize("broken", [UnknownOutcomeError("broke off"), ExpiredError(status=410)])
async def test_after_a_break_it_compares_before_it_watches(
    monkeypatch: pytest.MonkeyPatch, broken: ApiError
) -> None:
    harness = JobInformerHarness(monkeypatch, [event("ADDED", 11), broken])
    harness.watch.resume_from("ns", "10")
    with pytest.raises(type(broken)):
        await harness.watch.run("ns")
    assert harness.compared == []
    with pytest.raises(Enough):
        await harness.watch.run("ns")
    assert harness.versions == ["10", "compared-1"]


async def test_each_namespace_has_a_place_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = JobInformerHarness(monkeypatch, [event("ADDED", 11)], [])
    harness.watch.resume_from("one", "10")
    harness.watch.resume_from("two", "20")
    for namespace in ("two", "one"):
        with pytest.raises(Enough):
            await harness.watch.run(namespace)
    assert harness.versions == ["20", "11", "11", "10"]
    assert harness.compared == []
