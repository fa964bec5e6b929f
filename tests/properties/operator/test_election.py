"""Replicas with clocks of their own, a store between them, and any delay and loss in between."""

from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from asyncjob_operator.core.leader_election import (
    ElectionCandidate,
    ElectionStep,
    LeaderElectionRecord,
    election_lease_body,
    read_election_record,
)
from asyncjob_operator.kube.paths import leases_path
from asyncjob_simulation.apiserver.identities import account_identity
from support.in_memory.fake_session import OPERATOR, operator_cluster
from support.in_memory.memory import Clock, MemoryClient

DURATION = 10.0
REPLICAS = 3
NAME = "asyncjob-operator"
LEASES = leases_path("home")
LEASE = f"{LEASES}/{NAME}"


class LeaseCluster:
    """The Lease on the API server in memory, as the operators' account may write it."""

    def __init__(self) -> None:
        server = operator_cluster(Clock())
        token = server.tokens.issue(account_identity("ns", OPERATOR))
        self._client = MemoryClient("https://memory", Path(), token, server=server)
        self._writes = 0

    def read(self) -> LeaderElectionRecord | None:
        """Return the Lease, None if there is none."""
        answer = self._client.get(LEASE)
        if answer.status == HTTPStatus.NOT_FOUND:
            return None
        return read_election_record(answer.object())

    def write(self, candidate: ElectionCandidate, holder: str) -> LeaderElectionRecord | None:
        """Write if nothing has changed since the candidate's record; None if something has."""
        # Of another time each: a write that changes nothing would leave the version as it is.
        self._writes += 1
        time = f"2026-01-01T00:00:00.{self._writes:06}Z"
        body = election_lease_body(candidate, NAME, holder, time, "")
        if candidate.record is None:
            answer = self._client.create(LEASES, body)
        else:
            answer = self._client.merge(LEASE, body)
        if answer.status == HTTPStatus.CONFLICT:
            return None
        return read_election_record(answer.object())


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


@settings(max_examples=500)  # a write without a version is found by few of them
@given(st.lists(st.floats(-1e6, 1e6), min_size=REPLICAS, max_size=REPLICAS), turns)
def test_no_two_replicas_lead_at_once(
    offsets: list[float], script: list[tuple[int, float, float, str]]
) -> None:
    cluster, now = LeaseCluster(), 0.0
    replicas = [Replica(f"r{number}", offset) for number, offset in enumerate(offsets)]
    for index, pause, latency, fate in script:
        now += pause
        now = _turn(replicas[index], cluster, now, latency, fate)
        leading = [one.name for one in replicas if one.candidacy.leads(now + one.offset)]
        assert len(leading) <= 1


def _turn(replica: Replica, cluster: LeaseCluster, now: float, latency: float, fate: str) -> float:
    """Do what the elector does in a turn and return the time at its end."""
    candidacy, clock = replica.candidacy, replica.offset
    if fate == "release":
        if candidacy.leads(now + clock):
            candidacy.resign()
            cluster.write(candidacy, "")
        return now
    if candidacy.next_step(now + clock) is not ElectionStep.RENEW:
        candidacy.observe(cluster.read(), now + clock)
    if candidacy.next_step(now + clock) is ElectionStep.WAIT:
        return now
    sent_at = now + clock
    written = cluster.write(candidacy, replica.name)
    if fate == "answer lost":
        return now
    now += latency
    if written:
        candidacy.record_write(written, sent_at, now + clock)
    else:
        candidacy.observe(cluster.read(), now + clock)
    return now
