"""The gateway's rights, by its cache and its operations."""

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from starlette.datastructures import Headers

from asyncjob.kube.informer import UNOBSERVED
from asyncjob.models.job import PayloadSource
from asyncjob.names import ARRAYS as ARRAY_KIND
from asyncjob.names import CRON_JOBS as CRON_KIND
from asyncjob.names import JOBS as JOB_KIND
from asyncjob.names import QUEUES as QUEUE_KIND
from asyncjob.names import VOUCH_VERB, collection_path
from asyncjob.rest.arrays import ArraySubmission
from asyncjob.rest.submission import Submission
from asyncjob_gateway.auth import rights
from asyncjob_gateway.auth.authentication import Caller, TokenAuthenticator
from asyncjob_gateway.auth.authorization import ReviewAuthorizer
from asyncjob_gateway.cache.namespace import NamespaceCache
from asyncjob_gateway.operations import Operations
from asyncjob_gateway.telemetry import GatewayMetrics
from asyncjob_operator.kube.paths import leases_path
from support.rights.happening import happens
from support.rights.model import Right
from support.rights.preparation import (
    create_array,
    create_cron_job,
    create_job,
    create_queue,
)
from support.rights.principals import Principal
from support.rights.probes.probe import (
    ARRAYS,
    CRONS,
    JOBS,
    QUEUES,
    Probe,
    ProbeSetup,
    Run,
    on_leases,
    ours,
)

MANY: Final = 1000.0
_KINDS: Final = (JOB_KIND, QUEUE_KIND, CRON_KIND, ARRAY_KIND)
_WANTED: Final = {"type": "echo", "items": {"count": 1}}
SECRET: Final = PayloadSource.model_validate({"secretKeyRef": {"name": "orders", "key": "payload"}})


async def keeps(principal: Principal, _ground: ProbeSetup, _: str) -> None:
    """Keep jobs, queues, cron jobs, arrays and workers of a namespace in sight."""
    where, view = principal.namespace, NamespaceCache(principal.namespace)
    sights = Counter(
        [
            *(
                collection_path(where, kind)
                for kind in (JOB_KIND, QUEUE_KIND, CRON_KIND, ARRAY_KIND)
            ),
            leases_path(where),
        ]
    )
    async with await principal.session() as session:
        await happens(
            lambda: sights <= session.watched,
            lambda: view.run(session, lambda _kind: UNOBSERVED),
        )


def operation(
    do: Callable[[Operations, str], Awaitable[Any]],
    prepare: Callable[[Principal, str], Any] = lambda *_: None,
) -> Run:
    """Return a probe that does an operation for a caller who may do all."""

    async def run(principal: Principal, _: ProbeSetup, name: str) -> None:
        async def demand(_: rights.Right) -> None: ...

        prepare(principal, name)
        async with await principal.session() as session:
            await do(
                Operations(session, NamespaceCache(principal.namespace), GatewayMetrics(), demand),
                name,
            )

    return run


async def checks_tokens(principal: Principal, _ground: ProbeSetup, _: str) -> None:
    async with await principal.session() as session:
        tokens = TokenAuthenticator(session, (), 0.0, MANY, time.monotonic)
        headers = Headers({"Authorization": f"Bearer {principal.client.token}"})
        assert (await tokens.authenticate(headers)).username == principal.username


async def asks_for_rights(principal: Principal, _ground: ProbeSetup, _: str) -> None:
    async with await principal.session() as session:
        reviews = ReviewAuthorizer(session, 0.0, MANY, time.monotonic)
        assert not await reviews.is_allowed(
            Caller("nobody"), rights.SUBMIT_JOBS, principal.namespace
        )


_KEEPS: Final = Probe("keep jobs, queues, cron jobs, arrays and workers in sight", keeps)
_GET: Final = Probe("show a job", operation(lambda do, name: do.get(name), create_job))
_SUBMIT: Final = Probe("submit a job", operation(lambda do, _: do.submit(Submission(type="echo"))))
_CANCEL: Final = Probe(
    "cancel a job", operation(lambda do, name: do.cancel(name, cascade=False), create_job)
)
_VOUCH: Final = Probe(
    "submit a job that reads a Secret, for a caller who may",
    operation(lambda do, _: do.submit(Submission(type="echo", payload_from=SECRET))),
)
_PAUSE: Final = Probe(
    "pause a queue", operation(lambda do, name: do.set_paused(name, paused=True), create_queue)
)
_PAUSE_BARE: Final = Probe(
    "pause a queue that has no AsyncQueue",
    operation(lambda do, name: do.set_paused(name, paused=True)),
)
_RESUME_BARE: Final = Probe(
    "resume a queue that has no AsyncQueue",
    operation(lambda do, name: do.set_paused(name, paused=False)),
)
_CRON: Final = Probe("show a cron job", operation(lambda do, n: do.cron_job(n), create_cron_job))
_ARRAY: Final = Probe("show an array", operation(lambda do, n: do.array(n), create_array))
_SUBMIT_ARRAY: Final = Probe(
    "submit an array",
    operation(lambda do, n: do.submit_array(ArraySubmission.model_validate(_WANTED | {"name": n}))),
)
_SUSPEND_ARRAY: Final = Probe(
    "suspend an array",
    operation(lambda do, n: do.set_array_suspended(n, suspended=True), create_array),
)
_TRIGGER: Final = Probe(
    "trigger a cron job", operation(lambda do, n: do.trigger(n), create_cron_job)
)

MAIN: Final[Mapping[Right, Probe]] = {
    **ours(JOBS, "list watch", _KEEPS),
    **ours(QUEUES, "list watch", _KEEPS),
    **ours(CRONS, "list watch", _KEEPS),
    **ours(ARRAYS, "list watch", _KEEPS),
    **on_leases("list watch", _KEEPS),
    **ours(JOBS, "get", _GET),
    **ours(JOBS, "create", _SUBMIT),
    **ours(JOBS, "patch", _CANCEL),
    **ours(JOBS, VOUCH_VERB, _VOUCH),
    **ours(QUEUES, "get", _RESUME_BARE),
    **ours(QUEUES, "patch", _PAUSE),
    **ours(QUEUES, "create", _PAUSE_BARE),
    **ours(CRONS, "get", _CRON),
    **ours(CRONS, "patch", _TRIGGER),
    **ours(ARRAYS, "get", _ARRAY),
    **ours(ARRAYS, "create", _SUBMIT_ARRAY),
    **ours(ARRAYS, "patch", _SUSPEND_ARRAY),
}

CALLERS: Final[Mapping[Right, Probe]] = {
    Right("authentication.k8s.io", "tokenreviews", "create"): Probe("check a token", checks_tokens),
    Right("authorization.k8s.io", "subjectaccessreviews", "create"): Probe(
        "ask what a caller may do", asks_for_rights
    ),
}

PROBES: Final = {
    ("asyncjob-gateway", "asyncjob-gateway"): MAIN,
    ("asyncjob-gateway", "jobs-asyncjob-gateway-callers"): CALLERS,
}
