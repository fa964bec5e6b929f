"""Who asks: users, groups and what else is known of them, by bearer token."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Object = dict[str, Any]

_POD_NAME: Final = "authentication.kubernetes.io/pod-name"
_POD_UID: Final = "authentication.kubernetes.io/pod-uid"
MASTERS: Final = "system:masters"
AUTHENTICATED: Final = "system:authenticated"


@dataclass(frozen=True, slots=True)
class Identity:
    """A user as the API server knows it; `extra` has the pod of a token that is bound to one."""

    username: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def user_info(self) -> Object:
        """Return what policies see as `request.userInfo`, and reviews as the user."""
        return {
            "username": self.username,
            **({"uid": self.uid} if self.uid else {}),
            "groups": list(self.groups),
            **({"extra": {key: list(values) for key, values in self.extra}} if self.extra else {}),
        }

    @property
    def pod(self) -> tuple[str, str] | None:
        """Return name and UID of the pod that the token is bound to."""
        extra = dict(self.extra)
        if _POD_NAME not in extra:
            return None
        return extra[_POD_NAME][0], extra[_POD_UID][0]


ADMIN: Final = Identity("admin", (MASTERS, AUTHENTICATED))
"""Who may do everything."""


def account_identity(namespace: str, name: str, uid: str = "") -> Identity:
    """Return a service account."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
    return Identity(f"system:serviceaccount:{namespace}:{name}", groups, uid)


def pod_identity(namespace: str, account: str, pod: str, pod_uid: str) -> Identity:
    """Return a service account in the name of a pod."""
    bound = ((_POD_NAME, (pod,)), (_POD_UID, (pod_uid,)))
    plain = account_identity(namespace, account)
    return Identity(plain.username, plain.groups, plain.uid, bound)


@dataclass(frozen=True, slots=True)
class _Token:
    identity: Identity
    namespace: str
    expires_at: float | None


@dataclass(slots=True)
class Tokens:
    """Bearer tokens, and how long they are good; `new_id` makes each another.

    `pod_uid` returns the UID of a pod that is there: a token that is bound to another is void.
    """

    clock: Callable[[], float]
    new_id: Callable[[], str]
    pod_uid: Callable[[str, str], str]
    _known: dict[str, _Token] = field(default_factory=dict)

    def issue(
        self, identity: Identity, *, namespace: str = "", seconds: float | None = None
    ) -> str:
        """Return a new token; it is good for so many seconds, or for ever."""
        token = self.new_id()
        until = None if seconds is None else self.clock() + seconds
        self._known[token] = _Token(identity, namespace, until)
        return token

    def revoke(self, token: str) -> None:
        """Make a token void."""
        self._known.pop(token, None)

    def authenticate(self, token: str) -> Identity | None:
        """Return whose token it is; None for one that is void."""
        known = self._known.get(token)
        if known is None or (known.expires_at is not None and known.expires_at <= self.clock()):
            return None
        pod = known.identity.pod
        if pod and known.namespace and self.pod_uid(known.namespace, pod[0]) != pod[1]:
            return None
        return known.identity


def impersonated(identity: Identity, headers: Mapping[str, str]) -> Identity:
    """Return who the request is to come from, where its headers say so.

    `Impersonate-Group` and each extra key have one value here.
    """
    user = headers.get("Impersonate-User")
    if user is None:
        return identity
    groups = [headers["Impersonate-Group"]] if "Impersonate-Group" in headers else []
    prefix = "Impersonate-Extra-"
    extra = {
        key.removeprefix(prefix).replace("%2F", "/").replace("%2f", "/"): (value,)
        for key, value in headers.items()
        if key.startswith(prefix)
    }
    return Identity(user, (*groups, AUTHENTICATED), "", tuple(sorted(extra.items())))
