"""What the supervisor says in a kubelet's stead, and how it says it until it is heard."""

from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from asyncjob_dev.api import Api, Object
from asyncjob_dev.errors import ApiStatusError, ApiUnavailableError, DevError
from asyncjob_dev.supervisor import objects, reporter
from asyncjob_dev.supervisor import objects as objects_module
from asyncjob_dev.supervisor.objects import Container, exit_code
from asyncjob_dev.supervisor.pods import worker_environment
from asyncjob_dev.supervisor.reporter import PodIdentity, PodStatusReporter, TokenFile, renewal_time
from asyncjob_dev.supervisor.worker import WorkerSpec

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(seconds=90)


def running() -> Container:
    return Container("image", "asyncjob-dev://1-0", NOON)


class FakeApi(Api):
    """Answers patches with the errors it is given, then takes them.

    A script, as what matters is which error comes at which patch.
    """

    def __init__(self, *errors: Exception) -> None:
        super().__init__("https://127.0.0.1:1", ca_file=Path(), token="")
        self.errors = list(errors)
        self.patches: list[Object] = []
        self.pod: Object | ApiStatusError = {"metadata": {"uid": "uid"}}
        self.tokens = 0

    def get(self, path: str, **query: str) -> Object:
        del path, query
        if isinstance(self.pod, ApiStatusError):
            raise self.pod
        return self.pod

    def merge(self, path: str, patch: Object, **query: str) -> Object:
        del path, query
        if self.errors:
            raise self.errors.pop(0)
        self.patches.append(patch)
        return {}

    def create(self, path: str, body: Object, **query: str) -> Object:
        del path, body, query
        self.tokens += 1
        expires = datetime.now(UTC) + timedelta(hours=1)
        return {"status": {"token": f"token-{self.tokens}", "expirationTimestamp": str(expires)}}


def reporting(tmp_path: Path, api: FakeApi) -> PodStatusReporter:
    token = TokenFile(api, tmp_path / "token", PodIdentity("jobs", "sa", "w", "uid"), 3600)
    return PodStatusReporter(api, "/pods/w", "uid", token, restart=False)


@pytest.mark.parametrize(("returncode", "code"), [(0, 0), (3, 3), (-9, 137), (-15, 143)])
def test_a_signal_becomes_the_exit_code_a_kubelet_reports(returncode: int, code: int) -> None:
    assert exit_code(returncode) == code


def test_a_killed_container_is_terminated_with_error_and_137() -> None:
    status = running().end(-9, LATER).as_status()
    assert status["state"]["terminated"] == {
        "exitCode": 137,
        "reason": "Error",
        "startedAt": "2026-01-01T12:00:00Z",
        "finishedAt": "2026-01-01T12:01:30Z",
        "containerID": "asyncjob-dev://1-0",
    }
    assert status["ready"] is False


def test_a_container_that_ended_well_is_completed() -> None:
    ended = running().end(0, LATER)
    assert ended.as_status()["state"]["terminated"]["reason"] == "Completed"
    assert objects.build_pod_status(ended, restart=False)["phase"] == "Succeeded"


def test_a_reason_can_be_given_for_tests_of_memory_trouble() -> None:
    status = running().end(-9, LATER, "OOMKilled").as_status()
    assert status["state"]["terminated"]["reason"] == "OOMKilled"


def test_a_restarted_container_runs_and_remembers_its_last_end() -> None:
    again = running().end(-9, LATER).restart("asyncjob-dev://2-1", LATER)
    status = again.as_status()
    assert status["restartCount"] == 1
    assert status["state"] == {"running": {"startedAt": "2026-01-01T12:01:30Z"}}
    assert status["lastState"]["terminated"]["exitCode"] == 137
    assert status["lastState"]["terminated"]["containerID"] == "asyncjob-dev://1-0"


@pytest.mark.parametrize(("restart", "phase"), [(True, "Running"), (False, "Failed")])
def test_a_crash_fails_only_a_pod_that_is_not_restarted(restart: bool, phase: str) -> None:
    status = objects.build_pod_status(running().end(1, LATER), restart=restart)
    assert status["phase"] == phase
    assert {"type": "Ready", "status": "False"} in status["conditions"]


def test_a_pod_names_its_node_so_that_nobody_schedules_it() -> None:
    pod = objects.build_pod("w", account="sa", node="dev-node", labels={"a": "b"}, restart=True)
    assert pod["spec"]["nodeName"] == "dev-node"
    assert pod["spec"]["restartPolicy"] == "Always"
    assert pod["metadata"]["labels"]["a"] == "b"


def test_a_token_is_renewed_at_four_fifths_of_its_life() -> None:
    assert renewal_time(NOON, NOON + timedelta(seconds=1000)) == NOON + timedelta(seconds=800)


def test_a_worker_knows_its_pod_whatever_its_environment_says() -> None:
    spec = WorkerSpec(name="w", argv=["true"], env={"POD_UID": "forged", "COLOUR": "green"})
    made = worker_environment(
        {"HOME": "/h", "KUBECONFIG": "/admin"}, spec, "uid", "jobs", Path("/k")
    )
    assert made == {
        "HOME": "/h",
        "COLOUR": "green",
        "POD_NAME": "w",
        "POD_UID": "uid",
        "POD_NAMESPACE": "jobs",
        "KUBECONFIG": "/k",
    }


def test_a_report_carries_the_pods_uid(tmp_path: Path) -> None:
    api = FakeApi()
    subject = reporting(tmp_path, api)
    subject.report(running())
    assert subject.wait_published(5)
    subject.close()
    assert api.patches[0]["metadata"] == {"uid": "uid"}
    assert api.patches[0]["status"]["phase"] == "Running"


def test_a_report_is_repeated_until_the_api_server_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporter, "RETRY_SECONDS", 0.01)
    api = FakeApi(ApiUnavailableError("down"), ApiStatusError("PATCH", 500, "", "etcd"))
    subject = reporting(tmp_path, api)
    subject.report(running())
    assert subject.wait_published(5)
    subject.close()
    assert len(api.patches) == 1


REFUSED = ApiStatusError("PATCH", HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", "uid is immutable")
MISSING = ApiStatusError("GET", HTTPStatus.NOT_FOUND, "NotFound", "")


@pytest.mark.parametrize("found", [MISSING, {"metadata": {"uid": "another"}}])
def test_a_pod_that_is_gone_or_another_is_let_be(
    tmp_path: Path, found: Object | ApiStatusError
) -> None:
    api = FakeApi(REFUSED)
    api.pod = found
    subject = reporting(tmp_path, api)
    subject.report(running())
    assert subject.wait_published(5)
    subject.close()
    assert api.patches == []


def test_a_refusal_alone_does_not_mean_that_the_pod_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporter, "RETRY_SECONDS", 0.01)
    api = FakeApi(REFUSED, MISSING)
    subject = reporting(tmp_path, api)
    subject.report(running())
    assert subject.wait_published(5)
    subject.close()
    assert len(api.patches) == 1


def test_an_unheard_report_is_told_after_the_time_allowed(tmp_path: Path) -> None:
    api = FakeApi(*[ApiUnavailableError("down")] * 1000)
    subject = reporting(tmp_path, api)
    subject.report(running())
    assert not subject.wait_published(0.05)
    subject.close()


def test_the_token_is_there_before_anything_starts_and_can_be_renewed(tmp_path: Path) -> None:
    subject = reporting(tmp_path, FakeApi())
    assert (tmp_path / "token").read_text() == "token-1"
    subject.renew_token()
    assert (tmp_path / "token").read_text() == "token-2"
    subject.close()


def manifest(tmp_path: Path, text: str) -> list[dict[str, Any]]:
    (tmp_path / "m.yaml").write_text(text)
    return list(objects_module.read_manifests([tmp_path / "m.yaml"]))


def test_manifests_may_hold_several_documents_and_lists(tmp_path: Path) -> None:
    found = manifest(tmp_path, "kind: A\n---\n---\nkind: List\nitems: [{kind: B}, {kind: C}]\n")
    assert [document["kind"] for document in found] == ["A", "B", "C"]


def test_objects_without_a_namespace_get_ours() -> None:
    role = {"kind": "Role", "metadata": {"name": "r"}}
    own = {"kind": "Role", "metadata": {"name": "r", "namespace": "theirs"}}
    assert objects_module.path_of(role, "jobs").endswith("/v1/namespaces/jobs/roles/r")
    assert objects_module.path_of(own, "jobs").endswith("/v1/namespaces/theirs/roles/r")


def test_other_kinds_are_left_to_kubectl() -> None:
    document = {"kind": "Deployment", "metadata": {"name": "d"}}
    with pytest.raises(DevError, match=r"Deployment d: only .* with kubectl"):
        objects_module.path_of(document, "jobs")
