"""Histories of one job that break a rule of the audit; the list that all such stories are in."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from asyncjob.audit import catalog
from asyncjob.audit.catalog import AuditRule
from asyncjob.audit.evidence import AuditLog, HandlerRecord
from support.objects.histories import HistoryBuilder, Line

Story = Callable[[HistoryBuilder], None]


@dataclass(frozen=True)
class Case:
    """A history, whether it breaks a rule, and the evidence beside it."""

    rule: AuditRule
    story: Story
    evidence: Callable[[HistoryBuilder], tuple[AuditLog | None, HandlerRecord | None]] = lambda _: (
        None,
        None,
    )


CASES: list[Case] = []


def breaks(rule: AuditRule, **how: Any) -> Callable[[Story], Story]:
    def add(story: Story) -> Story:
        CASES.append(Case(rule, story, **how))
        return story

    return add


def job_after(history: HistoryBuilder, *writes: str) -> Line:
    """Write a job so often, and return the line of the last."""
    history.create("job")
    line: Line = history.lines[-1]
    for write in writes:
        line = getattr(history, write)("job")
    return line


def status_of(line: Line) -> Any:
    """Return the status of a line, to be changed in this line only."""
    line["object"] = copy.deepcopy(line["object"])
    return line["object"]["status"]


# ---- one job


@breaks(catalog.VERSION_ORDER)
def an_older_version_after_a_newer(history: HistoryBuilder) -> None:
    job_after(history, "claim", "renew")
    history.lines.append(history.lines[-2])


@breaks(catalog.VERSION_ORDER)
def a_name_given_away_without_a_deletion(history: HistoryBuilder) -> None:
    history.create("job")
    history.create("job")


@breaks(catalog.JOB_CREATED)
def a_job_born_with_an_attempt(history: HistoryBuilder) -> None:
    status_of(job_after(history))["attempt"] = 1


@breaks(catalog.JOB_TRANSITION)
def success_without_an_attempt(history: HistoryBuilder) -> None:
    job_after(history, "succeed")


@breaks(catalog.JOB_TRANSITION)
def a_succeeded_job_that_is_queued_again(history: HistoryBuilder) -> None:
    job_after(history, "claim", "succeed")
    history.move("job", "Queued", "Redriven", drop=("result",))


@breaks(catalog.JOB_REASON)
def a_retry_for_no_reason(history: HistoryBuilder) -> None:
    status_of(job_after(history, "claim", "fail")).pop("reason")


@breaks(catalog.JOB_REASON)
def a_dead_letter_whose_reason_changes_on_the_way(history: HistoryBuilder) -> None:
    job_after(history, "claim", "fail")
    history.write("job", reason="LeaseExpired")


@breaks(catalog.JOB_SPEC)
def another_payload(history: HistoryBuilder) -> None:
    job_after(history)
    history.change_spec("job", payload={"b": 2})


@breaks(catalog.JOB_SPEC)
def a_cancel_taken_back(history: HistoryBuilder) -> None:
    job_after(history)
    history.change_spec("job", cancel=True)
    history.change_spec("job", cancel=False)


@breaks(catalog.JOB_GATE)
def a_claim_of_a_suspended_job(history: HistoryBuilder) -> None:
    job_after(history)
    history.change_spec("job", suspend=True)
    history.claim("job")


@breaks(catalog.JOB_GATE)
def a_claim_of_a_gated_job_that_was_not_admitted(history: HistoryBuilder) -> None:
    history.create("job", notBefore=history.now())
    history.claim("job")


@breaks(catalog.JOB_POLICY)
def a_policy_that_is_not_the_specs(history: HistoryBuilder) -> None:
    history.create("job", retryPolicy={"maxRetries": 1})
    history.claim("job")


@breaks(catalog.JOB_POLICY)
def more_retries_than_allowed(history: HistoryBuilder) -> None:
    job_after(history, *["claim", "fail", "promote"] * 3, "claim", "fail")


@breaks(catalog.JOB_DEADLINE)
def a_job_whose_deadline_is_called_too_soon(history: HistoryBuilder) -> None:
    history.create("job", deadlineSeconds=60)
    history.clock += 57
    history.move("job", "Cancelled", "DeadlineExceeded")


@breaks(catalog.JOB_DEADLINE)
def a_running_job_whose_worker_calls_its_deadline_too_soon(history: HistoryBuilder) -> None:
    history.create("job", deadlineSeconds=60, notAfter=history.now())
    history.write("job", admitted=True)
    history.claim("job")
    history.clock += 30
    history.move("job", "Cancelled", "DeadlineExceeded")


@breaks(catalog.JOB_COUNTERS)
def a_retry_that_costs_nothing(history: HistoryBuilder) -> None:
    status_of(job_after(history, "claim", "fail"))["retries"] = 0


@breaks(catalog.JOB_COUNTERS)
def a_redrive_that_keeps_what_was_spent(history: HistoryBuilder) -> None:
    job_after(history, "claim", "fail", "promote", "claim")
    history.move("job", "DeadLetter", "NotRetryable", error={"type": "E"})
    status_of(history.redrive("job"))["retries"] = 1


@breaks(catalog.JOB_HISTORY)
def a_history_rewritten_while_the_job_runs(history: HistoryBuilder) -> None:
    job_after(history, "claim", "fail", "promote", "claim")
    history.write("job", history=[])


@breaks(catalog.JOB_HISTORY)
def more_left_out_of_the_history_while_the_job_runs(history: HistoryBuilder) -> None:
    job_after(history, "claim")
    history.write("job", historyOmitted=1)


@breaks(catalog.JOB_HISTORY)
def a_change_of_phase_that_is_not_in_the_history(history: HistoryBuilder) -> None:
    status_of(job_after(history, "claim", "fail")).pop("history")


@breaks(catalog.JOB_HISTORY)
def an_entry_rewritten(history: HistoryBuilder) -> None:
    line = job_after(history, "claim", "fail", "promote")
    status_of(line)["history"][0]["attempt"] = 7


@breaks(catalog.JOB_FINISHED)
def a_result_that_changes_afterwards(history: HistoryBuilder) -> None:
    job_after(history, "claim", "succeed")
    history.write("job", result={"digest": "other"})


@breaks(catalog.JOB_FINISHED)
def an_end_without_a_time(history: HistoryBuilder) -> None:
    status_of(job_after(history, "claim", "succeed")).pop("completionTime")


@breaks(catalog.LEASE_HOLDER)
def a_lease_that_changes_hands(history: HistoryBuilder) -> None:
    status_of(job_after(history, "claim", "renew"))["lease"]["worker"] = "worker-9/1"


@breaks(catalog.LEASE_HOLDER)
def a_lease_kept_after_the_end(history: HistoryBuilder) -> None:
    job_after(history, "claim")
    lease = history.objects["job"]["status"]["lease"]
    status_of(history.succeed("job"))["lease"] = lease


@breaks(catalog.LEASE_HOLDER)
def a_renewal_undone(history: HistoryBuilder) -> None:
    line = job_after(history, "claim", "renew", "renew")
    status_of(line)["lease"]["renewals"] = 0


@breaks(catalog.LEASE_TAKEOVER)
def a_lease_found_expired_while_it_lives(history: HistoryBuilder) -> None:
    job_after(history, "claim")
    history.clock += 57
    history.expire("job")


@breaks(catalog.LEASE_TAKEOVER)
def a_lease_found_expired_just_after_its_renewal(history: HistoryBuilder) -> None:
    job_after(history, "claim")
    history.clock += 20
    history.renew("job")
    history.clock += 50
    history.expire("job")


@breaks(catalog.CLAIM_ATTEMPT_NUMBER)
def a_claim_that_counts_for_nothing(history: HistoryBuilder) -> None:
    status_of(job_after(history, "claim"))["attempt"] = 0


@breaks(catalog.CLAIM_ATTEMPT_NUMBER)
def an_attempt_that_shrank_in_a_gap(history: HistoryBuilder) -> None:
    job_after(history, "claim", "fail")
    history.objects["job"]["status"]["attempt"] = 0
    history.objects["job"]["metadata"]["resourceVersion"] = history.next_version()
    history.relist()


@breaks(catalog.CLAIM_UNIQUE)
def a_claim_with_the_id_of_the_last_but_one(history: HistoryBuilder) -> None:
    line = job_after(history, *["claim", "release"] * 2, "claim")
    status_of(line)["claim"] = "claim-job-1"


@breaks(catalog.CLAIM_UNIQUE)
def another_claim_id_in_the_midst_of_an_attempt(history: HistoryBuilder) -> None:
    status_of(job_after(history, "claim", "renew"))["claim"] = "forged"


@breaks(catalog.FENCING_EFFECT)
def a_checkpoint_of_an_attempt_that_is_over(history: HistoryBuilder) -> None:
    job_after(history, "claim")
    history.clock += 70
    history.expire("job")
    history.write("job", checkpoint={"row": 9})


@breaks(catalog.FENCING_EFFECT)
def progress_made_up_as_the_job_is_taken_away(history: HistoryBuilder) -> None:
    job_after(history, "claim")
    history.clock += 70
    status_of(history.expire("job"))["progress"] = {"percent": 99}


@breaks(catalog.FENCING_EFFECT)
def a_result_without_success(history: HistoryBuilder) -> None:
    status_of(job_after(history, "claim", "fail"))["result"] = 1


@breaks(catalog.JOB_KEPT)
def an_unfinished_job_that_is_gone(history: HistoryBuilder) -> None:
    job_after(history, "claim", "delete")
