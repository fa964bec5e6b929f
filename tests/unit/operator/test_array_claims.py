"""Who creates the chunks that are reserved: the writer, and only for a while after its claim."""

from dataclasses import replace
from typing import Any

import pytest

from asyncjob.lifecycle.arrays.observed import GONE
from asyncjob_operator.core.arrays.decide import CREATE_BATCH, decide_array
from asyncjob_operator.core.arrays.snapshot import (
    ArrayDecision,
    ArrayEffect,
    CreateChunks,
    DeleteChunks,
    WriteArrayStatus,
)
from support.objects.arrays import OPERATOR, chunk, entry, snapshot, under_way
from support.objects.snapshots import at

RESERVED = entry(1, uid="")
STATE = under_way(RESERVED)


def decided(now: float, state: Any = STATE, **known: Any) -> ArrayDecision:
    """Return what is decided about an array with a chunk that is reserved."""
    return decide_array(snapshot(state, **known), at(now))


def claim_of(effect: ArrayEffect | None) -> tuple[str, dict[str, Any]]:
    """Return why the operator claims the array, and what it writes for that."""
    assert isinstance(effect, WriteArrayStatus)
    assert effect.claims
    assert (effect.state.writer, effect.state.open) == (OPERATOR, (RESERVED,))
    return effect.policy, dict(effect.fields)


@pytest.mark.parametrize("seconds", [0.0, 4.999])
def test_the_writer_creates_within_five_seconds_of_its_claim(seconds: float) -> None:
    assert decided(10 + seconds, claimed_at=10.0) == ArrayDecision(CreateChunks((RESERVED,)))


@pytest.mark.parametrize("claimed_at", [None, 5.0], ids=["it has just started", "five seconds ago"])
def test_the_writer_renews_its_claim_before_it_creates(claimed_at: float | None) -> None:
    decision = decided(10, claimed_at=claimed_at)
    assert claim_of(decision.effect) == ("renew", {"claims": 2})
    assert decision.requeue_at is None


def test_another_operator_takes_over_fifteen_seconds_after_it_saw_the_claim() -> None:
    foreign = replace(STATE, writer="operator-1")
    assert decided(17.9, foreign, writer_since=3.0) == ArrayDecision(None, 18.0)
    taken = decided(18.0, foreign, writer_since=3.0).effect
    assert claim_of(taken) == ("take-over", {"claims": 2, "writer": OPERATOR})
    # However freshly it has claimed the array before, another has in the meantime.
    assert decided(4.0, foreign, writer_since=3.0, claimed_at=3.9) == ArrayDecision(None, 18.0)


@pytest.mark.parametrize(
    ("claims", "after"), [(0, 1), (7, 8), (2**31 - 2, 2**31 - 1), (2**31 - 1, 1)]
)
def test_claims_are_counted_up_to_the_schemas_largest_number(claims: int, after: int) -> None:
    effect = decided(0, replace(STATE, claims=claims)).effect
    assert claim_of(effect)[1]["claims"] == after


def test_of_a_long_identity_the_first_256_characters_tell_the_writer() -> None:
    name = "o" * 256
    known = snapshot(replace(STATE, writer=name), identity=name + "-1")
    assert known.is_writer
    claim = decide_array(known, at(20)).effect
    assert isinstance(claim, WriteArrayStatus)
    assert claim.state.writer == name
    assert not snapshot(replace(STATE, writer=name + "-"), identity=name + "-1").is_writer


def test_so_many_chunks_are_created_until_the_claim_is_looked_at_again() -> None:
    entries = [entry(number, uid="") for number in range(1, CREATE_BATCH + 2)]
    decision = decided(0, under_way(*entries), spec={"parallelism": 100}, claimed_at=0.0)
    assert decision.effect == CreateChunks(tuple(entries[:50]))


def test_what_has_been_created_or_cannot_be_is_not_created_again() -> None:
    entries = [entry(number, uid="") for number in (1, 2, 3)]
    known = snapshot(under_way(*entries), created={"thumbs-1": "uid-1", "thumbs-2": GONE})
    assert known.uncreated == (entries[2],)
    assert [known.uid_of(one) for one in entries] == ["uid-1", GONE, None]


def test_counted_chunks_are_deleted_before_new_ones_take_up_their_room() -> None:
    counted = chunk(9)
    decision = decide_array(snapshot(STATE, counted, claimed_at=0.0), at(0))
    assert decision == ArrayDecision(DeleteChunks((counted,)))


def test_the_reserved_chunks_of_a_cancelled_array_are_not_created() -> None:
    effect = decided(0, spec={"cancel": True}, claimed_at=0.0).effect
    assert isinstance(effect, WriteArrayStatus)
    assert (effect.policy, effect.claims) == ("advance", False)
    assert (effect.fields["phase"], effect.fields["open"]) == ("Cancelled", None)


def test_items_of_a_chunk_whose_name_is_taken_are_reserved_again_under_another_name() -> None:
    effect = decided(0, created={"thumbs-1": GONE}, spec={"parallelism": 1}).effect
    assert isinstance(effect, WriteArrayStatus)
    [again] = effect.state.open
    assert (again.items, again.generation, again.uid) == (RESERVED.items, 2, "")
    assert again.name != RESERVED.name


def test_an_array_that_is_being_deleted_is_left_alone() -> None:
    known = snapshot(STATE, chunk(9), claimed_at=0.0)
    assert decide_array(known, at(0)).effect is not None
    deleting = replace(known, array=replace(known.array, deleting=True))
    assert decide_array(deleting, at(0)) == ArrayDecision()
