"""Bugs planted in what cuts arrays into chunks, and counts them."""

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from asyncjob.lifecycle.arrays import counting, skipped_items
from asyncjob.lifecycle.arrays.item_ranges import ItemRanges
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
