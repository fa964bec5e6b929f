"""What must hold of the results of items, judged by what readers get.

Which run counted is read here from the reports of chunks: the attempt whose report says first that
an item is done. What readers get, the product's own reader says.
"""

import base64
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from asyncjob.client.results import StoredResults, item_results_of
from asyncjob.errors import AsyncJobError
from asyncjob.names import ARRAY_LABEL
from asyncjob.offload import AllowList
from asyncjob.rest.arrays import array_of
from asyncjob_simulation.apiserver.storage import Change
from asyncjob_simulation.array_rules import Broken, Object, items_in
from asyncjob_simulation.item_runs import Item
from asyncjob_simulation.item_store import RESULTS, MemoryStore

ONE_RESULT: Final = "an item that is done has one result, of the run that counted"
"""And no other item has one."""


@dataclass
class ResultRules:
    """Watches the results of the items of one simulation."""

    store: MemoryStore
    count: Callable[[str], None]
    broken: Broken
    _by: dict[Item, str] = field(default_factory=dict)
    """UID of the chunk and number of the attempt that have reported last that an item is done."""

    def on_job(self, change: Change) -> None:
        """Note which attempt of a chunk says what is done."""
        job, before = change.new, change.old or {}
        uid = ((job or {}).get("metadata", {}).get("labels") or {}).get(ARRAY_LABEL)
        if job is None or not uid:
            return
        numbers = sorted(items_in(job["spec"]["payload"].get("items") or ""))
        status = job.get("status") or {}
        reported = _reported(status, numbers) - _reported(before.get("status") or {}, numbers)
        by = f"{job['metadata']['uid']}/{status.get('attempt')}"
        for item in reported:
            self._by[uid, item] = by
        of_chunk = {self._by.get((uid, item), by) for item in numbers}
        if reported and len(of_chunk) > 1 and job["spec"]["payload"].get("results"):
            self.count("results of several attempts")

    def on_counted(self, array: Object, counted: frozenset[int]) -> None:
        """Judge what readers get of an array; `counted` are the items that it has run and done."""
        if not array["spec"].get("results"):
            return
        name, uid = array["metadata"]["name"], array["metadata"]["uid"]
        self.count("results read")
        try:
            lines = self._read(array)
        except AsyncJobError as error:
            self.broken(ONE_RESULT, name, str(error))
            return
        self._judge(name, uid, lines, counted)
        stored = Counter(self._stored(uid))
        if any(stored[item] > 1 for item in counted):
            self.count("several results stored")
        if stored.keys() - counted:
            self.count("result of an item that is not done")

    def _judge(
        self, name: str, uid: str, lines: Sequence[tuple[int, Any]], counted: frozenset[int]
    ) -> None:
        times = Counter(item for item, _ in lines)
        for item in sorted(counted | times.keys()):
            if times[item] != (item in counted):
                is_done = "is done" if item in counted else "is not done"
                words = f"item {item} {is_done}, and readers get {times[item]} results of it"
                self.broken(ONE_RESULT, name, words)
        for item, result in lines:
            if result != {"by": self._by.get((uid, item))}:
                words = f"{result} of item {item}, and {self._by.get((uid, item))} counted"
                self.broken(ONE_RESULT, name, words)

    def _read(self, array: Object) -> list[tuple[int, Any]]:
        """Return what a client gives; raises AsyncJobError where an item that is done has none."""
        given = StoredResults(AllowList((RESULTS,)), self.store)
        results = item_results_of(array_of(array, detailed=True), given)
        lines = [(one.item, one.result) for one in results]
        results.check()
        return lines

    def _stored(self, uid: str) -> Iterator[int]:
        """Yield the item of each line that is stored of an array, in whatever object."""
        for address, data in self.store.objects.items():
            if f"/{uid}/" in address:
                yield from (orjson.loads(line)["item"] for line in data.splitlines())


def _reported(status: Object, numbers: Sequence[int]) -> frozenset[int]:
    """Return the items that a chunk reports as done: ranges in its end, and a bitmap before."""
    if status.get("phase") == "Succeeded":
        return items_in((status.get("result") or {}).get("done") or "")
    bits = base64.b64decode((status.get("checkpoint") or {}).get("done") or "")
    return frozenset(
        item
        for place, item in enumerate(numbers[: 8 * len(bits)])
        if bits[place // 8] >> place % 8 & 1
    )
