"""Each alert by promtool: when it fires, and when it does not although it nearly would."""

import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from asyncjob_dev.binaries import resolve
from support.cluster.promql import ALERTS_FILE, alert_rules, read_rules

pytestmark = pytest.mark.integration

Q = 'namespace="ns",queue="q"'
TYPE = f'{Q},type="t",reason="NotRetryable"'


@dataclass(frozen=True)
class Case:
    """Series by name as promtool writes them, one sample a minute; the alert is looked at last.

    `fires` are the labels it fires with at that minute; None: it does not.
    """

    alert: str
    series: dict[str, str]
    minute: int
    fires: dict[str, str] | None = field(default_factory=dict)


QUEUE = {"namespace": "ns", "queue": "q"}
DEAD = f'asyncjob_jobs{{{Q},phase="DeadLetter"}}'
OLDEST = f"asyncjob_queue_oldest_seconds{{{Q}}}"
WORKERS = f"asyncjob_queue_workers{{{Q}}}"
CLAIMED = f'asyncjob_jobs_claimed_total{{{Q},type="t"}}'
RUNNING = f'asyncjob_jobs{{{Q},phase="Running"}}'
DONE = 'asyncjob_jobs{namespace="ns",queue="%s",phase="Succeeded",instance="%s"}'
LIMIT = 'asyncjob_finished_limit{instance="%s"}'
TARGET = 'namespace="%s",job="asyncjob-operator",instance="%s"'
FAILED_ARRAYS = f'asyncjob_arrays{{{Q},phase="Failed"}}'
IDLE = f"asyncjob_array_idle_seconds{{{Q}}}"
LEADING = f"asyncjob_operator_leading{{{TARGET}}}"
RECOVERED = f'asyncjob_operator_recovery_recovered_total{{{TARGET},reason="WorkerGone"}}'
THROTTLED = f'asyncjob_operator_api_requests_total{{{TARGET},code="429"}}'
ONE = {"namespace": "one", "job": "asyncjob-operator"}
TWO = {**ONE, "namespace": "two"}
REPAIRS = 'asyncjob_operator_resync_repairs_total{instance="o",kind="changed"}'
EVENTS = 'asyncjob_operator_watch_events_total{instance="o"}'
RESTARTS = 'asyncjob_operator_watch_restarts_total{instance="o"}'
QUARANTINED = (
    'asyncjob_operator_quarantined_objects{namespace="one",job="asyncjob-operator",instance="%s",'
    'kind="AsyncJob"}'
)
FAILED = 'asyncjob_worker_lease_renewals_total{instance="w",outcome="failed"}'

CASES = {
    "one dead letter is told of": Case("AsyncJobDeadLetters", {DEAD: "0x5 1x9"}, 8, QUEUE),
    "a dead letter that is gone is not": Case("AsyncJobDeadLetters", {DEAD: "1x5 0x9"}, 8, None),
    "two leaders for a moment do not double": Case(
        "AsyncJobDeadLetters",
        {DEAD[:-1] + f',instance="{name}"}}': "1x9" for name in "ab"},
        8,
        QUEUE,
    ),
    "many dead letters in a row": Case(
        "AsyncJobDeadLettersGrowing",
        {f"asyncjob_jobs_dead_lettered_total{{{TYPE}}}": "0+2x30"},
        25,
        QUEUE,
    ),
    "a burst of dead letters of a type that had none before": Case(
        "AsyncJobDeadLettersGrowing",
        {f"asyncjob_jobs_dead_lettered_total{{{TYPE}}}": "_x10 50x20", DEAD: "0x9 50x20"},
        18,
        QUEUE,
    ),
    "old dead letters under a new leader": Case(
        "AsyncJobDeadLettersGrowing",
        {
            DEAD[:-1] + ',instance="a"}': "500x15 stale",
            DEAD[:-1] + ',instance="b"}': "_x14 505x20",
        },
        25,
        None,
    ),
    "a dead letter now and then": Case(
        "AsyncJobDeadLettersGrowing",
        {f"asyncjob_jobs_dead_lettered_total{{{TYPE}}}": "0+0.2x30"},
        25,
        None,
    ),
    "a leader that counts from 0 again is no drop": Case(
        "AsyncJobDeadLettersGrowing",
        {f"asyncjob_jobs_dead_lettered_total{{{TYPE}}}": "1000x20 0x10"},
        25,
        None,
    ),
    "workers there, and none claims": Case(
        "AsyncJobQueueStuck", {OLDEST: "0+60x40", WORKERS: "2x40", CLAIMED: "9x40"}, 30, QUEUE
    ),
    "a queue that was never claimed from": Case(
        "AsyncJobQueueStuck", {OLDEST: "0+60x40", WORKERS: "2x40"}, 30, QUEUE
    ),
    "a long queue that is worked off": Case(
        "AsyncJobQueueStuck", {OLDEST: "0+60x40", WORKERS: "2x40", CLAIMED: "0+1x40"}, 30, None
    ),
    "all workers busy with long jobs": Case(
        "AsyncJobQueueStuck", {OLDEST: "0+60x40", WORKERS: "2x40", RUNNING: "2x40"}, 30, None
    ),
    "jobs and no workers": Case(
        "AsyncJobNoWorkers", {OLDEST: "0+60x20", WORKERS: "0x20"}, 15, QUEUE
    ),
    "no workers and no jobs": Case(
        "AsyncJobNoWorkers", {OLDEST: "0x20", WORKERS: "0x20"}, 15, None
    ),
    "no workers during a rollout": Case(
        "AsyncJobNoWorkers", {OLDEST: "0+60x20", WORKERS: "1x10 0x4 1x6"}, 15, None
    ),
    "an old job": Case("AsyncJobQueueOld", {OLDEST: "0+300x30"}, 25, QUEUE),
    "a job that waits for minutes": Case("AsyncJobQueueOld", {OLDEST: "0+60x30"}, 25, None),
    "a failed array is reported": Case("AsyncJobArrayFailed", {FAILED_ARRAYS: "0x5 1x9"}, 8, QUEUE),
    "a failed array that is redriven is not": Case(
        "AsyncJobArrayFailed", {FAILED_ARRAYS: "1x5 0x9"}, 8, None
    ),
    "an array that has succeeded is not": Case(
        "AsyncJobArrayFailed",
        {FAILED_ARRAYS: "0x14", f'asyncjob_arrays{{{Q},phase="Succeeded"}}': "1x14"},
        8,
        None,
    ),
    "an array of which nothing runs": Case("AsyncJobArrayStuck", {IDLE: "0+60x45"}, 40, QUEUE),
    "an array of which nothing has run for some minutes": Case(
        "AsyncJobArrayStuck", {IDLE: "0+60x45"}, 33, None
    ),
    "an array of which a chunk runs now and then": Case(
        "AsyncJobArrayStuck", {IDLE: "0+60x34 0+60x20"}, 45, None
    ),
    "a node dies": Case("AsyncJobRecoveryStorm", {RECOVERED % ("one", "a"): "0x5 50x9"}, 8, ONE),
    "a node dies that two leaders of one install look after": Case(
        "AsyncJobRecoveryStorm",
        {RECOVERED % ("one", name): "0x5 15x9" for name in "ab"},
        8,
        ONE,
    ),
    "a few workers of each of two installs die": Case(
        "AsyncJobRecoveryStorm",
        {RECOVERED % (install, install): "0x5 15x9" for install in ("one", "two")},
        8,
        None,
    ),
    "a worker dies": Case(
        "AsyncJobRecoveryStorm",
        {'asyncjob_operator_recovery_recovered_total{reason="WorkerCrashed"}': "0x5 8x9"},
        8,
        None,
    ),
    "a fenced attempt": Case(
        "AsyncJobHeartbeatsLost",
        {'asyncjob_worker_fenced_total{instance="w",type="t"}': "0x5 1x9"},
        8,
        {"instance": "w"},
    ),
    "failing heartbeats": Case("AsyncJobHeartbeatsLost", {FAILED: "0+1x20"}, 15, {"instance": "w"}),
    "one failed heartbeat": Case("AsyncJobHeartbeatsLost", {FAILED: "0x5 1x20"}, 15, None),
    "only standbys": Case("AsyncJobLeaderMissing", {LEADING % ("one", "a"): "1x5 0x9"}, 10, ONE),
    "no replica is left": Case(
        "AsyncJobLeaderMissing", {LEADING % ("one", "a"): "1x5 stale"}, 10, ONE
    ),
    "none of a new install ever leads": Case(
        "AsyncJobLeaderMissing", {LEADING % ("one", name): "0x10" for name in "ab"}, 10, ONE
    ),
    "no operator at all": Case("AsyncJobLeaderMissing", {"up": "1x10"}, 10, {}),
    "a change of leaders": Case(
        "AsyncJobLeaderMissing",
        {LEADING % ("one", "a"): "1x5 0x9", LEADING % ("one", "b"): "0x5 1x9"},
        10,
        None,
    ),
    "one of two installs has no leader": Case(
        "AsyncJobLeaderMissing",
        {LEADING % ("one", "a"): "1x15", LEADING % ("two", "b"): "1x5 0x9"},
        10,
        TWO,
    ),
    "one of two installs is gone": Case(
        "AsyncJobLeaderMissing",
        {LEADING % ("one", "a"): "1x15", LEADING % ("two", "b"): "1x5 stale"},
        10,
        TWO,
    ),
    "an install that was taken away on purpose an hour ago": Case(
        "AsyncJobLeaderMissing",
        {LEADING % ("one", "a"): "1x80", LEADING % ("two", "b"): "1x5 stale"},
        70,
        None,
    ),
    "a watch that misses changes": Case(
        "AsyncJobWatchStale", {REPAIRS: "0+10x20", EVENTS: "7x20"}, 18, {"instance": "o"}
    ),
    "a change on its way while all are compared": Case(
        "AsyncJobWatchStale", {REPAIRS: "0+1x20", EVENTS: "7x20"}, 18, None
    ),
    "many changes on their way in a busy cluster": Case(
        "AsyncJobWatchStale", {REPAIRS: "0+10x20", EVENTS: "0+5000x20"}, 18, None
    ),
    "a watch that breaks again and again": Case(
        "AsyncJobWatchStale", {RESTARTS: "0+1x20"}, 18, {"instance": "o"}
    ),
    "a watch far behind": Case(
        "AsyncJobWatchStale",
        {'asyncjob_operator_watch_lag_seconds{instance="o"}': "45x20"},
        18,
        {"instance": "o"},
    ),
    "a job that makes both replicas fail": Case(
        "AsyncJobObjectQuarantined",
        {QUARANTINED % name: "0x5 1x20" for name in "ab"},
        15,
        {**ONE, "kind": "AsyncJob"},
    ),
    "a job that was mended soon": Case(
        "AsyncJobObjectQuarantined", {QUARANTINED % "a": "0x5 1x3 0x20"}, 15, None
    ),
    "throttled workers": Case(
        "AsyncJobApiThrottled",
        {'asyncjob_worker_api_requests_total{instance="w",method="PATCH",code="429"}': "0+60x20"},
        15,
        {},
    ),
    "a refusal now and then": Case(
        "AsyncJobApiThrottled",
        {'asyncjob_operator_api_requests_total{method="PATCH",code="429"}': "0+1x20"},
        15,
        None,
    ),
    "throttled operators of one of two installs": Case(
        "AsyncJobApiThrottled",
        {
            THROTTLED % (install, install): f"0+{more}x20"
            for install, more in (("one", 4), ("two", 60))
        },
        15,
        TWO,
    ),
    "a namespace nearly full": Case(
        "AsyncJobStoreNearLimit",
        {DONE % ("p", "a"): "60x20", DONE % ("q", "a"): "30x20", LIMIT % "a": "100x20"},
        15,
        {"namespace": "ns"},
    ),
    "two leaders' counts of half a namespace": Case(
        "AsyncJobStoreNearLimit",
        {DONE % ("q", name): "50x20" for name in "ab"} | {LIMIT % name: "100x20" for name in "ab"},
        15,
        None,
    ),
    "a change of leaders of a namespace nearly full": Case(
        "AsyncJobStoreNearLimit",
        {
            DONE % ("q", "a"): "90x12 stale",
            LIMIT % "a": "100x12 stale",
            DONE % ("q", "b"): "_x11 90x9",
            LIMIT % "b": "_x11 100x9",
        },
        15,
        {"namespace": "ns"},
    ),
    "a large limit of another install is not this one's": Case(
        "AsyncJobStoreNearLimit",
        {DONE % ("q", "a"): "90x20", LIMIT % "a": "100x20", LIMIT % "b": "50000x20"},
        15,
        {"namespace": "ns"},
    ),
}


def test_each_alert_fires_when_it_should_and_only_then(tmp_path: Path) -> None:
    file = tmp_path / "test.yaml"
    tests = [promtool_test(name, case) for name, case in CASES.items()]
    content = {"rule_files": [str(ALERTS_FILE)], "evaluation_interval": "1m", "tests": tests}
    file.write_text(yaml.safe_dump(content))
    promtool("test", "rules", file)


def promtool(*arguments: str | Path) -> None:
    """Run it; what it finds wrong is the test's failure, by the names of the cases."""
    done = subprocess.run(
        [resolve("promtool").path, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def promtool_test(name: str, case: Case) -> dict[str, Any]:
    """Return promtool's own form: the alerts that fire, as the series that Prometheus keeps."""
    [rule] = [one for one in alert_rules(read_rules()) if one["alert"] == case.alert]
    labels = {
        "alertname": case.alert,
        "alertstate": "firing",
        "severity": rule["labels"]["severity"],
        **(case.fires or {}),
    }
    text = ",".join(f'{name}="{value}"' for name, value in labels.items())
    fired = [] if case.fires is None else [{"labels": f"ALERTS{{{text}}}", "value": 1}]
    query = f'ALERTS{{alertname="{case.alert}",alertstate="firing"}}'
    series = [{"series": name, "values": values} for name, values in case.series.items()]
    asked = {"expr": query, "eval_time": f"{case.minute}m", "exp_samples": fired}
    return {
        "name": name,
        "interval": "1m",
        "input_series": series,
        "promql_expr_test": [asked],
    }


def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    names = {rule["alert"] for rule in alert_rules(read_rules())}
    assert {case.alert for case in CASES.values() if case.fires is not None} == names
    assert {case.alert for case in CASES.values() if case.fires is None} == names


def test_prometheus_takes_the_file() -> None:
    promtool("check", "rules", ALERTS_FILE)
