"""Jobs whose handlers take steps, sleep and wait for signals, and who sends them signals."""

import asyncio
from collections.abc import Callable, Iterator
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from asyncjob.errors import AsyncJobError
from asyncjob.lifecycle.timestamps import format_timestamp
from asyncjob.names import GROUP, JOBS, job_path
from asyncjob_simulation.apiserver import Request
from asyncjob_simulation.apiserver.identities import account_identity
from asyncjob_simulation.clocks import true_moment
from asyncjob_simulation.cluster import NAMESPACE, binding
from asyncjob_simulation.network import short_path
from asyncjob_simulation.step_handlers import (
    BOTH,
    SIGNAL,
    SLEEP,
    STEP,
    STEPPING,
    StepRecord,
    signals_in,
)
from asyncjob_simulation.workload import Workload

Object = dict[str, Any]

APPROVER: Final = "approver"
STRANGER: Final = "stranger"
"""Accounts: one that may signal and nothing else, one that may control jobs and not signal."""

_ROLES: Final = {APPROVER: "asyncjob-job-signaller", STRANGER: "asyncjob-job-admin"}
_BINDINGS: Final = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings"

_KINDS: Final = (STEP, STEP, SLEEP, SIGNAL, SIGNAL, BOTH)
_SECONDS: Final = {STEP: (0.0, 3.0), SLEEP: (0.5, 30.0)}
_LIMITS: Final = (None, None, 1.0, 6.0, 20.0)
"""For how long a signal is waited for."""

_FINISHED: Final = frozenset({"Succeeded", "Cancelled", "DeadLetter"})
_SENDING_TRIES: Final = 6
_MISSING_SECONDS: Final = 45.0
"""How often signals that nobody has sent are sent, once the faults are over."""

_DURING_PARK: Final = 0.25
_AT_THE_END: Final = 0.5
"""How often a signal is sent just as its job is parked, and just as its time is over."""


def user(account: str) -> str:
    """Return what the API server calls an account."""
    return account_identity(NAMESPACE, account).username


@dataclass
class WaitWorkload(Workload):
    """The jobs, and the signals for them."""

    record: StepRecord = field(kw_only=True)
    _tokens: dict[str, str] = field(default_factory=dict)

    def begin(self) -> None:
        """Create queues, and plan all the rest."""
        server = self.cluster.server
        for account, role in _ROLES.items():
            body = binding("RoleBinding", account, role, name=account)
            self.cluster.write("setup", "POST", _BINDINGS, body)
            self._tokens[account] = server.tokens.issue(account_identity(NAMESPACE, account))
        self.record.on_wait = self._on_wait
        super().begin()
        dice, most = self.dice, 2 * self.jobs + 2
        for number in range(dice.number("signals", 0, most)):
            at = dice.between(f"signal {number} at", 0.0, 2 * self.seconds)
            self._later(at, self._signal_some, f"signal {number}")
        for number in range(dice.number("redrives", 0, most)):
            at = dice.between(f"redrive {number} at", 0.0, 3 * self.seconds)
            self._later(at, self._redrive_some, f"redrive {number}")

    def end(self) -> None:
        """Let all go on that people have stopped, and send what nobody has sent."""
        super().end()
        self._send_missing()

    def _resume_jobs(self) -> None:
        """Write to no other job: that would wake one that should have been woken before."""
        for job in list(self._jobs()):
            if job["spec"].get("suspend"):
                self._patch(job_path(NAMESPACE, job["metadata"]["name"]), {"suspend": False})

    # ---- jobs

    def _options(self, number: int) -> Object:
        options, dice, name = super()._options(number), self.dice, f"job {number}"
        if options["type"] != "work" or not dice.happens(f"{name} stepping", 0.8):
            return options
        acts = list(self._acts(f"{name} acts"))
        retries = dice.choice(f"{name} retries", (0, 1, 6))
        options.update(type=STEPPING, retryPolicy={**options["retryPolicy"], "maxRetries": retries})
        options["payload"] = {
            "acts": acts,
            "failures": dice.choice(f"{name} stepping failures", (0, 0, 1, 3)),
            "failsAt": dice.number(f"{name} stepping fails at", 0, len(acts) - 1),
        }
        return options

    def _acts(self, name: str) -> Iterator[Object | list[Any]]:
        dice = self.dice
        for number in range(dice.number(name, 2, 5)):
            kind = dice.choice(f"{name} {number}", _KINDS)
            seconds: float | None
            if kind in _SECONDS:
                seconds = round(dice.between(f"{name} {number} takes", *_SECONDS[kind]), 3)
            else:
                seconds = dice.choice(f"{name} {number} limit", _LIMITS)
            yield [kind, f"{kind}-{number}", seconds]

    def _jobs(self) -> Iterator[Object]:
        yield from self.cluster.server.storage.collection((GROUP, JOBS)).objects.values()

    def _stepping(self) -> list[Object]:
        return [job for job in self._jobs() if job["spec"]["type"] == STEPPING]

    def _redrive_some(self, name: str) -> None:
        dead = [job for job in self._stepping() if _phase(job) == "DeadLetter"]
        if dead:
            job = self.dice.choice(f"{name} which", dead)
            redrives = job["spec"].get("redrive", 0) + 1
            self._patch(job_path(NAMESPACE, job["metadata"]["name"]), {"redrive": redrives})

    # ---- when signals are sent

    def _on_wait(self, job: str, signal: str, seconds: float | None) -> None:
        """Maybe send a signal as the job is about to be parked, or as its time is about over."""
        dice, name = self.dice, f"wait of {job} for {signal}"
        if dice.happens(f"{name} soon", _DURING_PARK):
            at = dice.between(f"{name} soon at", 0.0, 0.1)
            self._later(at, self._send_signal, f"{name} soon", job, signal)
        if seconds is not None and dice.happens(f"{name} at the end", _AT_THE_END):
            at = seconds + dice.between(f"{name} end at", -0.5, 4.0)
            self._later(at, self._send_signal, f"{name} at the end", job, signal)

    def _signal_some(self, name: str) -> None:
        """Send any signal that a job waits for, will wait for, or has waited for."""
        jobs = [job for job in self._stepping() if signals_in(job["spec"]["payload"])]
        if not jobs:
            return
        job = self.dice.choice(f"{name} to", jobs)
        signal = self.dice.choice(f"{name} which", signals_in(job["spec"]["payload"]))
        self._send_signal(name, job["metadata"]["name"], signal)

    def _send_missing(self) -> None:
        """Send what nobody has sent and a job waits for, or will wait for, without a limit."""
        for job in [one for one in self._stepping() if _phase(one) not in _FINISHED]:
            sent = job["spec"].get("signals") or {}
            for signal in signals_in(job["spec"]["payload"]):
                if signal not in sent:
                    self._send_straight(APPROVER, job["metadata"]["name"], signal, "in the end")
        self._later(_MISSING_SECONDS, self._send_missing)

    # ---- how they are sent

    def _send_signal(self, name: str, job: str, signal: str) -> None:
        way = self.dice.fraction(f"{name} way")
        payload = f"{signal} by {name}"
        if way < 0.15:  # noqa: PLR2004  # shares of the ways to send
            self._send_straight(STRANGER, job, signal, payload)
        elif way < 0.55:  # noqa: PLR2004
            self._send_straight(APPROVER, job, signal, payload)
        else:
            self._send_through_gateway(name, job, signal, payload, _SENDING_TRIES)

    def _send_straight(self, account: str, job: str, signal: str, payload: str) -> None:
        """Send a signal as kubectl does."""
        at = format_timestamp(true_moment(self.cluster.loop))
        sent = {"payload": payload, "sentBy": user(account), "sentAt": at}
        server, path = self.cluster.server, job_path(NAMESPACE, job)
        body = orjson.dumps({"spec": {"signals": {signal: sent}}})
        request = Request(
            "PATCH", path, {}, body, "application/merge-patch+json", token=self._tokens[account]
        )
        response = server.handle(request)
        self.cluster.recorder.hash_bytes(response.body)
        words = f"signals {short_path(path)} {signal} -> {response.status}"
        self.cluster.recorder.note(account, words, path)
        self.cluster.network.on_answer(account, request, response)
        self.cluster.recorder.count(f"signal by {account}: {response.status}")

    def _send_through_gateway(
        self, name: str, job: str, signal: str, payload: str, tries: int
    ) -> None:
        process = self.gateway_replica.process
        if process is None or tries <= 0:
            return
        task = self.gateway.signal(process, job, signal, payload, APPROVER)

        def answered(done: "asyncio.Task[str | AsyncJobError]") -> None:
            answer = done.result()
            if isinstance(answer, str):
                self._check_sent(job, signal, payload, uid=answer)
            elif answer.retryable and not self.is_over:
                pause = self.dice.between(f"{name} again {tries}", 0.2, 3.0)
                again: Callable[..., None] = self._send_through_gateway
                self._later(pause, again, name, job, signal, payload, tries - 1)
            else:
                self.cluster.recorder.count("signal refused by the gateway")

        task.add_done_callback(answered, context=Context())

    def _check_sent(self, job: str, signal: str, payload: str, uid: str) -> None:
        """Judge that a signal whose sending was answered is there."""
        self.cluster.recorder.count("signal sent through the gateway")
        found = self.record.job(job, uid)
        sent = (found["spec"].get("signals") or {}).get(signal) if found else None
        if found and (sent or {}).get("payload") != payload:
            words = f"signal {signal} was sent with {payload!r}, and there is {sent}"
            self.wrong("nothing accepted is lost", job, words)


def _phase(job: Object) -> str:
    return str((job.get("status") or {}).get("phase", ""))
