"""What `restore` creates, what it leaves out, and what it says about both."""

import json
from pathlib import Path
from typing import Any

import pytest

from asyncjob.cli.backup import reader
from asyncjob.cli.backup.export_file import HEADER_KIND
from asyncjob.errors import ForbiddenError, InvalidError
from asyncjob.submission import dedup_name_prefix, key_name, sequence_name
from support.objects.exports import a_file, a_job, a_queue, a_schedule, an_array, an_object
from support.parts.cli_shell import Shell

SUSPENDED = {"asyncjob.dev/restored": "suspended"}


def restored(shell: Shell, folder: Path, *objects: Any, options: tuple[str, ...] = ()) -> Any:
    """Restore these objects and return the jobs as they were sent, by name."""
    shell.ok("restore", a_file(folder, *objects), *options)
    jobs = shell.cluster.sent("AsyncJob")
    assert jobs.keys() == shell.cluster.of("AsyncJob").keys()
    return jobs


def test_what_comes_back_is_what_was_asked_for_and_nothing_of_what_became_of_it(
    shell: Shell, tmp_path: Path
) -> None:
    meta = {
        "labels": {"team": "mail"},
        "annotations": {"asyncjob.dev/submitted-content": "abc"},
        "ownerReferences": [{"uid": "gone"}],
        "finalizers": ["example.org/stay"],
    }
    status = {"attempt": 2, "firstStartTime": "2026-11-21T19:00:00Z", "checkpoint": 7}
    sent = {"approval": {"sentBy": "ada", "payload": True}}
    spec: dict[str, Any] = {"payload": [1], "redrive": 2, "rerun": 1, "signals": sent}
    job = a_job("a", "Running", meta=meta, status=status, **spec)
    file = a_file(tmp_path, job)

    result = shell("restore", file)

    assert shell.cluster.of("AsyncJob")["a"]["status"]["phase"] == "Queued"
    assert shell.cluster.sent("AsyncJob")["a"] == {
        "apiVersion": "asyncjob.dev/v1alpha1",
        "kind": "AsyncJob",
        "metadata": {
            "name": "a",
            "namespace": "tests",
            "labels": {"team": "mail", **SUSPENDED, "asyncjob.dev/shard": "15"},
            "annotations": {
                "asyncjob.dev/submitted-content": "abc",
                "asyncjob.dev/restored-from": "old-a",
            },
        },
        "spec": {"type": "t", "queue": "default", "payload": [1], "suspend": True},
    }
    assert ("fieldValidation", "Strict") in shell.cluster.calls[0].params
    assert result.exit_code == 0
    said = result.stdout.splitlines()
    assert said[0] == "restored 1 job"
    assert said[1].startswith("1 job had started, 1 of them with a checkpoint: a status cannot be")
    noted = [line.split(":")[1].split()[0] for line in said[2:]]
    assert noted == ["reruns", "signals", "owner", "finalizers"]


def test_the_finished_are_left_out_and_counted(shell: Shell, tmp_path: Path) -> None:
    file = a_file(
        tmp_path,
        *(a_job(name, "Succeeded") for name in ("s1", "s2")),
        a_job("c", "Cancelled"),
        a_job("dead", "DeadLetter", status={"redrives": 1}, redrive=1),
        a_job("going-on", "DeadLetter", status={"redrives": 1}, redrive=2),
        *(a_job(phase.lower(), phase) for phase in ("Pending", "Scheduled", "Retrying")),
    )
    said = shell.ok("restore", file, "--dry-run")
    assert shell.cluster.objects == {}
    assert said.splitlines() == [
        "would restore 4 jobs",
        "left out, succeeded: 2",
        "left out, cancelled: 1",
        "left out, dead letters (--dead-letters restores them): 1",
    ]
    shell.ok("restore", file)
    assert set(shell.cluster.of("AsyncJob")) == {"going-on", "pending", "scheduled", "retrying"}
    shell.ok("restore", file, "--dead-letters")
    assert "dead" in shell.cluster.of("AsyncJob")


def test_arrays_come_back_suspended_and_their_chunks_do_not(shell: Shell, tmp_path: Path) -> None:
    chunk = a_job("thumbs-0", "Running", meta={"labels": {"asyncjob.dev/array-uid": "old-thumbs"}})
    run = {"next": 4, "succeeded": 2, "requeued": "0", "failed": 1, "failedItems": "2"}
    going_on = an_array("thumbs", status=run, redrive=1, parallelism=3)
    new = an_array("new", "Pending", status={})
    file = a_file(
        tmp_path,
        *(going_on, new, chunk),
        *(an_array(phase.lower(), phase) for phase in ("Succeeded", "Failed", "Cancelled")),
        an_array("redriven", "Failed", status={"redrives": 1}, redrive=2),
    )
    assert shell.ok("restore", file).splitlines() == [
        "restored 3 arrays",
        "left out, succeeded: 1",
        "left out, cancelled: 1",
        "left out, arrays that have failed (--dead-letters restores them): 1",
        "left out, chunks of arrays, which create them again: 1",
        "1 array had started: a status cannot be restored; items that are not done yet run; "
        "the file keeps the old status",
    ]
    assert not shell.cluster.of("AsyncJob")
    arrays = shell.cluster.of("AsyncArray")
    assert arrays.keys() == {"thumbs", "new", "redriven"}
    assert (
        arrays["thumbs"]["spec"].items()
        >= {
            "type": "thumb",
            "items": {"count": 9, "skip": "1,3"},
            "parallelism": 3,
            "suspend": True,
        }.items()
    )
    assert "redrive" not in arrays["thumbs"]["spec"]
    assert arrays["thumbs"]["metadata"]["labels"] == SUSPENDED
    shell.ok("restore", file, "--dead-letters")
    assert "failed" in shell.cluster.of("AsyncArray")


INDEX = {"records": 9, "sizeBytes": 90, "version": "etag=1", "every": 1000, "offsets": [0]}
CSV = {"uri": "s3://bucket/a.csv"}


@pytest.mark.parametrize(
    ("before", "status", "after"),
    [
        ({"count": 9}, {}, {"count": 9}),
        ({"count": 9, "skip": "7"}, {}, {"count": 9, "skip": "7"}),
        ({"count": 9, "skip": "0,7"}, {"next": 2}, {"count": 9, "skip": "0-1,7"}),
        ({"from": CSV}, {"index": INDEX}, {"from": CSV}),
        (
            {"from": CSV},
            {"index": INDEX, "next": 5, "open": [{"name": "c", "items": "3", "generation": 1}]},
            {"from": {**CSV, "version": "etag=1"}, "skip": "0-2,4"},
        ),
        (
            {"from": {**CSV, "version": "etag=0"}, "skip": "5"},
            {"index": INDEX},
            {"from": {**CSV, "version": "etag=0"}, "skip": "5"},
        ),
    ],
    ids=[
        "nothing is done",
        "what was skipped and is not reached",
        "what was skipped and more",
        "a file of which nothing is done",
        "a file, as it was",
        "a file that was another one already",
    ],
)
def test_items_that_are_done_are_skipped(
    shell: Shell, tmp_path: Path, before: dict[str, Any], status: dict[str, Any], after: Any
) -> None:
    file = a_file(tmp_path, an_array("thumbs", status=status, items=before))
    assert "note" not in shell.ok("restore", file)
    assert shell.cluster.of("AsyncArray")["thumbs"]["spec"]["items"] == after


def test_all_items_run_again_if_they_are_to(shell: Shell, tmp_path: Path) -> None:
    rows = {"from": {**CSV, "version": "etag=1"}, "skip": "0-3"}
    file = a_file(
        tmp_path,
        an_array("thumbs", status={"next": 4, "succeeded": 4}),
        an_array("rows", status={"next": 4, "succeeded": 4, "index": INDEX}, items=rows),
    )
    said = shell.ok("restore", file, "--all-items")
    assert "2 arrays had started: a status cannot be restored; all items run; " in said
    arrays = shell.cluster.of("AsyncArray")
    assert arrays["thumbs"]["spec"]["items"] == {"count": 9}
    assert arrays["rows"]["spec"]["items"] == {"from": CSV}


def test_items_that_cannot_be_listed_run_again_and_are_counted(
    shell: Shell, tmp_path: Path
) -> None:
    failed = ",".join(str(4 * one) for one in range(1000))
    known = {"next": 5000, "failedItems": failed, "failed": 1000, "succeeded": 4000}
    full = {**known, "requeued": "4500,4600", "succeeded": 3998}
    unknown = {**known, "failed": 1001, "failedUnlisted": 1, "succeeded": 3999}
    file = a_file(
        tmp_path,
        an_array("full", status=full, items={"count": 9000}),
        an_array("unknown", status=unknown, items={"count": 9000}),
    )
    note = "note: items that are done and cannot be listed run again (full: 6, unknown: 3999)"
    assert note in shell.ok("restore", file).splitlines()
    arrays = shell.cluster.of("AsyncArray")
    assert "skip" not in arrays["unknown"]["spec"]["items"]
    skipped = arrays["full"]["spec"]["items"]["skip"].split(",")
    assert (len(skipped), skipped[0], skipped[-1]) == (1000, "1-3", "4601-4999")


def test_it_is_said_where_results_are_and_where_they_cannot_go(
    shell: Shell, tmp_path: Path
) -> None:
    results = {"uri": "s3://bucket/jobs/results/jobs"}
    begun = an_array("begun", status={"next": 4, "succeeded": 4}, results=results)
    file = a_file(tmp_path, begun, an_array("new", "Pending", status={}, results=results))
    stays = "note: results of items that do not run again stay in the old array's folder"
    named = f"{stays} (begun: s3://bucket/jobs/results/jobs/old-begun)"
    assert named in shell.ok("restore", file, "--dry-run").splitlines()
    assert stays not in shell.ok("restore", file, "--dry-run", "--all-items")
    assert "results.uri" not in shell.ok("restore", file, "--dry-run")
    moved = shell.ok("restore", file, "--dry-run", "-n", "there")
    assert "note: results.uri was for another namespace; " in moved
    assert moved.splitlines()[-1].endswith("(begun, new)")


def test_an_array_is_left_to_the_job_that_submits_it_again(shell: Shell, tmp_path: Path) -> None:
    arrays = [an_array(name) for name in ("of-restored", "of-finished")]
    for array, parent in zip(arrays, ("parked", "over"), strict=True):
        array["metadata"]["labels"] = {"asyncjob.dev/parent": f"old-{parent}"}
    jobs = [a_job("parked", "Pending"), a_job("over", "Succeeded")]
    lines = shell.ok("restore", a_file(tmp_path, *jobs, *arrays)).splitlines()
    assert "left out, children of restored jobs, which submit them again: 1" in lines
    assert shell.cluster.of("AsyncArray").keys() == {"of-finished"}


def test_an_array_that_no_cluster_would_take_is_named(shell: Shell, tmp_path: Path) -> None:
    result = shell("restore", a_file(tmp_path, an_array("thumbs", items={"count": 0})))
    assert result.exit_code == 2
    assert "spec.items.count" in result.stderr
    assert "nothing was restored" in result.stderr
    strange = shell("restore", a_file(tmp_path, an_array("thumbs", "Paused")))
    assert "status.phase: 'Paused' is not known to this version" in strange.stderr
    twisted = an_array("thumbs", status={"next": 9, "failedItems": "5-3"})
    said = shell("restore", a_file(tmp_path, twisted)).stderr
    assert "status: the range 5-3 ends before it begins" in said
    assert "nothing was restored" in said
    backwards = an_array("thumbs", items={"count": 9, "skip": "5-3"})
    assert "5-3 ends before" in shell("restore", a_file(tmp_path, backwards)).stderr


def test_what_a_later_version_tells_of_an_array_does_not_keep_it_from_coming_back(
    shell: Shell, tmp_path: Path
) -> None:
    later = {"next": 3, "succeeded": 3, "reason": "ByALaterVersion", "errors": ["?"]}
    shell.ok("restore", a_file(tmp_path, an_array("thumbs", status=later)))
    items = shell.cluster.of("AsyncArray")["thumbs"]["spec"]["items"]
    assert items == {"count": 9, "skip": "0-2"}


def test_a_second_run_makes_nothing_twice_and_leaves_what_is_there(
    shell: Shell, tmp_path: Path
) -> None:
    file = a_file(tmp_path, a_queue("mail"), a_schedule("nightly"), a_job("a"), a_job("b"))
    shell.ok("restore", file)
    before = dict(shell.cluster.objects)

    assert shell.ok("restore", file).splitlines() == [
        "restored nothing",
        "there already: 1 queue, 1 cron job and 2 jobs",
    ]
    assert shell.cluster.objects == before

    shell.cluster.objects.clear()
    shell.cluster.store(an_object("AsyncQueue", "mail", {"paused": True}, uid="of-the-chart"))
    said = shell.ok("restore", file)
    assert "left as they are, other objects of these names: AsyncQueue tests/mail" in said
    assert shell.cluster.of("AsyncQueue")["mail"]["spec"]["paused"] is True


def test_a_name_that_another_job_has_is_told_and_ends_with_1(shell: Shell, tmp_path: Path) -> None:
    shell.cluster.store(a_job("a", meta={"uid": "other"}))
    other = shell.cluster.of("AsyncJob")["a"]
    result = shell("restore", a_file(tmp_path, a_job("a"), a_job("b")))
    assert result.exit_code == 1
    assert "other objects of these names: AsyncJob tests/a" in result.stdout
    assert shell.cluster.of("AsyncJob")["a"] == other


def test_a_lost_answer_is_no_other_object(shell: Shell, tmp_path: Path) -> None:
    shell.cluster.lose = 1
    assert shell.ok("restore", a_file(tmp_path, a_job("a"))) == "restored 1 job\n"


def test_a_schedule_comes_back_suspended_and_triggers_nothing(shell: Shell, tmp_path: Path) -> None:
    labels = {"asyncjob.dev/cron-job-uid": "old-nightly"}
    nightly = a_schedule("nightly", trigger=3, backfill={"from": T, "to": T})
    said = shell.ok("restore", a_file(tmp_path, nightly, a_job("run", meta={"labels": labels})))
    [schedule] = shell.cluster.sent("AsyncCronJob").values()
    assert schedule["spec"].keys() == {"schedule", "jobTemplate", "suspend"}
    assert schedule["spec"]["suspend"] is True
    assert "note: trigger is left out" in said
    assert "note: backfill is left out" in said
    run = shell.cluster.of("AsyncJob")["run"]
    uid = shell.cluster.of("AsyncCronJob")["nightly"]["metadata"]["uid"]
    assert run["metadata"]["labels"]["asyncjob.dev/cron-job-uid"] == uid != "old-nightly"


T = "2026-11-21T00:00:00Z"


def test_who_was_suspended_before_is_told_from_who_is_now(shell: Shell, tmp_path: Path) -> None:
    jobs = restored(shell, tmp_path, a_job("a", suspend=True), a_job("b"))
    assert jobs["a"]["metadata"]["labels"]["asyncjob.dev/restored"] == "unchanged"
    assert jobs["b"]["metadata"]["labels"] == {**SUSPENDED, "asyncjob.dev/shard": "26"}


def test_children_are_left_to_a_parent_that_submits_them_again(
    shell: Shell, tmp_path: Path
) -> None:
    file = a_file(
        tmp_path,
        *(a_job("up", "Running"), a_job("child", parent="up"), a_job("grand", parent="child")),
        *(a_job("over", "Succeeded"), a_job("left", parent="over")),
    )
    said = shell.ok("restore", file)
    assert set(shell.cluster.of("AsyncJob")) == {"up", "left"}
    assert "left out, children of restored jobs, which submit them again: 2" in said


@pytest.mark.parametrize(
    ("waits", "left"),
    [
        ([{"name": "done"}], []),
        ([{"name": "open"}], ["open"]),
        ([{"name": "dead", "outcome": "Any"}], []),
        ([{"name": "dead"}, {"name": "open"}], ["dead", "open"]),
        ([{"name": "unheard-of"}], ["unheard-of"]),
        ([{"name": "family", "children": True}], ["kid"]),
        ([{"name": "family", "children": True}, {"name": "kid"}], ["kid"]),
    ],
)
def test_a_job_waits_for_what_is_still_to_be_done(
    shell: Shell, tmp_path: Path, waits: list[Any], left: list[str]
) -> None:
    jobs = restored(
        shell,
        tmp_path,
        *(a_job("done", "Succeeded"), a_job("open"), a_job("dead", "DeadLetter")),
        *(a_job("family", "Succeeded"), a_job("kid", parent="family")),
        a_job("grown", "Succeeded", parent="family"),
        a_job("waits", "Pending", dependsOn=waits),
    )
    assert [one["name"] for one in jobs["waits"]["spec"].get("dependsOn", [])] == left


def test_who_waits_for_what_does_not_come_back_is_named(shell: Shell, tmp_path: Path) -> None:
    file = a_file(
        tmp_path, a_job("dead", "DeadLetter"), a_job("waits", dependsOn=[{"name": "dead"}])
    )
    assert "note: jobs or arrays depend on what is not restored (waits for dead)" in shell.ok(
        "restore", file
    )


def test_what_depends_on_arrays_waits_for_those_that_come_back(
    shell: Shell, tmp_path: Path
) -> None:
    needs: list[Any] = [{"array": name} for name in ("done", "open", "failed")]
    file = a_file(
        tmp_path,
        *(an_array("done", "Succeeded"), an_array("open"), an_array("failed", "Failed")),
        *(a_job("open", "Succeeded"), a_job("waits", dependsOn=[*needs, {"name": "open"}])),
        an_array("after", "Pending", status={}, dependsOn=[*needs[:2], {"name": "open"}]),
        an_array("begun", status={"next": 4, "admitted": True}, dependsOn=needs),
    )
    said = shell.ok("restore", file)
    assert "note: jobs or arrays depend on what is not restored (waits for array failed)" in said
    arrays, jobs = shell.cluster.of("AsyncArray"), shell.cluster.of("AsyncJob")
    assert [one["array"] for one in jobs["waits"]["spec"]["dependsOn"]] == ["open", "failed"]
    assert [one["array"] for one in arrays["after"]["spec"]["dependsOn"]] == ["open"]
    assert "dependsOn" not in arrays["begun"]["spec"]


def test_who_had_begun_waits_for_nothing_and_has_met_its_deadline(
    shell: Shell, tmp_path: Path
) -> None:
    times: dict[str, Any] = {
        "notAfter": "2026-11-21T20:00:00Z",
        "dependsOn": [{"name": "long-gone"}],
    }
    begun = {"firstStartTime": "2026-11-21T19:00:00Z"}
    jobs = restored(
        shell, tmp_path, a_job("a", "Retrying", status=begun, **times), a_job("b", **times)
    )
    assert jobs["a"]["spec"].keys() == {"type", "queue", "suspend"}
    assert jobs["b"]["spec"].keys() == {"type", "queue", "suspend", "notAfter", "dependsOn"}


def test_a_deadline_counts_from_the_new_creation_and_that_is_said(
    shell: Shell, tmp_path: Path
) -> None:
    file = a_file(tmp_path, a_job("limited", deadlineSeconds=60), a_job("plain"))
    printed = shell.ok("restore", file)
    assert "note: deadlineSeconds counts from the creation of the new job (limited)" in printed
    jobs = restored(shell, tmp_path, a_job("a", deadlineSeconds=60))
    assert jobs["a"]["spec"]["deadlineSeconds"] == 60


def test_elsewhere_keys_find_their_jobs_again(shell: Shell, tmp_path: Path) -> None:
    keyed, row = key_name("tests", "k"), sequence_name(dedup_name_prefix("tests", "d"), 4)
    jobs = restored(
        shell,
        tmp_path,
        a_job(keyed, idempotencyKey="k"),
        a_job(row, deduplicationId="d", idempotencyKey="x"),
        a_job("plain", dependsOn=[{"name": keyed}]),
        options=("-n", "there"),
    )
    assert set(jobs) == {
        key_name("there", "k"),
        sequence_name(dedup_name_prefix("there", "d"), 4),
        "plain",
    }
    assert jobs["plain"]["spec"]["dependsOn"] == [{"name": key_name("there", "k")}]
    assert {job["metadata"]["namespace"] for job in jobs.values()} == {"there"}


def test_objects_go_where_they_came_from_unless_told(shell: Shell, tmp_path: Path) -> None:
    file = a_file(tmp_path, a_job("a"), a_job("b", namespace="other"))
    assert shell("restore", file, "-n", "there").exit_code == 2
    assert shell("restore", file, "--map", "unknown=there").exit_code == 2
    assert shell("restore", file, "--map", "Wrong").exit_code == 2
    shell.ok("restore", file, "--map", "other=there")
    assert [path.split("/")[5] for path in shell.cluster.objects] == ["tests", "there"]


def test_only_some_queues_are_restored(shell: Shell, tmp_path: Path) -> None:
    said = shell.ok(
        *("restore", "-q", "mail"),
        a_file(tmp_path, a_queue("x"), a_schedule("s"), a_job("a"), a_job("b", queue="mail")),
    )
    assert [path.rsplit("/", 1)[-1] for path in shell.cluster.objects] == ["s", "b"]
    assert "left out, of other queues: 2" in said


def test_older_jobs_come_back_first(shell: Shell, tmp_path: Path) -> None:
    young, old = ({"creationTimestamp": f"2026-11-2{day}T00:00:00Z"} for day in (1, 0))
    jobs = restored(shell, tmp_path, a_job("a", meta=young), a_job("b", meta=old))
    assert list(jobs) == ["b", "a"]


def broken(tmp_path: Path, *lines: Any) -> str:
    file = tmp_path / "broken.jsonl"
    file.write_text(
        "".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in lines)
    )
    return str(file)


FIRST = {"kind": HEADER_KIND, "format": 1}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        (
            {"kind": "Pod"},
            "kind: 'Pod' is not one of AsyncQueue, AsyncCronJob, AsyncArray, AsyncJob",
        ),
        (a_job("a") | {"apiVersion": "v2"}, "apiVersion: 'v2' is not asyncjob.dev/v1alpha1"),
        (a_job("A b"), "metadata.name: "),
        (a_job("a", namespace="../x"), "metadata.namespace: '../x'"),
        (a_job("a", priority=5000), "spec.priority: "),
        (a_job("a", retryPolicy={"maxRetries": -1}), "spec.retryPolicy.maxRetries: "),
        (a_job("a", "Dancing"), "status.phase: 'Dancing' is not known to this version"),
        (a_schedule("s", schedule=5), "spec.schedule: "),
        (
            {"kind": HEADER_KIND, "format": 2, "version": "9.0"},
            "format: written by a newer version (9.0)",
        ),
        ({"kind": "AsyncJobExportEnd", "counts": {"AsyncJob": 3}}, "counts: "),
    ],
)
def test_a_broken_file_is_refused_with_line_and_field_before_anything_is_created(
    shell: Shell, tmp_path: Path, line: Any, said: str
) -> None:
    file = broken(tmp_path, FIRST, a_job("fine"), line)
    result = shell("restore", file)
    assert result.exit_code == 2
    assert f"error: {file}:3: {said}" in result.stderr
    assert result.stderr.endswith("nothing was restored (asyncjob explain configuration)\n")
    assert shell.cluster.calls == []


def test_a_file_that_was_cut_off_is_taken_only_if_asked(shell: Shell, tmp_path: Path) -> None:
    file = ""
    for head, end in ((True, False), (False, True)):
        file = a_file(tmp_path, a_job("a"), head=head, end=end)
        result = shell("restore", file)
        assert result.exit_code == 2
        assert "--partial" in result.stderr
    twice = broken(tmp_path, FIRST, a_job("a"), a_job("a"))
    assert "AsyncJob tests/a occurs twice" in shell("restore", twice, "--partial").stderr
    shell.ok("restore", file, "--partial")


def test_where_a_line_was_cut_off_itself_the_way_out_is_told(shell: Shell, tmp_path: Path) -> None:
    whole = Path(a_file(tmp_path, a_job("a"), a_job("b"), end=False)).read_bytes()
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(whole[:-10])
    told = shell("restore", str(cut), "--partial").stderr
    assert f"{cut}:3: cut off in the middle of this line; head --lines=-1 FILE" in told
    cut.write_bytes(b"".join(whole.splitlines(keepends=True)[:-1]))
    shell.ok("restore", str(cut), "--partial")
    assert set(shell.cluster.of("AsyncJob")) == {"a"}


def test_stdin_is_read_and_what_is_compressed_is_told(shell: Shell, tmp_path: Path) -> None:
    shell.ok("restore", "-", stdin=Path(a_file(tmp_path, a_job("a"))).read_text())
    assert set(shell.cluster.of("AsyncJob")) == {"a"}
    (tmp_path / "b.gz").write_bytes(b"\x1f\x8b\x08")
    assert "compressed" in shell("restore", str(tmp_path / "b.gz")).stderr
    assert shell("restore", str(tmp_path / "nothing")).exit_code == 1


def test_one_that_is_refused_keeps_no_other_from_coming_back(shell: Shell, tmp_path: Path) -> None:
    refusals = {"a": InvalidError("spec.x: unknown field"), "b": ForbiddenError("may not get s")}

    def refuse() -> None:
        body: Any = shell.cluster.writes[-1].body
        error = refusals.get(body["metadata"]["name"])
        if error:
            raise error

    shell.cluster.meanwhile = refuse
    file = a_file(tmp_path, a_job("a"), a_job("b"), a_job("c"))
    result = shell("restore", file)
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        f"error: {file}:2: AsyncJob tests/a: spec.x: unknown field (asyncjob explain invalid)",
        f"error: {file}:3: AsyncJob tests/b: may not get s (asyncjob explain forbidden)",
    ]
    assert result.stdout.splitlines() == ["restored 1 job", "refused: 2 jobs"]
    answer = json.loads(shell("restore", file, "-o", "json").stdout)
    assert [one["name"] for one in answer["there"]] == ["c"]
    assert [one["where"] for one in answer["refused"]] == [f"{file}:2", f"{file}:3"]


def test_what_is_so_for_all_ends_it_and_says_how_far_it_came(shell: Shell, tmp_path: Path) -> None:
    shell.cluster.remove_namespace()
    result = shell("restore", a_file(tmp_path, a_job("a"), a_job("b")))
    assert result.exit_code == 3
    assert "kubectl create namespace tests" in result.stderr
    assert result.stdout.splitlines() == [
        "restored nothing",
        "not tried: 2; repeat the command to continue",
    ]


def test_a_gateway_has_neither(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from asyncjob.cli.entry import run

    monkeypatch.setenv("ASYNCJOB_SERVER", "https://jobs.example")
    assert run(["export"], "asyncjob") == 2
    assert run(["restore", a_file(tmp_path, a_job("a"))], "asyncjob") == 2


def test_a_line_without_end_is_not_read_to_its_end(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "MAX_LINE_BYTES", 2**20)
    file = Path(a_file(tmp_path, a_job("a"), end=False))
    with file.open("a") as stream:
        stream.write("x" * (2**20 + 1))
    result = shell("restore", str(file))
    assert result.exit_code == 2
    assert f"{file}:3: more than 1 MiB in one line" in result.stderr
    assert shell.cluster.of("AsyncJob") == {}
    assert "more than 1 MiB in one line" in shell("restore", "/dev/zero").stderr
