"""Connections between simulated processes and the API server, and what goes wrong on them."""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from contextvars import Context
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Final, cast

import aiohttp

from asyncjob.kube import ClusterAccess
from asyncjob.names import WORKER_LEASE_PREFIX
from asyncjob_simulation.apiserver import ApiServer, Call, Fault, MemoryConnections
from asyncjob_simulation.apiserver.http import MemoryPool
from asyncjob_simulation.apiserver.server import Request, Response
from asyncjob_simulation.apiserver.watches import Line
from asyncjob_simulation.dice import FaultChooser
from asyncjob_simulation.event_loop import SimulationLoop
from asyncjob_simulation.processes import Process
from asyncjob_simulation.relists import Relists
from asyncjob_simulation.request_kinds import RequestKind, kind_of
from asyncjob_simulation.story import Recorder

KEEPALIVE_SECONDS: Final = 30.0
"""After so long without a peer a connection breaks."""

SILENCE_SECONDS: Final = 12.0
"""So many times longer is a process spared after a fault that it has to wait out."""

SLOW_SECONDS: Final = 6.0
"""A slow request is on its way for so long at most, and so is its answer."""

SLOW_KIND_RATE: Final = 0.5
SLOW_KIND_SECONDS: Final = 12.0
"""How often requests of slow kinds are slow, and for how long their answers are on their way at
most: until much of what the asker knew has changed."""

HIGHEST_RATE: Final = 0.8
"""More often no kind of fault befalls any kind of request."""

REFUSED_SECONDS: Final = 5.0
"""For how long tokens are refused at most, as while an API server changes its keys."""

_CHANGED: Final = re.compile(
    rf"/(asyncjobs|asynccronjobs|asyncarrays)/[^/]+/status$|/leases/{WORKER_LEASE_PREFIX}"
)

Written = Callable[[str, Request, Response], None]
"""Told of each request that has been answered: whose, and what."""

_SHORT_PATHS: Final = (
    ("/apis/asyncjob.dev/v1alpha1", ""),
    ("/apis/coordination.k8s.io/v1", ""),
    ("/api/v1", ""),
    ("/namespaces/work", ""),
)


def short_path(path: str) -> str:
    """Return a path as people say it."""
    for long, short in _SHORT_PATHS:
        path = path.replace(long, short)
    return path.lstrip("/")


@dataclass(frozen=True, slots=True)
class Rates:
    """How often requests and events go wrong, each from 0 to 1.

    `spacing` is for how many seconds after a fault an actor is spared the next.
    """

    lost_before: float = 0.0
    lost_after: float = 0.0
    silent: float = 0.0
    """Of the answers that are lost, those of which the client hears nothing at all."""

    late: float = 0.0
    slow: float = 0.0
    unavailable: float = 0.0
    throttled: float = 0.0
    timed_out_after: float = 0.0
    """Carried out, and answered with 504."""

    refused: float = 0.0
    """Of the requests, those with which a while begins in which no token of theirs is good."""

    watch_cut: float = 0.0
    watch_expired: float = 0.0
    watch_slow: float = 0.0
    watch_dropped: float = 0.0
    spacing: float = 0.0
    late_seconds: float = 8.0
    """How much later than its loss a request takes effect at most."""

    factors: Mapping[RequestKind, float] = field(default_factory=dict)
    """How many times as often requests of a kind go wrong; once, if it is not in there."""

    slow_kinds: Collection[RequestKind] = ()
    """Kinds of requests of which every second one is slow, most of all its answer."""


@dataclass
class Network:
    """What all connections of one simulation share."""

    server: ApiServer
    loop: SimulationLoop
    chooser: FaultChooser
    recorder: Recorder
    rates: Rates
    on_answer: Written = lambda *_: None
    relists: Relists = field(default_factory=lambda: Relists(_nothing))
    operators_compare: bool = True
    """Whether operators compare with lists now and then: else no event of theirs may be lost."""

    is_faulty: bool = True
    down_until: float = float("-inf")
    """Until when nobody reaches the API server."""

    cut_until: dict[str, float] = field(default_factory=dict)
    """Until when a process does not reach it, by its name."""

    stalled_until: dict[tuple[str, str], float] = field(default_factory=dict)
    """Until when a process's watches of a resource show nothing."""

    refused_until: dict[str, float] = field(default_factory=dict)
    """Until when a process's tokens are refused, by its name."""

    quota_exceeded_until: float = float("-inf")
    """Until when operators may create no job; who raises a quota does not know of any fault."""

    claims_unanswered: set[str] = field(default_factory=set)
    """Names of jobs whose claim was stored, and the answer lost."""

    claims_answered: dict[tuple[str, str], float] = field(default_factory=dict)
    """When the answer to a claim came last, by process and job."""

    heartbeats_hindered: dict[str, float] = field(default_factory=dict)
    """When a claim or a heartbeat of a process went wrong last, or until when it was on its way."""

    after_write: dict[str, Callable[[], object]] = field(default_factory=dict)
    """What happens once a process's next change of a job, cron job or Lease is stored, by name."""

    after_fault: dict[str, Callable[[], object]] = field(default_factory=dict)
    """What happens once a process's next request has gone wrong, by its name."""

    def unreachable_until(self, actor: str) -> float:
        """Return until when an actor does not reach the API server."""
        return max(self.down_until, self.cut_until.get(actor, float("-inf")))

    def recover(self) -> None:
        """Have nothing go wrong any more."""
        self.is_faulty, self.down_until = False, float("-inf")
        lost = {name: until for name, until in self.cut_until.items() if until == math.inf}
        self.cut_until = lost  # of lost nodes, which nobody brings back
        self.stalled_until.clear()
        self.refused_until.clear()
        self.after_write.clear()
        self.after_fault.clear()


class Connections(MemoryConnections):
    """The connections of one process."""

    def __init__(self, network: Network, process: Process) -> None:
        super().__init__(network.server)
        self._network = network
        self._process = process
        self._is_operator = process.name.startswith("operator")
        self._compares = network.operators_compare and self._is_operator
        self._counts: dict[str, int] = defaultdict(int)
        self._spared_until = float("-inf")

    def open_pool(self, _: ClusterAccess, user_agent: str, limit: int) -> aiohttp.ClientSession:
        """Return a pool of connections that ends with the process."""
        pool = MemoryPool(self, user_agent, limit)
        self._process.on_death.append(pool.close_streams)
        return cast("aiohttp.ClientSession", pool)

    def judge(self, call: Call) -> Fault:
        """Return what becomes of a request."""
        network, actor = self._network, self._process.name
        title = f"{actor}|{call.method}|{'watch ' * call.is_watch}{short_path(call.path)}"
        self._counts[title] += 1
        self._look_at_list(call)
        name = f"{title}|{self._counts[title]}"
        dice = network.chooser.dice
        there, back = dice.between(f"{name}/there", 0.001, 0.02), dice.between(name, 0.001, 0.02)
        now = network.loop.time()
        kind = kind_of(call, actor)
        cut_for = network.unreachable_until(actor) - now
        if cut_for > 0:
            fault = Fault(there, back if cut_for > 1.0 else math.inf, lost="before")
        elif self._exceeds_quota(kind, now):
            fault = Fault(there, back, status=403, reason="Forbidden", message="exceeded quota")
        elif network.is_faulty and now < network.refused_until.get(actor, now):
            fault = Fault(there, back, status=401, reason="Unauthorized")
        elif network.is_faulty and now >= self._spared_until:
            fault = self._disturbed(name, call, kind, Fault(there, back))
            self._take_effect(name, fault, now)
        else:
            return Fault(there, back)
        if kind in {RequestKind.CLAIM, RequestKind.HEARTBEAT} and fault != Fault(there, back):
            on_its_way = fault.before + (0.0 if fault.after == math.inf else fault.after)
            # An earlier one may be on its way for longer.
            earlier = network.heartbeats_hindered.get(actor, now)
            network.heartbeats_hindered[actor] = max(earlier, now + on_its_way)
        return fault

    def _look_at_list(self, call: Call) -> None:
        if call.method != "GET" or self._is_operator:
            return
        relists = self._network.relists
        look = relists.on_watch if call.is_watch else relists.on_list
        look(self._process.name, call.path, call.query)

    def _take_effect(self, name: str, fault: Fault, now: float) -> None:
        """Have a fault of one request decide what becomes of the next."""
        network = self._network
        if fault.status == HTTPStatus.UNAUTHORIZED:
            seconds = network.chooser.dice.between(f"{name}|refused for", 0.0, REFUSED_SECONDS)
            network.refused_until[self._process.name] = now + seconds
        if fault.lost or fault.status:
            silence = SILENCE_SECONDS if fault.after == math.inf else 1.0
            self._spared_until = now + network.rates.spacing * silence
            befall = network.after_fault.pop(self._process.name, _nothing)
            network.loop.call_soon(befall, context=Context())

    def _exceeds_quota(self, kind: RequestKind, now: float) -> bool:
        return (
            now < self._network.quota_exceeded_until
            and kind is RequestKind.CREATION
            and self._is_operator
        )

    def _disturbed(self, name: str, call: Call, of: RequestKind, usual: Fault) -> Fault:
        """Return the first fault that this request is to have, if any."""
        rates, wants = self._network.rates, self._network.chooser.wants
        dice, factor = self._network.chooser.dice, rates.factors.get(of, 1.0)
        what = f"{call.method} {short_path(call.path)}"
        back = math.inf if dice.happens(f"{name}|silent", rates.silent) else usual.after
        for kind, rate, words, fault in (
            ("lost before", rates.lost_before, "never arrives", {"lost": "before", "after": back}),
            (
                "lost after",
                rates.lost_after,
                "its answer is lost",
                {"lost": "after", "after": back},
            ),
            ("late", rates.late * call.is_write, "takes effect late", {"lost": "late"}),
            ("unavailable", rates.unavailable, "503", {"status": 503}),
            ("throttled", rates.throttled, "429", {"status": 429, "retry_after": 0}),
            (
                "504",
                rates.timed_out_after,
                "carried out, 504",
                {"status": 504, "takes_effect": True},
            ),
            ("refused", rates.refused, "401", {"status": 401, "reason": "Unauthorized"}),
            ("slow", rates.slow, "slow", {}),
        ):
            often = min(rate * factor, HIGHEST_RATE)
            if kind == "slow" and of in rates.slow_kinds:
                often = SLOW_KIND_RATE
            if wants(f"{name}|{kind}", often, f"{what}: {words}"):
                return self._in_detail(name, kind, of, replace(usual, **fault))
        return usual

    def _in_detail(self, name: str, kind: str, of: RequestKind, fault: Fault) -> Fault:
        dice = self._network.chooser.dice
        if kind == "late":
            latest = self._network.rates.late_seconds
            return replace(fault, before=dice.between(f"{name}|late by", 0.1, latest))
        if kind == "throttled":
            return replace(fault, retry_after=dice.number(f"{name}|retry after", 0, 3))
        if kind == "slow":
            longest = SLOW_KIND_SECONDS if of in self._network.rates.slow_kinds else SLOW_SECONDS
            to = dice.between(f"{name}|to", 0.0, SLOW_SECONDS)
            return replace(fault, before=to, after=dice.between(f"{name}|fro", 0.0, longest))
        return fault

    def judge_event(self, call: Call, line: Line) -> Fault:
        """Return what becomes of an event of a watch."""
        network, actor = self._network, self._process.name
        title = f"{actor}|event {short_path(call.path)}|{line.type}|{line.version}"
        usual = Fault(network.chooser.dice.between(title, 0.001, 0.03))
        now, plural = network.loop.time(), call.path.rsplit("/", 1)[-1]
        if line.type == "ERROR":
            network.relists.on_expired(actor, call.path, call.query)
        stalled_for = network.stalled_until.get((actor, plural), now) - now
        if stalled_for > 0:
            return Fault(stalled_for)
        cut_for = network.unreachable_until(actor) - now
        if cut_for > 0:
            return Fault(min(cut_for, KEEPALIVE_SECONDS), breaks=cut_for > KEEPALIVE_SECONDS)
        return self._disturbed_event(title, call, usual) if network.is_faulty else usual

    def _disturbed_event(self, title: str, call: Call, usual: Fault) -> Fault:
        network, what = self._network, short_path(call.path)
        rates, wants = network.rates, network.chooser.wants
        if wants(f"{title}|slow", rates.watch_slow, f"watch of {what}: slow"):
            return Fault(network.chooser.dice.between(f"{title}|by", 0.1, 15.0))
        for kind, rate, fault in (
            ("cut", rates.watch_cut, replace(usual, breaks=True)),
            ("410", rates.watch_expired, replace(usual, expires=True)),
            ("event lost", rates.watch_dropped * self._compares, replace(usual, drops=True)),
        ):
            if wants(f"{title}|{kind}", rate, f"watch of {what}: {kind}"):
                if fault.expires:
                    network.relists.on_expired(self._process.name, call.path, call.query)
                network.recorder.count(f"watch: {kind}")
                return fault
        return usual

    def carry_out(self, request: Request, call: Call, fault: Fault) -> Response:
        """Answer a request that has arrived, and take it down."""
        network, actor = self._network, self._process.name
        response = super().carry_out(request, call, fault)
        recorder = network.recorder
        recorder.hash_bytes(request.body)
        recorder.hash_bytes(response.body)
        outcome = f"{response.status}{f' ({fault.lost}: lost)' if fault.lost else ''}"
        if response.status < 300 and b'"claim"' in request.body:  # noqa: PLR2004
            job = call.path.split("/")[-2]
            if fault.lost:
                network.claims_unanswered.add(job)
            else:
                network.claims_answered[actor, job] = network.loop.time() + fault.after
        kind = "WATCH" if call.is_watch else call.method
        about = (
            call.path if call.method != "POST" else f"{call.path}/{recorder.name_in(response.body)}"
        )
        recorder.note(actor, f"{kind} {short_path(call.path)} -> {outcome}", about)
        network.on_answer(actor, request, response)
        if response.status == HTTPStatus.GONE:
            network.relists.on_expired(actor, call.path, call.query)
        if response.status < 300 and call.method == "PATCH" and _CHANGED.search(call.path):  # noqa: PLR2004
            network.after_write.pop(actor, _nothing)()
        return response


def _nothing(*_: object) -> None:
    """Do nothing."""
