"""What only a real cluster shows: a person and kubectl at work, and what the doctor sees."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from asyncjob_dev.api import write_kubeconfig
from asyncjob_dev.binaries import default_resolver
from asyncjob_dev.controlplane import ControlPlane
from support.processes.operator import RBAC, service_account
from support.processes.signals import ignoring
from support.processes.workers import WorkerNamespace, until

pytestmark = pytest.mark.integration

PROGRAMS = Path(sys.executable).parent

Say = Callable[..., str]


def verdicts(text: str) -> dict[str, list[str]]:
    """Return the verdicts of each check."""
    found: dict[str, list[str]] = {}
    for one in json.loads(text)["items"]:
        found.setdefault(one["check"], []).append(one["verdict"])
    return found


def test_a_job_of_a_type_nobody_knows_and_one_in_a_lost_queue_are_found_and_explained(
    say: Say, ns: WorkerNamespace
) -> None:
    healthy = verdicts(say("doctor", "-o", "json"))
    for check in ("API server", "Clock", "Resource types", "Policies", "Permissions", "Operator"):
        assert healthy[check] == ["ok"], check
    say("submit", "unheard.of", "--name", "lost")
    say("submit", "flaky.call", "--name", "alone", "--queue", "nowhere")
    found = verdicts(say("doctor", "-o", "json", code=1))
    assert found["Enforcement"] == ["ok"]
    assert found["Job types"] == ["problem"]
    assert found["Workers"] == ["ok", "problem"]
    assert "asyncjob workers --queue nowhere" in say("get", "alone")
    assert "Cancelled" in say("cancel", "lost", "alone", "--wait")


def test_without_policies_the_doctor_proves_that_nothing_is_enforced(
    say: Say, ns: WorkerNamespace, control_plane: ControlPlane
) -> None:
    name = "validatingadmissionpolicybinding/creation.asyncjob.dev"
    binding = control_plane.kubectl("get", name, "-o", "json").stdout
    control_plane.kubectl("delete", name)

    def passed() -> dict[str, list[str]] | None:
        found = verdicts(say("doctor", "-o", "json", code=1))
        return found if found["Enforcement"] == ["problem"] else None

    try:
        found = until(passed, 20, lambda: "a forbidden write that passes")
        assert found["Policies"] == ["problem"]
    finally:
        kept = json.loads(binding)
        kept["metadata"] = {"name": kept["metadata"]["name"]}
        control_plane.api.create(
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings", kept
        )


def test_one_who_may_only_read_is_told_what_does_not_work(
    say: Say, ns: WorkerNamespace, tmp_path: Path
) -> None:
    plane, namespace = ns.plane, ns.namespace
    rules = [{"apiGroups": ["asyncjob.dev"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]
    roles = f"/apis/{RBAC}/v1/namespaces/{namespace}"
    plane.api.create(f"{roles}/roles", {"metadata": {"name": "reader"}, "rules": rules})
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": namespace}
    role = {"apiGroup": RBAC, "kind": "Role", "name": "reader"}
    body = {"metadata": {"name": "reader"}, "roleRef": role, "subjects": [subject]}
    plane.api.create(f"{roles}/rolebindings", body)
    user = {"token": service_account(plane, namespace, "reader")}
    path = tmp_path / "reader"
    write_kubeconfig(path, url=plane.url, ca_file=plane.ca_file, user=user, namespace=namespace)
    given = f"--kubeconfig={path}"
    assert "error: " in say("submit", "flaky.call", given, code=8)
    found = verdicts(say("doctor", "-o", "json", given))
    assert found["Permissions"] == ["warning"]
    assert found["Enforcement"] == ["warning"]
    assert found["Operator"] == ["warning"]
    say("list", given)


def test_a_cluster_that_does_not_answer_is_one_line_and_a_code(say: Say, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    assert "--kubeconfig" in say("get", "x", f"--kubeconfig={nowhere}", code=7)
    found = verdicts(say("doctor", "-o", "json", f"--kubeconfig={nowhere}", code=1))
    assert found == {"API server": ["problem"]}


def test_kubectl_runs_it_as_a_plugin_and_completes_it(
    say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper = tmp_path / "kubectl_complete-asyncjob"
    helper.write_text(say("completion", "kubectl"))
    helper.chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(PROGRAMS), str(tmp_path), os.environ["PATH"]]))
    kubectl = default_resolver().resolve("kubectl").path
    for words, said in (
        (("asyncjob", "version"), "kubectl asyncjob "),
        (("__complete", "asyncjob", "que"), "queue\t"),
    ):
        done = subprocess.run([kubectl, *words], capture_output=True, text=True, check=True)
        assert done.stdout.startswith(said)


def test_a_person_sees_colours_and_a_live_table_and_ends_it_quietly(
    ns: WorkerNamespace, say: Say
) -> None:
    say("submit", "flaky.call", "failures:=0", "--name", "seen")
    with ignoring(signal.SIGINT, signal.SIGHUP):
        text, code = _on_a_terminal("watch")
    assert code == 130
    assert "\x1b[34mQueued" in text or "\x1b[32mSucceeded" in text or "\x1b[35mRunning" in text
    assert "seen" in text
    assert "Traceback" not in text


def _on_a_terminal(*words: str) -> tuple[str, int]:
    """Run a command on a terminal until it has shown a table, then press Ctrl-C."""
    ours, theirs = pty.openpty()
    environ = {**os.environ, "COLUMNS": "120", "LINES": "40", "TERM": "xterm-256color"}
    process = subprocess.Popen(
        [PROGRAMS / "asyncjob", *words], stdin=theirs, stdout=theirs, stderr=theirs, env=environ
    )
    os.close(theirs)
    text = ""
    try:
        while not re.search(r"seen.*flaky", text):
            text += os.read(ours, 4096).decode()
        process.send_signal(signal.SIGINT)
        while chunk := _rest(ours):
            text += chunk
        return text, process.wait()
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _rest(ours: int) -> str:
    try:
        return os.read(ours, 4096).decode()
    except OSError:  # its end is closed
        return ""
