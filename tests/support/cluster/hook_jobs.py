"""Plays the kubelet for a hook's Job: runs its very command here, under its own ServiceAccount."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from asyncjob_dev.controlplane import ControlPlane
from support.processes.workers import until

TIME = "2026-01-01T00:00:00Z"
COMPLETE = {
    "startTime": TIME,
    "completionTime": TIME,
    "succeeded": 1,
    "conditions": [
        {"type": kind, "status": "True", "lastTransitionTime": TIME, "reason": "CompletionsReached"}
        for kind in ("SuccessCriteriaMet", "Complete")
    ],
}


def run_job(plane: ControlPlane, namespace: str, name: str, folder: Path) -> str:
    """Wait for the Job, run it, and report its success; return what it printed."""
    where = f"--namespace={namespace}"

    def look() -> Mapping[str, Any] | None:
        asked = ("get", "job", name, where, "--ignore-not-found", "--output=json")
        found = plane.kubectl(*asked)
        job: Mapping[str, Any] = json.loads(found.stdout or "{}")
        return job or None

    job = until(look, 60.0, lambda: f"there is no Job {name}")
    spec = job["spec"]["template"]["spec"]
    access = kubeconfig(plane, namespace, spec["serviceAccountName"], folder)
    said = run(spec["containers"][0], access)
    report = ("patch", "job", name, where, "--subresource=status", "--type=merge")
    plane.kubectl(*report, f"--patch={json.dumps({'status': COMPLETE})}")
    return said


def run(container: Mapping[str, Any], access: Path) -> str:
    """Run a container's command with this Python's programs; raises where it fails."""
    (program,) = container["command"]
    command = [str(Path(sys.executable).with_name(program)), *container["args"]]
    done = subprocess.run(
        [*command, f"--kubeconfig={access}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def kubeconfig(plane: ControlPlane, namespace: str, account: str, folder: Path) -> Path:
    """Write a kubeconfig with a token of the ServiceAccount."""
    token = plane.kubectl("create", "token", account, f"--namespace={namespace}").stdout.strip()
    cluster = {"server": plane.url, "certificate-authority": str(plane.ca_file)}
    context = {"cluster": "it", "user": "it", "namespace": namespace}
    path = folder / f"{account}.kubeconfig"
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "it", "cluster": cluster}],
                "users": [{"name": "it", "user": {"token": token}}],
                "contexts": [{"name": "it", "context": context}],
                "current-context": "it",
            }
        )
    )
    return path
