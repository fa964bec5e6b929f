"""Who asks, as the cluster knows them."""

from dataclasses import dataclass
from typing import Final

from asyncjob.json_types import Json, JsonObject, as_object, child, items, text, texts


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
"""Whoever reaches a gateway that is open in development."""


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
