"""Histories of an array that break no rule of the audit, each of something that can come about."""

from collections.abc import Callable

from support.objects.array_histories.builder import ArrayBuilder, relist_arrays
from support.objects.histories import HistoryBuilder

Story = Callable[[HistoryBuilder], None]


def a_whole_life(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history).create()
    array.chunk(0, 4)
    array.chunk(4, 10)
    array.end()
    array.delete()


def an_array_of_a_file(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history).create()
    entry = {"name": "array-index", "items": "", "generation": 1}
    array.write(phase="Running", total=0, next=0, generation=1, open=[entry])
    history.create("array-index", labels={"asyncjob.dev/array-uid": array.uid}, type="thumb/index")
    history.claim("array-index")
    history.succeed("array-index")
    array.write("open", total=10, index={"records": 10})
    history.delete("array-index")
    array.chunk(0, 10)
    array.end()


def failures_and_a_redrive(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history).create()
    chunk = array.cut(0, 10)
    array.run(chunk)
    array.fold(chunk, failed="3,7")
    history.delete(chunk)
    array.end("Failed", reason="ItemsFailed")
    array.redrive()
    again = array.cut(3, 4, requeued="7")
    array.run(again)
    array.fold(again)
    history.delete(again)
    last = array.cut(7, 8, requeued="")
    array.run(last)
    array.fold(last)
    array.end()


def a_redrive_that_is_refused(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history).create()
    chunk = array.cut(0, 10)
    array.run(chunk)
    del array.open[chunk]
    array.write(open=[], failed=10, failedItems="1", failedUnlisted=9)
    array.end("Failed", reason="TooScattered")
    array.ask(redrive=1)
    array.write(redrives=1, reason="RedriveRefused", message="not all are known")


def a_chunk_that_is_halved(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history).create()
    chunk = array.cut(0, 10)
    array.start(chunk)
    history.claim(chunk)
    history.move(chunk, "DeadLetter", "CrashBudgetExhausted", error={"type": "Crash"})
    array.fold(chunk, done=2, suspects=["2-5", "6-9"])
    history.delete(chunk)
    half = array.cut(2, 6, suspects=["6-9"])
    array.run(half)
    array.fold(half)


def a_chunk_that_a_person_deletes(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history).create()
    chunk = array.cut(0, 10)
    array.start(chunk)
    history.delete(chunk)
    array.fold(chunk, done=0, requeued="0-9")
    again = array.cut(0, 10, requeued="")
    array.run(again)
    array.fold(again)
    array.end()


def a_cancelled_array_with_a_chunk_created_late(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history).create()
    chunk = array.cut(0, 10)
    array.ask(cancel=True)
    array.fold(chunk, done=0, requeued="0-9")
    array.end("Cancelled", reason="CancelRequested")
    array.start(chunk)
    history.delete(chunk)


def an_array_whose_watch_is_behind(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history)
    kept = len(history.lines)
    array.create()
    chunk = array.cut(0, 10)
    late = history.lines[kept:]
    del history.lines[kept:]
    array.run(chunk)
    history.lines.extend(late)
    array.fold(chunk)
    history.delete(chunk)
    array.end()


def jobs_whose_watch_is_behind(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history).create()
    chunk = array.cut(0, 10)
    kept = len(history.lines)
    array.run(chunk)
    late = history.lines[kept:]
    del history.lines[kept:]
    array.fold(chunk)
    array.end()
    history.lines.extend(late)
    history.delete(chunk)


def a_gap_in_which_an_array_ran(history: HistoryBuilder) -> None:
    array, gone = ArrayBuilder(history).create(), ArrayBuilder(history, "gone").create()
    array.chunk(0, 4)
    gone.chunk(0, 4)
    kept = len(history.lines)
    array.chunk(4, 6)
    chunk = array.cut(6, 10)
    array.start(chunk)
    del history.lines[kept:]
    relist_arrays(history, array)
    history.relist()
    history.claim(chunk)
    history.succeed(chunk)
    array.fold(chunk)
    history.delete(chunk)
    array.end()


def a_gap_in_which_chunks_were_reserved_that_jobs_show(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history).create()
    array.chunk(0, 4)
    kept = len(history.lines)
    counted = array.cut(4, 6)
    del history.lines[kept:]
    array.run(counted)
    kept = len(history.lines)
    array.fold(counted)
    listed = array.cut(6, 10)
    del history.lines[kept:]
    history.delete(counted)
    array.start(listed)
    array.write()
    del history.lines[-1]
    relist_arrays(history, array)
    history.claim(listed)
    history.succeed(listed)
    array.fold(listed)
    history.delete(listed)
    array.end()


def a_recording_that_begins_in_the_middle(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history).create()
    array.chunk(0, 4)
    chunk = array.cut(4, 10)
    array.start(chunk)
    begins = [line for line in history.lines if line["line"] == "start"]
    history.lines[:] = begins
    relist_arrays(history, array)
    history.relist()
    history.claim(chunk)
    history.succeed(chunk)
    array.fold(chunk)
    history.delete(chunk)
    array.end()


def an_array_deleted_while_it_runs(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history, cancelGraceSeconds=60).create()
    chunk = array.cut(0, 10)
    array.start(chunk)
    history.claim(chunk)
    array.delete()
    history.clock += 620
    history.change_spec(chunk, cancel=True)
    history.move(chunk, "Cancelled", "CancelRequested")
    history.delete(chunk)


def an_array_that_waits_for_another(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history, dependsOn=[{"array": "before"}], notBefore=history.now()).create()
    array.write(reason="NotBefore", total=10, next=0)
    array.write(reason="WaitingForDependency", message="array before has not finished")
    array.cut(0, 10, admitted=True)
    array.run("array-1")
    array.fold("array-1")
    history.delete("array-1")
    array.end()


def an_array_whose_dependency_fails_and_is_redriven(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history, dependsOn=[{"array": "before"}]).create()
    array.write(reason="WaitingForDependency", total=10, next=0)
    array.end("Failed", reason="DependencyFailed")
    array.ask(redrive=1)
    array.write("completionTime", "conditions", phase="Pending", reason="Redriven", redrives=1)
    array.chunk(0, 10)
    array.end()


def an_array_whose_chunks_adapt(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history, count=50).create()
    first, second = array.cut(0, 10), array.cut(10, 20)
    array.run(first)
    array.fold(first, chunkSize=40)
    history.delete(first)
    array.start(second)
    history.claim(second)
    history.move(second, "DeadLetter", "ExecutionTimeout", error={"type": "Timeout"})
    array.fold(second, done=4, requeued="14-19", chunkSize=10)
    history.delete(second)
    array.run(again := array.cut(14, 20, requeued=""))
    array.fold(again, chunkSize=30)
    history.delete(again)
    array.chunk(20, 50)
    array.end()


def an_array_whose_results_cannot_be_stored(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history, results={"uri": "s3://bucket/results/default"}).create()
    chunk = array.cut(0, 10)
    array.start(chunk)
    history.claim(chunk)
    history.move(chunk, "DeadLetter", "NotRetryable", error={"type": "ResultsNotStored"})
    array.fold(chunk, done=6, requeued="6-9", reason="ResultsNotStored")
    history.delete(chunk)
    array.end("Failed", reason="ResultsNotStored")
    array.redrive()
    again = array.cut(6, 10, requeued="")
    array.run(again)
    array.fold(again)
    array.end()


def an_array_of_which_half_is_done_already(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history)
    array.spec["items"] = {"count": 10, "skip": "0-3,8-9"}
    array.create()
    array.run(chunk := array.cut(4, 8, succeeded=4))
    array.fold(chunk, next=10, done=6)
    history.delete(chunk)
    array.end()


def an_array_that_has_nothing_to_run(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history)
    array.spec["items"] = {"count": 10, "skip": "0-9"}
    array.create()
    array.end(total=10, next=10, succeeded=10)


def more_items_than_there_is_room_for(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history, count=3000, chunkSize=10).create()
    every_other = [str(item) for item in range(0, 2002, 2)]
    first = array.cut(0, 2002)
    array.start(first)
    history.claim(first)
    history.succeed(first)
    kept = ",".join(every_other[:1000])
    array.fold(first, done=1001, failed="2000", requeued=kept)
    history.delete(first)
    second = array.cut(2002, 2003)
    array.start(second)
    history.delete(second)
    room = ",".join([*every_other[:999], "2002"])
    array.fold(second, done=0, failed="1998,2000", requeued=room)


def a_job_that_only_bears_the_label(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history).create()
    history.create("odd", labels={"asyncjob.dev/array-uid": array.uid})
    array.chunk(0, 10)
    history.mark("odd", labels={})
    array.end()


STORIES: tuple[Story, ...] = (
    a_whole_life,
    an_array_of_a_file,
    failures_and_a_redrive,
    a_redrive_that_is_refused,
    a_chunk_that_is_halved,
    a_chunk_that_a_person_deletes,
    a_cancelled_array_with_a_chunk_created_late,
    an_array_whose_watch_is_behind,
    jobs_whose_watch_is_behind,
    a_gap_in_which_an_array_ran,
    a_gap_in_which_chunks_were_reserved_that_jobs_show,
    a_recording_that_begins_in_the_middle,
    an_array_deleted_while_it_runs,
    an_array_that_waits_for_another,
    an_array_whose_dependency_fails_and_is_redriven,
    an_array_whose_chunks_adapt,
    an_array_whose_results_cannot_be_stored,
    an_array_of_which_half_is_done_already,
    an_array_that_has_nothing_to_run,
    more_items_than_there_is_room_for,
    a_job_that_only_bears_the_label,
)
