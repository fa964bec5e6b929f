"""Plays the scenarios in an environment of its own, and judges them by what the API server says."""

import json
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import indent

from asyncjob import AsyncJob
from asyncjob_dev.binaries import default_resolver
from asyncjob_dev.controlplane import datadir
from asyncjob_dev.demo import checks
from asyncjob_dev.demo.checks import CheckResult, ScenarioResult, report_file
from asyncjob_dev.demo.rows import (
    ERRORS,
    READABLE,
    ROWS,
    check_rows,
    is_ended,
    manifest_for,
    read_array,
)
from asyncjob_dev.demo.view import (
    Jobs,
    LineView,
    TerminalView,
    View,
    diagnostics,
    is_finished,
    problems,
    read_jobs,
    scenario_table,
    watch_until,
)
from asyncjob_dev.environment import Environment, EnvironmentPaths, EnvironmentSettings
from asyncjob_dev.signals import unwind_on_signals

STALL_TIMEOUT = 40.0
"""Seconds in which nothing moves, before the jobs are judged as they are. The longest wait of a job
that gets on is a lease that has to expire."""

TABLE_WIDTH = 150

UNDISTURBED = tuple(scenario.job for scenario, _ in checks.UNDISTURBED)


class Demo:
    """One run; `examples` is the folder that the manifests come from, `project` the workers'."""

    def __init__(self, environment: Environment, project: Path, examples: Path, view: View) -> None:
        self._environment = environment
        self._plane = environment.plane
        self._project = project
        self._examples = examples
        self._view = view

    def play(self) -> list[ScenarioResult]:
        """Apply the manifests, kill a worker on the way, and judge."""
        refusal = self._apply_mistake()
        for name in (checks.QUEUE, checks.CRASHED.job, *UNDISTURBED, checks.APPROVED.job):
            self._view.note(self._plane.kubectl("apply", "-f", self._manifest(name)).stdout)
        manifest = manifest_for(self._examples / f"{ROWS.job}.yaml", self._project)
        self._view.note(self._plane.kubectl("apply", "-f", "-", input=manifest).stdout)
        crashed, approver = self._crash(), self._approve()
        watch_until(self._plane, self._view, self._all_finished, STALL_TIMEOUT)
        self._show_array()
        return self._check(crashed, approver, refusal)

    def _apply_mistake(self) -> CheckResult:
        manifest = self._manifest(checks.REFUSED.job)
        answer = self._plane.kubectl("apply", "-f", manifest, check=False)
        said = " ".join((answer.stdout + answer.stderr).split())
        self._view.note(f"kubectl apply -f {manifest}\n  {said}")
        problems = [] if answer.returncode else ["kubectl apply ended with 0"]
        if checks.FIELD not in said:
            problems.append(f"the message does not name {checks.FIELD}: {said}")
        if checks.REFUSED.job in read_jobs(self._plane):
            problems.append("the job exists")
        return CheckResult(said, tuple(problems))

    def _crash(self) -> checks.WorkerKill | None:
        name = checks.CRASHED.job
        if not watch_until(self._plane, self._view, self._ready_to_crash, STALL_TIMEOUT):
            return None
        victim = checks.worker_holding(read_jobs(self._plane)[name], self._environment.workers)
        pid = victim.process.pid
        victim.kill()
        saved = checks.saved_step(read_jobs(self._plane)[name])
        self._view.note(f"kill -KILL {pid}: {victim.name} is gone, with {name} at step {saved}")
        return checks.WorkerKill(victim.name, saved)

    def _ready_to_crash(self, jobs: Jobs) -> bool:
        """Only when the victim runs nothing else, so that each job shows one thing."""
        half = checks.is_half_done(jobs[checks.CRASHED.job])
        undisturbed = all(is_finished(jobs[name]) for name in UNDISTURBED)
        return half and undisturbed and is_ended(read_array(self._plane))

    def _approve(self) -> str:
        """Send the signal that a parked job waits for; return who has, as the server knows it."""
        name = checks.APPROVED.job
        whoami = ("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
        approver = self._plane.kubectl(*whoami).stdout
        if watch_until(self._plane, self._view, _ready_to_approve, STALL_TIMEOUT):
            signal = {"payload": {"ok": True}, "sentBy": approver}
            patch = json.dumps({"spec": {"signals": {checks.APPROVAL: signal}}})
            answer = self._plane.kubectl("patch", "asyncjob", name, "--type=merge", "-p", patch)
            self._view.note(f"kubectl patch asyncjob {name} --type=merge -p '{patch}'")
            self._view.note(answer.stdout)
        return approver

    def _all_finished(self, jobs: Jobs) -> bool:
        names = (*UNDISTURBED, checks.CRASHED.job, checks.APPROVED.job)
        finished = all(is_finished(jobs[name]) for name in names)
        return finished and is_ended(read_array(self._plane))

    def _show_array(self) -> None:
        shown = self._plane.kubectl("get", "aa").stdout
        errors = self._plane.kubectl("get", "aa", ROWS.job, "-o", f"jsonpath={ERRORS}").stdout
        self._view.note(f"kubectl get aa\n{indent(shown + errors, '  ')}")

    def _check(
        self, crashed: checks.WorkerKill | None, approver: str, refusal: CheckResult
    ) -> list[ScenarioResult]:
        jobs = read_jobs(self._plane)
        rows = [
            ScenarioResult(scenario, judge(jobs[scenario.job], self._project))
            for scenario, judge in checks.UNDISTURBED
        ]
        counted = {
            worker.name: checks.read_steps(worker.process.log_file)
            for worker in self._environment.workers
        }
        resumed = checks.check_resumed(jobs[checks.CRASHED.job], crashed, counted)
        approved = checks.check_approved(jobs[checks.APPROVED.job], approver)
        rows += [
            ScenarioResult(checks.CRASHED, resumed),
            ScenarioResult(checks.REFUSED, refusal),
            ScenarioResult(checks.APPROVED, approved),
            ScenarioResult(ROWS, check_rows(read_array(self._plane))),
        ]
        return sorted(rows, key=lambda row: row.scenario.key)

    def _manifest(self, name: str) -> str:
        path = self._examples / f"{name}.yaml"
        return str(_as_typed(path))


def _as_typed(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _ready_to_approve(jobs: Jobs) -> bool:
    return checks.is_waiting_for_approval(jobs[checks.APPROVED.job])


def run_demo(project: Path, examples: Path) -> bool:
    """Show the demo; returns whether all went as it should. Leaves nothing running.

    `examples` has the manifests; the handlers and what they read are in `project`/examples.
    """
    project = project.absolute()
    default_resolver().resolve_all()
    view: View = TerminalView(sys.stdout) if sys.stdout.isatty() else LineView(sys.stdout)
    started = time.monotonic()
    with unwind_on_signals(), _environment(view, project) as environment:
        rows = Demo(environment, project, examples, view).play()
        _print_report(environment, project, rows)
        print("Stopping everything …", flush=True)
    print(f"Done in {time.monotonic() - started:.0f} s; nothing is left running")
    return all(row.result.ok for row in rows)


@contextmanager
def _environment(view: View, project: Path) -> Iterator[Environment]:
    folder = datadir.claim_temporary()
    try:
        readable = str(project / READABLE)
        settings = EnvironmentSettings(restart=False, grace=3.0, readable=readable)
        layout = EnvironmentPaths(folder.path)
        with Environment(layout, settings, view.note, project) as environment:
            yield environment
    finally:
        folder.release()


def _print_report(environment: Environment, project: Path, rows: list[ScenarioResult]) -> None:
    width = shutil.get_terminal_size((TABLE_WIDTH, 0)).columns
    print(f"\n{scenario_table(rows, min(width, TABLE_WIDTH))}\n")
    report = report_file(_job(environment, "report-orders"), project)
    if report:
        print(f"The report, for your browser: {_as_typed(report)}")
    if wrong := problems(rows):
        print("\n".join([*diagnostics(environment, rows), "", "Not as it should be:", *wrong]))
    sys.stdout.flush()


def _job(environment: Environment, name: str) -> AsyncJob:
    return read_jobs(environment.plane)[name]
