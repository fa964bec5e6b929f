"""What a fault acts upon: the processes of one cell, in a namespace of their own.

Two operators, a gateway and some workers, each as a Pod with a token bound to it, started again by
the development environment's stand-in for a kubelet as a container would be; and a recorder, to
which no fault is done.
"""

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import orjson
import yaml

from asyncjob.names import (
    ARRAYS,
    COMPONENT_LABEL,
    GATEWAY_COMPONENT,
    JOBS,
    OPERATOR_COMPONENT,
    OPERATOR_LEASE,
    QUEUES,
    WORKER_COMPONENT,
    collection_path,
    job_path,
)
from asyncjob_bench.harness.space import RBAC, ManagedWorker, roles
from asyncjob_chaos.errors import ChaosError
from asyncjob_chaos.handlers import TRACE_VARIABLE
from asyncjob_chaos.judging.outcomes import ENDS
from asyncjob_chaos.judging.signs import Sign
from asyncjob_chaos.load import Load, LoadKind
from asyncjob_chaos.planes import PlaneNeeds, PreparedPlane
from asyncjob_chaos.tools.clocks import WrongClock
from asyncjob_chaos.tools.disks import SmallDisk, small_disk
from asyncjob_chaos.tools.proxy import NetworkProxy
from asyncjob_dev.environment.components import (
    GATEWAY_ACCOUNT,
    OPERATOR_ACCOUNT,
    WORKER_ACCOUNT,
    script_path,
)
from asyncjob_dev.environment.readiness import await_enforcement
from asyncjob_dev.errors import ApiStatusError, ApiUnavailableError
from asyncjob_dev.ports import free_port, free_ports
from asyncjob_dev.process import ManagedProcess, wait_until
from asyncjob_dev.supervisor import DevPods, WorkerSpec

WORKERS: Final = ("worker-1", "worker-2", "worker-3")
OPERATORS: Final = ("operator-1", "operator-2")
GATEWAY: Final = "gateway"
QUEUE: Final = "chaos"
CONCURRENCY: Final = 16
READY_SECONDS: Final = 180.0
GRACE_SECONDS: Final = 1.0
"""What handlers get of a worker that drains: too little for long jobs, which are given back."""

UNFINISHED: Final = ",".join(f"status.phase!={phase}" for phase in sorted(ENDS))
"""A selector, so that one list tells: a job that wakes meanwhile is in no list of a phase."""

UNFINISHED_ARRAYS: Final = frozenset({"Pending", "Running"})
LISTS: Final = (b'{"line":"list",', b'{"line":"listEnd",')
TAIL_BYTES: Final = 1 << 20
MARK: Final = "chaos/mark"
VERSION: Final = re.compile(rb'"resourceVersion":"(\d+)"')
RECORDED_PER_SECOND: Final = 200
"""How many jobs the recorder gets through in a second at least, after a gap."""

APP: Final = "asyncjob_chaos.wait_handlers:app"
CHILDREN_ROLE: Final = "asyncjob-worker-children"


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What a fault needs before the processes start, by their names."""

    plane: PlaneNeeds = field(default_factory=PlaneNeeds)
    proxied: frozenset[str] = frozenset()
    """Processes that reach the API server through a proxy."""

    wrong_clocks: frozenset[str] = frozenset()
    """Processes whose wall clock can be changed."""

    small_disk: str = ""
    """A process whose folder, with its log and temporary files, is on a small disk."""

    small_disk_mib: int = 4


class FaultTarget:
    """The running processes of one cell."""

    def __init__(
        self, prepared: PreparedPlane, folder: Path, namespace: str, kind: LoadKind
    ) -> None:
        self.prepared = prepared
        self.plane = prepared.plane
        self.api = prepared.plane.api
        self.folder = folder
        self.namespace = namespace
        self.signs: Counter[Sign] = Counter()
        self.processes: dict[str, ManagedWorker] = {}
        self.proxies: dict[str, NetworkProxy] = {}
        self.clocks: dict[str, WrongClock] = {}
        self.disk: SmallDisk | None = None
        self.trace = folder / "trace.jsonl"
        self.history = folder / "history.jsonl"
        self.gateway_url = ""
        self.burst = 2_000
        """How many jobs a burst has."""

        self._audit_from = _size(prepared.audit_log)
        self._kind = kind
        self._load: Load | None = None
        self._pods: DevPods | None = None
        self._recorder: ManagedProcess | None = None
        self._stack = ExitStack()
        self._setup = Setup()

    # ---- what faults ask

    @property
    def load(self) -> Load:
        """What submits."""
        assert self._load is not None
        return self._load

    def process(self, name: str) -> ManagedProcess:
        """Return the process of this name."""
        return self.processes[name].worker.process

    def leader(self) -> str:
        """Return the name of the operator that leads, waiting for one if need be."""
        found: list[str] = []

        def look() -> bool:
            found[:] = [
                one
                for one in list(self.processes)
                if one.startswith("operator") and self.leads(one)
            ]
            return bool(found)

        wait_until(look, "a leading operator", within=READY_SECONDS)
        return found[0]

    def leads(self, name: str) -> bool:
        """Return whether this operator leads."""
        running = self.process(name).running
        return running and self.processes[name].metrics().total("asyncjob_operator_leading") == 1

    def kill(self, name: str, sign: Sign) -> None:
        """SIGKILL a process; it is started again."""
        self.processes[name].worker.kill()
        self.signs[sign] += 1

    def freeze(self, name: str) -> None:
        """SIGSTOP a process, and see that it stands still."""
        process = self.process(name)
        process.pause()
        self.until(lambda: _stands_still(process.pid or 0), f"{name} to stand still")
        self.signs[Sign.FROZEN] += 1

    def logged(self, name: str, text: str) -> int:
        """Return how often a process has logged a text."""
        return self.process(name).log_file.read_text(errors="replace").count(text)

    def restart(self, name: str) -> None:
        """SIGTERM a process, and wait until its Pod has it ready again."""
        old = self.process(name).pid
        self.process(name).terminate()
        self.until(lambda: self.process(name).pid != old, f"a new start of {name}")
        self.processes[name].wait_ready()

    def until(self, holds: Callable[[], bool], what: str, within: float = 60.0) -> None:
        """Wait for a condition."""
        wait_until(holds, what, within=within)

    def metric(self, name: str, **labels: str) -> float:
        """Return a total of the API server's own metrics."""
        total = 0.0
        for line in self.api.read("/metrics").decode().splitlines():
            sample, _, value = line.rpartition(" ")
            wanted = all(f'{key}="{text}"' in sample for key, text in labels.items())
            if wanted and sample.split("{")[0] == name:
                total += float(value)
        return total

    def arrays(self) -> list[dict[str, Any]]:
        """Return all arrays."""
        found: list[dict[str, Any]] = self.api.get(collection_path(self.namespace, ARRAYS))["items"]
        return found

    def dead_letters(self) -> int:
        """Return how many jobs are dead letters."""
        path = collection_path(self.namespace, JOBS)
        return len(self.api.get(path, fieldSelector="status.phase=DeadLetter")["items"])

    def replace_process(self, name: str, old: str) -> None:
        """Start a process in a new Pod, and when it is ready end the old one in good order."""
        starters = {"operator": self._start_operator, "worker": self._start_worker}
        starters[name.partition("-")[0]](name)
        self.processes[name].wait_ready()
        gone = self.processes.pop(old).worker
        assert self._pods is not None
        self._pods.workers.remove(gone)
        gone.stop()

    # ---- how it begins and ends

    def start(self, setup: Setup) -> None:
        """Start everything, and the load last."""
        self._setup = setup
        self.folder.mkdir(parents=True)
        for name in sorted(setup.proxied):
            proxy = NetworkProxy(self.plane.url, seed=len(self.proxies))
            self.proxies[name] = self._stack.enter_context(proxy)
        for name in sorted(setup.wrong_clocks):
            self.clocks[name] = WrongClock(self.folder, name)
        if setup.small_disk:
            disk = small_disk(self.folder / "pods" / setup.small_disk, setup.small_disk_mib)
            self.disk = self._stack.enter_context(disk)
        pods = DevPods(self.api, self.folder / "pods", namespace=self.namespace)
        self._pods = self._stack.enter_context(pods)
        self._prepare(pods)
        for name in OPERATORS:
            self._start_operator(name)
        self.gateway_url = f"http://127.0.0.1:{self._start_gateway()}"
        for name in WORKERS:
            self._start_worker(name)
        self._start_recorder()
        for process in self.processes.values():
            process.wait_ready()
        self.leader()
        self._load = Load(
            self._kind,
            self.namespace,
            QUEUE,
            str(self.plane.kubeconfig),
            self.gateway_url,
        )
        self._stack.callback(self._load.close)
        self._load.start()

    def close(self) -> None:
        """Stop everything."""
        for process in self.processes.values():
            worker = process.worker
            worker.process.resume()
            worker.spec = replace(worker.spec, grace=1.0)
        self._stack.close()

    def await_ends(self, within: float) -> bool:
        """Wait until every job and array has ended; return whether that has come."""
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            if not self._any_unfinished():
                return True
            time.sleep(0.5)
        return False

    def stop_recorder(self) -> None:
        """End the recording in good order, once it has all that was written before."""
        assert self._recorder is not None
        newest = self._mark()
        self.until(
            lambda: not newest or self._recorded_version() >= newest,
            "the recorder to catch up",
            READY_SECONDS + len(self.load.accepted) / RECORDED_PER_SECOND,
        )
        # Within a list the newest may come before others.
        self.until(self._no_list_is_open, "the recorder to end its list", READY_SECONDS)
        if not self._recorder.running:
            raise ChaosError(f"the recorder has ended: {self._recorder.log_tail()}")
        self._recorder.stop(30.0)

    def _mark(self) -> int:
        """Write a job once more; return its version, 0 if there is none.

        A watch shows it after everything before, and so after chunks that are deleted by now.
        """
        for job in self.api.get(collection_path(self.namespace, JOBS), limit="1")["items"]:
            path = job_path(self.namespace, job["metadata"]["name"])
            marked = self.api.merge(path, {"metadata": {"annotations": {MARK: "the end"}}})
            return int(marked["metadata"]["resourceVersion"])
        return 0

    def _recorded_version(self) -> int:
        """Return the newest of the versions of jobs that were recorded last, 0 if none is seen.

        The file is written once a second. The end of a list names the version that it was made at.
        """
        with self.history.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            lines = file.read().splitlines()
        of_jobs = (line for line in lines if b'"resource":"asyncjobs"' in line)
        return max((int(found) for line in of_jobs for found in VERSION.findall(line)), default=0)

    def _no_list_is_open(self) -> bool:
        opened: set[str] = set()
        with self.history.open("rb") as file:
            for line in file:
                if line.startswith(LISTS):
                    found = orjson.loads(line)
                    change = opened.add if found["line"] == "list" else opened.discard
                    change(found["resource"])
        return not opened

    def audit_events(self) -> Iterator[bytes]:
        """Yield the lines of the API server's audit log since the processes began."""
        if self.prepared.audit_log is not None:
            with self.prepared.audit_log.open("rb") as log:
                log.seek(self._audit_from)
                yield from log

    @property
    def handler_records(self) -> list[Path]:
        """What the workers recorded; nothing of those whose clocks are wrong."""
        files = sorted(self.folder.glob("handlers-*.jsonl"))
        return [] if self._setup.wrong_clocks else files

    def transitions(self) -> int:
        """Return how often the operators' lease has changed hands."""
        path = f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases/{OPERATOR_LEASE}"
        return int(self.api.get(path)["spec"].get("leaseTransitions") or 0)

    def _any_unfinished(self) -> bool:
        path = collection_path(self.namespace, JOBS)
        try:
            if self.api.get(path, fieldSelector=UNFINISHED, limit="1")["items"]:
                return True
            phases = {array.get("status", {}).get("phase", "Pending") for array in self.arrays()}
        except (ApiStatusError, ApiUnavailableError):
            return True
        return not phases.isdisjoint(UNFINISHED_ARRAYS)

    def _prepare(self, pods: DevPods) -> None:
        file = self.folder / "roles.yaml"
        file.write_text(
            yaml.safe_dump_all([*roles(self.namespace), *further_roles(self.namespace)])
        )
        accounts = (WORKER_ACCOUNT, OPERATOR_ACCOUNT, GATEWAY_ACCOUNT)
        pods.prepare(service_accounts=accounts, rbac=[file])
        await_enforcement(self.api, WORKER_ACCOUNT, self.namespace)
        if self._kind.queue_spec:
            body = {
                "apiVersion": "asyncjob.dev/v1alpha1",
                "kind": "AsyncQueue",
                "metadata": {"name": QUEUE},
                "spec": dict(self._kind.queue_spec),
            }
            self.api.create(collection_path(self.namespace, QUEUES), body)

    def _start_operator(self, name: str) -> None:
        health, metrics = free_ports(2)
        space = self.namespace
        argv = [script_path("asyncjob-operator"), "run", f"--namespace={space}"]
        argv += [f"--health-port={health}", f"--metrics-port={metrics}"]
        argv += [f"--lease-namespace={space}"]
        self._start(name, argv, OPERATOR_ACCOUNT, OPERATOR_COMPONENT, (health, metrics))

    def _start_gateway(self) -> int:
        port, metrics = free_ports(2)
        argv = [script_path("asyncjob-gateway"), "run", f"--namespace={self.namespace}", "--open"]
        argv += ["--host=127.0.0.1", f"--port={port}"]
        argv += ["--metrics-host=127.0.0.1", f"--metrics-port={metrics}"]
        self._start(GATEWAY, argv, GATEWAY_ACCOUNT, GATEWAY_COMPONENT, (port, metrics))
        return port

    def _start_worker(self, name: str) -> None:
        port = free_port()
        argv = [script_path("asyncjob-worker"), "run", APP, f"--queue={QUEUE}"]
        argv += [f"--concurrency={CONCURRENCY}", f"--health-port={port}", "--health-host=127.0.0.1"]
        argv += [f"--grace={GRACE_SECONDS:g}"]
        argv += [f"--handler-record={self.folder / f'handlers-{name}.jsonl'}"]
        self._start(name, argv, WORKER_ACCOUNT, WORKER_COMPONENT, (port, port))

    def _start(
        self, name: str, argv: list[str], account: str, component: str, ports: tuple[int, int]
    ) -> None:
        assert self._pods is not None
        home = self.folder / "pods" / name
        (home / "tmp").mkdir(parents=True, exist_ok=True)
        env: dict[str, str] = {TRACE_VARIABLE: str(self.trace), "TMPDIR": str(home / "tmp")}
        if name in self.clocks:
            env |= self.clocks[name].environment
        spec = WorkerSpec(
            name=name,
            argv=argv,
            service_account=account,
            labels={COMPONENT_LABEL: component},
            env=env,
            restart=True,
            grace=GRACE_SECONDS + 5.0,
            server=self.proxies[name].url if name in self.proxies else "",
        )
        self.processes[name] = ManagedWorker(self._pods.start(spec), *ports)

    def _start_recorder(self) -> None:
        argv = [script_path("asyncjob"), "audit", "record", str(self.history)]
        argv += [f"--namespace={self.namespace}", f"--kubeconfig={self.plane.kubeconfig}"]
        log = self.folder / "recorder.log"
        self._recorder = ManagedProcess(
            "recorder",
            argv,
            log_file=log,
            ready=lambda: b"recording namespace" in log.read_bytes(),
            ready_within=READY_SECONDS,
            grace=30.0,
        )
        self._recorder.start()
        self._stack.callback(self._recorder.stop)


@contextmanager
def running(
    prepared: PreparedPlane, folder: Path, namespace: str, kind: LoadKind, setup: Setup
) -> Iterator[FaultTarget]:
    """Run the processes of a cell."""
    target = FaultTarget(prepared, folder, namespace, kind)
    try:
        target.start(setup)
        yield target
    finally:
        target.close()


def further_roles(namespace: str) -> list[dict[str, Any]]:
    """Return the bindings of the gateway, and of workers whose handlers submit."""
    here = {"namespace": namespace}
    return [
        _binding(namespace, "RoleBinding", GATEWAY_ACCOUNT, GATEWAY_ACCOUNT, here),
        _binding(
            namespace, "ClusterRoleBinding", GATEWAY_ACCOUNT, f"{GATEWAY_ACCOUNT}-callers", {}
        ),
        _binding(namespace, "RoleBinding", WORKER_ACCOUNT, CHILDREN_ROLE, here),
    ]


def _binding(
    namespace: str, kind: str, account: str, role: str, where: Mapping[str, str]
) -> dict[str, Any]:
    name = role if where else f"{role}-{namespace}"
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": kind,
        "metadata": {"name": name, **where},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }


def _size(file: Path | None) -> int:
    return file.stat().st_size if file and file.exists() else 0


def _stands_still(pid: int) -> bool:
    """Whether it is stopped, as the kernel sees it."""
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    return stat.rpartition(")")[2].split()[0] == "T"
