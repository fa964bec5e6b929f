"""A token bound to a Pod, in a file, replaced before it expires."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from asyncjob_dev.api import Api
from asyncjob_dev.files import write_private
from asyncjob_dev.supervisor.objects import build_token_request

# As the kubelet does it.
RENEW_AT = 0.8


@dataclass(frozen=True)
class PodIdentity:
    """Whom the token stands for."""

    namespace: str
    account: str
    pod_name: str
    pod_uid: str


class TokenFile:
    """The file that a worker's kubeconfig names."""

    def __init__(self, api: Api, path: Path, identity: PodIdentity, seconds: int) -> None:
        self.path = path
        self._api = api
        self._identity = identity
        self._seconds = seconds

    def renew(self, now: datetime) -> datetime:
        """Request a new token, put it into the file, and return when the next is due."""
        who = self._identity
        path = f"/api/v1/namespaces/{who.namespace}/serviceaccounts/{who.account}/token"
        request = build_token_request(who.pod_name, who.pod_uid, self._seconds)
        status = self._api.create(path, request)["status"]
        write_private(self.path, status["token"])
        return renewal_time(now, datetime.fromisoformat(status["expirationTimestamp"]))


def renewal_time(issued: datetime, expires: datetime) -> datetime:
    """Return when to renew a token."""
    return issued + (expires - issued) * RENEW_AT
