"""The commands behind `make bench`: exit codes above all."""

import os
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from asyncjob_bench import store
from asyncjob_bench.cli import command, main
from asyncjob_bench.parts.runner import Runner
from support.objects.measured import results


def check(tmp_path: Path, *options: str, **changes: tuple[float, ...]) -> Result:
    path = store.write(results(**changes), tmp_path, store.LATEST)
    return CliRunner().invoke(main, ["check", str(path), *options])


def test_results_that_meet_every_bar_pass(tmp_path: Path) -> None:
    done = check(tmp_path)
    assert done.exit_code == 0, done.output
    assert "MISSED" not in done.output


BROKEN = {
    "end_to_end_ratio": 0.74,
    "writes_per_job": 3.01,
    "operator_writes_per_job": 0.01,
    "pickup_p50_ratio": 2.1,
    "pickup_p99_ratio": 5.1,
    "conflict_ratio": 0.06,
    "conflict_ratio_idle": 0.06,
    "conflict_ratio_backlog": 0.06,
    "watch_events_per_job_64": 6.1,
    "flat_ratio_64": 0.59,
    "conflict_ratio_64": 0.031,
    "operator_ms_per_event": 0.41,
    "operator_growth_ratio": 1.31,
    "operator_rss_mib": 801.0,
    "worker_rss_mib": 151.0,
    "orphans_requeued_s": 7.1,
    "start_rss_operator_mib": 301.0,
    "start_rss_gateway_mib": 301.0,
    "api_alloc_kib_per_job": 1801.0,
    "jobs_s_per_api_core": 99.0,
    "waits_writes": 10.0,
    "parked_operator_ratio": 1.06,
    "parked_worker_ms_s": 10.1,
    "parked_requests": 1.0,
    "signal_p50_ratio": 5.1,
    "plain_alloc_ratio": 1.02,
    "array_items_over_jobs": 19.0,
    "array_items_over_peer": 3.9,
    "array_writes_per_1000": 21.0,
    "array_live_objects": 51.0,
    "array_operator_rss_ratio": 1.11,
    "array_repeated_s": 2.1,
    "array_plain_pickup_ratio": 2.1,
    "raw_cores_busy": 0.94,
    "raw_generator_share": 0.11,
    "raw_beyond_ratio": 1.16,
}


@pytest.mark.parametrize("key", BROKEN)
def test_each_missed_bar_fails_the_check_and_is_named(key: str, tmp_path: Path) -> None:
    done = check(tmp_path, **{key: (BROKEN[key],)})
    assert done.exit_code == 1
    assert f"missed: {key}\n" in done.output


@pytest.mark.parametrize("key", BROKEN)
def test_a_bar_that_was_not_measured_fails_the_check(key: str, tmp_path: Path) -> None:
    done = check(tmp_path, **{key: ()})
    assert done.exit_code == 1
    assert f"missed: {key}\n" in done.output


def test_a_part_that_failed_fails_the_check(tmp_path: Path) -> None:
    found = results()
    found.failed["peer"] = "it broke off"
    path = store.write(found, tmp_path, store.LATEST)
    done = CliRunner().invoke(main, ["check", str(path)])
    assert (done.exit_code, "missed: peer\n" in done.output) == (1, True)


def test_a_report_does_not_fail(tmp_path: Path) -> None:
    done = check(tmp_path, "--report-only", end_to_end_ratio=(0.1,))
    assert done.exit_code == 0
    assert "MISSED" in done.output


def test_an_unknown_part_is_refused_with_those_there_are() -> None:
    done = CliRunner().invoke(main, ["run", "--parts=raw,nonsense"])
    assert done.exit_code == 2
    assert "nonsense: there are bare, raw, end-to-end" in done.output


@pytest.mark.parametrize(("options", "stored"), [((), False), (("--parts=parked",), True)])
def test_a_run_of_some_parts_is_stored_as_one_too(
    options: tuple[str, ...], stored: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(runner: Runner, _parts: object) -> None:
        runner.results.spreads |= results().spreads

    monkeypatch.setattr(Runner, "run", measure)
    done = CliRunner().invoke(main, ["run", f"--out={tmp_path}", *options])
    assert done.exit_code == 0
    assert (tmp_path / store.LATEST).exists()
    assert (tmp_path / store.SOME_PARTS).exists() == stored


@pytest.mark.usefixtures("in_a_terminal")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_whatever_ends_a_run_what_was_measured_is_kept(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(runner: Runner, _parts: object) -> None:
        runner.results.spreads |= results(end_to_end_ratio=(0.8,)).spreads
        os.kill(os.getpid(), number)

    monkeypatch.setattr(Runner, "run", measure)
    monkeypatch.setattr("sys.argv", ["asyncjob_bench", "run", f"--out={tmp_path}"])
    with pytest.raises(SystemExit) as ended:
        command()
    assert ended.value.code == 1
    assert store.read(tmp_path / store.LATEST).medians["end_to_end_ratio"] == 0.8
