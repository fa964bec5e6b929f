"""Replicas with clocks of their own, a store between them, and any delay and loss in between."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from asyncjob_operator.core.leader_election import (
    ElectionCandidate,
    ElectionStep,
    LeaderElectionRecord,
)

DURATION = 10.0
REPLICAS = 3


@dataclass
class Store:
    """The Lease as the API server holds it."""

    record: LeaderElectionRecord | None = None
    version: int = 0

    def write(self, seen: LeaderElectionRecord | None, holder: str) -> LeaderElectionRecord | None:
        """Write if nothing has changed since `seen`."""
        if (self.record and self.record.version) != (seen and seen.version):
            return None
        self.version += 1
        self.record = LeaderElectionRecord(holder, str(self.version), DURATION, 0)
        return self.record


@dataclass
class Replica:
    """A candidate whose clock started anywhere."""

    name: str
    offset: float
    candidacy: ElectionCandidate = field(init=False)

    def __post_init__(self) -> None:
        self.candidacy = ElectionCandidate(self.name, DURATION)


turns = st.lists(
    st.tuples(
        st.integers(0, REPLICAS - 1),
        st.floats(0, 6),  # time since the turn before
        st.floats(0, 3),  # how long the answer takes
        st.sampled_from(["ok", "ok", "ok", "answer lost", "release"]),
    ),
    max_size=60,
)


@given(st.lists(st.floats(-1e6, 1e6), min_size=REPLICAS, max_size=REPLICAS), turns)
def test_no_two_replicas_lead_at_once(
    offsets: list[float], script: list[tuple[int, float, float, str]]
) -> None:
    store, now = Store(), 0.0
    replicas = [Replica(f"r{number}", offset) for number, offset in enumerate(offsets)]
    for index, pause, latency, fate in script:
        now += pause
        now = _turn(replicas[index], store, now, latency, fate)
        leading = [one.name for one in replicas if one.candidacy.leads(now + one.offset)]
        assert len(leading) <= 1


def _turn(replica: Replica, store: Store, now: float, latency: float, fate: str) -> float:
    """Do what the elector does in a turn and return the time at its end."""
    candidacy, clock = replica.candidacy, replica.offset
    if fate == "release":
        if candidacy.leads(now + clock):
            candidacy.resign()
            store.write(candidacy.record, "")
        return now
    if candidacy.next_step(now + clock) is not ElectionStep.RENEW:
        candidacy.observe(store.record, now + clock)
    if candidacy.next_step(now + clock) is ElectionStep.WAIT:
        return now
    sent_at = now + clock
    written = store.write(candidacy.record, replica.name)
    if fate == "answer lost":
        return now
    now += latency
    if written:
        candidacy.record_write(written, sent_at, now + clock)
    else:
        candidacy.observe(store.record, now + clock)
    return now
