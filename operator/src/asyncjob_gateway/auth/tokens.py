"""Bearer tokens, checked by the cluster (TokenReview) and remembered by their digest."""

import hashlib
import re
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

REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"

_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/=-]{1,16384}")


class Authenticator(Protocol):
    """Tells who asks."""

    async def identify(self, headers: Headers) -> Caller:
        """Return who asks; raises RefusedError where that cannot be told."""


class Open:
    """Lets everyone in: for development, on loopback."""

    async def identify(self, headers: Headers) -> Caller:  # noqa: ARG002  # no token counts here
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
        self._memory: Memory[bytes, Caller | None] = Memory(remember, clock)

    async def identify(self, headers: Headers) -> Caller:
        """Return whose token it is; raises RefusedError without one, or with one that is bad."""
        token = _bearer(headers)
        digest = hashlib.sha256(token.encode()).digest()
        if not self._memory.known(digest):
            self._admit()
        caller = await self._memory.get(digest, lambda: self._ask(token))
        if caller is None:
            raise _unknown("the cluster does not accept the token", "invalid_token")
        return caller

    def _admit(self) -> None:
        wait = self._rate.take()
        if wait:
            detail = "too many tokens to be checked just now"
            raise RefusedError(kinds.THROTTLED, detail, retry_after=wait)

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
