"""What is known of an object never becomes older."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from asyncjob.names import QUEUES, collection_path, queue_path
from asyncjob_operator.core.options import OPEN_QUEUE, read_queue
from asyncjob_simulation.cluster import NAMESPACE
from asyncjob_simulation.knowledge import Knowledge
from support.in_memory.memory import memory_admin, memory_server
from support.objects.builders import queue

PATH = queue_path(NAMESPACE, "q")


class FakeEvaluator:
    """An operator that knows a queue as a test has it know it, and no pods."""

    def __init__(self) -> None:
        self.known: Any = None
        self.queues = self
        self.worker_pods = SimpleNamespace(_pods={})

    def names_in(self, _: object) -> list[tuple[str, str]]:
        return [(NAMESPACE, "q")] if self.known else []

    def view(self, *_: str) -> Any:
        return read_queue(self.known) if self.known else OPEN_QUEUE

    def status(self, _: object) -> dict[str, Any]:
        return {}


class Setting:
    """An operator, and an API server with one queue that has been paused and let go on."""

    def __init__(self) -> None:
        self.server = memory_server()
        self.admin = memory_admin(self.server)
        self.operator = FakeEvaluator()
        self.knowledge = Knowledge(self.server)
        self.knowledge.operators["operator-0"] = cast("Any", self.operator)
        self.server.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        self.server.create(collection_path(NAMESPACE, QUEUES), queue("q"))
        self.versions = [self.server.get(PATH)]
        for spec in ({"paused": True}, {"paused": False, "maxConcurrency": 2}):
            self.admin.merge(PATH, {"spec": spec})
            self.versions.append(self.server.get(PATH))
        self.knowledge.follow()

    def problems(self, version: int | None) -> list[tuple[str, str]]:
        self.operator.known = None if version is None else self.versions[version]
        return list(self.knowledge.problems())


@pytest.fixture
def setting() -> Setting:
    return Setting()


def test_what_is_known_may_be_late(setting: Setting) -> None:
    assert not any(setting.problems(version) for version in (None, 0, 0, 2))
    assert not list(setting.knowledge.differences())


def test_what_is_known_never_becomes_older(setting: Setting) -> None:
    assert not setting.problems(2)
    ((name, words),) = setting.problems(1)
    assert name == "q"
    assert "operator-0 has forgotten" in words


def test_what_was_deleted_does_not_come_back(setting: Setting) -> None:
    setting.admin.delete(PATH)
    setting.knowledge.follow()
    assert not setting.problems(2)
    assert not setting.problems(None)
    assert setting.problems(2)


def test_in_the_end_it_is_what_there_is(setting: Setting) -> None:
    assert not setting.problems(0)
    assert [name for name, _ in setting.knowledge.differences()] == ["q"]
