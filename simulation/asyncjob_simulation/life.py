"""One simulation from its seed to its verdict."""

import asyncio
import gc
import random
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final, Literal
from unittest.mock import patch

from asyncjob import WorkerApp
from asyncjob.names import JOBS, OPERATOR_LEASE
from asyncjob_operator.cache.job_caches import JobCaches
from asyncjob_operator.core.options import DecisionOptions
from asyncjob_operator.settings import Settings as OperatorSettings
from asyncjob_simulation.actors import (
    Gateway,
    SimulatedHeartbeat,
    WorkerAccesses,
    run_operator,
    run_worker,
)
from asyncjob_simulation.apiserver.server import Request, Response
from asyncjob_simulation.clocks import quiet, virtual_world
from asyncjob_simulation.cluster import (
    GATEWAY,
    NAMESPACE,
    OPERATOR,
    WORKER,
    Cluster,
    Container,
    Pod,
    Replica,
    new_server,
)
from asyncjob_simulation.dice import Dice, FaultChooser
from asyncjob_simulation.event_loop import FIRST_MOMENT, MOMENT, SimulationLoop, StuckError
from asyncjob_simulation.fault_plan import FaultPlan
from asyncjob_simulation.handlers import HandlerCalls, make_app
from asyncjob_simulation.invariants import BrokenInvariant, Invariants
from asyncjob_simulation.isolated import start_isolated
from asyncjob_simulation.knowledge import Knowledge
from asyncjob_simulation.network import Network
from asyncjob_simulation.processes import Process, close_unstarted, current_process
from asyncjob_simulation.profile_parts import PARTS
from asyncjob_simulation.profiles import Profile
from asyncjob_simulation.relists import Relists
from asyncjob_simulation.story import Entry, Recorder
from asyncjob_simulation.swarm import swarm_of
from asyncjob_simulation.workload import Workload, queues_of
from asyncjob_worker import components
from asyncjob_worker.isolation.executor import HandlerExecutor
from asyncjob_worker.leases import heartbeat
from asyncjob_worker.settings import Settings as WorkerSettings

CALM_SECONDS: Final = 1500.0
"""Within so long after the last fault a job must have ended, and within so long after that the next
one: a single worker may have many long jobs to run."""

TIDY_SECONDS: Final = 60.0
"""Within so long after that the queues' statuses must be true."""

QUIET_SECONDS: Final = 30.0
"""Within so long after that nobody may write to jobs any more."""

NEVER: Final = 100_000.0
RESYNC_SECONDS: Final = (60.0, NEVER)
"""How often an operator compares with a list what it knows: never, too, so that what its watches
should have told is not repaired before anybody sees that it is wrong."""

LOOK_SECONDS: Final = 1.0
ROLL_CHANCE: Final = 0.2
"""How often all workers end once more when all is over."""

START_SECONDS: Final = 0.15
"""Within about so long a worker has registered."""

TWO_LEADERS_CHANCE: Final = 0.1
"""How often both operators act at the same time, without an election between them."""

JOBS_IN_ALL: Final = (15, 60)
SUBMITTING_SECONDS: Final = (20.0, 70.0)
"""How long there are new jobs."""

FEW_JOBS: Final = (2, 8)
SHORT_SECONDS: Final = (2.0, 15.0)
SHORT_FAULTY_SECONDS: Final = (20.0, 50.0)
"""How many jobs a small life has, and for how long there are new ones and faults."""

FAULTY_SHARE: Final = (1.2, 3.0)
"""How many times as long there are faults: most jobs should run while there are."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one simulation."""

    seed: int
    violations: Sequence[BrokenInvariant]
    digest: str
    counts: Counter[str]
    faults: dict[str, str]
    """The faults that happened, by name."""

    entries: Sequence[Entry]
    seconds: float
    steps: int
    profile: Profile = Profile.JOBS


@dataclass(frozen=True)
class Options:
    """How a seed is simulated: what its jobs do, `allowed` faults only, with a story or without."""

    allowed: frozenset[str] | None = None
    tells: bool = False
    profile: Profile = Profile.JOBS


def simulate(seed: int, options: Options | None = None) -> Outcome:
    """Simulate one seed."""
    # What the dead have left is freed in here; its cleanup comes to nothing, unheard.
    with patch.object(sys, "unraisablehook", lambda _: None):
        life = Life(seed, options or Options())
        outcome = life.run()
        with quiet():
            del life
            gc.collect()
    return outcome


def prepare_process() -> None:
    """Make ready a process that does nothing but simulate."""
    gc.freeze()  # what is imported need not be looked at after each simulation
    sys.unraisablehook = lambda _: None  # the dead cannot clean up, and say so
    warnings.simplefilter("ignore")


class Life:
    """The simulation of one seed."""

    def __init__(self, seed: int, options: Options) -> None:
        self._seed = seed
        self._profile = options.profile
        dice = self._dice = Dice(seed)
        loop = self._loop = SimulationLoop(random.Random(f"turns/{seed}"))
        loop.set_exception_handler(self._on_stray_error)
        self._recorder = Recorder(loop, keeps_lines=options.tells)
        self._on_log = self._remark_log if options.tells else None
        self._chooser = FaultChooser(dice, options.allowed)
        self._processes: dict[str, Process] = {}
        self._accesses = WorkerAccesses()
        self._handlers = HandlerCalls(loop)
        swarm = self._swarm = swarm_of(dice)
        self._has_election = not dice.happens("two leaders", TWO_LEADERS_CHANCE)
        server = new_server(loop, seed)
        self._resync_seconds = dice.choice("resync", RESYNC_SECONDS)
        network = self._network = Network(
            server,
            loop,
            self._chooser,
            self._recorder,
            swarm.rates,
            self._on_answer,
            operators_compare=self._resync_seconds < NEVER,
        )
        self._invariants = Invariants(
            server,
            loop,
            self._recorder,
            self._handlers,
            self._processes,
            is_gentle=swarm.is_gentle,
            unanswered=network.claims_unanswered,
            answered=network.claims_answered,
            hindered=network.heartbeats_hindered,
        )
        self._parts = PARTS[options.profile](
            server, self._handlers, self._recorder, self._invariants.broken, self._chooser, swarm
        )
        self._invariants.on_job = self._parts.on_job
        network.relists = Relists(partial(self._invariants.broken, "only what is lost is listed"))
        self._handlers.on_begin = self._invariants.on_handler
        self._handlers.on_step = self._invariants.on_step
        self._gateway = Gateway()
        self._knowledge = Knowledge(server, gateways=self._gateway.caches)
        self._cluster = Cluster(loop, network, self._recorder, self._wall_offset, self._processes)
        self._cluster.on_end = self._on_container_end

    def run(self) -> Outcome:
        """Simulate, and return what came of it."""
        loop, recorder = self._loop, self._recorder
        with ExitStack() as stack:
            stack.enter_context(virtual_world(loop, self._seed, on_log=self._on_log))
            stack.enter_context(patch.object(heartbeat, "load_access", self._accesses.load))
            stack.enter_context(patch.object(components, "HeartbeatThread", SimulatedHeartbeat))
            stack.enter_context(patch.object(HandlerExecutor, "_start_process", start_isolated))
            for stand_in in self._parts.stand_ins():
                stack.enter_context(stand_in)
            try:
                loop.run_until_complete(self._main())
            except StuckError as error:
                self._invariants.broken("time goes on", "the event loop", str(error))
            finally:
                self._end()
                close_unstarted(asyncio.all_tasks(loop))
                loop.close()
        return Outcome(
            self._seed,
            self._invariants.violations,
            recorder.digest,
            recorder.counts,
            self._chooser.injected,
            recorder.entries,
            loop.time() - FIRST_MOMENT,
            loop.steps,
            self._profile,
        )

    def _remark_log(self, level: str, words: str) -> None:
        process = current_process()
        self._recorder.remark(process.name if process else "world", f"    log {level}: {words}")

    def _on_stray_error(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._recorder.note("asyncio", str(context.get("message")))
        error = context.get("exception")
        if error is not None:
            self._recorder.remark("asyncio", repr(error))

    # ---- from the beginning to the end

    async def _main(self) -> None:
        dice, swarm, cluster, gateway = self._dice, self._swarm, self._cluster, self._gateway
        front = Replica("gateway", GATEWAY, gateway.run)
        queues = queues_of(dice)
        if swarm.is_small:
            queues = [dice.choice("only queue", queues)]
        operators = [
            Replica(f"operator-{number}", OPERATOR, self._run_operator)
            for number in range(dice.choice("operators", (1, 2, 2)))
        ]
        workers_of = {
            queue: self._workers_of(queue, dice.choice(f"workers of {queue}", swarm.workers))
            for queue in queues
        }
        workers = [replica for of_queue in workers_of.values() for replica in of_queue]
        for replica in (*operators, front, *workers):
            cluster.add(replica)
        jobs, seconds, faulty_seconds = self._extent()
        workload = self._parts.workload(
            cluster,
            gateway,
            front,
            dice,
            queues,
            jobs,
            seconds,
            swarm,
            self._invariants.broken,
            rare_queues=self._rare_queues(workers_of),
        )
        workload.begin()
        plan = FaultPlan(
            cluster,
            dice,
            swarm,
            operators,
            workers,
            front,
            busy=self._handlers.containers,
            after_stubborn=self._handlers.after_stubborn,
            watched=self._parts.watched,
        )
        plan.plan(faulty_seconds)
        for queue in workload.rare_queues:
            at = dice.between(f"rare of {queue} leaves", 0.0, faulty_seconds)
            loop, leaving = self._loop, workers_of[queue][0]
            loop.call_later(at, self._cluster.remove, leaving, 30.0, context=Context())
        await self._until(lambda: False, faulty_seconds)
        if not self._invariants.violations:
            await self._calm_down(workload)

    def _extent(self) -> tuple[int, float, float]:
        """Return how many jobs there are, and the seconds with new ones, and with faults."""
        dice = self._dice
        if self._swarm.is_small:
            jobs = dice.number("few jobs", *FEW_JOBS)
            seconds = dice.between("short", *SHORT_SECONDS)
            return jobs, seconds, dice.between("short faulty", *SHORT_FAULTY_SECONDS)
        jobs = round(dice.number("jobs", *JOBS_IN_ALL) * self._swarm.crowd)
        seconds = dice.between("seconds", *SUBMITTING_SECONDS)
        return jobs, seconds, seconds * dice.between("faulty", *FAULTY_SHARE)

    def _workers_of(self, queue: str, count: int) -> list[Replica]:
        """Return the workers of a queue; where there are several, one serves one more type."""
        is_rare = self._swarm.rare_jobs > 0 and count > 1
        apps = [make_app(self._handlers, serves_rare=serves) for serves in (False, is_rare)]
        for app in apps:
            self._parts.add_handlers(app)
        return [
            Replica(
                f"worker-{queue}-{number}",
                WORKER,
                partial(self._run_worker, apps[number == 0], queue),
                queue,
            )
            for number in range(count)
        ]

    def _rare_queues(self, workers_of: Mapping[str, Sequence[Replica]]) -> Sequence[str]:
        if not self._swarm.rare_jobs:
            return ()
        return [queue for queue, workers in workers_of.items() if len(workers) > 1]

    async def _calm_down(self, workload: Workload) -> None:
        """End all faults, and wait until every job has ended."""
        self._recorder.note("simulation", "no more faults")
        self._network.recover()
        self._parts.recover()
        for process in self._processes.values():
            process.release()
        workload.end()
        invariants, rare = self._invariants, workload.rare
        await self._until(lambda: not workload.pending, CALM_SECONDS)
        await self._until_ended(besides=rare)
        self._parts.check_calm()
        invariants.check_all_ended(besides=rare)  # those that nobody serves are in nobody's way
        workload.cancel_rare()
        await self._until_ended()
        await self._until(lambda: not invariants.untidy(), TIDY_SECONDS)
        workload.delete_some()
        await self._until(lambda: False, QUIET_SECONDS)
        # A run that was due before may come this late, when the operator that had reserved it died.
        await self._until_ended()
        # What has ended is still removed at its time: that, too, has to show soon.
        await self._until(lambda: not invariants.untidy(), TIDY_SECONDS)
        await self._until(lambda: invariants.is_still, QUIET_SECONDS)
        await self._until(lambda: not self._differences(), TIDY_SECONDS)
        if not invariants.violations:
            for name, words in self._differences():
                invariants.broken("what is known is true in the end", name, words)
            invariants.at_end(workload.accepted)
        if not invariants.violations and self._dice.happens("workers end", ROLL_CHANCE):
            await self._end_workers()

    async def _end_workers(self) -> None:
        """End all workers in good order, and those that come after them while they start."""
        there = [one for one in self._cluster.replicas if one.queue and one.is_wanted]
        for replica in there:
            self._cluster.evict(replica, 30.0)
        ended = await asyncio.gather(*map(self._end_starting, there))
        await self._until(lambda: False, QUIET_SECONDS)
        for pod in ended:
            self._invariants.check_signed_off(pod.name)

    async def _end_starting(self, replica: Replica) -> Pod:
        """End the next pod of a replica while it starts, and return it."""
        while replica.process is None:  # noqa: ASYNC110  # which no event tells of
            await asyncio.sleep(MOMENT)
        assert replica.pod is not None  # in which the process runs
        pod, dice = replica.pod, self._dice
        await asyncio.sleep(dice.between(f"{pod.name} ends after", 0.0, START_SECONDS))
        self._cluster.remove(replica, 30.0)
        return pod

    def _differences(self) -> Sequence[tuple[str, str]]:
        """Return what operators and gateways know that is not so."""
        if self._swarm.rates.watch_dropped and self._network.operators_compare:
            return ()  # they compare jobs with a list, and miss what else they were not told
        return list(self._knowledge.differences())

    async def _until_ended(self, besides: Collection[str] = ()) -> None:
        """Wait until all jobs have ended, for as long as one after the other does."""
        most = left = len(self._unfinished(besides))
        while left and left <= most:
            most = left - 1
            await self._until(partial(self._are_left, most, besides), CALM_SECONDS)
            left = len(self._unfinished(besides))

    def _are_left(self, most: int, besides: Collection[str]) -> bool:
        return len(self._unfinished(besides)) <= most

    def _unfinished(self, besides: Collection[str]) -> list[str]:
        left = [*self._invariants.unfinished(), *self._parts.unfinished()]
        return [name for name in left if name not in besides]

    async def _until(self, holds: Callable[[], bool], seconds: float) -> None:
        """Wait for something, for so many seconds at most, or until a promise is broken."""
        end = self._loop.time() + seconds
        while not self._invariants.violations and self._loop.time() < end and not holds():
            await asyncio.sleep(LOOK_SECONDS)
            for name, words in self._knowledge.problems():
                self._invariants.broken("what is known never becomes older", name, words)

    def _end(self) -> None:
        """End all processes without anything of them running any more."""
        for process in self._processes.values():
            process.on_death.clear()
            process.kill()

    # ---- processes

    async def _run_operator(self, container: Container) -> int:
        settings = OperatorSettings(
            namespaces=(NAMESPACE,),
            identity=container.process.name,
            options=DecisionOptions(missing_dependency_timeout=60.0),
            resync_interval=self._resync_seconds,
            retention_interval=10.0,
            backoff_max=10.0,
            leader_elect=self._has_election,
        )
        name, operators = container.process.name, self._knowledge.operators

        def started(caches: JobCaches) -> None:
            operators[name] = caches
            container.process.on_death.append(partial(operators.__delitem__, name))

        return await run_operator(container, settings, started)

    async def _run_worker(self, app: WorkerApp, queue: str, container: Container) -> int:
        name = container.process.name
        settings = WorkerSettings(
            queue=queue,
            concurrency=self._dice.choice(f"slots of {name}", self._swarm.slots),
            grace=self._dice.choice(f"grace of {name}", (0.0, 5.0, 20.0)),
            park=self._park,
            offload=self._parts.offload,
        )
        return await run_worker(container, app, settings, self._accesses)

    @property
    def _park(self) -> Literal["auto", "always"]:
        """Return when jobs are parked: without an election no Lease says that they are woken."""
        is_sure = self._profile is not Profile.JOBS and not self._has_election
        return "always" if is_sure else "auto"

    def _on_container_end(self, container: Container, code: int) -> None:
        self._invariants.check_exit(
            container.process.name, code, is_asked_to_end=container.is_asked_to_end
        )

    def _wall_offset(self, name: str) -> float:
        highest = 600.0 if self._dice.happens(f"skew of {name}", 0.2) else 0.5
        return self._dice.between(f"skew of {name} is", -highest, highest)

    # ---- what is seen of the API server

    def _on_answer(self, actor: str, request: Request, response: Response) -> None:
        try:
            self._judge_answer(actor, request, response)
        except Exception as error:
            # Raised, it would only keep an answer from its process.
            self._invariants.broken("what judges has no errors", request.path, repr(error))
            raise

    def _judge_answer(self, actor: str, request: Request, response: Response) -> None:
        code, count = response.status, self._recorder.count
        is_refused = code >= HTTPStatus.BAD_REQUEST
        if is_refused:
            count(f"answer {code}")
            if code == HTTPStatus.CONFLICT and b'"claim"' in request.body:
                count("contested claim")
        if request.method == "GET":
            if not is_refused and request.path.endswith(f"/{JOBS}"):
                self._invariants.knows_jobs.add(actor)
            return
        if not is_refused and request.path.endswith((f"/leases/{OPERATOR_LEASE}", "/leases")):
            self._invariants.on_leader(actor)
        self._invariants.on_write(actor, request.method, request.path)
        self._parts.look()
        self._knowledge.follow()
