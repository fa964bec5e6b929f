"""Everything that the dashboard shows, for real: a gateway with tokens, an operator, a worker."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from asyncjob_dev.controlplane import ControlPlane
from support.cluster.api import Client
from support.cluster.identities import Space
from support.processes.gateway import GatewayProcess, caller, gateway_kubeconfig
from support.processes.operator import OperatorProcess
from support.processes.workers import WorkerNamespace, worker_namespace

OPERATOR = ("--backoff-initial=0.2", "--backoff-max=2", "--no-retention")


@dataclass(frozen=True)
class DashboardSetup:
    """A namespace with all of it, and the tokens of those who look at it."""

    ns: WorkerNamespace
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
def dashboard_on(plane: ControlPlane, admin: Client, folder: Path) -> Iterator[DashboardSetup]:
    """Set it up; everything is stopped at the end."""
    with (
        OperatorProcess(plane.kubeconfig, folder / "operator.log", *OPERATOR) as operator,
        worker_namespace(plane, folder) as ns,
    ):
        space = Space(ns.namespace, admin)
        kubeconfig = gateway_kubeconfig(plane, space, folder / "gateway.kubeconfig")
        log = folder / "gateway.log"
        log.touch()
        with GatewayProcess(kubeconfig, log) as gateway:
            tokens = [caller(space, who, f"asyncjob-job-{who}") for who in ("admin", "viewer")]
            space.bind("admin", "asyncjob-job-signaller", called="admin-signals")
            options = ("--concurrency=8", "--park=always")
            ns.worker("worker-0", *options, app="support.apps.dashboard:app")
            operator.until_leading()
            yield DashboardSetup(ns, space, gateway.until_ready(), tokens[0], tokens[1], kubeconfig)


CRON_JOBS = "apis/asyncjob.dev/v1alpha1/namespaces/{namespace}/asynccronjobs"


ARRAYS = "apis/asyncjob.dev/v1alpha1/namespaces/{namespace}/asyncarrays"


def array_of_grains(name: str, **spec: object) -> dict[str, object]:
    """Return an array of twenty items of which two fail until they are mended."""
    return {
        "apiVersion": "asyncjob.dev/v1alpha1",
        "kind": "AsyncArray",
        "metadata": {"name": name},
        "spec": {"type": "sift", "items": {"count": 20}, "chunkSize": 5, **spec},
    }


@dataclass(frozen=True)
class SampleJobs:
    """Jobs of all kinds, and the pages that show them."""

    running: str
    dead: str
    waiting: str
    parent: str
    gate: str
    array: str

    @property
    def pages(self) -> dict[str, str]:
        """Return one of each kind of page, by name."""
        return {
            "queues": "/queues",
            "jobs": "/jobs",
            "filtered": "/jobs?queue=sample&phase=DeadLetter&newer=1d",
            "wrong filter": "/jobs?newer=soon",
            "no match": "/jobs?text=no-such-job",
            "dead letters": "/dead-letters",
            "running": f"/jobs/{self.running}",
            "dead": f"/jobs/{self.dead}",
            "waiting": f"/jobs/{self.waiting}",
            "family": f"/jobs/{self.parent}",
            "arrays": "/arrays",
            "array": f"/arrays/{self.array}",
            "cron jobs": "/cron-jobs",
            "workers": "/workers",
            "submit": "/submit",
            "problem": "/jobs/no-such-job",
            "soon": "/jobs/no-such-job?soon=1",
            "nowhere": "/nowhere",
        }


def prepare(setup: DashboardSetup) -> SampleJobs:
    """Create something of everything, and wait until it is what it is to be."""
    ns = setup.ns
    samples = SampleJobs(
        "sample-running",
        "sample-dead-0",
        "sample-waiting",
        "sample-parent",
        "sample-gate",
        "sample-array",
    )
    ns.queue("sample", paused=True, maxConcurrency=5)
    ns.create(samples.running, "steps", samples.gate)
    for number in range(3):
        ns.create(f"sample-dead-{number}", "brittle", 7, retryPolicy={"maxRetries": 2})
    ns.create(samples.waiting, "echo", 1, queue="sample", priority=5)
    ns.create(samples.parent, "parent", 2)
    cron_job = {
        "apiVersion": "asyncjob.dev/v1alpha1",
        "kind": "AsyncCronJob",
        "metadata": {"name": "sample-nightly"},
        "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"type": "echo", "payload": 1}}},
    }
    ns.api.create(f"/{CRON_JOBS.format(namespace=ns.namespace)}", cron_job)
    ns.api.create(f"/{ARRAYS.format(namespace=ns.namespace)}", array_of_grains(samples.array))
    for name in (samples.dead, "sample-dead-1", "sample-dead-2"):
        ns.until_phase(name, "DeadLetter")
    ns.until_phase(samples.parent, "Succeeded", 30)
    ns.until_status(samples.running, lambda status: status.get("progress"))
    return samples
