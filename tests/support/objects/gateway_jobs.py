"""Jobs for the gateway's cache, as the API server would show them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from asyncjob.kube.watch import WatchEvent

BEGIN = datetime(2026, 11, 21, tzinfo=UTC)


def stored(number: int, version: int | None = None, **parts: Any) -> dict[str, Any]:
    """Return the job of a number: each is created a second after the one before."""
    created = (BEGIN + timedelta(seconds=number)).strftime("%Y-%m-%dT%H:%M:%SZ")
    meta = {
        "name": f"job-{number}",
        "namespace": "ns",
        "uid": f"uid-{number:06}",
        "resourceVersion": str(version or number + 1),
        "creationTimestamp": created,
        **parts.pop("metadata", {}),
    }
    spec = {"type": "test", "queue": "default", **parts.pop("spec", {})}
    return {
        "kind": "AsyncJob",
        "metadata": meta,
        "spec": spec,
        "status": {"phase": "Queued"} | parts,
    }


def shown(kind: str, obj: dict[str, Any]) -> WatchEvent:
    """Return a watch event."""
    return WatchEvent(kind, obj)
