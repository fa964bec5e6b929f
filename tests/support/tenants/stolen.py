"""Stolen tokens on an API server with the chart's roles, and what is tried with them."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from asyncjob.lifecycle.phases import Phase
from asyncjob.names import CRON_JOBS, JOBS, QUEUES, collection_path
from support.cluster.api import Answer, Client
from support.cluster.identities import RBAC, Space, Worker
from support.driven.lives import Life
from support.objects.builders import cron_job, job, queue

HOME: Final = "jobs"
ELSEWHERE: Final = "neighbours"
LEASES: Final = f"/apis/coordination.k8s.io/v1/namespaces/{HOME}/leases"
CORE: Final = f"/api/v1/namespaces/{HOME}"

_numbers = itertools.count(1)


@dataclass(frozen=True)
class StolenTokenSetup:
    """The chart's namespace, a worker of the chart, and the admin."""

    space: Space
    worker: Worker

    @property
    def admin(self) -> Client:
        """Return who may do everything."""
        return self.space.admin

    def pod(self, account: str) -> Worker:
        """Return a token that is bound to a new pod of the account."""
        return self.space.worker(f"thief-{next(_numbers)}", account)

    def life(self, phase: Phase = Phase.QUEUED, **spec: Any) -> Life:
        """Return a new job in a phase; where it runs, the worker runs it."""
        made = Life(HOME, f"job-{next(_numbers)}", self.admin, self.worker)
        made.create(**spec)
        return made.bring(phase)

    def queue(self) -> str:
        """Create an AsyncQueue and return its path."""
        path = collection_path(HOME, QUEUES)
        name = f"queue-{next(_numbers)}"
        self.admin.create(path, queue(name)).object()
        return f"{path}/{name}"

    def cron_job(self) -> str:
        """Create an AsyncCronJob and return its path."""
        path = collection_path(HOME, CRON_JOBS)
        name = f"cron-{next(_numbers)}"
        self.admin.create(path, cron_job(name)).object()
        return f"{path}/{name}"


Attempt = Callable[[Client, StolenTokenSetup], Answer]


@dataclass(frozen=True)
class Theft:
    """Something that is tried with a stolen token, and must be refused for whose it is."""

    title: str
    attempt: Attempt

    def __str__(self) -> str:
        """Return a name for the test."""
        return self.title


def refused(answer: Answer) -> bool:
    """Return whether it was refused for who asked."""
    return answer.status == HTTPStatus.FORBIDDEN


def theft(title: str, attempt: Attempt) -> Theft:
    """Return it."""
    return Theft(title, attempt)


def _bind(kind: str, role: str) -> Attempt:
    def attempt(thief: Client, _: StolenTokenSetup) -> Answer:
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
        who = {"kind": "ServiceAccount", "name": "default", "namespace": HOME}
        body = {"metadata": {"generateName": "stolen-"}, "roleRef": ref, "subjects": [who]}
        return thief.create(f"/{RBAC}/namespaces/{HOME}/rolebindings", body)

    return attempt


def _pod(thief: Client, _: StolenTokenSetup) -> Answer:
    spec = {
        "serviceAccountName": "asyncjob-operator",
        "containers": [{"name": "thief", "image": "thief"}],
    }
    return thief.create(f"{CORE}/pods", {"metadata": {"generateName": "thief-"}, "spec": spec})


def token_of(account: str) -> Attempt:
    """Return an attempt to be given another account's token."""

    def attempt(thief: Client, _: StolenTokenSetup) -> Answer:
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        return thief.create(f"{CORE}/serviceaccounts/{account}/token", body)

    return attempt


def _policy(thief: Client, _: StolenTokenSetup) -> Answer:
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
    return thief.delete(f"{policies}/ownership.asyncjob.dev")


SECRETS: Final = (
    theft("read a Secret", lambda thief, _: thief.get(f"{CORE}/secrets/orders")),
    theft("list Secrets", lambda thief, _: thief.get(f"{CORE}/secrets")),
    theft("read a ConfigMap", lambda thief, _: thief.get(f"{CORE}/configmaps/orders")),
)
UPWARDS: Final = (
    theft("have another account's token", token_of("asyncjob-operator")),
    theft("run a pod as the operator", _pod),
    theft("give itself the operator's role", _bind("Role", "asyncjob-operator")),
    theft("give itself cluster-admin", _bind("ClusterRole", "cluster-admin")),
    theft("take a policy away", _policy),
    theft("change a CRD", lambda thief, _: thief.merge(f"{CRDS}/asyncjobs.asyncjob.dev", {})),
)
CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OUTWARDS: Final = (
    theft("read jobs of another namespace", lambda t, _: t.get(collection_path(ELSEWHERE, JOBS))),
    theft("read jobs of all namespaces", lambda t, _: t.get(collection_path(None, JOBS))),
    theft("create a job elsewhere", lambda t, _: t.create(collection_path(ELSEWHERE, JOBS), job())),
)
ANYONE: Final = (*SECRETS, *UPWARDS, *OUTWARDS)
"""What nobody's token is good for, whoever it was stolen from."""
