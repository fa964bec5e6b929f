"""How many writes a plain job costs, and whose: counted by the API server, user by user.

On a control plane of its own, whose audit log would slow down anything that is timed.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from asyncjob.names import JOBS
from asyncjob_bench.errors import WrongOutcomeError
from asyncjob_bench.harness import templates
from asyncjob_bench.harness.site import Site, site
from asyncjob_bench.parts.flow import RunningStack, stack_in, submit
from asyncjob_bench.parts.part import Numbers, PartContext
from asyncjob_bench.stats import audit
from asyncjob_bench.stats.audit import AuditedWrite
from asyncjob_bench.stats.exposition import Scrape
from asyncjob_dev.environment.components import OPERATOR_ACCOUNT

AUDIT_LOG: Final = "audit.log"
POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "verbs": ["get", "list", "watch"]},
        {"level": "Metadata"},
    ],
}
QUIET_SECONDS: Final = 3.0
"""An operator that had something to write would have done so by then."""

WRITING: Final = ("POST", "PUT", "PATCH", "APPLY", "DELETE")
REQUESTS: Final = "apiserver_request_total"
WATCH_EVENTS: Final = "apiserver_watch_events_total"
WORKER_REQUESTS: Final = "asyncjob_worker_api_requests_total"


@contextmanager
def audited(*, controllers: bool = True) -> Iterator[Site]:
    """Run a control plane that notes who writes what; without controllers none of them watches."""
    with TemporaryDirectory(prefix="asyncjob-bench-audit-") as folder:
        policy, log = Path(folder) / "policy.json", Path(folder) / AUDIT_LOG
        policy.write_text(json.dumps(POLICY), encoding="utf-8")
        flags = (f"--audit-policy-file={policy}", f"--audit-log-path={log}")
        strict = "--audit-log-mode=blocking-strict"
        with site(*flags, strict, controllers=controllers) as made:
            (made.folder / AUDIT_LOG).symlink_to(log)
            yield made


def measure(context: PartContext) -> Numbers:
    """Return writes per job in all and by the operator, and how many events are sent of a job."""
    with stack_in(
        context.site, "writes", workers=context.scale.workers, slots=context.scale.slots
    ) as here:
        return count(context, here)


def count(context: PartContext, here: RunningStack) -> Numbers:
    """Send jobs through and count what is written meanwhile."""
    jobs, job = context.scale.counted_jobs, templates.submission()
    submit(here.space, job, context.scale.warm_up, prefix="warm-up-")
    here.wait_finished(context.scale.warm_up)
    time.sleep(QUIET_SECONDS)
    lines, before, asked = (
        audit_lines(context.site),
        context.site.metrics(),
        here.total(WORKER_REQUESTS),
    )
    submit(here.space, job, jobs, prefix="job-")
    here.wait_finished(context.scale.warm_up + jobs)
    time.sleep(QUIET_SECONDS)
    made = audit.count_writes(audit_lines(context.site)[len(lines) :])
    after = context.site.metrics()
    _same(made, before, after)
    _note(context, made, jobs)
    return {
        # Claims that conflict have a limit of their own: `conflict_ratio`.
        "writes_per_job": audit.total(made, only_stored=True) / jobs,
        "operator_writes_per_job": audit.total(made, user=OPERATOR_ACCOUNT) / jobs,
        "other_writes_per_job": audit.total(made, jobs=False) / jobs,
        "watch_events_per_job": (_events(after) - _events(before)) / jobs,
        "worker_requests_per_job": (here.total(WORKER_REQUESTS) - asked) / jobs,
    }


def stored_writes(here: Site, run: Callable[[], object]) -> float:
    """Return how many writes of AsyncJobs are stored, by whomever, while something runs."""
    time.sleep(QUIET_SECONDS)
    lines = len(audit_lines(here))
    run()
    time.sleep(QUIET_SECONDS)
    return audit.total(audit.count_writes(audit_lines(here)[lines:]), only_stored=True)


def audit_lines(here: Site) -> list[str]:
    """Return the audit log so far."""
    return (here.folder / AUDIT_LOG).read_text(encoding="utf-8").splitlines()


def _events(scrape: Scrape) -> float:
    """Return how many events have been sent, to whichever watch of AsyncJobs."""
    return scrape.total(WATCH_EVENTS, resource=JOBS)


def _same(made: Counter[AuditedWrite], before: Scrape, after: Scrape) -> None:
    """Compare the log's sum with the API server's own counters."""
    counted = _requests(after) - _requests(before)
    if counted != audit.total(made):
        raise WrongOutcomeError(
            f"the audit log has {audit.total(made)} writes on AsyncJobs, the metrics {counted:g}"
        )


def _requests(scrape: Scrape) -> float:
    return sum(scrape.total(REQUESTS, resource=JOBS, verb=verb, dry_run="") for verb in WRITING)


def _note(context: PartContext, made: Counter[AuditedWrite], jobs: int) -> None:
    context.results.curves["writes-by-user"] = [
        {
            "user": write.user,
            "write": f"{write.verb} {write.resource}",
            "code": str(write.code),
            "writes": float(number),
            "per job": number / jobs,
        }
        for write, number in sorted(made.items(), key=lambda it: -it[1])
    ]
