"""What `export` writes, and when the file appears."""

import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from asyncjob.cli.exit_codes import ExitCode
from asyncjob.client.connection import Answer
from asyncjob.deep_json import TruncatedObject, loads
from asyncjob.errors import UnknownOutcomeError
from asyncjob.json_types import as_object
from support.objects.exports import a_job, a_queue, a_schedule, an_array
from support.parts.cli_shell import Shell


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def names(text: str) -> list[str]:
    """Return the names of the objects of an export."""
    return [one["metadata"]["name"] for one in lines(text)[1:-1]]


def test_an_export_holds_all_that_is_known_and_how_much_that_is(
    shell: Shell, tmp_path: Path
) -> None:
    status = {"checkpoint": {"row": 7}, "attempt": 2, "history": [{"phase": "Retrying"}]}
    running = a_job("run", "Running", status=status, payload={"to": "ada"})
    shell.cluster.store(running, a_job("done", "Succeeded", status={"result": 3}))
    shell.cluster.store(a_queue("mail", maxConcurrency=3), a_schedule("nightly"))
    file = tmp_path / "backup.jsonl"

    result = shell("export", str(file))

    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == (
        "exported 1 queue, 1 cron job and 2 jobs (1 Running, 1 Succeeded) of namespace tests "
        f"into {file}\n"
    )
    head, *objects, end = lines(file.read_text())
    assert (head["kind"], head["format"], head["namespace"]) == ("AsyncJobExport", 1, "tests")
    assert head["time"] == "2026-11-21T20:05:00.000Z"
    assert [one["kind"] for one in objects] == [
        "AsyncQueue",
        "AsyncCronJob",
        "AsyncJob",
        "AsyncJob",
    ]
    stored = shell.cluster.of("AsyncJob")["run"]
    kept = {**stored, "metadata": dict(stored["metadata"])}
    assert kept["status"]["checkpoint"] == {"row": 7}
    del kept["metadata"]["managedFields"]
    assert objects[3] == kept
    assert end["counts"] == {
        "AsyncQueue": 1,
        "AsyncCronJob": 1,
        "AsyncArray": 0,
        "AsyncJob": 2,
    }
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_many_are_read_in_pages_and_again_where_the_server_has_forgotten_that_moment(
    shell: Shell,
) -> None:
    wanted = [f"job-{number:04}" for number in range(1200)]
    shell.cluster.store(*(a_job(name) for name in wanted))
    shell.cluster.forgotten = 2

    assert names(shell.ok("export")) == wanted
    asked = [call for call in shell.cluster.calls if call.path.endswith("/asyncjobs")]
    limits = [dict(call.params)["limit"] for call in asked]
    assert limits == ["20", "160", "160", *["500"] * 4]  # forgotten after the first and the third

    shell.cluster.forgotten = 99
    result = shell("export")
    assert (result.exit_code, result.stdout) == (7, "")
    assert "too old" in result.stderr


@pytest.mark.parametrize("target", ["-", "file"])
def test_nothing_appears_of_an_export_that_fails(
    shell: Shell, tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("yesterday's")
    shell.cluster.store(a_queue("mail"), a_job("a"))
    whole = shell.cluster.do

    def ends_at_jobs(step: Any) -> Any:
        if getattr(step, "path", "").endswith("/asyncjobs"):
            shell.cluster.now += 60
            raise UnknownOutcomeError("connection reset")
        return whole(step)

    monkeypatch.setattr(shell.cluster, "do", ends_at_jobs)
    result = shell("export", str(file) if target == "file" else target)

    assert (result.exit_code, result.stdout) == (7, "")
    assert file.read_text() == "yesterday's"
    assert list(tmp_path.iterdir()) == [file]


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def test_what_is_too_deep_is_left_out_and_named_and_all_else_is_written(
    shell: Shell, tmp_path: Path
) -> None:
    template = {"spec": {"type": "t", "queue": "mail", "payload": nested(500)}}
    shell.cluster.store(
        a_queue("mail"),
        a_schedule("deep-times", jobTemplate=template),
        a_schedule("nightly"),
        a_job("deepest-written", queue="mail", payload=nested(252)),
        a_job("deep", queue="mail", payload=nested(253)),
        a_job("after", queue="mail"),
        a_job("deep", queue="other", payload=nested(800), namespace="other"),
        a_job("beside", queue="mail", namespace="other"),
    )
    file = tmp_path / "backup.jsonl"
    way_out = (
        "is nested too deeply to be written: an object has at most 254 levels, itself the first; "
        "make it flatter, or keep the inner part as text"
    )
    for options, wanted, left_out in (
        ((), ["mail", "nightly", "after", "deepest-written"], ["tests/deep"]),
        (("-q", "mail"), ["mail", "nightly", "after", "deepest-written"], ["tests/deep"]),
        (
            ("-A",),
            ["mail", "nightly", "beside", "after", "deepest-written"],
            ["other/deep", "tests/deep"],
        ),
    ):
        result = shell("export", str(file), *options)
        assert result.exit_code == 11, result.stderr
        written = file.read_text()
        assert names(written) == wanted
        assert sum(lines(written)[-1]["counts"].values()) == len(wanted)
        said = result.stderr.splitlines()
        assert said[:-1] == [
            f"left out: AsyncCronJob tests/deep-times: spec.jobTemplate.spec.payload {way_out}",
            *(f"left out: AsyncJob {name}: spec.payload {way_out}" for name in left_out),
        ]
        assert said[-1].startswith("exported 1 queue, 1 cron job and ")
    assert shell("export", "-q", "elsewhere").exit_code == 0
    assert shell("restore", str(file), "--dry-run").exit_code == 0


def a_job_with_signals(name: str, **payloads: Any) -> Any:
    sent = {key: {"sentBy": "ada", "payload": value} for key, value in payloads.items()}
    return a_job(name, signals=sent)


def test_a_signal_that_is_too_much_keeps_no_job_out_of_an_export(shell: Shell) -> None:
    shell.cluster.store(a_job_with_signals("told", deep=nested(800), large="x" * 20_000, ok=[1]))
    result = shell("export")
    assert (result.exit_code, names(result.stdout)) == (0, ["told"])
    [line] = [one for one in lines(result.stdout) if one.get("kind") == "AsyncJob"]
    assert line["spec"]["signals"] == {
        "deep": {"sentBy": "ada", "payloadRefused": "its payload is nested deeper than 64 levels"},
        "large": {
            "sentBy": "ada",
            "payloadRefused": "its payload has 20002 bytes, 16384 are allowed",
        },
        "ok": {"sentBy": "ada", "payload": [1]},
    }


def test_a_signal_that_was_not_read_as_a_whole_keeps_no_job_out_of_an_export(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page is read to 31 levels: the object is the third, the payload of a signal the 7th."""
    sent = {"cut": nested(25), "whole": nested(24)}
    shell.cluster.store(a_job_with_signals("told", **sent), a_job("beside", payload=nested(27)))
    whole = shell.cluster.do

    def cut(step: Any) -> Answer:
        answer = whole(step)
        body = TruncatedObject(as_object(answer.body))
        body.levels = 31
        return replace(answer, body=body)

    monkeypatch.setattr(shell.cluster, "do", cut)
    result = shell("export")
    assert names(result.stdout) == ["told"], result.stderr
    assert "left out: AsyncJob tests/beside: nested too deeply" in result.stderr
    [line] = [one for one in lines(result.stdout) if one.get("kind") == "AsyncJob"]
    assert line["spec"]["signals"]["whole"]["payload"] == nested(24)
    assert line["spec"]["signals"]["cut"].keys() == {"sentBy", "payloadRefused"}


def test_what_could_not_be_read_as_a_whole_is_not_written_as_if_it_were(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd = "[" + ",".join(["[" * 1100 + "]" * 1100] * 1200) + "]"
    shell.cluster.store(a_job("crowded", payload="CROWD"), a_job("beside", payload=nested(20)))
    whole = shell.cluster.do

    def as_it_is_read(step: Any) -> Answer:
        answer = whole(step)
        text = json.dumps(answer.body).replace('"CROWD"', crowd)
        return replace(answer, body=loads(text.encode()))

    monkeypatch.setattr(shell.cluster, "do", as_it_is_read)
    result = shell("export")
    assert result.exit_code == 11
    assert names(result.stdout) == ["beside"]
    assert "left out: AsyncJob tests/crowded: nested too deeply" in result.stderr


def test_an_export_is_of_one_namespace_or_all_and_of_some_queues(shell: Shell) -> None:
    shell.cluster.store(
        a_job("a", queue="mail"), a_job("b"), a_job("c", queue="mail", namespace="other")
    )
    shell.cluster.store(a_queue("mail"), a_queue("default"), a_schedule("nightly"))
    assert names(shell.ok("export", "-q", "mail")) == ["mail", "nightly", "a"]
    assert names(shell.ok("export", "-A", "--queue=mail")) == ["mail", "nightly", "c", "a"]
    assert lines(shell.ok("export", "-A"))[0]["namespace"] == "*"
    assert names(shell.ok("export", "-n", "other")) == ["c"]
    assert shell("export", "-A", "-n", "other").exit_code == 2


def test_a_device_is_written_to_and_not_replaced(shell: Shell) -> None:
    shell.ok("export", "/dev/null")
    assert Path("/dev/null").is_char_device()


def test_a_file_that_cannot_be_written_is_named(shell: Shell, tmp_path: Path) -> None:
    result = shell("export", str(tmp_path / "no" / "file"))
    assert result.exit_code == 1
    assert result.stderr.endswith(
        "/no/file: No such file or directory (asyncjob explain configuration)\n"
    )


def test_arrays_are_in_it_as_well(shell: Shell) -> None:
    shell.cluster.store(an_array("thumbs", status={"next": 4}), a_job("a"))
    result = shell("export")
    assert result.stderr.startswith("exported 1 array and 1 job (1 Queued) of namespace tests")
    _, array, _, end = lines(result.stdout)
    assert (array["kind"], array["status"]) == ("AsyncArray", {"phase": "Running", "next": 4})
    assert end["counts"] == {
        "AsyncQueue": 0,
        "AsyncCronJob": 0,
        "AsyncArray": 1,
        "AsyncJob": 1,
    }


def test_a_cluster_whose_types_are_older_than_arrays_is_exported_without(shell: Shell) -> None:
    shell.cluster.unknown = "asyncarrays"
    shell.cluster.store(a_job("a"))
    assert names(shell.ok("export")) == ["a"]
    shell.cluster.unknown = "asyncjobs"
    assert shell("export").exit_code == ExitCode.NOT_FOUND
