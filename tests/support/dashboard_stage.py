"""Everything that the dashboard shows, for real: a gateway with tokens, an operator, a worker."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from asyncjob_dev.controlplane import ControlPlane
from support.api import Client
from support.gateway import GatewayProcess, caller, gateway_kubeconfig
from support.identities import Space
from support.operator import OperatorProcess
from support.workers import Field, field_on

OPERATOR = ("--backoff-initial=0.2", "--backoff-max=2", "--no-retention")


@dataclass(frozen=True)
class Stage:
    """A namespace with all of it, and the tokens of those who look at it."""

    field: Field
    space: Space
    gateway: GatewayProcess
    admin_token: str
    viewer_token: str
    kubeconfig: Path

    def url(self, path: str) -> str:
        """Return the address of a page of the dashboard."""
        return f"{self.gateway.url}/dashboard{path}"

    def another(self, *options: str) -> GatewayProcess:
        """Return another gateway, not started yet."""
        log = self.kubeconfig.with_name("another-gateway.log")
        log.touch()
        return GatewayProcess(self.kubeconfig, log, *options)


@contextmanager
def stage_on(plane: ControlPlane, admin: Client, folder: Path) -> Iterator[Stage]:
    """Set it up; everything is stopped at the end."""
    with (
        OperatorProcess(plane.kubeconfig, folder / "operator.log", *OPERATOR) as operator,
        field_on(plane, folder) as field,
    ):
        space = Space(field.namespace, admin)
        kubeconfig = gateway_kubeconfig(plane, space, folder / "gateway.kubeconfig")
        log = folder / "gateway.log"
        log.touch()
        with GatewayProcess(kubeconfig, log) as gateway:
            tokens = [caller(space, who, f"asyncjob-job-{who}") for who in ("admin", "viewer")]
            field.worker("worker-0", "--concurrency=8", app="support.dashboard_app:app")
            operator.until_leading()
            yield Stage(field, space, gateway.until_ready(), tokens[0], tokens[1], kubeconfig)


CRON_JOBS = "apis/asyncjob.dev/v1alpha1/namespaces/{namespace}/asynccronjobs"


@dataclass(frozen=True)
class Scene:
    """Jobs of all kinds, and the pages that show them."""

    running: str
    dead: str
    waiting: str
    parent: str
    gate: str

    @property
    def pages(self) -> dict[str, str]:
        """Return one of each kind of page, by name."""
        return {
            "queues": "/queues",
            "jobs": "/jobs",
            "filtered": "/jobs?queue=scene&phase=DeadLetter&newer=1d",
            "wrong filter": "/jobs?newer=soon",
            "no match": "/jobs?text=no-such-job",
            "dead letters": "/dead-letters",
            "running": f"/jobs/{self.running}",
            "dead": f"/jobs/{self.dead}",
            "waiting": f"/jobs/{self.waiting}",
            "family": f"/jobs/{self.parent}",
            "cron jobs": "/cron-jobs",
            "workers": "/workers",
            "submit": "/submit",
            "problem": "/jobs/no-such-job",
            "soon": "/jobs/no-such-job?soon=1",
            "nowhere": "/nowhere",
        }


def prepare(stage: Stage) -> Scene:
    """Create something of everything, and wait until it is what it is to be."""
    field = stage.field
    scene = Scene("scene-running", "scene-dead-0", "scene-waiting", "scene-parent", "scene-gate")
    field.queue("scene", paused=True, maxConcurrency=5)
    field.create(scene.running, "steps", scene.gate)
    for number in range(3):
        field.create(f"scene-dead-{number}", "brittle", 7, retryPolicy={"maxRetries": 2})
    field.create(scene.waiting, "echo", 1, queue="scene", priority=5)
    field.create(scene.parent, "parent", 2)
    cron_job = {
        "apiVersion": "asyncjob.dev/v1alpha1",
        "kind": "AsyncCronJob",
        "metadata": {"name": "scene-nightly"},
        "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"type": "echo", "payload": 1}}},
    }
    field.api.create(f"/{CRON_JOBS.format(namespace=field.namespace)}", cron_job)
    for name in (scene.dead, "scene-dead-1", "scene-dead-2"):
        field.until_phase(name, "DeadLetter")
    field.until_phase(scene.parent, "Succeeded", 30)
    field.until_status(scene.running, lambda status: status.get("progress"))
    return scene
