"""What can be wrong with the machine of a process: memory, disk, clock, credentials."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from asyncjob_chaos.faults.fault import Fault
from asyncjob_chaos.handlers import HOG
from asyncjob_chaos.judging.signs import Sign
from asyncjob_chaos.judging.verdict import ANY_END
from asyncjob_chaos.target import OPERATORS, WORKERS, FaultTarget, Setup
from asyncjob_chaos.tools.clocks import cannot_change_clocks
from asyncjob_chaos.tools.disks import cannot_mount
from asyncjob_chaos.tools.memory import cannot_limit_memory, memory_limit, resident_mib
from asyncjob_chaos.tools.tokens import expiring

VICTIM: Final = WORKERS[0]
ROOM_MIB: Final = 40
HOG_MIB: Final = 128
HOGS: Final = 9
WATCHED_SECONDS: Final = 12.0
TEN_MINUTES: Final = 600.0
NOTICED: Final = "clock disagrees with the API server's"
TOKEN_SECONDS: Final = 15.0
REFUSED_SECONDS: Final = 60.0
"""Until a 401 is seen: the API server remembers for ten seconds more that a token was good."""

WRONG: Final = {WORKERS[0]: 1, WORKERS[1]: -1, OPERATORS[0]: 1, OPERATORS[1]: -1}
"""Whose clock is wrong in which direction; the third worker's is right."""


@contextmanager
def _limit_memory(target: FaultTarget) -> Iterator[None]:
    process = target.process(VICTIM)
    pid = process.pid
    assert pid is not None
    with memory_limit(resident_mib(pid) + ROOM_MIB) as limit:
        limit.add(pid)
        payload = {"mib": HOG_MIB, "seconds": 0.5}
        for _ in range(HOGS):
            target.load.submit({"type": HOG, "payload": payload}, ANY_END)
        deadline = time.monotonic() + WATCHED_SECONDS
        while time.monotonic() < deadline:
            if process.pid != pid:
                target.signs[Sign.WORKER_ENDED] += 1
                break
            time.sleep(0.1)
        yield


@contextmanager
def _fill_disk(target: FaultTarget) -> Iterator[None]:
    assert target.disk is not None
    target.disk.fill()
    yield
    target.signs[Sign.DISK_FULL] += target.disk.is_full()
    target.disk.free()


@contextmanager
def _wrong_clocks(target: FaultTarget) -> Iterator[None]:
    for name, direction in WRONG.items():
        target.clocks[name].set(direction * TEN_MINUTES)
    time.sleep(5.0)
    for name, direction in WRONG.items():
        target.clocks[name].set(-direction * TEN_MINUTES)
    yield
    for name in WRONG:
        target.clocks[name].set(0.0)
    for name in OPERATORS:
        target.signs[Sign.CLOCK_WRONG] += target.logged(name, NOTICED)


@contextmanager
def _expire_tokens(target: FaultTarget) -> Iterator[None]:
    key = target.plane.data_dir / "service-account.key"
    names = (VICTIM, target.leader())
    for name in names:
        _shorten(target.folder / "pods" / name / "token", key)
        # What runs has read its token: it is read again every five minutes, or when it is refused.
        target.processes[name].worker.kill()
    rejected = "authentication_attempts"
    before = target.metric(rejected, result="error")
    target.until(lambda: target.metric(rejected, result="error") > before, "a 401", REFUSED_SECONDS)
    yield
    target.signs[Sign.UNAUTHORIZED] += int(target.metric(rejected, result="error") - before)
    for name in names:
        target.processes[name].worker.renew_token()


def _shorten(file: Path, key: Path) -> None:
    file.write_text(expiring(file.read_text(), key, TOKEN_SECONDS))


FAULTS: Final = (
    Fault(
        name="memory-limit",
        does="a worker gets little memory, and jobs that need much: the kernel kills it",
        shows=(Sign.WORKER_ENDED,),
        act=_limit_memory,
        hold=1.0,
        cannot=cannot_limit_memory,
    ),
    Fault(
        name="worker-disk",
        does="the disk of a worker is full: its log, its temporary files, what its handlers write",
        shows=(Sign.DISK_FULL, Sign.HANDLER_FAILED),
        act=_fill_disk,
        hold=6.0,
        setup=Setup(small_disk=VICTIM),
        cannot=cannot_mount,
    ),
    Fault(
        name="clocks",
        does="clocks of operators and workers jump ten minutes ahead and back, in different "
        "directions, then right again",
        shows=(Sign.CLOCK_WRONG,),
        act=_wrong_clocks,
        hold=6.0,
        setup=Setup(wrong_clocks=frozenset(WRONG)),
        cannot=cannot_change_clocks,
    ),
    Fault(
        name="token-expired",
        does="a worker and the leading operator start again with tokens that expire soon, and get "
        "new ones too late",
        shows=(Sign.UNAUTHORIZED,),
        act=_expire_tokens,
        hold=8.0,
    ),
)
