"""Who the caller is.

Bearer tokens checked by the cluster (TokenReview) and remembered by their digest. Anyone can send
invalid tokens, so tokens never accepted before are reviewed at a rate of their own, with a share
per address: they cannot delay callers whose token is known.
"""

import hashlib
import ipaddress
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from starlette.datastructures import Headers

from asyncjob.errors import ForbiddenError
from asyncjob.json_types import Json, JsonObject, as_object, child, items, text, texts
from asyncjob.kube import KubeSession
from asyncjob_gateway import problem_types
from asyncjob_gateway.auth.review_cache import ReviewCache
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.limits.rates import KeyedTokenBuckets, TokenBucket, take_all


@dataclass(frozen=True, slots=True)
class Caller:
    """A user of the cluster; hashable, so that what they may do can be remembered."""

    username: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def to_review_spec(self) -> dict[str, Json]:
        """Return the part of a SubjectAccessReview's spec that says who."""
        return {
            "user": self.username,
            "uid": self.uid,
            "groups": list(self.groups),
            "extra": {name: list(values) for name, values in self.extra},
        }


ANYONE: Final = Caller("anyone on this machine")
"""The caller of a gateway that is open in development: anybody who can reach it."""


def caller_from_review(review: JsonObject) -> Caller | None:
    """Return whom an answered TokenReview names, None where the token is not accepted."""
    status = child(review, "status")
    user = child(status, "user")
    if status.get("authenticated") is not True or not text(user, "username"):
        return None
    extra = child(user, "extra")
    return Caller(
        username=text(user, "username"),
        uid=text(user, "uid"),
        groups=texts(user, "groups"),
        extra=tuple((name, texts(extra, name)) for name in sorted(extra)),
    )


def audiences_from_review(review: JsonObject) -> tuple[str, ...]:
    """Return the audiences that the token was found good for."""
    return tuple(str(item) for item in items(as_object(review.get("status")), "audiences"))


REVIEW_PATH: Final = "/apis/authentication.k8s.io/v1/tokenreviews"

MAX_ACCEPTED_TOKENS: Final = 10_000
"""Tokens that are known to have been good."""

MAX_UNKNOWN_REVIEWS: Final = 16
"""Questions about tokens never seen good that wait for an answer at once: the API server may be
slow, and others need the connections to it."""

_V6_PREFIX_BITS: Final = 64
"""Bits of an IPv6 address that its holder cannot choose."""

_TOKEN_PATTERN: Final = re.compile(r"[A-Za-z0-9._~+/=-]{1,16384}")


class Authenticator(Protocol):
    """Tells who asks."""

    async def authenticate(self, headers: Headers, address: str = "") -> Caller:
        """Return who asks, from which address; raises RefusedError where that cannot be told."""


class OpenAuthenticator:
    """Lets everyone in: for development, on loopback."""

    async def authenticate(self, headers: Headers, address: str = "") -> Caller:  # noqa: ARG002  # no token counts here
        """Return that it may be anyone."""
        return ANYONE


class TokenAuthenticator:
    """Has the cluster check tokens. `rate` bounds how many it is asked about per second."""

    def __init__(
        self,
        session: KubeSession,
        audiences: Sequence[str],
        cache_seconds: float,
        rate: float,
        clock: Callable[[], float],
    ) -> None:
        self._session = session
        self._audiences = tuple(audiences)
        self._bucket = TokenBucket(rate, clock)
        self._unknown_bucket = TokenBucket(rate / 2, clock)
        self._address_buckets = KeyedTokenBuckets(rate / 4, clock)
        self._unknown_in_flight = 0
        self._cache: ReviewCache[bytes, Caller | None] = ReviewCache(cache_seconds, clock)
        self._accepted: OrderedDict[bytes, None] = OrderedDict()

    async def authenticate(self, headers: Headers, address: str = "") -> Caller:
        """Return whose token it is; raises RefusedError without one, or with one that is bad."""
        token = _bearer_token(headers)
        digest = hashlib.sha256(token.encode()).digest()
        if self._cache.is_cached(digest):
            caller = await self._cache.get(digest, lambda: self._review(token))
        elif digest in self._accepted:
            _take_or_refuse(self._bucket)
            caller = await self._cache.get(digest, lambda: self._review(token))
            self._record(digest, accepted=caller is not None)
        else:
            caller = await self._review_unknown(digest, token, network_of(address))
        if caller is None:
            raise _unauthenticated("the cluster does not accept the token", "invalid_token")
        return caller

    async def _review_unknown(self, digest: bytes, token: str, network: str) -> Caller | None:
        """Ask about a token never seen good. One that is good was no burden on its address."""
        mine = self._address_buckets.bucket_for(network)
        if self._unknown_in_flight >= MAX_UNKNOWN_REVIEWS:
            raise _throttled(1.0)
        _take_or_refuse(self._bucket, self._unknown_bucket, mine)
        self._unknown_in_flight += 1
        try:
            caller = await self._cache.get(digest, lambda: self._review(token))
        finally:
            self._unknown_in_flight -= 1
        if caller is not None:
            self._unknown_bucket.give_back()
            mine.give_back()
        self._record(digest, accepted=caller is not None)
        return caller

    def _record(self, digest: bytes, *, accepted: bool) -> None:
        self._accepted.pop(digest, None)
        if accepted:
            self._accepted[digest] = None
            if len(self._accepted) > MAX_ACCEPTED_TOKENS:
                self._accepted.popitem(last=False)

    async def _review(self, token: str) -> Caller | None:
        spec: dict[str, Json] = {"token": token}
        if self._audiences:
            spec["audiences"] = self._audiences
        body: dict[str, Json] = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": spec,
        }
        try:
            review = await self._session.create(REVIEW_PATH, body)
        except ForbiddenError as error:
            raise RefusedError(
                problem_types.UNAVAILABLE, "the gateway lacks permission to create tokenreviews"
            ) from error
        good = not self._audiences or set(self._audiences) & set(audiences_from_review(review))
        return caller_from_review(review) if good else None


def network_of(address: str) -> str:
    """Return what stands for all addresses of one peer: of IPv6 the network, not the host."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 4:  # noqa: PLR2004  # its name
        return address
    return str(ipaddress.ip_network((found, _V6_PREFIX_BITS), strict=False))


def _take_or_refuse(*buckets: TokenBucket) -> None:
    wait = take_all(*buckets)
    if wait:
        raise _throttled(wait)


def _throttled(seconds: float) -> RefusedError:
    detail = "too many token checks"
    return RefusedError(problem_types.THROTTLED, detail, retry_after=seconds)


def _bearer_token(headers: Headers) -> str:
    given = headers.getlist("authorization")
    if not given:
        raise _unauthenticated("send a token: Authorization: Bearer …")
    scheme, _, token = given[0].partition(" ")
    if len(given) > 1 or scheme.lower() != "bearer" or not _TOKEN_PATTERN.fullmatch(token.strip()):
        raise _unauthenticated("the Authorization header has no bearer token", "invalid_request")
    return token.strip()


def _unauthenticated(detail: str, error: str = "") -> RefusedError:
    challenge = f'Bearer error="{error}"' if error else "Bearer"
    return RefusedError(
        problem_types.UNAUTHENTICATED, detail, headers={"WWW-Authenticate": challenge}
    )
