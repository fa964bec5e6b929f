"""Bad tokens, at whatever rate, keep nobody waiting whose token was good before."""

from typing import Any

import pytest
from starlette.datastructures import Headers

from asyncjob_gateway import problem_types
from asyncjob_gateway.auth.authentication import Caller, TokenAuthenticator, network_of
from asyncjob_gateway.auth.authorization import ReviewAuthorizer
from asyncjob_gateway.auth.rights import READ_JOBS, read_source
from asyncjob_gateway.errors import RefusedError
from unit.gateway.conftest import Clock


class Cluster:
    """A session that answers reviews: tokens that begin with `good` are somebody's, all is allowed.

    It records whose tokens it was asked about, which is what the tests count. The API server in
    memory accepts only the tokens that it has issued, to accounts that exist; here thousands come
    up, good ones as well, and a good one goes bad by itself.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def create(self, _path: str, body: dict[str, Any]) -> dict[str, Any]:
        if body["kind"] != "TokenReview":
            return {"status": {"allowed": True}}
        token = body["spec"]["token"]
        self.asked.append(token)
        user = {"authenticated": token.startswith("good"), "user": {"username": token}}
        return {"status": user}


def tokens(cluster: Cluster, clock: Clock, rate: float = 40) -> TokenAuthenticator:
    return TokenAuthenticator(cluster, (), 30, rate, clock)  # type: ignore[arg-type]  # all that is used of it


async def told(known: TokenAuthenticator, token: str, address: str = "10.0.0.1") -> str:
    """Return who it is, or why not."""
    try:
        caller = await known.authenticate(Headers({"authorization": f"Bearer {token}"}), address)
    except RefusedError as error:
        return error.kind.slug
    return caller.username


async def test_bad_tokens_do_not_use_up_what_is_kept_for_good_ones(clock: Clock) -> None:
    cluster = Cluster()
    known = tokens(cluster, clock)
    good = [f"good-{number}" for number in range(5)]
    assert [await told(known, one) for one in good] == good
    for second in range(60):
        clock.now += 1
        for number in range(145):
            assert await told(known, f"bad-{second}-{number}") in {"unauthenticated", "throttled"}
        assert [await told(known, one) for one in good] == good
    bad = [one for one in cluster.asked if one.startswith("bad")]
    assert 500 < len(bad) <= 620  # a quarter of the rate, and what a bucket holds


async def test_one_address_leaves_room_for_new_tokens_of_others(clock: Clock) -> None:
    known = tokens(Cluster(), clock)
    for second in range(5):
        clock.now += 1
        for number in range(145):
            await told(known, f"bad-{second}-{number}", "10.0.0.66")
        assert await told(known, f"good-{second}", "10.0.0.2") == f"good-{second}"


async def test_new_good_tokens_are_no_burden_on_their_address(clock: Clock) -> None:
    known = tokens(Cluster(), clock)
    found = [await told(known, f"good-{number}") for number in range(60)]
    assert found == [f"good-{number}" for number in range(60)]


async def test_a_token_that_has_become_bad_has_no_place_among_the_good(clock: Clock) -> None:
    cluster = Cluster()
    known = tokens(cluster, clock, rate=4)
    assert await told(known, "good") == "good"
    cluster.create = lambda _path, _body: _refuse()  # type: ignore[method-assign, assignment]  # expired
    clock.now += 31
    assert await told(known, "good") == "unauthenticated"
    await told(known, "bad-1")
    await told(known, "bad-2")
    clock.now += 31
    for _ in range(2):
        await told(known, f"bad-{clock.now}-{_}")
    assert await told(known, "good") == "throttled"


async def _refuse() -> dict[str, Any]:
    return {"status": {"authenticated": False}}


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("10.1.2.3", "10.1.2.3"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("", ""),
        ("testclient", "testclient"),
    ],
)
def test_an_address_that_its_holder_can_choose_counts_as_its_network(
    address: str, network: str
) -> None:
    assert network_of(address) == network


async def test_one_caller_does_not_use_up_the_rights_that_others_are_asked_for(
    clock: Clock,
) -> None:
    access = ReviewAuthorizer(Cluster(), 30, 40, clock)  # type: ignore[arg-type]  # all that is used of it
    for number in range(20):  # a quarter of what comes in two seconds
        await access.is_allowed(Caller("greedy"), read_source("secrets", f"s{number}"), "n")
    with pytest.raises(RefusedError) as refused:
        await access.is_allowed(Caller("greedy"), read_source("secrets", "s20"), "n")
    assert refused.value.kind is problem_types.THROTTLED
    assert await access.is_allowed(Caller("modest"), READ_JOBS, "n")
