"""What people do in a scenario: submit jobs and change them, past the gateway or through it."""

import asyncio
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final, Protocol

import aiohttp

from asyncjob.errors import ConflictError
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.timestamps import format_timestamp
from asyncjob.names import (
    API_VERSION,
    ARRAY_KIND,
    ARRAYS,
    CRON_JOBS,
    JOBS,
    QUEUES,
    array_path,
    collection_path,
    cron_job_path,
    job_path,
    queue_path,
)

Object = dict[str, Any]

_TRY_AGAIN_SECONDS: Final = 0.2
_TRIES: Final = 150
_LOOKS: Final = 20
_TOO_MANY: Final = HTTPStatus.TOO_MANY_REQUESTS
_KINDS: Final = {
    QUEUES: "AsyncQueue",
    CRON_JOBS: "AsyncCronJob",
    JOBS: "AsyncJob",
    ARRAYS: ARRAY_KIND,
}
_SELF_REVIEWS: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_SELF_REVIEW: Final[Object] = {
    "apiVersion": "authentication.k8s.io/v1",
    "kind": "SelfSubjectReview",
}


class People(Protocol):
    """Those who submit jobs and change them; each repeats what got no answer."""

    def id_of(self, name: str) -> str:
        """Return what the job is called that was submitted under this name."""

    async def submit(self, name: str, spec: Object) -> None:
        """Create a job, or learn that it is a duplicate."""

    async def cancel(self, name: str) -> None:
        """Cancel a job."""

    async def resume(self, name: str) -> None:
        """Take back that a job is suspended."""

    async def redrive(self, name: str) -> None:
        """Have a dead letter run again."""

    async def rerun(self, name: str) -> None:
        """Have a finished job run again, as a new one."""

    async def signal(self, name: str, signal: str, payload: Any) -> None:
        """Send a signal to a job."""

    async def submit_array(self, name: str, spec: Object) -> None:
        """Create an array."""

    async def redrive_array(self, name: str) -> None:
        """Have the failed items of an array run again."""

    async def trigger(self, name: str) -> None:
        """Have a cron job run now."""

    async def pause(self, name: str, *, paused: bool) -> None:
        """Pause a queue or let it go on."""


class WithKubectl:
    """Writes to the API server."""

    def __init__(self, session: KubeSession, namespace: str) -> None:
        self._session = session
        self._namespace = namespace

    async def create(self, resource: str, name: str, spec: Object) -> None:
        """Create an object."""
        body: Object = {
            "apiVersion": API_VERSION,
            "kind": _KINDS[resource],
            "metadata": {"name": name},
            "spec": spec,
        }
        await self._session.create(collection_path(self._namespace, resource), body)

    def id_of(self, name: str) -> str:
        return name

    async def submit(self, name: str, spec: Object) -> None:
        await self.create(JOBS, name, spec)

    async def cancel(self, name: str) -> None:
        await self._change(job_path(self._namespace, name), cancel=True)

    async def resume(self, name: str) -> None:
        await self._change(job_path(self._namespace, name), suspend=False)

    async def redrive(self, name: str) -> None:
        await self._change(job_path(self._namespace, name), redrive=1)

    async def rerun(self, name: str) -> None:
        await self._change(job_path(self._namespace, name), rerun=1)

    async def signal(self, name: str, signal: str, payload: Any) -> None:
        review: Any = await self._session.create(_SELF_REVIEWS, _SELF_REVIEW)
        sent_by = review["status"]["userInfo"]["username"]
        sent = {
            "payload": payload,
            "sentBy": sent_by,
            "sentAt": format_timestamp(datetime.now(UTC)),
        }
        await self._change(job_path(self._namespace, name), signals={signal: sent})

    async def submit_array(self, name: str, spec: Object) -> None:
        await self.create(ARRAYS, name, spec)

    async def redrive_array(self, name: str) -> None:
        await self._change(array_path(self._namespace, name), redrive=1)

    async def trigger(self, name: str) -> None:
        await self._change(cron_job_path(self._namespace, name), trigger=1)

    async def pause(self, name: str, *, paused: bool) -> None:
        await self._change(queue_path(self._namespace, name), paused=paused)

    async def replace_spec(self, path: str, spec: Object) -> None:
        """Replace the whole spec of an object, however often its status changes meanwhile."""
        for _ in range(_TRIES):
            found: Any = await self._session.get(path)
            try:
                await self._session.replace(path, {**found, "spec": spec})
            except ConflictError:
                continue
            return
        raise AssertionError(f"{path}: changed by others each time")

    async def _change(self, path: str, **spec: Any) -> None:
        await self._session.merge_patch(path, {"spec": spec})


class ThroughGateway:
    """Sends requests to the gateway, as a client that must not lose any."""

    def __init__(self, url: str, token: str, session: aiohttp.ClientSession) -> None:
        self._url = f"{url}/api/v1"
        self._headers = {"Authorization": f"Bearer {token}"}
        self._session = session
        self._ids: dict[str, str] = {}

    def id_of(self, name: str) -> str:
        return self._ids.get(name, name)

    async def submit(self, name: str, spec: Object) -> None:
        # Without a key of its own a repeated request would be told that its own job is in the way.
        named = {"idempotencyKey" if "deduplicationId" in spec else "name": name}
        answer = await self._send("POST", "/jobs", {**named, **spec})
        self._ids[name] = str(answer.get("id", name))

    async def cancel(self, name: str) -> None:
        await self._send("DELETE", f"/jobs/{name}")

    async def resume(self, name: str) -> None:
        await self._send("PATCH", f"/jobs/{self.id_of(name)}", {"suspend": False})

    async def redrive(self, name: str) -> None:
        await self._send("POST", f"/jobs/{name}/redrive")

    async def rerun(self, name: str) -> None:
        await self._send("POST", f"/jobs/{name}/rerun", makes=f"{name}-r1")

    async def signal(self, name: str, signal: str, payload: Any) -> None:
        await self._send("POST", f"/jobs/{name}/signals/{signal}", {"payload": payload})

    async def submit_array(self, name: str, spec: Object) -> None:
        await self._send("POST", "/arrays", {"name": name, **spec})

    async def redrive_array(self, name: str) -> None:
        await self._send("POST", f"/arrays/{name}/redrive")

    async def trigger(self, name: str) -> None:
        await self._send("POST", f"/cron-jobs/{name}/trigger", makes=f"{name}-t1")

    async def pause(self, name: str, *, paused: bool) -> None:
        await self._send("POST", f"/queues/{name}/{'pause' if paused else 'resume'}")

    async def _send(
        self, method: str, path: str, body: Object | None = None, *, makes: str = ""
    ) -> Object:
        """Send it until there is an answer: done, or that it is so already (409).

        A rerun or a trigger is another one each time it is sent. So before it is repeated the job
        is looked for that it `makes`.
        """
        for number in range(_TRIES):
            if number and makes and await self._exists(makes):
                return {}
            try:
                async with self._session.request(
                    method, self._url + path, json=body, headers=self._headers
                ) as answer:
                    if answer.ok or answer.status == HTTPStatus.CONFLICT:
                        return dict(await answer.json())
                    if (
                        answer.status < HTTPStatus.INTERNAL_SERVER_ERROR
                        and answer.status != _TOO_MANY
                    ):
                        words = (await answer.text())[:500]
                        raise AssertionError(f"{method} {path}: {answer.status} {words}")
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(_TRY_AGAIN_SECONDS)
        raise AssertionError(f"{method} {path}: never answered")

    async def _exists(self, name: str) -> bool:
        """Return whether there is a job, or will be in a moment."""
        for _ in range(_LOOKS):
            await asyncio.sleep(_TRY_AGAIN_SECONDS)
            try:
                async with self._session.get(
                    f"{self._url}/jobs/{name}", headers=self._headers
                ) as answer:
                    if answer.ok:
                        return True
            except aiohttp.ClientError:
                pass
        return False
