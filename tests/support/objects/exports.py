"""Objects as an API server has them, and files that hold them."""

import json
from pathlib import Path
from typing import Any

Obj = dict[str, Any]
HEAD = {"kind": "AsyncJobExport", "format": 1, "version": "0.1.0", "namespace": "tests"}


def an_object(kind: str, name: str, spec: Obj, *, namespace: str = "tests", **meta: Any) -> Obj:
    """Return an object with what the API server adds."""
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": f"old-{name}",
        "resourceVersion": "7",
        "creationTimestamp": "2026-11-21T20:00:00Z",
        "generation": 1,
        "managedFields": [{"manager": "kubectl"}],
        **meta,
    }
    return {"apiVersion": "asyncjob.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


def a_queue(name: str, **spec: Any) -> Obj:
    return an_object("AsyncQueue", name, spec)


def a_schedule(name: str, **spec: Any) -> Obj:
    job = {"spec": {"type": "t", "queue": "mail"}}
    return an_object("AsyncCronJob", name, {"schedule": "@daily", "jobTemplate": job, **spec})


def a_job(
    name: str,
    phase: str = "Queued",
    *,
    status: Obj | None = None,
    parent: str = "",
    namespace: str = "tests",
    meta: Obj | None = None,
    **spec: Any,
) -> Obj:
    """Return a job; `parent` is the name of the job that submitted it."""
    labels = {"labels": {"asyncjob.dev/parent": f"old-{parent}"}} if parent else {}
    metadata = {"namespace": namespace, **labels, **(meta or {})}
    made = an_object("AsyncJob", name, {"type": "t", "queue": "default", **spec}, **metadata)
    return {**made, "status": {"phase": phase, **(status or {})}}


def an_array(name: str, phase: str = "Running", *, status: Obj | None = None, **spec: Any) -> Obj:
    made = an_object("AsyncArray", name, {"type": "thumb", "items": {"count": 9}, **spec})
    return {**made, "status": {"phase": phase, **(status or {})}}


def a_file(folder: Path, *objects: Obj, head: bool = True, end: bool = True) -> str:
    """Write an export of these objects and return its name."""
    counts: dict[str, int] = {}
    for obj in objects:
        counts[obj["kind"]] = counts.get(obj["kind"], 0) + 1
    tail = {"kind": "AsyncJobExportEnd", "counts": counts}
    lines = [*([HEAD] if head else []), *objects, *([tail] if end else [])]
    file = folder / "backup.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in lines))
    return str(file)
