"""What a caller may do.

The cluster's own authorizers are asked (SubjectAccessReview), and the answers are remembered for
some seconds.
"""

from collections.abc import Callable
from typing import Final, Protocol

from asyncjob.errors import ForbiddenError
from asyncjob.json_types import Json, child, flag
from asyncjob.kube import KubeSession
from asyncjob.names import GROUP
from asyncjob_gateway import problem_types
from asyncjob_gateway.auth.authentication import Caller
from asyncjob_gateway.auth.review_cache import ReviewCache
from asyncjob_gateway.auth.rights import Right
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.limits.rates import KeyedTokenBuckets, TokenBucket, take_all

AUTHORIZATION_API: Final = "authorization.k8s.io/v1"
SUBJECT_REVIEWS: Final = f"/apis/{AUTHORIZATION_API}/subjectaccessreviews"
SELF_REVIEWS: Final = f"/apis/{AUTHORIZATION_API}/selfsubjectaccessreviews"

_ReviewKey = tuple[Caller, Right, str]


class Authorizer(Protocol):
    """Tells what callers may do."""

    async def is_allowed(self, caller: Caller, right: Right, namespace: str) -> bool:
        """Return whether the caller has the right in the namespace."""


async def require(authorizer: Authorizer, caller: Caller, right: Right, namespace: str) -> None:
    """Raise RefusedError, naming the right, unless the caller has it."""
    if not await authorizer.is_allowed(caller, right, namespace):
        who = f"{caller.username} may not {right} in namespace {namespace}"
        raise RefusedError(problem_types.FORBIDDEN, f"{who}: required to {right.purpose}")


class ReviewAuthorizer:
    """Asks the cluster. `rate` bounds how many questions per second it gets.

    A caller can ask for as many rights as there are names of Secrets; hence each has a share.
    """

    def __init__(
        self, session: KubeSession, cache_seconds: float, rate: float, clock: Callable[[], float]
    ) -> None:
        self._session = session
        self._bucket = TokenBucket(rate, clock)
        self._caller_buckets = KeyedTokenBuckets(rate / 4, clock)
        self._cache: ReviewCache[_ReviewKey, bool] = ReviewCache(cache_seconds, clock)

    async def is_allowed(self, caller: Caller, right: Right, namespace: str) -> bool:
        """Return whether the caller has the right in the namespace."""
        question = (caller, right, namespace)
        if not self._cache.is_cached(question):
            wait = take_all(self._bucket, self._caller_buckets.bucket_for(caller))
            if wait:
                detail = "too many permission checks"
                raise RefusedError(problem_types.THROTTLED, detail, retry_after=wait)
        return await self._cache.get(question, lambda: self._review_access(question))

    async def _review_access(self, key: _ReviewKey) -> bool:
        caller, right, namespace = key
        spec = {
            **caller.to_review_spec(),
            "resourceAttributes": _resource_attributes(right, namespace),
        }
        return await _create_review(self._session, SUBJECT_REVIEWS, "SubjectAccessReview", spec)


class OpenAuthorizer:
    """For a gateway that is open: all of ours is allowed, and else what the gateway itself may."""

    def __init__(self, session: KubeSession) -> None:
        self._session = session

    async def is_allowed(self, caller: Caller, right: Right, namespace: str) -> bool:  # noqa: ARG002  # anyone
        """Return whether it is about jobs, or the gateway has the right."""
        if right.group == GROUP:
            return True
        spec: dict[str, Json] = {"resourceAttributes": _resource_attributes(right, namespace)}
        return await _create_review(self._session, SELF_REVIEWS, "SelfSubjectAccessReview", spec)


def _resource_attributes(right: Right, namespace: str) -> dict[str, Json]:
    return {
        "namespace": namespace,
        "group": right.group,
        "resource": right.resource,
        "verb": right.verb,
        "name": right.name,
    }


async def _create_review(session: KubeSession, path: str, kind: str, spec: dict[str, Json]) -> bool:
    try:
        answer = await session.create(
            path, {"apiVersion": AUTHORIZATION_API, "kind": kind, "spec": spec}
        )
    except ForbiddenError as error:
        detail = "the gateway lacks permission to create subjectaccessreviews"
        raise RefusedError(problem_types.UNAVAILABLE, detail) from error
    return flag(child(answer, "status"), "allowed")
