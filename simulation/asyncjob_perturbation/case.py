"""One case: a scenario in which a part is killed at one request; and the undisturbed run before.

The case passes as soon as the namespace is as the undisturbed run left it, stays so for a moment,
and breaks no rule of the audit. It fails if that does not come about in time.
"""

import asyncio
import itertools
import time
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Self

import aiohttp

from asyncjob.names import JOBS
from asyncjob_dev.ports import free_port
from asyncjob_dev.supervisor.objects import Container, container_id
from asyncjob_perturbation.cluster import Cluster
from asyncjob_perturbation.end_state import (
    Difference,
    Object,
    differences,
    end_state,
    is_counted,
    is_finished,
)
from asyncjob_perturbation.handlers import FOLDER
from asyncjob_perturbation.interferences import Done, interference
from asyncjob_perturbation.judge import broken_rules
from asyncjob_perturbation.people import ThroughGateway, WithKubectl
from asyncjob_perturbation.plan import KILLS, LEASE_SECONDS, Case, Part
from asyncjob_perturbation.processes import BUG, PartProcess
from asyncjob_perturbation.proxy import Interference, Proxy, Recording
from asyncjob_perturbation.scenarios import Scenario, ScenarioContext

END_SECONDS: Final = 45.0
"""Without any change, until a case is given up."""

_MOST_PATIENCE: Final = 3
_QUIET_SECONDS: Final = 2.0
_SETTLED_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 0.1

_OPERATOR_OPTIONS: Final = (
    "--no-leader-elect", "--lease-margin=0.3", "--timeout-margin=0.5",
    "--backoff-initial=0.2", "--backoff-max=1",
)  # fmt: skip

_numbers = itertools.count(1)


@dataclass
class Outcome:
    """What has become of a case, or of the undisturbed run."""

    scenario: Scenario
    part: Part
    state: dict[str, Object]
    recording: Recording
    seconds: float
    reached: bool = True
    """Whether the part was killed: the request may not have come."""

    differences: list[Difference] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    """Rules that were broken, in words."""

    starved: bool = False
    """Whether it failed on a machine that was too busy, by what worker and API server tell."""

    told: list[str] = field(default_factory=list)
    """What happened, line by line."""

    @property
    def failed(self) -> bool:
        """Whether it did not end as it should."""
        return bool(self.differences or self.broken)


class ScenarioRun:
    """A namespace with an operator, a worker and perhaps a gateway, one of them behind a proxy."""

    def __init__(self, cluster: Cluster, scenario: Scenario, part: Part, bug: str = "") -> None:
        self.cluster, self.scenario, self.part = cluster, scenario, part
        self.namespace = f"{scenario.name}-{part}-{next(_numbers)}"
        self.folder = cluster.folder / self.namespace
        self.seen = cluster.seen[self.namespace]
        self.parts: dict[Part, PartProcess] = {}
        self._bug = bug
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Self:
        try:
            await self._prepare()
        except BaseException:
            await self._open.aclose()
            raise
        return self

    async def _prepare(self) -> None:
        self.folder.mkdir(parents=True)
        self.proxy = await self._open.enter_async_context(
            Proxy(self.cluster.url, self.cluster.trust)
        )
        await self.cluster.make_namespace(self.namespace)
        await self._make_worker()
        self._make_service(Part.OPERATOR, *_OPERATOR_OPTIONS)
        self._people_session = await self._open.enter_async_context(aiohttp.ClientSession())
        if self.part is Part.GATEWAY:
            self._make_service(Part.GATEWAY, "--host=127.0.0.1")

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(part.stop() for part in self.parts.values()))
        await self._open.aclose()

    async def play(self, interference: Interference | None = None) -> None:
        """Tell the scenario to its end, with an interference."""
        self.proxy.interference = interference or Interference()
        if not self.scenario.from_start:
            self.proxy.begin_later()
        async with self.cluster.starts:
            for part in self.parts.values():
                part.start()
            await asyncio.gather(*(part.until_ready() for part in self.parts.values()))
        if not self.scenario.from_start:
            self.proxy.begin()
        admin = WithKubectl(self.cluster.session, self.namespace)
        people = admin if self.part is not Part.GATEWAY else self._gateway_client()
        await self.scenario.steps(ScenarioContext(admin, people, self.seen, self.folder))

    def move(self, *, away: bool) -> None:
        """Move the part to the API server that lags, or back."""
        self.proxy.move(self.cluster.lagging_url if away else self.cluster.url)

    async def until_quiet(self) -> bool:
        """Wait until all jobs have ended and nothing has changed for a while; false if never."""
        give_up_at = time.monotonic() + END_SECONDS
        while time.monotonic() < give_up_at:
            self.seen.changed.clear()
            try:
                await asyncio.wait_for(self.seen.changed.wait(), _QUIET_SECONDS)
            except TimeoutError:
                if is_finished(self.seen.objects) and is_counted(self.seen.objects):
                    return True
        return False

    async def compare(
        self, expected: dict[str, Object], crashes: int, patience: float, done: Done
    ) -> list[Difference]:
        """Return what still differs once it settles, or once nothing changes for so long.

        It is not settled before the interference is over: what a part is shown late, or at another
        API server, may have it do harm when all has long ended as it should. What keeps changing
        and never settles is given up after some times that.
        """
        give_up_at = time.monotonic() + _MOST_PATIENCE * patience
        versions, since = len(self.seen.versions), time.monotonic()
        while True:
            found = self._differences(expected, crashes)
            if not found and done.fired == done.over:
                await asyncio.sleep(_SETTLED_SECONDS)
                found = self._differences(expected, crashes)
                if not found:
                    return []
            if len(self.seen.versions) > versions:
                versions, since = len(self.seen.versions), time.monotonic()
            if time.monotonic() > min(since + patience, give_up_at):
                return found
            await asyncio.sleep(_LOOK_SECONDS)

    def _differences(self, expected: dict[str, Object], crashes: int) -> list[Difference]:
        return differences(expected, self.state(), crashes=crashes)

    def state(self) -> dict[str, Object]:
        """Return what is compared of what there is now."""
        jobs = (version.obj for version in self.seen.versions if version.resource == JOBS)
        return end_state(self.seen.objects, jobs)

    def _gateway_client(self) -> ThroughGateway:
        return ThroughGateway(self._gateway_url, self.cluster.token, self._people_session)

    def _kubeconfig(self, part: Part, token: str) -> str:
        path = self.folder / f"{part}.kubeconfig"
        url = self.proxy.url if part is self.part else self.cluster.url
        self.cluster.write_kubeconfig(path, url, token, self.namespace)
        return str(path)

    def _make_service(self, part: Part, *options: str) -> None:
        port = free_port()
        kubeconfig = self._kubeconfig(part, self.cluster.tokens[f"asyncjob-{part}"])
        health = f"--health-port={port}" if part is Part.OPERATOR else f"--port={port}"
        self.parts[part] = PartProcess(
            part,
            [
                "run",
                f"--namespace={self.namespace}",
                f"--kubeconfig={kubeconfig}",
                health,
                *options,
            ],
            ready_url=f"http://127.0.0.1:{port}/readyz",
            log=self.folder / f"{part}.log",
            environment=self._environment(),
        )
        if part is Part.GATEWAY:
            self._gateway_url = f"http://127.0.0.1:{port}"

    async def _make_worker(self) -> None:
        pod = "worker-0"
        uid, token = await self.cluster.make_pod(self.namespace, pod)
        started = datetime.now(UTC)
        container = Container("asyncjob", container_id(0, 0), started)
        await self.cluster.report_pod(self.namespace, pod, container)
        port = free_port()

        async def on_end(ends: int) -> None:
            nonlocal container
            now = datetime.now(UTC)
            container = container.end(-9, now)
            await self.cluster.report_pod(self.namespace, pod, container)
            container = container.restart(container_id(0, ends), now)
            await self.cluster.report_pod(self.namespace, pod, container)

        self.parts[Part.WORKER] = PartProcess(
            Part.WORKER,
            [
                *("run", "asyncjob_perturbation.handlers:app", "--concurrency=2", "--grace=1"),
                *(f"--pod-name={pod}", f"--pod-uid={uid}", f"--namespace={self.namespace}"),
                f"--kubeconfig={self._kubeconfig(Part.WORKER, token)}",
                "--park=always",  # without an election no Lease says that the operator wakes jobs
                *("--health-host=127.0.0.1", f"--health-port={port}"),
                f"--handler-record={self.folder / 'handlers.jsonl'}",
            ],
            ready_url=f"http://127.0.0.1:{port}/readyz",
            log=self.folder / "worker.log",
            environment=self._environment(),
            on_end=on_end,
        )

    def _environment(self) -> dict[str, str]:
        planted = {BUG: self._bug} if self._bug else {}
        return {FOLDER: str(self.folder), **planted}


async def run_undisturbed(cluster: Cluster, scenario: Scenario, part: Part) -> Outcome:
    """Play a scenario with nothing wrong; its end is what all cases are compared with."""
    began = time.monotonic()
    async with ScenarioRun(cluster, scenario, part) as run:
        stuck = await _is_stuck(run.play()) or not await run.until_quiet()
        state = run.state()
    outcome = Outcome(scenario, part, state, run.proxy.recording, time.monotonic() - began)
    outcome.differences = [_STUCK] if stuck else _unexpected_ends(scenario, part, state)
    outcome.broken = _broken(run)
    if outcome.failed:
        outcome.told, outcome.starved = story(run), _is_starved(run, began)
    return outcome


async def run_case(
    cluster: Cluster,
    scenario: Scenario,
    case: Case,
    expected: dict[str, Object],
    *,
    bug: str = "",
    patience: float = END_SECONDS,
) -> Outcome:
    """Play a scenario, interfere at one call, and compare what comes of it.

    `bug` is one of `planted` or of the simulation's, planted in all parts. All has to be as it
    should before nothing has changed for `patience` seconds.
    """
    began = time.monotonic()
    crashes = 1 if case.part is Part.WORKER and case.when in KILLS else 0
    async with ScenarioRun(cluster, scenario, case.part, bug) as run:
        done = interference(case.call, case.when, run.parts[case.part].kill, run.move)
        stuck = [_STUCK] if await _is_stuck(run.play(done)) else []
        found = stuck + await run.compare(expected, crashes, patience, done)
        state = run.state()
    outcome = Outcome(scenario, case.part, state, run.proxy.recording, time.monotonic() - began)
    outcome.reached = done.fired
    outcome.differences = found
    outcome.broken = _broken(run)
    if outcome.failed:
        outcome.told, outcome.starved = story(run), _is_starved(run, began)
    return outcome


_MAY_BE_PAST: Final = (Part.WORKER, "WATCH asyncjobs")
"""Shows a worker what it may try to claim; each claim names the version that it was shown."""


def _broken(run: ScenarioRun) -> list[str]:
    """Return the rules of the audit that were broken, and who asked for what may be past."""
    broken = broken_rules(run.seen, run.folder / "handlers.jsonl")
    past = [call for call in run.proxy.recording.past if (run.part, call.what) != _MAY_BE_PAST]
    return broken + [f"an API server that lags may answer with the past: {call}" for call in past]


_POSTPONED: Final = "s can be kept, and "
"""Of the worker's words for a claim that it postpones, because its heartbeats would be late."""

_SLOW_SECONDS: Final = LEASE_SECONDS / 3
"""What an answer must not take: after so long a heartbeat is due."""


def _is_starved(run: ScenarioRun, began: float) -> bool:
    """Return whether the machine was too busy for what the parts promise."""
    if run.cluster.answer_times.slowest(began) > _SLOW_SECONDS:
        return True
    return _POSTPONED in run.parts[Part.WORKER].words()


_STUCK: Final = Difference("scenario", "all its steps done", "stuck")


async def _is_stuck(playing: Coroutine[Any, Any, None]) -> bool:
    try:
        await playing
    except TimeoutError:
        return True
    return False


def _unexpected_ends(scenario: Scenario, part: Part, state: dict[str, Object]) -> list[Difference]:
    """Return where even the undisturbed run has not come to what the scenario says."""
    is_renamed = part is Part.GATEWAY and scenario.named_by_gateway
    wanted = {} if is_renamed else scenario.ends
    phases: dict[str, Any] = {name: state.get(f"asyncjobs/{name}", {}) for name in wanted}
    return [
        Difference(name, phase, phases[name].get("phase"))
        for name, phase in wanted.items()
        if phases[name].get("phase") != phase
    ]


def story(run: ScenarioRun) -> list[str]:
    """Return what happened: what was stored, and the last words of each part."""
    lines = [f"namespace {run.namespace}"]
    for version in run.seen.versions:
        metadata, status = version.obj["metadata"], version.obj.get("status", {})
        words = [
            version.at.strftime("%H:%M:%S.%f")[:-3],
            f"{version.event:8} {version.resource}/{metadata['name']}",
            *(str(status[name]) for name in ("phase", "reason") if status.get(name)),
            f"attempt {status.get('attempt', 0)} crashes {status.get('crashes', 0)}",
        ]
        lines.append("  ".join(words))
    for part, process in run.parts.items():
        lines.append(f"last lines of the {part} (ended {process.kills} times):")
        lines += [f"    {line}" for line in process.words().splitlines()[-12:]]
    return lines
