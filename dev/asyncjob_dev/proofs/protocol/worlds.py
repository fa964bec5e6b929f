"""The worlds that are searched, and the precautions whose absence has to be found out."""

from dataclasses import replace
from typing import Final

from asyncjob_dev.proofs.protocol.state import LEASE, World

_POLICY: Final = (
    f'"leaseDurationSeconds": {LEASE}, "cancelGraceSeconds": 3, "retryPolicy": '
    '{"maxRetries": 1, "maxCrashes": 1, "initialDelaySeconds": 0, "jitter": 0}'
)
PLAIN: Final = f"{{{_POLICY}}}"
DUPLICATE: Final = f'{{{_POLICY}, "deduplicationId": "same"}}'

TINY: Final = World(
    "tiny",
    "one job, two workers, one operator, one fault",
    (PLAIN,),
    faults=1,
    operators=1,
    outcomes=("succeed",),
)
ONE_FAULT: Final = World(
    "one-fault", "one job, two workers, two operators, one fault", (PLAIN,), faults=1
)
CONTROLS: Final = World(
    "controls",
    "one job that is cancelled and redriven, two workers, two operators, one fault",
    (PLAIN,),
    faults=1,
    controls=('{"cancel": true}', '{"redrive": 1}'),
    outcomes=("succeed", "fail"),
    max_renewals=0,
    attentive=True,
)
TWO_JOBS: Final = World(
    "two-jobs",
    "two jobs, two workers, two operators, one fault",
    (PLAIN, PLAIN),
    faults=1,
    outcomes=("succeed",),
    max_renewals=0,
    attentive=True,
)
DUPLICATES: Final = World(
    "duplicates",
    "two jobs with one deduplication id, one worker, two operators with stale caches, one fault",
    (DUPLICATE, DUPLICATE),
    faults=1,
    workers=1,
    outcomes=("succeed",),
    max_renewals=0,
    related=True,
)
WORLDS: Final = (TINY, DUPLICATES, TWO_JOBS, CONTROLS, ONE_FAULT)
"""Worlds that are searched with each change: less than a minute each."""

TWO_FAULTS: Final = replace(
    ONE_FAULT,
    name="two-faults",
    title="one job, two workers, two operators, two faults",
    faults=2,
    attentive=True,
)
TWO_JOBS_TWO_FAULTS: Final = replace(
    TWO_JOBS,
    name="two-jobs-two-faults",
    title="two jobs, two workers, two operators, two faults",
    faults=2,
)
TWO_JOBS_RENEWED: Final = replace(
    TWO_JOBS,
    name="two-jobs-renewed",
    title="two jobs whose leases may be renewed, two workers, two operators, one fault",
    max_renewals=1,
)
DUPLICATES_TWO_WORKERS: Final = replace(
    DUPLICATES,
    name="duplicates-two-workers",
    title="two jobs with one deduplication id, two workers, two stale operators, one fault",
    workers=2,
)
LONG_WORLDS: Final = (
    TWO_FAULTS,
    TWO_JOBS_TWO_FAULTS,
    TWO_JOBS_RENEWED,
    DUPLICATES_TWO_WORKERS,
)
"""Worlds that are searched each night as well; `make prove LONG=1`."""

TWINS: Final = {
    precaution: replace(TINY, name=f"tiny-without-{precaution}", without=frozenset({precaution}))
    for precaution in ("fence", "verify", "patience", "stop")
} | {
    "look": replace(DUPLICATES, name="duplicates-without-look", without=frozenset({"look"})),
}
"""Worlds that lack a precaution of worker or operator, by its name."""
