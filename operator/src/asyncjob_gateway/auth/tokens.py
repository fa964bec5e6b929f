"""Bearer tokens, checked by the cluster (TokenReview) and remembered by their digest.

Anyone can send tokens that are none. They are asked about at a rate of their own, of which each
address has a share: whose token was good before is never kept waiting by them.
"""

import hashlib
import ipaddress
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from starlette.datastructures import Headers

from asyncjob.errors import ForbiddenError
from asyncjob.json_types import Json
from asyncjob.kube import KubeSession
from asyncjob_gateway import kinds
from asyncjob_gateway.auth.caller import ANYONE, Caller, audiences_of, caller_of
from asyncjob_gateway.auth.memory import Memory
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.limits.rate import Rate
from asyncjob_gateway.limits.shares import Shares, take_all

REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"

PROVEN: Final = 10_000
"""Tokens that are known to have been good."""

STRANGERS: Final = 16
"""Questions about tokens never seen good that wait for an answer at once: the API server may be
slow, and others need the connections to it."""

_V6_NETWORK: Final = 64
"""Bits of an IPv6 address that its holder cannot choose."""

_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/=-]{1,16384}")


class Authenticator(Protocol):
    """Tells who asks."""

    async def identify(self, headers: Headers, address: str = "") -> Caller:
        """Return who asks, from which address; raises RefusedError where that cannot be told."""


class Open:
    """Lets everyone in: for development, on loopback."""

    async def identify(self, headers: Headers, address: str = "") -> Caller:  # noqa: ARG002  # no token counts here
        """Return that it may be anyone."""
        return ANYONE


class Tokens:
    """Has the cluster check tokens. `rate` bounds how many it is asked about per second."""

    def __init__(
        self,
        session: KubeSession,
        audiences: Sequence[str],
        remember: float,
        rate: float,
        clock: Callable[[], float],
    ) -> None:
        self._session = session
        self._audiences = tuple(audiences)
        self._rate = Rate(rate, clock)
        self._strangers = Rate(rate / 2, clock)
        self._addresses = Shares(rate / 4, clock)
        self._asking = 0
        self._memory: Memory[bytes, Caller | None] = Memory(remember, clock)
        self._proven: OrderedDict[bytes, None] = OrderedDict()

    async def identify(self, headers: Headers, address: str = "") -> Caller:
        """Return whose token it is; raises RefusedError without one, or with one that is bad."""
        token = _bearer(headers)
        digest = hashlib.sha256(token.encode()).digest()
        if self._memory.known(digest):
            caller = await self._memory.get(digest, lambda: self._ask(token))
        elif digest in self._proven:
            _admit(self._rate)
            caller = await self._memory.get(digest, lambda: self._ask(token))
            self._note(digest, good=caller is not None)
        else:
            caller = await self._meet(digest, token, network_of(address))
        if caller is None:
            raise _unknown("the cluster does not accept the token", "invalid_token")
        return caller

    async def _meet(self, digest: bytes, token: str, network: str) -> Caller | None:
        """Ask about a token never seen good. One that is good was no burden on its address."""
        mine = self._addresses.of(network)
        if self._asking >= STRANGERS:
            raise _later(1.0)
        _admit(self._rate, self._strangers, mine)
        self._asking += 1
        try:
            caller = await self._memory.get(digest, lambda: self._ask(token))
        finally:
            self._asking -= 1
        if caller is not None:
            self._strangers.give_back()
            mine.give_back()
        self._note(digest, good=caller is not None)
        return caller

    def _note(self, digest: bytes, *, good: bool) -> None:
        self._proven.pop(digest, None)
        if good:
            self._proven[digest] = None
            if len(self._proven) > PROVEN:
                self._proven.popitem(last=False)

    async def _ask(self, token: str) -> Caller | None:
        spec: dict[str, Json] = {"token": token}
        if self._audiences:
            spec["audiences"] = self._audiences
        body: dict[str, Json] = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": spec,
        }
        try:
            review = await self._session.create(REVIEWS, body)
        except ForbiddenError as error:
            raise RefusedError(
                kinds.UNAVAILABLE, "the gateway may not have tokens checked (tokenreviews)"
            ) from error
        good = not self._audiences or set(self._audiences) & set(audiences_of(review))
        return caller_of(review) if good else None


def network_of(address: str) -> str:
    """Return what stands for all addresses of one peer: of IPv6 the network, not the host."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 4:  # noqa: PLR2004  # its name
        return address
    return str(ipaddress.ip_network((found, _V6_NETWORK), strict=False))


def _admit(*rates: Rate) -> None:
    wait = take_all(*rates)
    if wait:
        raise _later(wait)


def _later(seconds: float) -> RefusedError:
    detail = "too many tokens to be checked just now"
    return RefusedError(kinds.THROTTLED, detail, retry_after=seconds)


def _bearer(headers: Headers) -> str:
    given = headers.getlist("authorization")
    if not given:
        raise _unknown("send a token: Authorization: Bearer …")
    scheme, _, token = given[0].partition(" ")
    if len(given) > 1 or scheme.lower() != "bearer" or not _TOKEN.fullmatch(token.strip()):
        raise _unknown("the Authorization header has no bearer token", "invalid_request")
    return token.strip()


def _unknown(detail: str, error: str = "") -> RefusedError:
    challenge = f'Bearer error="{error}"' if error else "Bearer"
    return RefusedError(kinds.UNAUTHENTICATED, detail, headers={"WWW-Authenticate": challenge})
