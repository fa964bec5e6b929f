"""A large history is judged in time and memory that follow from what it holds."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest

from asyncjob.audit.checker import CheckOptions, HistoryChecker
from asyncjob.names import CONTENT_ANNOTATION, DEDUPLICATION_LABEL, IDEMPOTENCY_LABEL
from support.judging.calls import calls_of
from support.objects.histories import HistoryBuilder, Line, large_history

JOBS = 100_000
MAX_MIB = 500
MAX_SECONDS = 60

CHECK = """
import re, sys, time
from asyncjob.cli import main
began = time.monotonic()
try:
    main()
finally:
    # Not ru_maxrss, which begins with the memory of the process that started this one.
    memory = re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]
    print(int(memory) // 1024, time.monotonic() - began, time.process_time(), file=sys.stderr)
"""
"""Runs the command, and says last how many MiB it took, and seconds of the clock and of a core."""


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("large") / "history.jsonl"
    with file.open("wb") as stream:
        for line in large_history(JOBS):
            stream.write(orjson.dumps(line) + b"\n")
    return file


@dataclass(frozen=True)
class Cost:
    mib: int
    seconds: float
    cpu_seconds: float


def check(history: Path) -> Cost:
    """Run `asyncjob audit check`; print what it costs, which `pytest -s` shows."""
    command = [sys.executable, "-c", CHECK, "audit", "check", str(history), "-o", "json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    report = orjson.loads(done.stdout)
    assert (report["jobs"], report["violations"], report["complete"]) == (JOBS, {}, True)
    mib, seconds, cpu_seconds = done.stderr.splitlines()[-1].split()
    cost = Cost(int(mib), float(seconds), float(cpu_seconds))
    print(f"{report['versions']} versions of {JOBS} jobs: {cost}")  # noqa: T201 - with `pytest -s`
    return cost


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_the_history_of_100_000_jobs_is_judged_in_bounded_memory(history: Path) -> None:
    assert check(history).mib < MAX_MIB


@pytest.mark.alone
@pytest.mark.timeout(900)
def test_the_history_of_100_000_jobs_is_judged_within_a_minute(history: Path) -> None:
    assert check(history).seconds < MAX_SECONDS


def contested_keys(jobs: int) -> Iterator[Line]:
    """Yield a history in which within a minute each key gets a second job, which is taken back."""
    history = HistoryBuilder()
    for number in range(jobs // 2):
        for name in (f"first-{number}", f"second-{number}"):
            history.create(
                name,
                annotations={CONTENT_ANNOTATION: "c"},
                labels={DEDUPLICATION_LABEL: "d", IDEMPOTENCY_LABEL: "k"},
                idempotencyKey=f"key-{number}",
            )
    for number in range(jobs // 2):
        history.mark(f"second-{number}", labels={DEDUPLICATION_LABEL: "d"})
    yield from history.end()


def work_for(lines: list[Line]) -> int:
    """Return how many functions are called to judge a history."""
    checker = HistoryChecker(CheckOptions())
    return calls_of(lambda: checker.check(lines))


@pytest.mark.parametrize("made", [large_history, contested_keys])
def test_work_grows_with_the_history_and_no_faster(
    made: Callable[[int], Iterator[Line]],
) -> None:
    small, large = work_for([*made(100)]), work_for([*made(1000)])
    assert large < 10.5 * small


def test_what_is_kept_follows_from_the_jobs_that_exist() -> None:
    checker = HistoryChecker(CheckOptions())
    for line in large_history(50):
        checker._take_line(line)
        if line["line"] == "version" and line["object"]["status"]["phase"] == "Succeeded":
            gone = {**line, "event": "DELETED"}
            checker._take_line(gone)
    assert checker._jobs == {}
    assert not checker._keys._accepted
    assert not checker._queues._admitted
