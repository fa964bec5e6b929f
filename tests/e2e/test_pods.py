"""Real pods: what a worker may in one, and how it fares when that pod is hurt or goes."""

import json

import pytest

from asyncjob_dev.errors import KubectlError
from e2e.cluster import until
from e2e.faults import sigkill
from e2e.recording import Object, recorded
from e2e.release import PODS
from e2e.space import Space

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300, func_only=True)]

PYTHON = "/opt/asyncjob/bin/python"

FACTS = """
import json, os, pathlib, socket

def writable(folder):
    try:
        (pathlib.Path(folder) / "probe").touch()
    except OSError:
        return False
    return True

words = pathlib.Path("/proc/self/status").read_text().split()
after = lambda name: words[words.index(name) + 1]
api = socket.create_connection(("kubernetes.default.svc", 443), timeout=10)
print(json.dumps({
    "user": os.getuid(),
    "capabilities": [int(after(f"Cap{kind}:"), 16) for kind in ("Prm", "Eff", "Bnd")],
    "seccomp": after("Seccomp:"),
    "may gain more": after("NoNewPrivs:") == "0",
    "root is read-only": bool(os.statvfs("/").f_flag & os.ST_RDONLY),
    "writable": [folder for folder in ("/", "/app", "/etc", "/tmp") if writable(folder)],
    "api": os.environ["KUBERNETES_SERVICE_HOST"],
    "by name": api.getpeername()[0],
}))
"""

PRIVILEGED = """
apiVersion: v1
kind: Pod
metadata: {name: greedy}
spec: {containers: [{name: greedy, image: any, securityContext: {privileged: true}}]}
"""


def test_a_worker_that_may_nothing_claims_and_finishes_a_job(space: Space) -> None:
    pod = space.worker()["metadata"]
    said = space.cluster.exec(space.name, pod["name"], PYTHON, "-c", FACTS)
    service = space.cluster.get("default", "service", "kubernetes")["spec"]["clusterIP"]
    assert json.loads(said) == {
        "user": 65532,
        "capabilities": [0, 0, 0],
        "seccomp": "2",
        "may gain more": False,
        "root is read-only": True,
        "writable": ["/tmp"],
        "api": service,
        "by name": service,
    }
    space.create("sleeps", "sleep", {"seconds": 2})
    lease = space.until_phase("sleeps", "Running")["lease"]
    assert (lease["holder"], lease["holderUID"]) == (pod["name"], pod["uid"])
    space.until_phase("sleeps", "Succeeded")
    space.create("echo", "echo", {"hello": "world"})
    assert space.until_phase("echo", "Succeeded")["result"] == {"hello": "world"}
    assert "worker started" in space.logs()


def test_the_namespace_really_is_restricted(space: Space) -> None:
    with pytest.raises(KubectlError, match="violates PodSecurity"):
        space.cluster.kubectl(
            "apply", f"--namespace={space.name}", "--filename=-", input=PRIVILEGED
        )


def test_a_killed_container_restarts_and_its_job_is_recovered(space: Space) -> None:
    space.create("long", "sleep", {"seconds": 300}, retryPolicy={"initialDelaySeconds": 1})
    space.until_phase("long", "Running")
    pod = space.worker()["metadata"]["name"]
    sigkill(space.cluster, space.name, pod, "worker")

    def restarted() -> bool:
        state = space.worker()["status"]["containerStatuses"][0]
        ended = state["lastState"].get("terminated", {})
        return (state["restartCount"], ended.get("exitCode")) == (1, 137)

    until(restarted, 30.0, lambda: space.cluster.describe(space.name))
    status = space.until_status(
        "long", lambda now: (now["attempt"], now["phase"]) == (2, "Running")
    )
    assert status.get("crashes", 0) == 1
    assert "WorkerCrashed" in [entry["reason"] for entry in status["history"]]


def test_a_deleted_pod_ends_in_good_order_and_gives_back_what_it_cannot_finish(
    space: Space,
) -> None:
    space.create("long", "sleep", {"seconds": 300})
    space.create("short", "sleep", {"seconds": 2})
    first = space.until_phase("long", "Running")["lease"]["holder"]
    space.until_phase("short", "Running")
    with (
        recorded(space.cluster, PODS) as pods,
        space.cluster.logs_of(space.name, first) as all_of_it,
    ):
        space.cluster.kubectl("delete", "pod", first, f"--namespace={space.name}", within=25.0)
        assert "worker stopped" in all_of_it()
    # It ended by itself, before the kubelet's patience was over: else its code would be 137.
    (code,) = {code for seen in pods.seen for code in exit_codes(seen.object, first)}
    assert code == 0
    status = space.until_status(
        "long", lambda now: (now["attempt"], now["phase"]) == (2, "Running")
    )
    assert status["lease"]["holder"] == space.worker()["metadata"]["name"] != first
    charged = {name: status.get(name, 0) for name in ("releases", "retries", "crashes")}
    assert charged == {"releases": 1, "retries": 0, "crashes": 0}
    short = space.until_phase("short", "Succeeded")
    assert (short["attempt"], short.get("releases", 0)) == (1, 0)


def exit_codes(pod: Object, name: str) -> list[int]:
    states = pod["status"].get("containerStatuses", []) if pod["metadata"]["name"] == name else []
    ended = [state["state"]["terminated"] for state in states if "terminated" in state["state"]]
    return [int(end["exitCode"]) for end in ended]
