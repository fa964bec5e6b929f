"""What one seed is like: what goes wrong in it and how much, and what its jobs are like.

If each seed had a little of everything, few would have much of what has to come together for a rare
failure, and one kind of fault would hide another. So each has some things only, and of these some
far more than others.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from asyncjob_simulation.dice import Dice
from asyncjob_simulation.network import Rates
from asyncjob_simulation.request_kinds import RequestKind

_HIGHEST: Final = {
    "lost_before": 0.2,
    "lost_after": 0.3,
    "late": 0.15,
    "slow": 0.2,
    "unavailable": 0.2,
    "throttled": 0.3,
    "timed_out_after": 0.15,
    "refused": 0.02,
    "watch_cut": 0.05,
    "watch_expired": 0.05,
    "watch_slow": 0.2,
    "watch_dropped": 0.02,
}
"""The highest rate of each kind of fault, before the kinds of requests differ."""

_FACTORS: Final = (0.0, 0.3, 1.0, 1.0, 4.0)
"""How many times as often requests of one kind may go wrong as those of others."""

_SMALL_SHARE: Final = 0.6
"""How many seeds have one queue and few jobs."""

_MANY_WORKERS_SHARE: Final = 0.05
_MANY_WORKERS: Final = (6, 8)
"""In how many seeds queues have many workers, and how many: enough to share out shards, although
one may have types of its own, or be gone."""

_SLOW_KINDS_CHANCE: Final = 0.5
_SLOW_KIND_SHARE: Final = 0.5
"""In how many seeds requests of some kinds are slow, and how many of the kinds."""


class Gentleness(StrEnum):
    """What may go wrong: all, or only what may cost no job an attempt."""

    ROUGH = "rough"
    SPACED = "spaced"
    """Requests of workers go wrong, but none of a process within seconds after another."""

    THROTTLED = "throttled"
    """Requests of workers are throttled, as often as it comes, and heartbeats never."""


@dataclass(frozen=True)
class Swarm:
    """What one seed is like."""

    gentleness: Gentleness
    kind_chance: float
    """How likely a kind of fault is to be in the seed at all."""

    vigour: float
    """How many times as many faults befall processes as usual."""

    bursts: int
    """Around how many moments faults come; 0: at any time."""

    one_victim: float
    """How often a fault befalls the process that the seed has picked on."""

    crashes: Sequence[int]
    """How many times in a row a process that is killed may be."""

    at_work: float
    """How often a fault that may befall workers befalls one that runs something."""

    rates: Rates
    leases: Sequence[int]
    """How long leases may last, in seconds."""

    long_jobs: float
    """The share of jobs that need heartbeats."""

    slowness: float
    """How many times as long these take as usual."""

    stubborn: float
    """Of them, the share that ignores stops."""

    failures: Sequence[int]
    """How many attempts may fail."""

    retry_delays: Sequence[int]
    is_small: bool
    """Whether there are one queue, few jobs and little time: most failures show there as well, and
    such a seed is over sooner."""

    crowd: float
    """How many times as many jobs as usual there are: with few, some workers run nothing."""

    workers: Sequence[int]
    """How many workers a queue may have."""

    slots: Sequence[int]
    isolated: float
    """The share of jobs whose handlers have processes of their own."""

    naps: float
    """The share of jobs whose handlers sleep without a slot before each of their steps."""

    rare_jobs: float
    """The share of jobs that one worker of their queue serves alone, which leaves for good."""

    removed_early: float
    """The share of jobs that are removed soon after they have ended."""

    finalizers: float
    """The share of jobs that a finalizer keeps when they are deleted."""

    changes: float
    """How many changes of their minds people have at most, for each job."""

    @property
    def is_gentle(self) -> bool:
        """Whether nothing may cost a job an attempt."""
        return self.gentleness is not Gentleness.ROUGH


def swarm_of(dice: Dice) -> Swarm:
    """Return what a seed is like."""
    gentleness = dice.choice("gentleness", [Gentleness.ROUGH] * 5 + list(Gentleness)[1:])
    kind_chance = dice.choice("kind chance", (0.2, 0.45, 0.8))
    rates, leases = _rates_and_leases(dice, gentleness, kind_chance)
    is_rough = gentleness is Gentleness.ROUGH
    return Swarm(
        gentleness,
        kind_chance,
        vigour=dice.choice("vigour", (0.5, 1.0, 1.0, 2.0)),
        bursts=dice.choice("bursts", (0, 0, 2, 4)),
        one_victim=dice.choice("one victim", (0.0, 0.0, 0.7)),
        crashes=dice.choice("crashes", ((1,), (1, 2, 4))),
        at_work=dice.choice("at work", (0.0, 0.7)),
        rates=rates,
        leases=leases,
        long_jobs=dice.choice("long jobs", (0.1, 0.3, 0.3, 0.7)),
        slowness=dice.choice("slowness", (1.0, 1.0, 1.5)),
        stubborn=dice.choice("stubborn", (0.0, 0.0, 0.2, 0.6)),
        failures=dice.choice("failures", ((0,), (0, 1, 2), (0, 1, 1, 2))),
        retry_delays=dice.choice("retry delays", ((0,), (0, 1, 2))),
        is_small=dice.happens("small", _SMALL_SHARE),
        crowd=dice.choice("crowd", (0.3, 1.0, 1.0)),
        workers=(
            _MANY_WORKERS
            if dice.happens("many workers", _MANY_WORKERS_SHARE)
            else dice.choice("workers", ((1,), (1, 2, 3), (2, 3)))
        ),
        slots=dice.choice("slots", ((1, 2), (2, 3, 4, 5))),
        isolated=dice.choice("isolated", (0.0, 0.0, 0.2, 0.7)),
        naps=dice.choice("naps", (0.0, 0.0, 0.2, 0.6)),
        rare_jobs=dice.choice("rare jobs", (0.0, 0.0, 0.0, 0.3)) if is_rough else 0.0,
        removed_early=dice.choice("removed early", (0.0, 0.3, 0.8)),
        finalizers=dice.choice("finalizers", (0.0, 0.2, 0.6)),
        changes=dice.choice("changes of minds", (0.0, 0.25, 1.0)),
    )


def _rates_and_leases(
    dice: Dice, gentleness: Gentleness, kind_chance: float
) -> tuple[Rates, Sequence[int]]:
    late = dice.choice("late seconds", (8.0, 25.0))
    if gentleness is Gentleness.THROTTLED:
        often = dice.between("throttled often", 0.2, 0.7)
        throttled = Rates(throttled=often, factors={RequestKind.HEARTBEAT: 0.0})
        return throttled, dice.choice("leases", ((5,), (5, 8)))
    rates = {kind: _rate(dice, kind, kind_chance) for kind in _HIGHEST}
    if gentleness is Gentleness.ROUGH:
        silent = dice.choice("silent", (0.0, 0.2, 0.5))
        factors, slow_kinds = _factors(dice), _slow_kinds(dice)
        made = Rates(
            silent=silent, late_seconds=late, factors=factors, slow_kinds=slow_kinds, **rates
        )
        return made, dice.choice("leases", ((5,), (5, 8), (5, 5, 8, 15)))
    rates.update(slow=0.0, watch_dropped=0.0)
    silent = dice.choice("silent", (0.0, 0.5))
    # A lease has to outlast what one fault costs: 15 s of silence, or 5 s of refusals.
    is_quick = not silent and not rates["refused"]
    lease, spacing = (10, 4.0) if is_quick else (30, 2.0)
    made = Rates(
        silent=silent,
        late_seconds=late,
        spacing=spacing,
        factors=_factors(dice),
        slow_kinds=(),
        **rates,
    )
    return made, (lease,)


def _rate(dice: Dice, kind: str, kind_chance: float) -> float:
    if not dice.happens(f"kind {kind}", kind_chance):
        return 0.0
    return _HIGHEST[kind] * float(dice.fraction(f"rate of {kind}") ** 2)


def _factors(dice: Dice) -> Mapping[RequestKind, float]:
    """Return how much more often requests of some kinds go wrong than others; nothing in half."""
    if dice.happens("all requests alike", 0.4):
        return {}
    return {kind: dice.choice(f"factor of {kind}", _FACTORS) for kind in RequestKind}


def _slow_kinds(dice: Dice) -> Collection[RequestKind]:
    """Return the kinds of requests whose answers are slow; none in half of the seeds."""
    if not dice.happens("slow kinds", _SLOW_KINDS_CHANCE):
        return ()
    return [kind for kind in RequestKind if dice.happens(f"{kind} is slow", _SLOW_KIND_SHARE)]
