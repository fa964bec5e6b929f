"""A busy time on a real API server, recorded: what goes well, and what does not.

Workers are killed, paused and lose answers, the leading operator is killed, the API server starts
again, and submitters contend for keys. The history of it is judged, and then broken in each way
that a rule knows of.
"""

import asyncio
import gzip
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Self

import orjson
import yaml

from asyncjob import JobContext, WorkerApp
from asyncjob.client import KubernetesJobsClient
from asyncjob.client.errors import InTheWayError
from asyncjob.names import CRON_JOBS, JOBS, collection_path, cron_job_path, job_path
from asyncjob_dev.errors import ApiStatusError, ApiUnavailableError
from support.docs.blocks import all_blocks
from support.driven.arrays import Arrays
from support.driven.jobs import until
from support.objects.builders import cron_job
from support.processes.inside import LossySession, all_done, team
from support.processes.operator import QUICK, OperatorProcess
from support.processes.workers import WorkerNamespace

NEVER_DUE = "0 0 29 2 *"
ENDS = {"Succeeded", "Cancelled", "DeadLetter"}
AUDIT_POLICY = next(
    yaml.safe_load(one.text)
    for one in all_blocks()
    if one.page == "docs/how-to/audit-jobs.md" and one.language == "yaml"
)
"""The one that the page tells to use."""


@dataclass(frozen=True)
class Recording:
    """What was left of it."""

    history: Path
    audit_log: Path
    handler_records: Sequence[Path]
    printed: str
    """What the recorder said, on stderr."""

    @property
    def evidence(self) -> list[str]:
        """The options that give all evidence to the check."""
        options = [f"--audit-log={self.audit_log}", "--retention-min-age=0"]
        return [*options, *(f"--handler-record={file}" for file in self.handler_records)]


class Recorder:
    """`asyncjob audit record` as a process."""

    def __init__(self, ns: WorkerNamespace, file: Path, *options: str) -> None:
        program = str(Path(sys.executable).with_name("asyncjob"))
        self._argv = [program, "audit", "record", str(file), f"--namespace={ns.namespace}"]
        self._argv += [f"--kubeconfig={ns.plane.kubeconfig}", *options]
        self._log = file.with_suffix(".log")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def printed(self) -> str:
        return self._log.read_text()

    def __enter__(self) -> Self:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("ASYNCJOB_")}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(self._argv, stderr=log, env=environment)
        until(lambda: "recording namespace" in self.printed, 30, "the recorder")
        return self

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        assert self._process is not None
        self._process.send_signal(number)
        return self._process.wait(20)

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def last_versions(history: Path) -> dict[str, dict[str, Any]]:
    """Return the newest recorded version of each job, by name; the file may still be written."""
    found: dict[str, dict[str, Any]] = {}
    with gzip.open(history) as stream, suppress(EOFError, orjson.JSONDecodeError):
        for line in stream:
            version = orjson.loads(line)
            if version["line"] == "version" and version["resource"] == JOBS:
                found[version["object"]["metadata"]["name"]] = version["object"]
    return found


def _version(job: dict[str, Any]) -> str:
    version: str = job.get("metadata", {}).get("resourceVersion", "")
    return version


class Story:
    """What happens while the recorder looks on."""

    def __init__(self, ns: WorkerNamespace, access: Path, stack: ExitStack) -> None:
        self.ns = ns
        self._access = access
        self._stack = stack

    def tell(self, history: Path) -> None:
        """Do all of it, recorded in `history`, and wait until every job has come to its end."""
        ns = self.ns
        ns.queue("few", maxConcurrency=2, maxConcurrencyPerKey=1, rateLimit={"count": 50})
        leader = self._operator("first").until_leading()
        standby = self._operator("second")
        steady = self._worker("steady", "--concurrency=4")
        frozen = self._worker("frozen", "--queue=cold")
        doomed = self._worker("doomed", "--queue=doomed")
        self._worker("few", "--queue=few", "--concurrency=8")
        for number in range(8):
            ns.create(f"echo-{number}", "echo", number)
            ns.create(f"shaky-{number}", "shaky", 0.02, retryPolicy={"maxRetries": 100})
        ns.create("again", "again")
        short = {"leaseDurationSeconds": 5, "retryPolicy": {"initialDelaySeconds": 0}}
        rows = {"rows": 4, "hold": 2, "gate": "thaw"}
        ns.create("frozen", "steps", rows, queue="cold", **short)
        ns.create("doomed", "wait", "never", queue="doomed", **short)
        ns.until_phase("frozen", "Running")
        ns.until_phase("doomed", "Running")
        ns.until_status("frozen", lambda status: status.get("checkpoint") == {"row": 1})
        frozen.process.pause()
        doomed.kill()
        self._people()
        self._lose_answers()
        leader.kill()
        standby.until_leading(60)
        self._limits()
        self._arrays()
        ns.until_status("frozen", lambda status: status.get("crashes", 0) == 1, 60)
        # What a restart keeps from the recorder is a gap, and what lies in a gap is not judged.
        until(partial(self.is_recorded, history), 60, "the recorder", every=0.5)
        frozen.process.resume()
        ns.open("thaw")
        self._worker("thawed", "--queue=cold")
        ns.plane.restart_apiserver()
        until(lambda: self._jobs() is not None, 60, "the API server")
        ns.create("after", "echo", 1)
        ns.until_phase("after", "Succeeded", 60)
        ns.cancel("doomed")
        until(self._all_ended, 120, "the end of all jobs", every=0.5)
        steady.stop()

    def is_recorded(self, history: Path) -> bool:
        """Whether the end of each job is in the file; a watch that was cut begins again later."""
        recorded = last_versions(history)
        jobs = self._jobs()
        return jobs is not None and all(
            _version(job) == _version(recorded.get(job["metadata"]["name"], {})) for job in jobs
        )

    def _operator(self, name: str) -> OperatorProcess:
        space = self.ns.namespace
        home = (f"--namespace={space}", f"--lease-namespace={space}")
        log = self.ns.folder / f"operator-{name}.log"
        process = OperatorProcess(self._access, log, *QUICK, *home)
        return self._stack.enter_context(process).until_ready()

    def _worker(self, name: str, *options: str, app: str = "support.apps.worker:app") -> Any:
        record = self.ns.folder / f"handlers-{name}.jsonl"
        return self.ns.worker(name, f"--handler-record={record}", *options, app=app)

    def _arrays(self) -> None:
        """Run arrays: one redriven, one whose chunk is deleted, one cancelled, one deleted."""
        arrays = Arrays(self.ns)
        failing = self.ns.folder / "failing"
        failing.write_text("3 17")
        self._worker("items", "--concurrency=4", app="support.apps.items:app")
        arrays.create("thumbs", "picky", 40, chunkSize=4, parallelism=3)
        arrays.create("long", "slow", 400, chunkSize=100, parallelism=1)
        arrays.create("stopped", "gated", 20, chunkSize=4, parallelism=2)
        arrays.create("gone", "gated", 20, chunkSize=4, parallelism=2)
        arrays.until_begun("stopped")
        arrays.until_begun("gone")
        arrays.ask("stopped", cancel=True)
        arrays.delete("gone")
        arrays.until_phase("thumbs", "Failed")
        failing.write_text("")
        arrays.ask("thumbs", redrive=1)
        arrays.until_some_run("long", 20)
        chunk = next(one for one in arrays.chunks() if one["metadata"]["name"].startswith("long-"))
        self.ns.api.delete(job_path(self.ns.namespace, chunk["metadata"]["name"]))
        for name, phase in (
            ("thumbs", "Succeeded"),
            ("long", "Succeeded"),
            ("stopped", "Cancelled"),
        ):
            arrays.until_phase(name, phase, within=120)
        arrays.until_no_chunks(60)

    def _people(self) -> None:
        """Submit with keys, run cron jobs, cancel, redrive, suspend."""
        ns = self.ns
        kubeconfig, space = str(ns.plane.kubeconfig), ns.namespace
        with KubernetesJobsClient.connect(kubeconfig, space) as jobs:
            first = jobs.submit("echo", 1, idempotency_key="once")
            assert jobs.submit("echo", 1, idempotency_key="once").id == first.id
            jobs.submit("linger", 0.5, deduplication_id="alone", idempotency_key="both")
            with suppress(InTheWayError):
                jobs.submit("linger", 0.5, deduplication_id="alone")
            dead = jobs.submit("order", {"wrong": True}).id
            ns.until_phase(dead, "DeadLetter")
            jobs.redrive(dead)
            ns.until_status(dead, lambda status: status.get("redrives", 0) == 1)
            ns.until_phase(dead, "DeadLetter")
            jobs.cancel(dead)
        for number in range(2):
            ns.create(f"applied-{number}", "linger", 0.3, deduplicationId="applied")
        ns.create("later", "echo", 1, suspend=True)
        ns.until_phase("later", "Pending")
        ns.patch("later", {"spec": {"suspend": False}})
        ns.create("short-lived", "echo", 1, ttlSecondsAfterFinished=1)
        body = cron_job("nightly")
        body["spec"] |= {"schedule": NEVER_DUE, "concurrencyPolicy": "Forbid"}
        body["spec"]["jobTemplate"] = {"spec": {"type": "linger", "payload": 0.3}}
        ns.api.create(collection_path(space, CRON_JOBS), body)
        for number in (1, 2):
            ns.api.merge(cron_job_path(space, "nightly"), {"spec": {"trigger": number}})
            run = f"nightly-t{number}"
            until(partial(self._exists, run), 30, "the run")
            ns.until_phase(run, "Succeeded", 30)
        ns.until_phase("later", "Succeeded")
        until(lambda: not self._exists("short-lived"), 30, "retention", every=0.2)

    def _limits(self) -> None:
        ns, names = self.ns, [f"few-{number}" for number in range(10)]
        for number, name in enumerate(names):
            ns.create(name, "linger", 0.2, queue="few", concurrencyKey=f"key-{number % 3}")
        for name in names:
            ns.until_phase(name, "Succeeded", 60)

    def _lose_answers(self) -> None:
        """Run jobs by workers of which many answers are lost."""
        app, dice = WorkerApp(), Random(1)

        @app.handler("count")
        async def count(job: JobContext) -> int:
            return job.attempt

        async def run() -> None:
            names = [f"lossy-{number}" for number in range(10)]
            people = [self.ns.identity(f"lossy-{number}") for number in range(2)]
            async with team(
                app,
                people,
                opener=lambda access: LossySession(
                    access, lose=20, when=lambda _: dice.random() < 0.4
                ),
                concurrency=4,
                queue="lossy",
                handler_record=str(self.ns.folder / "handlers-lossy.jsonl"),
            ):
                for name in names:
                    await asyncio.to_thread(self.ns.create, name, "count", queue="lossy")
                await all_done(self.ns, names)

        asyncio.run(run())

    def _jobs(self) -> list[Any] | None:
        """Return all jobs, None from an API server that is not there for the moment."""
        try:
            return self.ns.jobs()
        except (ApiStatusError, ApiUnavailableError):
            return None

    def _exists(self, name: str) -> bool:
        return any(job["metadata"]["name"] == name for job in self._jobs() or ())

    def _all_ended(self) -> bool:
        jobs = self._jobs()
        return jobs is not None and all(job["status"]["phase"] in ENDS for job in jobs)
