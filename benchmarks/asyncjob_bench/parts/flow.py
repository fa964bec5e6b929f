"""A flow of jobs through real worker processes: created, claimed, completed, counted, checked."""

from dataclasses import dataclass, field
from typing import Any, Final

from asyncjob.lifecycle.timestamps import parse_timestamp
from asyncjob_bench.errors import WrongOutcomeError
from asyncjob_bench.ground import templates
from asyncjob_bench.ground.space import Space
from asyncjob_bench.parts.crew import FINISH_TIMEOUT_SECONDS, RunningStack
from asyncjob_bench.reckoning.budget import Usage

SUBMITTER_MODULE: Final = "asyncjob_bench.ground.submitter"
CONNECTIONS: Final = 32
"""Of the submitter, beside 64 slots with two writes a job: each kind of write gets its share."""


@dataclass(frozen=True, slots=True)
class Flow:
    """What a flow took. `used` has the CPU of each program, the submitter among them."""

    jobs: int
    seconds: float
    used: Usage
    submitted_in: float = field(default=0.0)

    @property
    def rate(self) -> float:
        """Jobs per second, from the first create to the last completion."""
        return self.jobs / self.seconds


def submit(
    space: Space, asked: dict[str, Any], count: int, *, prefix: str, **more: Any
) -> dict[str, Any]:
    """Have a submitter's process carry out an order, and return its answer."""
    order = {
        "way": "flood",
        "kubeconfig": str(space.submitter_kubeconfig()),
        "asked": asked,
        "count": count,
        "connections": CONNECTIONS,
        "prefix": prefix,
        **more,
    }
    answer, _ = space.run(SUBMITTER_MODULE, order, FINISH_TIMEOUT_SECONDS)
    found: dict[str, Any] = answer
    return found


def run_flow(
    here: RunningStack, count: int, *, warm_up: int, size: int = 100, prefix: str = "job-"
) -> Flow:
    """Send jobs through, some of them before anything is measured; check that each ran once."""
    asked, there = templates.submission(size), here.finished()
    submit(here.space, asked, warm_up, prefix=f"warm-up-{prefix}")
    here.wait_finished(there + warm_up)
    before = here.site.usage(here.programs)
    answer = submit(here.space, asked, count, prefix=prefix)
    here.wait_finished(there + warm_up + count)
    used = here.site.usage(here.programs) - before
    ended = _last_completion(here.space, count, prefix)
    return Flow(
        count,
        ended - answer["started"],
        used.with_client(answer["cpu"]),
        answer["ended"] - answer["started"],
    )


def _last_completion(space: Space, count: int, prefix: str) -> float:
    """Return the Unix time of the last completion; raises WrongOutcomeError unless all ran once."""
    last, wrong, found = 0.0, [], 0
    for job in space.jobs():
        if not job["metadata"]["name"].startswith(prefix):
            continue
        found += 1
        status = job["status"]
        if (status["phase"], status["attempt"]) != ("Succeeded", 1):
            wrong.append(f"{job['metadata']['name']}: {status['phase']} {status['attempt']}")
        else:
            last = max(last, parse_timestamp(status["completionTime"]).timestamp())
    if wrong or found != count:
        raise WrongOutcomeError(
            f"{found} of {count} jobs are there; not as they should be: {wrong}"
        )
    return last
