"""Keeps what the API server knows of a worker current.

The Pod's status, and the token bound to the Pod. Level-triggered: it retries until the API server
has the newest state. A Pod that is gone, or another of the same name, ends the reporting but not
the process, as on a node that lost its connection.
"""

import logging
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path

from asyncjob_dev.api import Api
from asyncjob_dev.errors import ApiStatusError, ApiUnavailableError
from asyncjob_dev.files import write_private
from asyncjob_dev.supervisor.objects import Container, build_pod_status

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
        pod = (who.pod_name, who.pod_uid)
        status = self._api.request_token(who.namespace, who.account, pod=pod, seconds=self._seconds)
        write_private(self.path, status["token"])
        return renewal_time(now, datetime.fromisoformat(status["expirationTimestamp"]))


def renewal_time(issued: datetime, expires: datetime) -> datetime:
    """Return when to renew a token."""
    return issued + (expires - issued) * RENEW_AT


log = logging.getLogger(__name__)

RETRY_SECONDS = 0.5
LONGEST_WAIT = 3600.0


class PodStatusReporter:
    """The reporting thread of one Pod; its token file is filled at once."""

    def __init__(
        self, api: Api, pod_path: str, pod_uid: str, token: TokenFile, *, restart: bool
    ) -> None:
        self._api = api
        self._pod_path = pod_path
        self._pod_uid = pod_uid
        self._token = token
        self._restart = restart
        self._wanted: Container | None = None
        self._published: Container | None = None
        self._failing = False
        self._closed = False
        self._changed = threading.Condition()
        self._due = token.renew(datetime.now(UTC))
        self._thread = threading.Thread(target=self._serve, name=f"report {pod_path}", daemon=True)
        self._thread.start()

    def report(self, container: Container) -> None:
        """Have this published; returns at once."""
        with self._changed:
            self._wanted = container
            self._changed.notify_all()

    def wait_published(self, within: float) -> bool:
        """Wait until the API server knows the newest; False when it was not told in time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._published is self._wanted, within)

    def renew_token(self) -> None:
        """Replace the token now; raises where the API server refuses."""
        due = self._token.renew(datetime.now(UTC))
        with self._changed:
            self._due = due
            self._changed.notify_all()

    def close(self) -> None:
        """End the thread; what is not published by now never will be."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()

    def _serve(self) -> None:
        while self._await_work():
            self._catch_up()

    def _await_work(self) -> bool:
        with self._changed:
            self._changed.wait_for(self._has_work, self._wait_seconds())
            return not self._closed

    def _has_work(self) -> bool:
        return self._closed or (self._published is not self._wanted and not self._failing)

    def _wait_seconds(self) -> float:
        left = (self._due - datetime.now(UTC)).total_seconds()
        return RETRY_SECONDS if self._failing else min(max(0.0, left), LONGEST_WAIT)

    def _catch_up(self) -> None:
        wanted = self._wanted
        try:
            if wanted is not None and wanted is not self._published:
                self._publish(wanted)
            if datetime.now(UTC) >= self._due:
                self._due = self._token.renew(datetime.now(UTC))
            self._failing = False
        except (ApiStatusError, ApiUnavailableError) as error:
            self._failed(error, wanted)

    def _publish(self, container: Container) -> None:
        status = build_pod_status(container, restart=self._restart)
        # With the uid, or we would write into a Pod that took the name over.
        patch = {"metadata": {"uid": self._pod_uid}, "status": status}
        self._api.merge(f"{self._pod_path}/status", patch)
        self._mark_published(container)

    def _mark_published(self, container: Container | None) -> None:
        with self._changed:
            self._published = container
            self._changed.notify_all()

    def _pod_is_gone(self) -> bool:
        # Asked afresh: a refused write may have another cause, such as a lost service account.
        try:
            found = self._api.get(self._pod_path)
        except ApiUnavailableError:
            return False
        except ApiStatusError as error:
            return error.status == HTTPStatus.NOT_FOUND
        return bool(found["metadata"]["uid"] != self._pod_uid)

    def _failed(
        self, error: ApiStatusError | ApiUnavailableError, wanted: Container | None
    ) -> None:
        details = {"pod": self._pod_path, "error": str(error)}
        if isinstance(error, ApiStatusError) and self._pod_is_gone():
            log.info("pod is gone, nothing more to report", extra=details)
            self._due = datetime.max.replace(tzinfo=UTC)
            self._failing = False
            self._mark_published(wanted)
            return
        if not self._failing:
            log.warning("pod status or token not written, trying on", extra=details)
        self._failing = True
