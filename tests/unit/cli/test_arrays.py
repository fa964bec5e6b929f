"""What the commands about arrays ask, print and exit with."""

import json
from pathlib import Path
from typing import Any

import pytest

from asyncjob.cli.input.array_submissions import WAY_OUT
from asyncjob.client.errors import UnavailableError
from asyncjob.lifecycle.arrays.item_ranges import ItemRanges
from asyncjob.models.job import Dependency, DependencyOutcome
from asyncjob.offload import Store
from asyncjob.rest.arrays import ArrayInfo, ArraySelection
from support.in_memory.fake_jobs import an_array
from support.parts.cli_shell import Shell

STARTED = "2026-11-21T20:03:20Z"
"""A hundred seconds before the shell's clock begins."""


def running(**fields: Any) -> ArrayInfo:
    base: dict[str, Any] = {"succeeded": 390, "failed": 10, "percent": 40, "started_at": STARTED}
    return an_array("thumbs", "Running", **{**base, "open_chunks": 2, **fields})


def failed(**fields: Any) -> ArrayInfo:
    errors = [
        {"item": 17, "type": "ValueError", "category": "Internal", "message": "no such image"}
    ]
    status = {"failedItems": "17,400-402", "next": 1000, "errors": errors}
    base: dict[str, Any] = {"succeeded": 996, "failed": 4, "percent": 100, "reason": "ItemsFailed"}
    times = {"started_at": STARTED, "completed_at": "2026-11-21T20:04:20Z"}
    return an_array("thumbs", "Failed", **{**base, **times, "status": status, **fields})


def test_a_number_of_items_is_submitted_with_options(shell: Shell) -> None:
    said = shell.ok(
        *("array", "submit", "thumb", "folder=photos", "--count", "1000", "--name=thumbs"),
        *("-q", "images", "--max-failed", "5%", "--chunk-size=100", "--item-timeout", "2m"),
        "--results=s3://b/jobs/results/default",
        *("--max-retries=1", "--backoff", "fixed", "-l", "team=mail", "--suspend"),
    )
    assert said == "array thumbs created\n"
    [made] = shell.jobs.submitted_arrays
    assert (made.type, made.queue, made.items.count) == ("thumb", "images", 1000)
    assert made.payload == {"folder": "photos"}
    assert (made.max_failed_percent, made.max_failed, made.chunk_size) == (5, None, 100)
    assert (made.item_timeout_seconds, made.suspend, made.labels) == (120, True, {"team": "mail"})
    assert made.results
    assert made.results.uri == "s3://b/jobs/results/default"
    assert made.retry_policy
    assert (made.retry_policy.max_retries, made.retry_policy.backoff) == (1, "Fixed")
    assert shell.ok("array", "submit", "thumb", "--count=1", "--name=thumbs") == (
        "array thumbs exists (Pending)\n"
    )
    shell.ok("array", "submit", "thumb", "--count=1", "--max-failed", "7")
    assert shell.jobs.submitted_arrays[-1].max_failed == 7


def test_an_array_may_wait_for_a_time_for_jobs_and_for_arrays(shell: Shell) -> None:
    shell.ok(
        *("array", "submit", "thumb", "--count=1", "--not-before", "2026-11-22T08:00:00Z"),
        *("--depends-on=fetch:any", "--depends-on", "array/resize"),
    )
    [made] = shell.jobs.submitted_arrays
    assert made.not_before == "2026-11-22T08:00:00Z"
    assert made.depends_on == [
        Dependency(name="fetch", outcome=DependencyOutcome.ANY),
        Dependency(array="resize"),
    ]
    said = shell("array", "submit", "thumb", "--count=1", "--name=a", "--depends-on=aa/a").stderr
    assert "dependsOn.0: array a cannot depend on itself; leave it out" in said


@pytest.mark.parametrize(
    ("chosen", "next_one", "said"),
    [
        (500, None, "2 of at most 20 under way, 500 items each\n"),
        (None, 640, "2 of at most 20 under way, 640 items in the next one, which adapts\n"),
        (None, None, "2 of at most 20 under way\n"),
    ],
)
def test_how_many_items_a_chunk_has_is_shown_and_whether_that_adapts(
    shell: Shell, chosen: int | None, next_one: int | None, said: str
) -> None:
    spec = {"type": "thumb", "items": {"count": 1000}, "chunkSize": chosen}
    shell.jobs.all_arrays["thumbs"] = running(spec=spec, status={"chunkSize": next_one})
    assert f"Chunks      {said}" in shell.ok("array", "get", "thumbs")


@pytest.mark.parametrize(
    ("name", "text", "inline"),
    [
        ("items.jsonl", '"a"\n{"b": 1}\n\n3\n', ["a", {"b": 1}, 3]),
        ("items.json", '["a", [1]]', ["a", [1]]),
        ("items.yaml", "- a\n- b: 1\n", ["a", {"b": 1}]),
        ("items.jsonl", '{"only": 1}', [{"only": 1}]),
    ],
)
def test_items_come_from_a_file_or_stdin(
    shell: Shell, tmp_path: Path, name: str, text: str, inline: list[Any]
) -> None:
    (tmp_path / name).write_text(text)
    shell.ok("array", "submit", "thumb", "-f", str(tmp_path / name))
    shell.ok("array", "submit", "thumb", "-f", "-", stdin=text)
    assert [one.items.inline for one in shell.jobs.submitted_arrays] == [inline, inline]


@pytest.mark.parametrize(
    ("words", "stdin", "said"),
    [
        ([], "", "give exactly one of --count N, -f FILE and --from URI"),
        (["--count=1", "-f", "-"], "[1]", "give exactly one of --count N, -f FILE and --from URI"),
        (["--from=s3://b/a", "--count=1"], "", "give exactly one of --count N, -f FILE and"),
        (["--format=CSV", "--count=1"], "", "--format is for --from URI"),
        (["{", "--count=1"], "", "is not JSON"),
        (["--count=0"], "", "0 is not in the range 1<=x<=10000000"),
        (["--count=1", "--max-failed=x"], "", "write 100 or 5%"),
        (["--count=1", "--max-failed=101%"], "", "maxFailedPercent: "),
        (["--count=1", "--chunk-size=0"], "", "chunkSize: "),
        (["--count=1", "--parallelism=101"], "", "parallelism: "),
        (["--count=1", "--results=results"], "", "results.uri: 'results': an address begins with"),
        (["--count=1", "--results=s3://b/../c"], "", "results.uri: "),
        (["--count=1", "-q", "No Queue"], "", "queue: "),
        (["--count=1", "-l", "asyncjob.dev/x=1"], "", "labels.asyncjob.dev/x: "),
        (["-f", "-"], "[]", "stdin: items.inline: an array has at least one item"),
        (["-f", "-"], "a.jpg\nb.jpg\n", "jq -R . FILE makes"),
        (["-f", "-"], '{"a": 1}\n{"a"\n', "stdin: "),
        (["-f", "gone.jsonl"], "", "gone.jsonl: No such file"),
        (["-f", "-"], json.dumps([1] * 10_001), f"10,001 items are more than 10,000; {WAY_OUT}"),
        (["-f", "-"], json.dumps(["x" * 300_000]), "items.inline: "),
        (["--count", "9", "--skip", "9"], "", "items.skip: there is no item 9: the last one is 8"),
        (["--count", "9", "--skip", "some"], "", "items.skip: "),
    ],
)
def test_a_mistake_names_the_field_and_the_way_out_and_submits_nothing(
    shell: Shell, words: list[str], stdin: str, said: str
) -> None:
    result = shell("array", "submit", "thumb", *words, stdin=stdin)
    assert result.exit_code == 2
    assert said in result.stderr
    assert shell.jobs.submitted_arrays == []
    assert shell.places == []


def test_items_may_be_in_a_store_and_are_counted_there(shell: Shell) -> None:
    uri = "s3://bucket/customers.txt"
    shell.ok("array", "submit", "invoice", "--from", uri, "--format", "csv")
    shell.ok("array", "submit", "invoice", "--from", uri)
    sources = [one.items.from_ for one in shell.jobs.submitted_arrays]
    assert [(one.uri, one.format) for one in sources if one] == [(uri, "CSV"), (uri, None)]
    shell.jobs.array_script["a"] = [
        an_array("a", total=0),
        an_array("a", "Succeeded", total=0),
    ]
    said = shell("array", "wait", "a").stderr
    assert said.splitlines() == ["a Pending counting its items", "a Succeeded 0% of 0 items"]


def test_an_array_that_has_not_started_says_what_it_waits_for(shell: Shell) -> None:
    waits: dict[str, Any] = {"reason": "WaitingForDependency", "total": 0}
    shell.jobs.array_script["a"] = [
        an_array("a", total=0),
        an_array("a", message="waiting for fetch and array resize", **waits),
        an_array("a", message="waiting for fetch", **waits),
        an_array("a", "Succeeded", succeeded=3, total=3, percent=100),
    ]
    assert shell("array", "wait", "a").stderr.splitlines() == [
        "a Pending counting its items",
        "a Pending: waiting for fetch and array resize",
        "a Pending: waiting for fetch",
        "a Succeeded 100% of 3 items",
    ]


def test_items_that_are_done_already_are_named(shell: Shell) -> None:
    shell.ok("array", "submit", "thumb", "--count", "9", "--skip", "0-3,7")
    shell.ok("array", "submit", "thumb", "--from", "s3://b/a.csv", "--skip", "5")
    shell.ok("array", "submit", "thumb", "-f", "-", "--skip", "0", stdin="[1, 2]")
    assert [one.items.skip for one in shell.jobs.submitted_arrays] == ["0-3,7", "5", "0"]


def test_items_of_too_many_bytes_are_told_to_be_a_file(shell: Shell) -> None:
    result = shell("array", "submit", "t", "-f", "-", stdin=json.dumps(["x" * 300_000]))
    assert "items.from.uri" in result.stderr
    assert result.stderr.endswith("nothing was submitted (asyncjob explain invalid)\n")


def test_a_wait_shows_progress_rate_and_expected_end(shell: Shell) -> None:
    shell.jobs.array_script["thumbs"] = [
        an_array("thumbs"),
        running(),
        running(),
        running(succeeded=890, percent=90),
        an_array("thumbs", "Succeeded", succeeded=1000, percent=100, started_at=STARTED),
    ]
    result = shell("array", "submit", "thumb", "--count=1000", "--name=thumbs", "--wait")
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        "thumbs Pending 0% of 1,000 items",
        "thumbs Running 40% of 1,000 items, 10 failed, 3.9/s, 2m left",
        "thumbs Running 90% of 1,000 items, 10 failed, 8.5/s, 11s left",
        "thumbs Succeeded 100% of 1,000 items, 9.3/s",
    ]
    head, row = result.stdout.splitlines()
    assert head.split()[:3] == ["NAME", "PHASE", "TYPE"]
    assert row.split()[:2] == ["thumbs", "Succeeded"]
    assert shell.slept == 8


@pytest.mark.parametrize(
    ("phase", "code"), [("Succeeded", 0), ("Failed", 4), ("Cancelled", 5), ("Running", 6)]
)
def test_how_a_wait_for_an_array_ended_is_in_the_exit_code(
    shell: Shell, phase: str, code: int
) -> None:
    shell.jobs.all_arrays["thumbs"] = an_array("thumbs", phase)
    result = shell("array", "wait", "asyncarray.asyncjob.dev/thumbs", "--timeout=5s", "--quiet")
    assert result.exit_code == code
    assert shell.slept == (5 if code == 6 else 0)
    late = "error: not ended within 5s: thumbs Running 0% of 1,000 items (longer: --timeout; "
    assert result.stderr.startswith(late) if code == 6 else result.stderr == ""


def test_a_redriven_array_has_not_ended_yet(shell: Shell) -> None:
    shell.jobs.array_script["thumbs"] = [failed(redriving=True), running(), failed()]
    result = shell("array", "wait", "thumbs")
    assert result.exit_code == 4
    assert result.stderr.splitlines()[0].startswith("thumbs Failed, redriving 100%")
    assert result.stderr.endswith("asyncjob array items thumbs --failed shows what failed\n")


def test_a_wait_outlasts_a_server_that_is_away_and_ends_for_one_that_is_gone(shell: Shell) -> None:
    away = UnavailableError("the API server does not answer")
    shell.jobs.array_script["thumbs"] = [running(), away, away, running(uid="other")]
    result = shell("array", "wait", "thumbs")
    assert result.exit_code == 3
    assert result.stderr.count("still waiting") == 1
    assert "array thumbs was deleted, and another has its name" in result.stderr
    assert shell("array", "wait", "gone").exit_code == 3
    assert "asyncjob array list shows the arrays" in shell("array", "wait", "gone").stderr


def test_a_list_shows_how_far_each_is_and_takes_filters(shell: Shell) -> None:
    for one in (running(), an_array("other", "Succeeded", type="t", queue="mail", total=1)):
        shell.jobs.all_arrays[one.name] = one
    head, first, second = shell.ok("array", "list").splitlines()
    assert head.split()[-5:] == ["PROGRESS", "RATE", "LEFT", "AGE", "WHY"]
    assert first.split() == [
        *("thumbs", "Running", "thumb", "default", "1000", "390", "10", "2", "40%"),
        *("4/s", "2m", "5m"),
    ]
    assert second.split()[:2] == ["other", "Succeeded"]
    shell.ok("array", "list", "--phase=failed", "--phase", "Running", "-qmail", "-l", "team=a")
    chosen = {"phase": ["Failed", "Running"], "queue": "mail", "label": "team=a"}
    assert shell.jobs.asked[-1] == ("arrays", ArraySelection.model_validate(chosen))
    assert shell.ok("array", "list", "--limit=1", "-o", "name") == "thumbs\n"
    assert json.loads(shell.ok("array", "list", "-o", "json"))["items"][0]["percent"] == 40
    assert shell("array", "list", "--type", "nothing").stderr == "no arrays match\n"
    assert "not one of Pending, Running" in shell("array", "list", "--phase=x").stderr
    assert "--queue: " in shell("array", "list", "--queue=No Queue").stderr


def test_one_that_waits_says_for_what_and_how_to_look_at_it(shell: Shell) -> None:
    spec = {
        "type": "thumb",
        "items": {"count": 1000},
        "notBefore": "2026-11-22T08:00:00Z",
        "dependsOn": [{"name": "fetch"}, {"array": "resize", "outcome": "Any"}],
    }
    waits = {"reason": "WaitingForDependency", "message": "waiting for fetch", "spec": spec}
    shell.jobs.all_arrays["thumbs"] = an_array("thumbs", "Pending", **waits)
    said = shell.ok("array", "get", "thumbs")
    assert "Not before  2026-11-22 08:00:00" in said
    assert "Depends on  fetch (Succeeded), array resize (Any)" in said
    assert "asyncjob get fetch " in said
    assert "asyncjob array get resize " in said


def test_one_is_shown_with_its_errors_and_what_to_do_next(shell: Shell) -> None:
    shell.jobs.all_arrays["thumbs"] = failed()
    said = shell.ok("array", "get", "thumbs")
    assert "thumbs   Failed 100%\n  ItemsFailed\n" in said
    assert "Items       1,000: 996 succeeded, 4 failed, 0 to do\n" in said
    assert "Failed      17,400-402" in said
    assert "17     ValueError   Internal   no such image" in said
    assert "took 1m" in said
    assert "asyncjob array redrive thumbs" in said
    shell.jobs.all_arrays["thumbs"] = failed().model_copy(update={"skipped": 900})
    assert "4 failed, 0 to do; 900 were done before\n" in shell.ok("array", "get", "thumbs")
    shell.jobs.all_arrays["thumbs"] = running()
    said = shell.ok("array", "get", "thumbs")
    assert "Rate        4/s" in said
    assert "Ends        in about 2m30s" in said
    assert "asyncjob list --type thumb/items" in said
    assert "redrive" not in said
    assert "Chunks" not in said
    assert json.loads(shell.ok("array", "get", "thumbs", "-o", "json"))["name"] == "thumbs"
    assert shell.ok("array", "get", "thumbs", "-o", "wide").splitlines()[1].startswith("thumbs")


def test_where_its_results_are_is_shown_with_the_command_that_reads_them(shell: Shell) -> None:
    shell.jobs.all_arrays["thumbs"] = running(results="s3://b/results/default/u1")
    said = shell.ok("array", "get", "thumbs")
    assert "Results     s3://b/results/default/u1" in said
    assert "asyncjob array results thumbs" in said
    assert "asyncjob list --type thumb/store" in said
    shell.jobs.all_arrays["thumbs"] = running()
    assert "esults" not in shell.ok("array", "get", "thumbs")


def stored_array(folder: Path, stored: str = "0-1,3", phase: str = "Succeeded") -> ArrayInfo:
    """Build an array of which items 0, 1 and 3 are done, and store results of some items."""
    name = folder / "results" / "default" / "uid-thumbs" / "0" / "1-0-1-j-0.jsonl"
    name.parent.mkdir(parents=True)
    lines = (f'{{"item":{one},"result":{{"n":{one}}}}}\n' for one in ItemRanges.parse(stored))
    name.write_text("".join(reversed([*lines])))
    uri = f"file://{folder}/results/default"
    return an_array(
        "thumbs",
        phase,
        total=4,
        succeeded=3,
        failed=1,
        results=f"{uri}/uid-thumbs",
        spec={"type": "thumb", "items": {"count": 4}, "results": {"uri": uri}},
        status={"next": 4, "failedItems": "2"},
    )


def test_results_are_json_lines_in_the_order_of_the_items(shell: Shell, tmp_path: Path) -> None:
    shell.jobs.all_arrays["thumbs"] = stored_array(tmp_path)
    said = shell("array", "results", "thumbs")
    assert [json.loads(line) for line in said.stdout.splitlines()] == [
        {"item": item, "result": {"n": item}} for item in (0, 1, 3)
    ]
    assert (said.stderr, said.exit_code) == ("", 0)


def test_results_of_an_array_that_runs_are_those_so_far(shell: Shell, tmp_path: Path) -> None:
    shell.jobs.all_arrays["thumbs"] = stored_array(tmp_path, phase="Running")
    said = shell("array", "results", "thumbs")
    assert said.stderr == "array thumbs is Running: 3 items done so far\n"
    assert len(said.stdout.splitlines()) == 3


def test_an_export_that_lacks_results_does_not_look_whole(shell: Shell, tmp_path: Path) -> None:
    shell.jobs.all_arrays["thumbs"] = stored_array(tmp_path, "0,3")
    said = shell("array", "results", "thumbs")
    assert [json.loads(line)["item"] for line in said.stdout.splitlines()] == [0, 3]
    assert said.exit_code == 1
    assert "no result of 1 item that is done: 1;" in said.stderr


def test_an_array_that_keeps_no_results_has_none_to_read(shell: Shell) -> None:
    shell.jobs.all_arrays["thumbs"] = failed(spec={"type": "thumb", "items": {"count": 4}})
    said = shell("array", "results", "thumbs")
    assert said.exit_code == 3
    assert "array thumbs keeps no results" in said.stderr


@pytest.mark.parametrize("options", ["{", "[]", "1"])
def test_options_of_a_driver_are_an_object_and_not_repeated(shell: Shell, options: str) -> None:
    said = shell("array", "results", "thumbs", f"--offload-options={options}")
    assert said.exit_code == 2
    assert "it has to be a JSON object" in said.stderr


def test_options_of_a_driver_reach_it(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = list[Any]()

    def make(options: Any) -> Store:
        given.append(options)
        return Store(options)

    monkeypatch.setattr("asyncjob.cli.commands.array.read.Store", make)
    shell.jobs.all_arrays["thumbs"] = stored_array(tmp_path)
    shell.ok("array", "results", "thumbs", '--offload-options={"auto_mkdir": true}')
    assert given == [{"file": {"auto_mkdir": True}}]


def test_failed_items_are_named_with_the_newest_errors(shell: Shell) -> None:
    shell.jobs.all_arrays["thumbs"] = failed()
    said = shell.ok("array", "items", "thumbs", "--failed").splitlines()
    assert said[0] == "4 items failed: 17,400-402"
    assert said[-1].split(maxsplit=3) == ["17", "ValueError", "Internal", "no such image"]
    assert shell.ok("array", "items", "thumbs", "--failed", "-oname") == "17\n400\n401\n402\n"
    found = json.loads(shell.ok("array", "items", "thumbs", "--failed", "-o", "json"))
    assert (found["failed"], found["items"]) == (4, "17,400-402")
    shell.jobs.all_arrays["thumbs"] = running(failed=0)
    assert shell("array", "items", "thumbs", "--failed").stderr == "no failed items\n"
    assert shell("array", "items", "thumbs", "-o", "name").exit_code == 2


def test_what_became_of_all_items_is_told_by_number(shell: Shell) -> None:
    chunk = {"name": "c", "generation": 1, "items": "400-499,700"}
    status = {
        "next": 800,
        "open": [chunk],
        "requeued": "500-509",
        "suspects": ["600"],
        "failedItems": "17",
    }
    shell.jobs.all_arrays["thumbs"] = running(succeeded=687, failed=1, status=status)
    found = json.loads(shell.ok("array", "items", "thumbs", "-o", "json"))["items"]
    assert [(one["state"], one["count"], one["items"]) for one in found] == [
        ("succeeded", 687, "0-16,18-399,510-599,601-699,701-799"),
        ("failed", 1, "17"),
        ("under way", 101, "400-499,700"),
        ("to be run again", 11, "500-509,600"),
        ("to do", 200, "800-999"),
    ]
    assert sum(one["count"] for one in found) == 1000
    assert shell.ok("array", "items", "thumbs").split()[:3] == ["STATE", "COUNT", "ITEMS"]


def test_items_to_be_skipped_are_told_from_those_to_do(shell: Shell) -> None:
    spec = {"type": "thumb", "items": {"count": 1000, "skip": "50-99,900-999"}}
    status = {"next": 800, "failedItems": "17"}
    shell.jobs.all_arrays["thumbs"] = failed(succeeded=799, failed=1, spec=spec, status=status)
    found = json.loads(shell.ok("array", "items", "thumbs", "-o", "json"))["items"]
    assert [(one["state"], one["count"], one["items"]) for one in found if one["count"]] == [
        ("succeeded", 799, "0-16,18-799"),
        ("failed", 1, "17"),
        ("to do", 100, "800-899"),
        ("to be skipped", 100, "900-999"),
    ]


@pytest.mark.parametrize(
    ("command", "array", "said"),
    [
        ("suspend", running(), "array thumbs suspended"),
        ("resume", running(suspended=True), "array thumbs resumed"),
        ("resume", failed(), "array thumbs has ended (Failed): nothing changes"),
        ("cancel", running(), "array thumbs being cancelled"),
        ("cancel", an_array("thumbs", "Cancelled"), "array thumbs cancelled"),
        ("redrive", failed(), "array thumbs being redriven"),
    ],
)
def test_arrays_are_controlled(shell: Shell, command: str, array: ArrayInfo, said: str) -> None:
    shell.jobs.all_arrays["thumbs"] = array
    result = shell("array", command, "thumbs", "gone")
    assert result.exit_code == 3
    assert result.stdout == f"{said}\n"
    assert "there is no array gone" in result.stderr
    assert (command, "thumbs") in shell.jobs.asked


def test_what_cannot_be_is_refused_with_a_code(shell: Shell) -> None:
    shell.jobs.all_arrays["thumbs"] = running()
    refused = shell("array", "redrive", "thumbs")
    assert refused.exit_code == 9
    assert "only a failed array can be redriven" in refused.stderr


def test_a_cancel_and_a_redrive_can_be_waited_for(shell: Shell) -> None:
    shell.jobs.all_arrays["thumbs"] = an_array("thumbs", "Cancelled")
    assert shell("array", "cancel", "thumbs", "--wait").exit_code == 0
    shell.jobs.all_arrays["thumbs"] = an_array("thumbs", "Failed")
    shell.jobs.array_script["thumbs"] = [failed(), failed(), failed(redriving=True), failed()]
    assert shell("array", "redrive", "thumbs", "--wait").exit_code == 4


def test_names_of_arrays_are_offered(shell: Shell) -> None:
    shell.jobs.all_arrays["thumbs"] = running()
    assert shell.ok("__complete", "array", "get", "th").split() == ["thumbs", ":4"]
    assert shell.ok("__complete", "array", "list", "--phase", "f").split() == ["Failed", ":4"]


def test_a_wait_without_a_terminal_says_that_no_worker_takes_it(shell: Shell) -> None:
    waits = an_array("thumbs", "Running", open_chunks=2)
    told = an_array(
        "thumbs", "Running", open_chunks=2, reason="NoWorker", message="queue default has no worker"
    )
    over = an_array("thumbs", "Succeeded", succeeded=1000, percent=100)
    shell.jobs.array_script["thumbs"] = [waits, told, told, over]
    result = shell("array", "submit", "thumb", "--count=1000", "--name=thumbs", "--wait")
    assert "queue default has no worker" in result.stderr
