"""Histories of an array that break a rule of the audit, each made from a good one."""

from collections.abc import Callable
from typing import Any

from asyncjob.audit import catalog
from asyncjob.audit.catalog import AuditRule
from asyncjob.names import ARRAY_LABEL
from support.objects.array_histories.builder import ArrayBuilder, relist_arrays
from support.objects.histories import HistoryBuilder

Story = Callable[[HistoryBuilder], None]
CASES: list[tuple[AuditRule, Story]] = []


def breaks(rule: AuditRule) -> Callable[[Story], Story]:
    def add(story: Story) -> Story:
        CASES.append((rule, story))
        return story

    return add


def half_done(history: HistoryBuilder, **spec: Any) -> ArrayBuilder:
    """Return an array of ten items, four of which are done."""
    array = ArrayBuilder(history, **spec).create()
    array.chunk(0, 4)
    return array


def ended(history: HistoryBuilder, phase: str = "Succeeded") -> ArrayBuilder:
    """Return an array of ten items that has ended, Failed with item 9."""
    array = half_done(history)
    chunk = array.cut(4, 10)
    array.run(chunk)
    array.fold(chunk, failed="9" if phase == "Failed" else "")
    history.delete(chunk)
    array.end(phase)
    return array


@breaks(catalog.VERSION_ORDER)
def an_older_version_of_an_array_after_a_newer(history: HistoryBuilder) -> None:
    half_done(history)
    history.lines.append(next(one for one in history.lines if one.get("event") == "ADDED"))
    history.lines[-1] = {**history.lines[-1], "event": "MODIFIED"}


@breaks(catalog.ARRAY_CREATED)
def an_array_that_is_born_running(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history)
    array.status = {"phase": "Running"}
    array.create()


@breaks(catalog.ARRAY_CREATED)
def an_array_that_is_born_with_items_done(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history)
    array.status = {"phase": "Pending", "succeeded": 3, "next": 3, "total": 10}
    array.create()


@breaks(catalog.ARRAY_TRANSITION)
def an_array_that_succeeds_without_having_run(history: HistoryBuilder) -> None:
    ArrayBuilder(history).create().end()


@breaks(catalog.ARRAY_TRANSITION)
def an_array_that_waits_again(history: HistoryBuilder) -> None:
    half_done(history).write(phase="Pending")


@breaks(catalog.ARRAY_TRANSITION)
def a_failed_array_that_goes_on_by_itself(history: HistoryBuilder) -> None:
    array = ended(history, "Failed")
    array.write("completionTime", "conditions", phase="Running")


@breaks(catalog.ARRAY_TRANSITION)
def a_failed_array_that_waits_again_after_a_chunk(history: HistoryBuilder) -> None:
    array = ended(history, "Failed")
    array.ask(redrive=1)
    array.write("completionTime", "conditions", phase="Pending", redrives=1)


@breaks(catalog.ARRAY_TRANSITION)
def an_array_that_has_never_run_and_goes_on_by_itself(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history).create()
    array.end("Failed", reason="DependencyFailed", total=10)
    array.write("completionTime", "conditions", phase="Pending")


@breaks(catalog.ARRAY_TRANSITION)
def a_phase_that_nobody_knows(history: HistoryBuilder) -> None:
    half_done(history).write(phase="Resting")


@breaks(catalog.ARRAY_SPEC)
def an_array_of_another_type_than_before(history: HistoryBuilder) -> None:
    half_done(history).ask(type="other")


@breaks(catalog.ARRAY_SPEC)
def an_array_whose_cancel_is_taken_back(history: HistoryBuilder) -> None:
    array = half_done(history)
    array.ask(cancel=True)
    array.ask(cancel=False)


@breaks(catalog.ARRAY_SPEC)
def a_redrive_that_is_taken_back(history: HistoryBuilder) -> None:
    array = half_done(history, redrive=2)
    array.ask(redrive=1)


@breaks(catalog.ARRAY_COUNTS)
def an_array_that_forgets_a_done_item(history: HistoryBuilder) -> None:
    half_done(history).write(succeeded=3)


@breaks(catalog.ARRAY_COUNTS)
def an_array_that_grows(history: HistoryBuilder) -> None:
    half_done(history).write(total=11)


@breaks(catalog.ARRAY_COUNTS)
def a_failed_item_that_is_forgotten(history: HistoryBuilder) -> None:
    array = half_done(history)
    chunk = array.cut(4, 10)
    array.run(chunk)
    array.fold(chunk, failed="9")
    array.write("failedItems", failed=0, succeeded=10)


@breaks(catalog.ARRAY_COUNTS)
def a_redrive_that_nobody_asked_for(history: HistoryBuilder) -> None:
    array = ended(history, "Failed")
    array.write(redrives=1)


@breaks(catalog.ARRAY_COUNTS)
def counts_that_shrank_in_a_gap(history: HistoryBuilder) -> None:
    array = half_done(history)
    array.status = {**array.status, "succeeded": 3, "requeued": "3"}
    relist_arrays(history, array)


@breaks(catalog.ARRAY_ITEMS)
def counts_that_do_not_add_up(history: HistoryBuilder) -> None:
    half_done(history).write(succeeded=5)


@breaks(catalog.ARRAY_ITEMS)
def an_item_in_two_chunks(history: HistoryBuilder) -> None:
    array = half_done(history)
    array.cut(4, 8)
    array.cut(7, 10)


@breaks(catalog.ARRAY_ITEMS)
def an_item_that_has_failed_and_is_to_be_run(history: HistoryBuilder) -> None:
    half_done(history).write(failed=1, failedItems="3", requeued="3", succeeded=2)


@breaks(catalog.ARRAY_ITEMS)
def an_item_that_waits_and_was_never_cut(history: HistoryBuilder) -> None:
    half_done(history).write(requeued="8")


@breaks(catalog.ARRAY_ITEMS)
def failed_items_that_are_not_listed(history: HistoryBuilder) -> None:
    half_done(history).write(failed=1, succeeded=3)


@breaks(catalog.ARRAY_ITEMS)
def items_that_nobody_can_read(history: HistoryBuilder) -> None:
    half_done(history).write(requeued="from 3 on")


@breaks(catalog.ARRAY_ITEMS)
def two_chunks_of_one_name(history: HistoryBuilder) -> None:
    array = half_done(history)
    array.cut(4, 6)
    array.write(open=[*array.entries(), {**array.entries()[0], "items": "6-7"}], next=8)


@breaks(catalog.ARRAY_ONCE)
def a_done_item_that_is_run_again(history: HistoryBuilder) -> None:
    half_done(history).write(succeeded=3, requeued="2")


@breaks(catalog.ARRAY_ONCE)
def an_item_counted_without_a_chunk(history: HistoryBuilder) -> None:
    half_done(history).write(next=5, succeeded=5)


@breaks(catalog.ARRAY_ONCE)
def an_item_counted_that_is_not_among_those_done_before(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history)
    array.spec["items"] = {"count": 10, "skip": "0-3"}
    array.create()
    array.cut(5, 10, succeeded=5)


@breaks(catalog.ARRAY_ONCE)
def an_item_counted_while_its_chunk_is_listed(history: HistoryBuilder) -> None:
    array = half_done(history)
    array.cut(4, 10)
    shorter = [{**array.entries()[0], "items": "5-9"}]
    array.write(open=shorter, succeeded=5)


@breaks(catalog.ARRAY_ONCE)
def a_done_item_that_fails_afterwards(history: HistoryBuilder) -> None:
    half_done(history).write(succeeded=3, failed=1, failedItems="2")


@breaks(catalog.ARRAY_ONCE)
def a_failed_item_that_becomes_done(history: HistoryBuilder) -> None:
    array = half_done(history)
    chunk = array.cut(4, 10)
    array.run(chunk)
    array.fold(chunk, failed="9")
    array.write(failedItems="8")


@breaks(catalog.ARRAY_ONCE)
def a_redrive_that_runs_done_items_too(history: HistoryBuilder) -> None:
    array = ended(history, "Failed")
    array.ask(redrive=1)
    array.write(
        *("failedItems", "completionTime", "conditions"),
        phase="Running",
        failed=0,
        succeeded=8,
        redrives=1,
        requeued="8-9",
    )


@breaks(catalog.ARRAY_ONCE)
def a_done_item_that_is_run_again_after_a_gap(history: HistoryBuilder) -> None:
    array = half_done(history)
    array.status = {**array.status, "succeeded": 4, "next": 5, "requeued": "2"}
    relist_arrays(history, array)


@breaks(catalog.ARRAY_FINAL)
def a_succeeded_array_that_changes(history: HistoryBuilder) -> None:
    ended(history).write(message="well done")


@breaks(catalog.ARRAY_FINAL)
def a_failed_array_that_changes_without_a_redrive(history: HistoryBuilder) -> None:
    ended(history, "Failed").write(message="never mind")


@breaks(catalog.ARRAY_FINAL)
def an_array_that_ends_beside_an_open_chunk(history: HistoryBuilder) -> None:
    array = half_done(history)
    array.cut(4, 10)
    array.write(
        phase="Failed",
        completionTime=history.now(),
        conditions=[{"type": "Failed", "status": "True"}],
    )


@breaks(catalog.ARRAY_FINAL)
def an_array_that_ends_without_a_condition(history: HistoryBuilder) -> None:
    half_done(history).write(phase="Failed", completionTime=history.now())


@breaks(catalog.ARRAY_FINAL)
def a_succeeded_array_that_changed_in_a_gap(history: HistoryBuilder) -> None:
    array = ended(history)
    array.status = {**array.status, "message": "well done"}
    relist_arrays(history, array)


@breaks(catalog.ARRAY_RESERVED)
def a_chunk_that_was_never_listed(history: HistoryBuilder) -> None:
    array = half_done(history)
    array.start("array-forged")
    array.cut(4, 10)


@breaks(catalog.ARRAY_RESERVED)
def a_chunk_that_was_never_listed_at_the_end(history: HistoryBuilder) -> None:
    half_done(history).start("array-forged")


@breaks(catalog.ARRAY_RESERVED)
def a_chunk_that_is_listed_after_it_was_created(history: HistoryBuilder) -> None:
    array = half_done(history)
    array.start("array-2")
    array.cut(4, 10)


@breaks(catalog.ARRAY_RESERVED)
def a_chunk_that_is_created_once_more(history: HistoryBuilder) -> None:
    array = half_done(history)
    chunk = array.cut(4, 10)
    array.run(chunk)
    array.fold(chunk)
    history.delete(chunk)
    array.start(chunk)


@breaks(catalog.ARRAY_RESERVED)
def a_chunk_that_is_not_counted_by_generation(history: HistoryBuilder) -> None:
    array = half_done(history)
    array.cut(4, 10)
    array.open["array-extra"] = (8, 9)
    array.write(open=array.entries())


@breaks(catalog.ARRAY_RESERVED)
def a_chunk_whose_items_change(history: HistoryBuilder) -> None:
    array = half_done(history)
    chunk = array.cut(4, 8)
    array.open[chunk] = (4, 9)
    array.write(open=array.entries(), next=9)


@breaks(catalog.ARRAY_CHUNK_ENDED)
def items_that_count_while_their_chunk_runs(history: HistoryBuilder) -> None:
    array = half_done(history)
    chunk = array.cut(4, 10)
    array.start(chunk)
    history.claim(chunk)
    array.fold(chunk)


@breaks(catalog.ARRAY_CHUNK_ENDED)
def items_that_count_before_their_chunk_ends(history: HistoryBuilder) -> None:
    array = half_done(history)
    chunk = array.cut(4, 10)
    array.start(chunk)
    history.claim(chunk)
    array.fold(chunk)
    history.succeed(chunk)


@breaks(catalog.ARRAY_CHUNK_ENDED)
def items_that_counted_before_as_a_watch_that_was_behind_shows(history: HistoryBuilder) -> None:
    array = half_done(history)
    chunk = array.cut(4, 10)
    array.start(chunk)
    history.claim(chunk)
    array.fold(chunk)
    late = history.lines.pop()
    history.succeed(chunk)
    history.lines.append(late)


@breaks(catalog.ARRAY_CHUNK_ENDED)
def items_that_count_of_a_chunk_that_is_deleted_while_it_runs(history: HistoryBuilder) -> None:
    array = half_done(history)
    chunk = array.cut(4, 10)
    array.start(chunk)
    history.claim(chunk)
    array.fold(chunk)
    history.delete(chunk)


@breaks(catalog.ARRAY_PARALLELISM)
def more_chunks_than_twice_the_parallelism(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history, parallelism=1).create()
    for first in range(3):
        array.start(array.cut(first, first + 1))


@breaks(catalog.ARRAY_PARALLELISM)
def more_chunks_of_an_array_that_keeps_results(history: HistoryBuilder) -> None:
    results = {"uri": "s3://bucket/jobs/results/default"}
    array = ArrayBuilder(history, parallelism=1, results=results).create()
    for first in range(3):
        array.start(array.cut(first, first + 1))


@breaks(catalog.ARRAY_PARALLELISM)
def more_chunks_as_an_array_that_was_seen_late_shows(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history, parallelism=1)
    for number in range(3):
        history.create(f"array-{number}", labels={ARRAY_LABEL: array.uid}, type="thumb/items")
    array.create()


@breaks(catalog.ARRAY_LEFTOVER)
def a_chunk_that_outlives_its_array(history: HistoryBuilder) -> None:
    array = half_done(history)
    array.start(array.cut(4, 10))
    array.delete()
    history.clock += 700


@breaks(catalog.ARRAY_LEFTOVER)
def a_chunk_that_outlives_its_array_and_is_deleted_in_the_end(history: HistoryBuilder) -> None:
    array = half_done(history)
    chunk = array.cut(4, 10)
    array.start(chunk)
    array.delete()
    history.clock += 700
    history.delete(chunk)


@breaks(catalog.ARRAY_LEFTOVER)
def a_counted_chunk_that_nobody_deletes(history: HistoryBuilder) -> None:
    array = half_done(history)
    chunk = array.cut(4, 10)
    array.run(chunk)
    array.fold(chunk)
    array.end()
    history.clock += 700


@breaks(catalog.ARRAY_LEFTOVER)
def a_chunk_whose_array_was_gone_before_the_recording(history: HistoryBuilder) -> None:
    ArrayBuilder(history).start("array-1")
    history.clock += 5000
