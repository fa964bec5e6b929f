"""One replica's view of the election."""

from asyncjob.json_types import JsonObject
from asyncjob_operator.core.leader_election import (
    SAFETY_MARGIN_SECONDS,
    ElectionCandidate,
    ElectionStep,
    LeaderElectionRecord,
    election_lease_body,
    read_election_record,
)

DURATION = 10.0
CAPABLE = {"asyncjob.dev/capabilities": "me parks signals children arrays"}


def record(holder: str, version: str = "1", duration: float = DURATION) -> LeaderElectionRecord:
    return LeaderElectionRecord(holder, version, duration, transitions=0)


def test_where_there_is_no_lease_it_is_created() -> None:
    candidacy = ElectionCandidate("me", DURATION)
    candidacy.observe(None, 0)
    assert candidacy.next_step(0) is ElectionStep.CREATE


def test_a_lease_of_another_is_waited_out_from_its_first_sight() -> None:
    candidacy = ElectionCandidate("me", DURATION)
    candidacy.observe(record("you"), 100)
    candidacy.observe(record("you"), 105)
    assert candidacy.next_step(109.9) is ElectionStep.WAIT
    assert candidacy.next_step(110) is ElectionStep.TAKE


def test_each_renewal_of_another_starts_the_wait_again() -> None:
    candidacy = ElectionCandidate("me", DURATION)
    candidacy.observe(record("you", "1"), 100)
    candidacy.observe(record("you", "2"), 109)
    assert candidacy.next_step(118) is ElectionStep.WAIT


def test_a_released_lease_is_taken_at_once() -> None:
    candidacy = ElectionCandidate("me", DURATION)
    candidacy.observe(record(""), 100)
    assert candidacy.next_step(100) is ElectionStep.TAKE


def test_leadership_ends_a_margin_before_the_duration_counted_from_sending() -> None:
    candidacy = ElectionCandidate("me", DURATION)
    candidacy.record_write(record("me"), sent_at=100, now=103)
    assert candidacy.leads(100 + DURATION - SAFETY_MARGIN_SECONDS - 0.1)
    assert not candidacy.leads(100 + DURATION - SAFETY_MARGIN_SECONDS)


def test_who_sees_another_in_the_lease_stops_leading_at_once() -> None:
    candidacy = ElectionCandidate("me", DURATION)
    candidacy.record_write(record("me", "1"), sent_at=100, now=100)
    candidacy.observe(record("you", "2"), 101)
    assert not candidacy.leads(101)


def test_reading_ones_own_name_is_not_a_renewal() -> None:
    candidacy = ElectionCandidate("me", DURATION)
    candidacy.record_write(record("me", "1"), sent_at=100, now=100)
    candidacy.observe(record("me", "1"), 108)
    assert not candidacy.leads(109)
    assert candidacy.next_step(109) is ElectionStep.RENEW


def test_a_write_is_exact_on_the_version_seen_and_counts_takeovers() -> None:
    candidacy = ElectionCandidate("me", DURATION)
    candidacy.observe(record("you", "7"), 0)
    body = election_lease_body(candidacy, "lease", "me", "now", "")
    assert body["metadata"] == {"name": "lease", "resourceVersion": "7", "annotations": CAPABLE}
    spec = body["spec"]
    assert isinstance(spec, dict)
    assert (spec["leaseTransitions"], spec["acquireTime"]) == (1, "now")
    released = election_lease_body(candidacy, "lease", "", "now", "")["spec"]
    assert isinstance(released, dict)
    assert "leaseTransitions" not in released


def test_a_record_takes_the_duration_its_holder_promised() -> None:
    lease: JsonObject = {
        "metadata": {"resourceVersion": "3", "creationTimestamp": "2027-01-15T08:00:00Z"},
        "spec": {"holderIdentity": "you", "leaseDurationSeconds": 30, "leaseTransitions": 2},
    }
    found = LeaderElectionRecord("you", "3", 30.0, 2, created_at=1_800_000_000)
    assert read_election_record(lease) == found


def test_a_lease_that_says_nothing_is_nobodys_and_as_old_as_can_be() -> None:
    assert read_election_record({}) == LeaderElectionRecord("", "", 10.0, 0, created_at=0.0)


def test_ones_own_write_is_what_the_next_step_goes_by() -> None:
    candidacy = ElectionCandidate("me", DURATION)
    candidacy.observe(record("you", "1"), 0)
    candidacy.record_write(record("me", "2"), sent_at=20, now=21)
    assert candidacy.record == record("me", "2")
    assert candidacy.next_step(21) is ElectionStep.RENEW


def test_who_has_written_nothing_does_not_lead_and_who_resigns_no_longer_does() -> None:
    candidacy = ElectionCandidate("me", DURATION)
    assert not candidacy.leads(0)
    candidacy.record_write(record("me"), sent_at=100, now=100)
    assert candidacy.leads(101)
    candidacy.resign()
    assert not candidacy.leads(101)


def test_a_lease_is_created_as_kubernetes_leases_are() -> None:
    body = election_lease_body(ElectionCandidate("me", DURATION), "lease", "me", "now", "")
    assert body == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "lease", "annotations": CAPABLE},
        "spec": {
            "holderIdentity": "me",
            "leaseDurationSeconds": 10,
            "renewTime": "now",
            "acquireTime": "now",
            "leaseTransitions": 0,
        },
    }
    short = election_lease_body(ElectionCandidate("me", 0.5), "lease", "me", "now", "")["spec"]
    assert isinstance(short, dict)
    assert short["leaseDurationSeconds"] == 1


def test_a_lease_without_a_duration_is_waited_out_for_ten_seconds() -> None:
    assert read_election_record({}).duration == 10.0
