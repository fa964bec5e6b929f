"""Changes that break a recorded history, at least one for each rule of the audit.

Each finds a place in the history that fits, so that it works on any recording in which the thing
happens at all. A mutation that finds none raises, and the test with it.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from asyncjob.audit import catalog
from asyncjob.audit.catalog import AuditRule

Line = dict[str, Any]
Mutation = Callable[["Evidence"], None]


@dataclass
class Evidence:
    """What was recorded: the lines of the history, of the audit log, and of all workers."""

    history: list[Line]
    audit_log: list[Line]
    handlers: list[Line]

    def copy(self) -> "Evidence":
        return copy.deepcopy(self)

    def versions(self, resource: str) -> list[Line]:
        return [one for one in self.history if one.get("resource") == resource and "event" in one]

    def of_job(self, name: str) -> list[Line]:
        found = [one for one in self.versions("asyncjobs") if name_of(one) == name]
        assert found, name
        return found

    def pairs(self) -> Iterator[tuple[Line, Line]]:
        """Yield each two versions of a job in a row between which none is missing."""
        newest: dict[str, Line] = {}
        for line in self.versions("asyncjobs"):
            uid = line["object"]["metadata"]["uid"]
            if uid in newest and line["event"] == "MODIFIED":
                yield newest[uid], line
            newest[uid] = line

    def transition(self, source: str, target: str, reason: str = "") -> tuple[Line, Line]:
        """Return the first such transition, for this reason if one is given."""
        return next(
            (was, now)
            for was, now in self.pairs()
            if (phase(was), phase(now)) == (source, target)
            and (not reason or status(now).get("reason") == reason)
        )

    def insert_after(self, line: Line, *more: Line) -> None:
        at = next(index for index, one in enumerate(self.history) if one is line) + 1
        self.history[at:at] = more

    def drop(self, lines: list[Line]) -> None:
        self.history = [one for one in self.history if not any(one is gone for gone in lines)]

    def logged(self, verb: str) -> Iterator[Line]:
        """Yield the audit log's requests of this verb in the recorded namespace."""
        for one in self.audit_log:
            if (one["verb"], one["objectRef"].get("namespace")) == (verb, self._namespace):
                yield one

    @property
    def _namespace(self) -> str:
        found: str = self.history[0]["namespace"]
        return found

    def go_on_for(self, seconds: float) -> str:
        """Have the recording end later; returns when it had ended."""
        ended: str = self.history[-1]["time"]
        self.history[-1]["time"] = later(ended, seconds)
        return ended


def name_of(line: Line) -> str:
    name: str = line["object"]["metadata"]["name"]
    return name


def status(line: Line) -> Any:
    return line["object"]["status"]


def phase(line: Line) -> str:
    found: str = status(line)["phase"]
    return found


def later(time: str, seconds: float) -> str:
    moved = datetime.fromisoformat(time) + timedelta(seconds=seconds)
    return moved.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def successor(line: Line, event: str = "MODIFIED", **changed: Any) -> Line:
    """Return a version that comes right after, with fields of its status changed."""
    made = copy.deepcopy(line)
    made["event"] = event
    meta = made["object"]["metadata"]
    meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 1)
    made["object"]["status"].update(changed)
    return made


MUTATIONS: list[tuple[AuditRule, Mutation]] = []


def breaks(rule: AuditRule) -> Callable[[Mutation], Mutation]:
    def add(mutation: Mutation) -> Mutation:
        MUTATIONS.append((rule, mutation))
        return mutation

    return add


@breaks(catalog.VERSION_ORDER)
def an_old_version_comes_again(it: Evidence) -> None:
    was, now = next(it.pairs())
    it.insert_after(now, {**was, "event": "MODIFIED"})


@breaks(catalog.JOB_CREATED)
def a_job_is_born_with_an_attempt(it: Evidence) -> None:
    new = next(one for one in it.versions("asyncjobs") if one["event"] == "ADDED")
    status(new)["attempt"] = 1


@breaks(catalog.JOB_TRANSITION)
def a_job_succeeds_without_a_claim(it: Evidence) -> None:
    it.drop([one for one in it.of_job("echo-0") if phase(one) == "Running"])


@breaks(catalog.JOB_REASON)
def a_retry_has_the_reason_of_another_transition(it: Evidence) -> None:
    _, now = it.transition("Running", "Retrying")
    status(now)["reason"] = "GateOpened"


@breaks(catalog.JOB_SPEC)
def the_type_of_a_job_changes(it: Evidence) -> None:
    _, now = it.transition("Running", "Succeeded")
    now["object"]["spec"]["type"] = "other"


@breaks(catalog.JOB_GATE)
def a_suspended_job_is_claimed(it: Evidence) -> None:
    _, now = it.transition("Queued", "Running")
    now["object"]["spec"]["suspend"] = True


@breaks(catalog.JOB_POLICY)
def a_claim_takes_another_policy_than_the_specs(it: Evidence) -> None:
    claim = next(one for one in it.of_job("shaky-0") if phase(one) == "Running")
    status(claim)["effective"]["maxRetries"] = 1


@breaks(catalog.JOB_DEADLINE)
def a_job_is_cancelled_for_a_deadline_that_lies_ahead(it: Evidence) -> None:
    was, now = it.transition("Queued", "Cancelled", "Duplicate")
    for line in (was, now):
        line["object"]["spec"]["deadlineSeconds"] = 3600
    status(now)["reason"] = "DeadlineExceeded"


@breaks(catalog.JOB_COUNTERS)
def a_retry_costs_nothing(it: Evidence) -> None:
    was, now = it.transition("Running", "Retrying", "RetryRequested")
    status(now)["retries"] = status(was).get("retries", 0)


@breaks(catalog.JOB_COUNTERS)
def a_second_crash_is_queued_at_once(it: Evidence) -> None:
    was, now = it.transition("Running", "Queued", "LeaseExpired")
    for line in (was, now):
        status(line)["crashes"] = status(line).get("crashes", 0) + 1


@breaks(catalog.JOB_COUNTERS)
def a_first_crash_is_counted_as_a_release(it: Evidence) -> None:
    was, now = it.transition("Running", "Queued", "LeaseExpired")
    status(now)["crashes"] = status(was).get("crashes", 0)
    status(now)["releases"] = status(was).get("releases", 0) + 1


@breaks(catalog.JOB_HISTORY)
def a_change_of_phase_is_not_in_the_history(it: Evidence) -> None:
    _, now = it.transition("Running", "Retrying")
    status(now)["history"] = []


@breaks(catalog.JOB_FINISHED)
def a_result_changes_afterwards(it: Evidence) -> None:
    _, now = it.transition("Running", "Succeeded")
    it.insert_after(now, successor(now, result={"forged": True}))


@breaks(catalog.JOB_KEPT)
def the_operator_deletes_a_running_job(it: Evidence) -> None:
    _, now = it.transition("Queued", "Running")
    lines = it.of_job(name_of(now))
    it.drop([one for one in lines if lines.index(one) > lines.index(now)])
    it.insert_after(now, successor(now, "DELETED"))
    delete = next(
        one for one in it.logged("delete") if one["user"]["username"].endswith(":asyncjob-operator")
    )
    delete["objectRef"]["name"] = name_of(now)
    delete["stageTimestamp"] = now["time"]


@breaks(catalog.JOB_ACCEPTED)
def an_accepted_job_is_never_seen(it: Evidence) -> None:
    # Later than the last list: of a job that was created before one it is not known whether it was
    # deleted in the gap.
    lines = it.of_job("after")
    creation = next(one for one in it.logged("create") if one["objectRef"].get("name") == "after")
    creation["stageTimestamp"] = later(it.go_on_for(60), 30)
    it.drop(lines)


@breaks(catalog.LEASE_HOLDER)
def a_lease_changes_hands_between_two_heartbeats(it: Evidence) -> None:
    _, now = it.transition("Running", "Running")
    status(now)["lease"]["worker"] = "somebody/else"


@breaks(catalog.LEASE_TAKEOVER)
def a_lease_is_found_expired_at_once(it: Evidence) -> None:
    was, now = it.transition("Running", "Queued", "LeaseExpired")
    now["written"] = was["written"]


@breaks(catalog.CLAIM_ATTEMPT_NUMBER)
def a_claim_does_not_count(it: Evidence) -> None:
    was, now = it.transition("Queued", "Running")
    status(now)["attempt"] = status(was)["attempt"]


@breaks(catalog.CLAIM_UNIQUE)
def a_claim_has_the_id_of_the_first(it: Evidence) -> None:
    first: dict[str, str] = {}
    for _, now in it.pairs():  # not any job: a claim may lie in a gap
        if phase(now) == "Running":
            claim: str = status(now)["claim"]
            if first.setdefault(name_of(now), claim) != claim:
                for one in it.of_job(name_of(now)):
                    if status(one).get("claim") == claim:
                        status(one)["claim"] = first[name_of(now)]
                return
    raise AssertionError("no job was claimed twice")


@breaks(catalog.FENCING_EFFECT)
def a_fenced_attempt_saves_a_checkpoint(it: Evidence) -> None:
    _, now = it.transition("Running", "Queued", "LeaseExpired")
    it.insert_after(now, successor(now, checkpoint={"row": 99}))


@breaks(catalog.FENCING_WRITER)
def another_pod_reports_a_success(it: Evidence) -> None:
    _, now = it.transition("Running", "Succeeded")
    version = now["object"]["metadata"]["resourceVersion"]
    event = next(
        one
        for one in it.audit_log
        if one.get("responseObject", {}).get("metadata", {}).get("resourceVersion") == version
        and one["objectRef"].get("subresource") == "status"
    )
    event["user"]["extra"]["authentication.kubernetes.io/pod-uid"] = ["another"]


@breaks(catalog.CHECKPOINT_ORDER)
def a_stored_checkpoint_was_never_given(it: Evidence) -> None:
    it.handlers = [one for one in it.handlers if one["event"] != "checkpoint"]


@breaks(catalog.HANDLER_CLAIMED)
def a_handler_runs_for_a_claim_that_nobody_made(it: Evidence) -> None:
    # Later than the last list, before which its claim may be missing.
    started = later(it.go_on_for(60), 30)
    for one in it.handlers:
        if one["name"] == "after":
            one |= {"claim": "never-made", "time": started}


@breaks(catalog.HANDLER_ALONE)
def a_handler_goes_on_beside_the_next(it: Evidence) -> None:
    first, second = [
        one for one in it.handlers if one["name"].startswith("shaky") and one["event"] == "started"
    ][:2]
    ended = next(
        one for one in it.handlers if one["event"] == "ended" and one["claim"] == first["claim"]
    )
    for one in it.handlers:
        if one["claim"] == second["claim"]:
            one |= {"uid": first["uid"], "attempt": 1000}
    ended["time"] = later(second["time"], 10)


@breaks(catalog.KEY_IDEMPOTENCY)
def a_key_has_a_second_job(it: Evidence) -> None:
    keyed = [one for one in it.versions("asyncjobs") if "idempotencyKey" in one["object"]["spec"]]
    twins = copy.deepcopy([one for one in keyed if name_of(one) == name_of(keyed[0])])
    for one in twins:
        one["object"]["metadata"] |= {"name": "twin", "uid": "twin"}
    it.insert_after(it.of_job(name_of(keyed[0]))[-1], *twins)
    it.go_on_for(120)


@breaks(catalog.KEY_DEDUPLICATION)
def a_duplicate_is_admitted_too(it: Evidence) -> None:
    _, gone = it.transition("Queued", "Cancelled", "Duplicate")
    new = it.of_job(name_of(gone))[0]
    it.drop(it.of_job(name_of(gone))[1:])
    it.insert_after(new, successor(new, admitted=True))


def few(it: Evidence) -> list[Line]:
    return [one for one in it.versions("asyncqueues") if name_of(one) == "few"]


@breaks(catalog.QUEUE_RESERVATIONS)
def a_place_is_given_beyond_the_limit(it: Evidence) -> None:
    held = next(one for one in few(it) if len(status(one).get("reservations", [])) == 2)
    place = status(held)["reservations"][0]
    status(held)["reservations"].append({**place, "uid": "third", "key": "third"})


@breaks(catalog.QUEUE_ADMISSION)
def jobs_are_admitted_without_a_place(it: Evidence) -> None:
    for one in few(it):
        status(one).pop("reservations", None)


@breaks(catalog.QUEUE_CONCURRENCY)
def more_run_than_the_limit_allows(it: Evidence) -> None:
    for one in few(it):
        one["object"]["spec"]["maxConcurrency"] = 1


@breaks(catalog.QUEUE_RATE)
def more_start_than_the_rate_allows(it: Evidence) -> None:
    for one in few(it):
        one["object"]["spec"]["rateLimit"] = {"count": 1, "periodSeconds": 600}


@breaks(catalog.SCHEDULE_ONCE)
def a_trigger_is_acted_on_twice(it: Evidence) -> None:
    lines = it.of_job("nightly-t1")
    again = copy.deepcopy(lines[0])
    again["object"]["metadata"]["uid"] = "again"
    it.insert_after(lines[-1], successor(lines[-1], "DELETED"), again)


@breaks(catalog.SCHEDULE_OVERLAP)
def a_run_begins_beside_another_under_forbid(it: Evidence) -> None:
    it.versions("asynccronjobs")[0]["time"] = later(it.history[0]["time"], -3600)
    new = it.of_job("nightly-t1")[0]
    beside = copy.deepcopy(new)
    beside["object"]["metadata"] |= {"name": "nightly-t9", "uid": "beside"}
    beside["object"]["metadata"]["annotations"]["asyncjob.dev/trigger"] = "9"
    it.insert_after(new, beside)


@breaks(catalog.SCHEDULE_SETTLED)
def a_schedule_goes_back(it: Evidence) -> None:
    last = [one for one in it.versions("asynccronjobs") if "settledTime" in status(one)][-1]
    it.insert_after(last, successor(last, settledTime="2020-01-01T00:00:00Z"))


@breaks(catalog.RETENTION_FLOOR)
def a_job_with_a_key_is_deleted_within_the_window(it: Evidence) -> None:
    for one in it.of_job("short-lived"):
        one["object"]["spec"]["idempotencyKey"] = "short-lived"
