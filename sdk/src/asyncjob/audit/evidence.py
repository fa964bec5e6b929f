"""What is known beside the history: the API server's audit log, and the workers' own record.

Both are read once, before the history, and cut down to what the rules ask: who wrote which version,
who deleted which job, which creations were accepted; which claim a handler ran for, and when.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from sys import intern
from typing import Final

from asyncjob.audit.history_file import HistoryFileError, NotAHistoryError, json_lines, parse_line
from asyncjob.audit.job_version import epoch_of, order_of
from asyncjob.json_types import JsonObject, child, integer, items, text
from asyncjob.names import GROUP, JOBS

_POD_UID: Final = "authentication.kubernetes.io/pod-uid"
_OK: Final = 200
_REDIRECT: Final = 300
_DELETION_SECONDS: Final = 60.0
"""How far the audit log's time of a deletion may be from the recorder's."""


@dataclass(frozen=True, slots=True)
class AuditedUser:
    """Who sent a request: the user, and the pod that its token is bound to, if any."""

    user: str
    pod_uid: str = ""


class AuditLog:
    """The accepted writes to AsyncJobs of an audit log, of any level."""

    def __init__(self) -> None:
        self._writers: dict[int, AuditedUser] = {}
        self._deletions: defaultdict[tuple[str, str], list[tuple[float, str]]] = defaultdict(list)
        self.creations: dict[tuple[str, str], float] = {}
        """Namespace and name of each job whose creation was accepted → when."""

        self._callers: dict[AuditedUser, AuditedUser] = {}

    def add_file(self, name: str) -> None:
        """Read a file of audit events, one a line; raises HistoryFileError."""
        for line in _lines(name):
            self.add(line)

    def add(self, event: JsonObject) -> None:
        """Take one audit event."""
        ref = child(event, "objectRef")
        code = integer(child(event, "responseStatus"), "code")
        if (
            text(ref, "resource") != JOBS
            or text(ref, "apiGroup") != GROUP
            or text(event, "stage") != "ResponseComplete"
            or not _OK <= code < _REDIRECT
            or "dryRun=" in text(event, "requestURI")
        ):
            return
        caller = self._caller(event)
        meta = child(child(event, "responseObject"), "metadata")
        name = text(ref, "name") or text(meta, "name")
        at = epoch_of(text(event, "stageTimestamp")) or 0.0
        match text(event, "verb"):
            case "create" if not text(ref, "subresource"):
                self.creations[text(ref, "namespace"), name] = at
            case "delete":
                self._deletions[text(ref, "namespace"), name].append((at, caller.user))
            case "deletecollection":
                self._deletions[text(ref, "namespace"), ""].append((at, caller.user))
            case "update" | "patch" if text(ref, "subresource") == "status":
                order = order_of(text(meta, "resourceVersion"))
                if order:
                    # A write that changes nothing answers with the version that was there.
                    self._writers.setdefault(order, caller)
            case _:
                pass

    def writer_of(self, order: int) -> AuditedUser | None:
        """Return who wrote the status of a version, None if the log does not tell."""
        return self._writers.pop(order, None)

    def deleted_by(self, namespace: str, name: str, at: float) -> str | None:
        """Return who deleted a job about then, None if the log does not tell."""
        known = [*self._deletions.get((namespace, name), ())]
        known += self._deletions.get((namespace, ""), ())
        near = [(abs(when - at), user) for when, user in known]
        distance, user = min(near, default=(_DELETION_SECONDS + 1, ""))
        return user if distance <= _DELETION_SECONDS else None

    def _caller(self, event: JsonObject) -> AuditedUser:
        user = child(event, "impersonatedUser") or child(event, "user")
        uids = items(child(user, "extra"), _POD_UID)
        caller = AuditedUser(intern(text(user, "username")), str(uids[0]) if uids else "")
        return self._callers.setdefault(caller, caller)


@dataclass(slots=True)
class RecordedHandler:
    """One handler as its worker recorded it, in epoch seconds; `ended` 0: not recorded."""

    claim: str
    worker: str = ""
    started: float = 0.0
    ended: float = 0.0
    checkpoints: list[str] = field(default_factory=list)
    claimed: bool = False
    """Whether its claim was found in the history."""

    may_be_frozen: bool = False
    """Whether its lease expired, or how its attempt ended was not seen. A process that is frozen
    cannot stop its handlers in time."""

    stored: int = 0
    """How many of the checkpoints are stored, or were replaced before they were."""


class HandlerRecord:
    """What workers recorded of their handlers, by job and attempt."""

    def __init__(self) -> None:
        self.runs: dict[tuple[str, int], list[RecordedHandler]] = {}
        self.names: dict[str, tuple[str, str]] = {}
        """UID of a job → its namespace and name."""

    def add_file(self, name: str) -> None:
        """Read the record of a worker; raises HistoryFileError."""
        for line in _lines(name):
            self.add(line)

    def add(self, line: JsonObject) -> None:
        """Take one line of a record."""
        at, uid = epoch_of(text(line, "time")) or 0.0, text(line, "uid")
        run = self._run(uid, integer(line, "attempt"), text(line, "claim"))
        match text(line, "event"):
            case "started":
                self.names[uid] = (text(line, "namespace"), text(line, "name"))
                run.worker, run.started = intern(text(line, "worker")), at
            case "checkpoint":  # its thread may be quicker than the line of its start
                run.checkpoints.append(text(line, "digest"))
            case "ended" | "abandoned":  # what ignores its stop may go on beside the next
                run.ended = run.ended or at
            case _:
                pass

    def _run(self, uid: str, attempt: int, claim: str) -> RecordedHandler:
        """Return the handler of a claim, of which there is only one."""
        runs = self.runs.setdefault((uid, attempt), [])
        for run in runs:
            if run.claim == claim:
                return run
        runs.append(RecordedHandler(claim))
        return runs[-1]

    def of(self, uid: str, attempt: int) -> list[RecordedHandler]:
        """Return the handlers that ran for an attempt: one, as a rule."""
        return self.runs.get((uid, attempt), [])

    def overlapping(
        self, tolerance: float
    ) -> Iterator[tuple[str, RecordedHandler, RecordedHandler]]:
        """Yield the job's UID and both handlers wherever two of one job ran at once."""
        by_job: defaultdict[str, list[RecordedHandler]] = defaultdict(list)
        for (uid, _), runs in self.runs.items():
            by_job[uid] += runs
        for uid, runs in by_job.items():
            runs.sort(key=lambda run: run.started)
            for earlier, later in pairwise(runs):
                if earlier.ended and later.started + tolerance < earlier.ended:
                    yield uid, earlier, later


def read_audit_logs(files: Iterable[str]) -> AuditLog | None:
    """Return what the files hold, None without any; raises HistoryFileError."""
    log = AuditLog()
    given = False
    for name in files:
        given = True
        log.add_file(name)
    return log if given else None


def read_handler_records(files: Iterable[str]) -> HandlerRecord | None:
    """Return what the files hold, None without any; raises HistoryFileError."""
    record = HandlerRecord()
    given = False
    for name in files:
        given = True
        record.add_file(name)
    return record if given else None


def _lines(name: str) -> Iterator[JsonObject]:
    try:
        with Path(name).open("rb") as plain:
            for number, raw in enumerate(json_lines(plain), start=1):
                line = parse_line(raw)
                if line is not None:
                    yield line
                elif raw.endswith(b"\n") and raw.strip():
                    raise NotAHistoryError(f"{name}:{number}: not a JSON object")
    except OSError as error:
        raise HistoryFileError(f"{name}: {error.strerror or error}") from error
