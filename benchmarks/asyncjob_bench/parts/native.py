"""Kubernetes' own Jobs, as users have them but for what a pod costs.

Controller and scheduler work as on any cluster, with their limits raised; kwok says of each pod at
once that it has succeeded.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

from asyncjob_bench.errors import WrongOutcomeError
from asyncjob_bench.harness.space import Space
from asyncjob_bench.parts.flow import submit
from asyncjob_bench.parts.part import Numbers, PartContext
from asyncjob_bench.stats.usage import API_SERVER, cpu_row
from asyncjob_dev.api import Api
from asyncjob_dev.binaries import Resolver, resolve
from asyncjob_dev.errors import ApiStatusError
from asyncjob_dev.process import ManagedProcess, wait_until

TOOLS: Final = Path(__file__).parents[2] / "tools"
STAGES: Final = Path(__file__).with_name("stages.yaml")
NODE: Final = "fake-node"
NODES: Final = "/api/v1/nodes"
MARK: Final = {"kwok.x-k8s.io/node": "fake"}
SCHEDULER_FLAGS: Final = (
    "--leader-elect=false",
    "--secure-port=0",
    "--kube-api-qps=1000",
    "--kube-api-burst=2000",
)
WARM_UP: Final = 10
POLL_SECONDS: Final = 0.25
TIMEOUT_SECONDS: Final = 600.0


def measure(context: PartContext) -> Numbers:
    """Return the rate of native Jobs."""
    count = context.scale.native_jobs
    with context.site.space("native") as space, _machinery(context, space) as processes:
        _through(space, WARM_UP, "warm-up-")
        programs = {process.name: [process.pid or 0] for process in processes}
        before = context.site.usage(programs)
        answer, ended = _through(space, count, "job-")
        used = context.site.usage(programs) - before
    used = used.with_client(answer["cpu"])
    context.results.cpu.append(cpu_row("native Jobs", used, count))
    return {
        "native_jobs_s": count / (ended - answer["started"]),
        "native_jobs_s_per_api_core": used.jobs_per_core_second(count, API_SERVER),
    }


@cache
def kwok() -> Path:
    """Find or build the fake kubelet, from its pinned module."""
    return Resolver(os.environ, tools_dir=TOOLS).resolve("kwok").path


@contextmanager
def _machinery(context: PartContext, space: Space) -> Iterator[Sequence[ManagedProcess]]:
    """Run a scheduler and a fake kubelet, and wait until its node is there."""
    kubeconfig = f"--kubeconfig={context.site.plane.kubeconfig}"
    scheduler = ManagedProcess(
        "kube-scheduler",
        [str(resolve("kube-scheduler").path), kubeconfig, *SCHEDULER_FLAGS],
        log_file=space.folder / "kube-scheduler.log",
    )
    mark = f"--manage-nodes-with-annotation-selector={next(iter(MARK))}=fake"
    kubelet = ManagedProcess(
        "kwok",
        [str(kwok()), kubeconfig, f"--config={STAGES}", mark],
        log_file=space.folder / "kwok.log",
    )
    _ensure_node(space.api)
    with scheduler, kubelet:
        wait_until(
            lambda: _is_ready(space.api), "the fake node", within=60, alive=[scheduler, kubelet]
        )
        yield scheduler, kubelet


def _ensure_node(api: Api) -> None:
    node = {"metadata": {"name": NODE, "annotations": MARK, "labels": {"type": "kwok"}}}
    try:
        api.create(NODES, {"apiVersion": "v1", "kind": "Node", **node})
    except ApiStatusError as error:
        if error.reason != "AlreadyExists":
            raise
    # The API server marks a new node as not ready, and no controller runs here to take that back.
    api.merge(f"{NODES}/{NODE}", {"spec": {"taints": None}})


def _is_ready(api: Api) -> bool:
    conditions = api.get(f"{NODES}/{NODE}").get("status", {}).get("conditions", [])
    return any((it["type"], it["status"]) == ("Ready", "True") for it in conditions)


def _through(space: Space, count: int, prefix: str) -> tuple[dict[str, Any], float]:
    """Have so many Jobs submitted and wait until all are complete; return when they were."""
    path = f"/apis/batch/v1/namespaces/{space.name}/jobs"
    answer = submit(space, _job(), count, prefix=prefix, path=path)
    wait_until(
        lambda: not _any_left(space.api, path),
        f"the completion of {count} native Jobs",
        within=TIMEOUT_SECONDS,
        every=POLL_SECONDS,
    )
    ended = time.time()
    _demand_complete(space.api, path, prefix, count)
    return answer, ended


def _demand_complete(api: Api, path: str, prefix: str, count: int) -> None:
    jobs = [job for job in api.get(path)["items"] if job["metadata"]["name"].startswith(prefix)]
    complete = sum(1 for job in jobs if job["status"].get("completionTime"))
    if complete != count:
        raise WrongOutcomeError(f"{complete} of {count} native Jobs are complete")


def _any_left(api: Api, path: str) -> bool:
    return bool(api.get(path, fieldSelector="status.successful=0", limit="1")["items"])


def _job() -> dict[str, Any]:
    container = {"name": "main", "image": "none"}
    pod = {
        "restartPolicy": "Never",
        "containers": [container],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "spec": {"backoffLimit": 0, "template": {"spec": pod}},
    }
