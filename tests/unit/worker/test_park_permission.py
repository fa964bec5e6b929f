"""Whether a worker may park jobs, by what the leader's Lease says."""

from collections.abc import Collection
from types import SimpleNamespace
from typing import Any, cast

import pytest

from asyncjob.errors import ForbiddenError
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.waits import WaitKind
from asyncjob.names import CAPABILITIES_ANNOTATION, announce_capabilities
from asyncjob_worker.leases.park_permission import ASK_SECONDS, ParkPermission


class Leases:
    """A session that answers with one Lease, or with an error; counts how often."""

    def __init__(self, holder: str = "", announced: str = "") -> None:
        self.access = SimpleNamespace(namespace="jobs")
        self.holder, self.announced = holder, announced
        self.error: Exception | None = None
        self.asked: list[tuple[str, Any]] = []

    async def get(self, path: str, params: Any) -> Any:
        self.asked.append((path, params))
        if self.error:
            raise self.error
        metadata = {"annotations": {CAPABILITIES_ANNOTATION: self.announced}}
        return {"items": [{"metadata": metadata, "spec": {"holderIdentity": self.holder}}]}


def permission(leases: Leases, now: list[float], namespace: str | None = None) -> ParkPermission:
    return ParkPermission(cast("KubeSession", leases), namespace, clock=lambda: now[0])


SLEEP, SIGNAL = WaitKind.SLEEP, WaitKind.SIGNAL


@pytest.mark.parametrize(
    ("holder", "announced", "granted"),
    [
        pytest.param("me", announce_capabilities("me"), {*WaitKind}, id="this version leads"),
        pytest.param("me", "me parks signals and more", {SLEEP, SIGNAL}, id="another one leads"),
        pytest.param("me", "me children more", {WaitKind.CHILDREN}, id="it wakes for children"),
        pytest.param("me", "me parks", {SLEEP}, id="an older one leads, which knows no signals"),
        pytest.param("me", "", (), id="an older one leads, which announces nothing"),
        pytest.param("me", "you parks signals", (), id="an older one leads after a newer"),
        pytest.param("me", "me signals", {SIGNAL}, id="it wakes for signals only"),
        pytest.param("me", "me more", (), id="it can do other things only"),
        pytest.param("", "you parks signals", (), id="nobody leads"),
        pytest.param("", "", (), id="nobody ever led"),
    ],
)
async def test_the_leader_itself_has_to_have_announced_it(
    holder: str, announced: str, granted: Collection[WaitKind]
) -> None:
    asking = permission(Leases(holder, announced), [0.0])
    for kind in WaitKind:
        assert await asking.is_granted({kind}) is (kind in granted)
    assert await asking.is_granted({SLEEP, SIGNAL}) is ({SLEEP, SIGNAL} <= {*granted})


async def test_an_answer_holds_for_a_while_and_a_refusal_is_a_no() -> None:
    leases, now = Leases("me", "me parks"), [0.0]
    asking = permission(leases, now, "system")
    assert await asking.is_granted({SLEEP})
    leases.error = ForbiddenError("no", status=403, reason="Forbidden")
    now[0] = ASK_SECONDS - 1
    assert await asking.is_granted({SLEEP})
    now[0] = ASK_SECONDS
    assert not await asking.is_granted({SLEEP})
    assert [path.split("/")[-2] for path, _ in leases.asked] == ["system", "system"]
    assert leases.asked[0][1] == {"fieldSelector": "metadata.name=asyncjob-operator"}
