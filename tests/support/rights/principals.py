"""Accounts to try rights with: each with all rights of its part, or all but one.

All are made before any is used, since the API server learns of roles a moment later.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from asyncjob.kube import KubeSession, load_access
from asyncjob.lifecycle.claim import LeaseHolder
from asyncjob_dev.api import write_kubeconfig
from asyncjob_dev.controlplane import ControlPlane
from asyncjob_worker.settings import identify
from support.cluster.api import Client
from support.cluster.identities import RBAC
from support.rights.model import Grant, Part, Right, rights_of, without

REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
AT_A_TIME = 16
CLOSING_SECONDS = 5.0
"""TLS connections that were broken off close a moment after their session does."""

SOON = 0.005
PATIENCE = 30.0
LOOK_SECONDS = 0.1

K = TypeVar("K", bound=Hashable)
Key = tuple[str, str, Right | None]
"""Account, role, and the right that is missing in it."""


class WatchCountingSession(KubeSession):
    """Notes how many watches of which collections were opened."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.watched: Counter[str] = Counter()

    async def stream(self, path: str, params: Any, accept: str) -> Any:
        response = await super().stream(path, params, accept)
        if "watch" in params:
            self.watched[path] += 1
        return response

    async def close(self) -> None:
        await super().close()
        give_up_at = time.monotonic() + CLOSING_SECONDS
        while _connections() and time.monotonic() < give_up_at:  # noqa: ASYNC110  # none tells
            await asyncio.sleep(SOON)


def _connections() -> int:
    """Return how many the running loop has open, beside the one it wakes itself by."""
    selector = asyncio.get_running_loop()._selector  # type: ignore[attr-defined]  # none tells
    return len(selector.get_map()) - 1


@dataclass(frozen=True)
class Principal:
    """An account with its token, and the admin who prepares for it."""

    account: str
    namespace: str
    kubeconfig: Path
    client: Client
    admin: Client
    holder: LeaseHolder

    @property
    def username(self) -> str:
        """Return how the API server calls it."""
        return f"system:serviceaccount:{self.namespace}:{self.account}"

    async def session(self) -> WatchCountingSession:
        """Open a session of the project's own in the account's name; the caller closes it."""
        access = await load_access(str(self.kubeconfig), self.namespace)
        return WatchCountingSession(access, field_manager="principal")


class PrincipalFactory:
    """Makes principals, many at a time; `folder` is for their kubeconfigs."""

    def __init__(self, session: KubeSession, admin: Client, folder: Path) -> None:
        self._session = session
        self._admin = admin
        self._folder = folder
        self._places = asyncio.Semaphore(AT_A_TIME)

    async def make(self, wanted: Mapping[K, Part]) -> dict[K, Principal]:
        """Return a principal for each part, under the same key."""
        for step in (self._roles, self._account, self._bindings, self._until_known):
            await asyncio.gather(*map(step, wanted.values()))
        principals = await asyncio.gather(*map(self._principal, wanted.values()))
        return dict(zip(wanted, principals, strict=True))

    async def _create(self, path: str, body: Any) -> Any:
        async with self._places:
            return await self._session.create(path, body)

    async def _roles(self, part: Part) -> None:
        for grant in part.grants:
            body = {"metadata": {"name": f"{part.account}.{grant.role}"}, "rules": grant.rules}
            await self._create(_path("roles", grant.namespace), body)

    async def _account(self, part: Part) -> None:
        account = {"metadata": {"name": part.account}}
        await self._create(f"/api/v1/namespaces/{part.namespace}/serviceaccounts", account)

    async def _bindings(self, part: Part) -> None:
        who = {"kind": "ServiceAccount", "name": part.account, "namespace": part.namespace}
        for grant in part.grants:
            name = f"{part.account}.{grant.role}"
            kind = "Role" if grant.namespace else "ClusterRole"
            body = {
                "metadata": {"name": name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
                "subjects": [who],
            }
            await self._create(_path("rolebindings", grant.namespace), body)

    async def _until_known(self, part: Part) -> None:
        """Wait until one right of each role counts: the authorizer learns of roles as a whole."""
        for grant in part.grants:
            if not grant.rules:  # its only right is the one that is missing
                continue
            review = _review(part, grant)
            async with asyncio.timeout(PATIENCE):
                while not await self._allows(review):  # noqa: ASYNC110  # it is another process
                    await asyncio.sleep(LOOK_SECONDS)

    async def _allows(self, review: dict[str, Any]) -> bool:
        return bool((await self._create(REVIEWS, review))["status"]["allowed"])

    async def _principal(self, part: Part) -> Principal:
        """Return a principal of a token that is bound to a pod, as those of all parts are."""
        uid = await self._pod(part)
        bound = {"kind": "Pod", "apiVersion": "v1", "name": part.account, "uid": uid}
        path = f"/api/v1/namespaces/{part.namespace}/serviceaccounts/{part.account}/token"
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"boundObjectRef": bound},
        }
        token = (await self._create(path, request))["status"]["token"]
        client, file = replace(self._admin, token=token), self._folder / part.account
        user, where = {"token": token}, part.namespace
        write_kubeconfig(file, url=client.url, ca_file=client.ca_file, user=user, namespace=where)
        holder = identify(part.account, uid)
        return Principal(part.account, where, file, client, self._admin, holder)

    async def _pod(self, part: Part) -> str:
        body = {
            "metadata": {"name": part.account},
            "spec": {
                "nodeName": "nowhere",
                "serviceAccountName": part.account,
                "automountServiceAccountToken": False,
                "containers": [{"name": "part", "image": "part"}],
            },
        }
        made = await self._create(f"/api/v1/namespaces/{part.namespace}/pods", body)
        uid: str = made["metadata"]["uid"]
        return uid


def make_principals(
    plane: ControlPlane, admin: Client, folder: Path, wanted: Mapping[K, Part]
) -> dict[K, Principal]:
    """Return a principal for each part."""

    async def make() -> dict[K, Principal]:
        access = await load_access(str(plane.kubeconfig))
        async with KubeSession(access, field_manager="tests") as session:
            return await PrincipalFactory(session, admin, folder).make(wanted)

    return asyncio.run(make())


def _review(part: Part, grant: Grant) -> dict[str, Any]:
    right = next(rights_of(grant.rules))
    resource, _, subresource = right.resource.partition("/")
    attributes = {
        "namespace": grant.namespace,
        "group": right.group,
        "resource": resource,
        "subresource": subresource,
        "verb": right.verb,
        "name": right.name,
    }
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": username(part), "resourceAttributes": attributes},
    }


def username(part: Part) -> str:
    """Return how the API server calls an account."""
    return f"system:serviceaccount:{part.namespace}:{part.account}"


def lesser(parts: Sequence[Part]) -> dict[Key, Part]:
    """Return each part under another account, and then less each of its rights."""
    return dict(one for part in parts for one in _lesser(part))


def _lesser(part: Part) -> Iterator[tuple[Key, Part]]:
    yield (part.account, "", None), replace(part, account=f"{part.account}-full")
    for number, (at, right) in enumerate(
        (at, right) for at, grant in enumerate(part.grants) for right in rights_of(grant.rules)
    ):
        grants = list(part.grants)
        grants[at] = replace(grants[at], rules=without(grants[at].rules, right))
        lesser = replace(part, account=f"{part.account}-{number}", grants=tuple(grants))
        yield (part.account, part.grants[at].role, right), lesser


def _path(plural: str, namespace: str) -> str:
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"/{RBAC}{scope}/{plural if namespace else f'cluster{plural}'}"
