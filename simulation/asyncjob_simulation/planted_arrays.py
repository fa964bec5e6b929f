"""Bugs planted in what cuts arrays into chunks, counts them, and stores what their items return."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from asyncjob.app import item_results as writing
from asyncjob.app import outcomes
from asyncjob.app.item_results import KeptResults
from asyncjob.lifecycle.arrays import counting, skipped_items
from asyncjob.lifecycle.arrays import item_results as reading
from asyncjob.lifecycle.arrays.item_ranges import ItemRanges
from asyncjob.lifecycle.arrays.item_results import ItemResult, ResultReader
from asyncjob_operator.controllers import array_evaluator
from asyncjob_operator.core.arrays import decide
from asyncjob_operator.core.arrays.gates import MAY_START
from asyncjob_operator.core.arrays.snapshot import ArrayDecision, ControlChunks
from asyncjob_simulation.planting import mutation, nothing
from asyncjob_simulation.profiles import Profile


@mutation("a chunk that is counted stays on the list", profile=Profile.ARRAYS)
def counted_and_kept() -> AbstractContextManager[object]:
    return patch.object(counting, "_without", lambda state, _: state.open)


@mutation("what a dead operator has reserved nobody creates", profile=Profile.ARRAYS)
def never_taken_over() -> AbstractContextManager[object]:
    create = decide._create_reserved

    def wait(snapshot: Any, now: Any) -> Any:
        return create(snapshot, now) if snapshot.is_writer else ArrayDecision()

    return patch.object(decide, "_create_reserved", wait)


@mutation("chunks of an array that is gone are left behind", profile=Profile.ARRAYS)
def orphans_left() -> AbstractContextManager[object]:
    return patch.object(array_evaluator, "decide_orphans", nothing)


@mutation("a chunk that was counted is not deleted", profile=Profile.ARRAYS)
def counted_chunk_left() -> AbstractContextManager[object]:
    return patch.object(decide, "_delete_unlisted", nothing)


@mutation("chunks of an array that goes on stay suspended", profile=Profile.ARRAYS)
def chunks_stay_suspended() -> AbstractContextManager[object]:
    see_to = decide._see_to_chunks

    def never_resume(snapshot: Any) -> Any:
        effect = see_to(snapshot)
        resumes = isinstance(effect, ControlChunks) and effect.fields == {"suspend": False}
        return None if resumes else effect

    return patch.object(decide, "_see_to_chunks", never_resume)


@mutation("all items of a chunk that ends by crashes fail", profile=Profile.ARRAYS)
def innocents_fail() -> AbstractContextManager[object]:
    return patch.object(counting, "_is_ended_by_an_item", lambda _: False)


@mutation("arrays start without what they wait for", profile=Profile.ARRAYS)
def arrays_do_not_wait() -> AbstractContextManager[object]:
    return patch.object(array_evaluator, "check_start", lambda *_: MAY_START)


@mutation("items that are to be skipped are run all the same", profile=Profile.ARRAYS)
def skipped_are_run() -> AbstractContextManager[object]:
    return patch.object(
        skipped_items, "_left", lambda _, state: ItemRanges.between(state.next, state.total)
    )


@mutation("an item that failed counts as done", profile=Profile.ARRAYS)
def failed_as_done() -> AbstractContextManager[object]:
    fail = counting.fail_items

    def hardly(state: Any, failed: Any, errors: Any) -> Any:
        last = failed.first_items(1, 1)
        rest = fail(state, failed - last, errors)
        return replace(rest, succeeded=rest.succeeded + len(last))

    return patch.object(counting, "fail_items", hardly)


@mutation("the death of a process of its own is taken for a failure", profile=Profile.ARRAYS)
def death_as_failure() -> AbstractContextManager[object]:
    return patch.object(outcomes, "HandlerCrashedError", _NoError)


class _NoError(Exception):
    """What nothing raises."""


@mutation("an item counts as done before its result is stored", profile=Profile.ARRAYS)
def done_before_stored() -> AbstractContextManager[object]:
    add = KeptResults.add

    def done_at_once(self: Any, item: int, result: object) -> None:
        add(self, item, result)
        self._on_done(item)

    return patch.object(KeptResults, "add", done_at_once)


@mutation("an attempt writes over the results of the one before", profile=Profile.ARRAYS)
def attempts_share_objects() -> AbstractContextManager[object]:
    path = reading.object_path

    def shared(of: int, created: int, _: int, uid: str, number: int) -> tuple[str, str]:
        return path(of, created, 1, uid, number)

    return patch.object(writing, "object_path", shared)


@mutation("what a write has left open is written again under the same name", profile=Profile.ARRAYS)
def object_written_again() -> AbstractContextManager[object]:
    take_back = KeptResults._take_back

    def keep_the_name(self: Any, waiting: Any) -> None:
        number, written, size = self._number, self._written, self._written_bytes
        take_back(self, waiting)
        self._number, self._written, self._written_bytes = number, written, size

    return patch.object(KeptResults, "_take_back", keep_the_name)


@mutation("a reader gives each result of an item that it meets", profile=Profile.ARRAYS)
def all_results_given() -> AbstractContextManager[object]:
    def each(self: Any) -> Iterator[ItemResult]:
        for folder in reading._newest_folders(self._objects.names("")):
            for name in reading._newest_objects(self._objects.names(folder)):
                for line in self._objects.read(folder, name).splitlines():
                    item, result = reading._parse_line(name, line)
                    if item in self._done:
                        yield ItemResult(item, result)

    return patch.object(ResultReader, "__iter__", each)


@mutation("a reader takes the oldest result of an item", profile=Profile.ARRAYS)
def oldest_result_read() -> AbstractContextManager[object]:
    newest = reading._newest_objects
    return patch.object(reading, "_newest_objects", lambda names: newest(names)[::-1])


@mutation("a reader gives results of items that are not done", profile=Profile.ARRAYS)
def undone_results_given() -> AbstractContextManager[object]:
    init = ResultReader.__init__

    def of_all(self: Any, objects: Any, done: Any, **more: Any) -> None:
        init(self, objects, ItemRanges.between(0, done.ranges[-1][1] + 1 if done else 0), **more)

    return patch.object(ResultReader, "__init__", of_all)
