"""What the simulation takes for broken in the results of an array's items."""

import base64
from types import SimpleNamespace
from typing import Any

import pytest

from asyncjob.lifecycle.arrays.item_results import object_path, result_line, results_folder
from asyncjob.names import ARRAY_LABEL
from asyncjob_simulation.item_store import RESULTS, MemoryStore
from asyncjob_simulation.result_rules import ResultRules

Object = dict[str, Any]

SPEC: Object = {
    "type": "tally",
    "items": {"count": 3},
    "results": {"uri": str(RESULTS)},
}


def array(failed: str = "", requeued: str = "") -> Object:
    """Return an array of three items that has cut all of them."""
    status = {"phase": "Running", "total": 3, "next": 3, "failedItems": failed}
    return {
        "metadata": {
            "name": "array",
            "namespace": "work",
            "uid": "array-uid",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": SPEC,
        "status": {**status, "requeued": requeued},
    }


class Setting:
    """A chunk of three items, what its attempts store, and what is broken by it."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.broken: list[str] = []
        self.counted: list[str] = []
        self.rules = ResultRules(
            self.store, self.counted.append, lambda _, __, words: self.broken.append(words)
        )
        self._jobs: dict[str, Object] = {}

    def put(self, attempt: int, *items: int, chunk: str = "chunk", generation: int = 1) -> None:
        """Store results of an attempt of a chunk."""
        folder, name = object_path(generation, 0, attempt, chunk, 0)
        address = RESULTS.join("array-uid", folder, name)
        lines = [result_line(item, b'{"by":"%b/%d"}' % (chunk.encode(), attempt)) for item in items]
        self.store.write(address, b"".join(lines), RESULTS)

    def report(self, attempt: int, *done: int, chunk: str = "chunk", ended: bool = False) -> None:
        """Have an attempt say what is done."""
        bits = bytes([sum(1 << item for item in done)])
        status: Object = {"attempt": attempt, "checkpoint": {"done": base64.b64encode(bits)}}
        if ended:
            numbers = ",".join(map(str, done))
            status = {"attempt": attempt, "phase": "Succeeded", "result": {"done": numbers}}
        job = {
            "metadata": {"uid": chunk, "labels": {ARRAY_LABEL: "array-uid"}},
            "spec": {"payload": {"items": "0-2"}},
            "status": status,
        }
        change: Any = SimpleNamespace(old=self._jobs.get(chunk), new=job)
        self._jobs[chunk] = job
        self.rules.on_job(change)

    def judge(self, counted: set[int], **status: str) -> list[str]:
        """Return what is broken once an array counts these as done."""
        self.rules.on_counted(array(**status), frozenset(counted))
        return self.broken


@pytest.fixture
def setting() -> Setting:
    return Setting()


def test_the_folder_is_the_products_own() -> None:
    assert results_folder(SPEC, "array-uid") == str(RESULTS.join("array-uid"))


def test_each_item_has_the_result_of_the_attempt_that_has_reported_it(setting: Setting) -> None:
    setting.put(1, 0, 1)
    setting.report(1, 0)  # it died before it could say that 1 is done as well
    setting.put(2, 1, 2)
    setting.report(2, 0, 1, 2, ended=True)
    assert setting.judge({0, 1, 2}) == []
    assert "several results stored" in setting.counted


def test_a_result_of_an_item_that_has_failed_is_not_read(setting: Setting) -> None:
    setting.put(1, 0)
    setting.put(2, 1, 2)
    setting.report(2, 1, 2, ended=True)
    assert setting.judge({1, 2}, failed="0") == []
    assert "result of an item that is not done" in setting.counted


def test_a_result_of_a_later_chunk_replaces_the_one_of_a_chunk_that_is_gone(
    setting: Setting,
) -> None:
    setting.put(3, 0, 1, 2)
    setting.report(3, 0, 1, 2)
    setting.put(1, 0, 1, 2, chunk="later", generation=2)
    setting.report(1, 0, 1, 2, chunk="later", ended=True)
    assert setting.judge({0, 1, 2}) == []


def test_an_item_without_a_result_is_noticed(setting: Setting) -> None:
    setting.put(1, 0, 1)
    setting.report(1, 0, 1, 2, ended=True)
    assert "no result of 1 item that is done: 2" in setting.judge({0, 1, 2})[0]


def test_the_result_of_an_attempt_that_did_not_count_is_noticed(setting: Setting) -> None:
    setting.put(2, 0, 1, 2)
    setting.report(1, 0)
    setting.report(2, 0, 1, 2, ended=True)
    (words,) = setting.judge({0, 1, 2})
    assert words == "{'by': 'chunk/2'} of item 0, and chunk/1 counted"


def test_a_result_of_an_item_that_is_not_done_is_noticed(setting: Setting) -> None:
    setting.put(1, 0, 1, 2)
    setting.report(1, 0, 1, 2, ended=True)
    assert setting.judge({0, 1}) == ["item 2 is not done, and readers get 1 results of it"]


def test_an_array_that_keeps_no_results_has_none(setting: Setting) -> None:
    plain = {**array(), "spec": {"type": "tally", "items": {"count": 3}}}
    setting.rules.on_counted(plain, frozenset({0, 1, 2}))
    assert setting.broken == setting.counted == []
