"""Creates one object of an export once, whatever becomes of the answers.

It carries the UID that it had in the file. So who finds its name taken knows whether by itself,
from an earlier run or a lost answer, or by another object.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from asyncjob.client.steps import Call, Patience, Steps, patiently
from asyncjob.errors import AlreadyExistsError, AsyncJobError, ConflictError, NotFoundError
from asyncjob.json_types import JsonObject, child, text
from asyncjob.names import RESTORED_FROM_ANNOTATION

STRICT: Final = ("fieldValidation", "Strict")
"""A field that the cluster does not know is refused; it would be dropped in silence otherwise."""

DRY_RUN: Final = ("dryRun", "All")


class Became(StrEnum):
    """What became of an object."""

    CREATED = "created"
    THERE = "there"
    """It is there already, from an earlier restore or because it was never gone."""

    TAKEN = "taken"
    """Another object has its name."""


@dataclass(frozen=True, slots=True)
class Done:
    """What became of it, and the UID of what has its name now."""

    became: Became
    uid: str


def create(path: str, manifest: JsonObject, patience: float, *, dry_run: bool) -> Steps[Done]:
    """Create it in the collection of this path, or look at what has its name."""
    waiting, lost = Patience(patience), False
    params = (STRICT, DRY_RUN) if dry_run else (STRICT,)
    while True:
        try:
            answer = yield Call("POST", path, params, body=manifest)
            return Done(Became.CREATED, text(child(answer.object, "metadata"), "uid"))
        except AlreadyExistsError:
            found = yield from _existing(path, manifest, patience)
            if found is not None:
                return _compared(found, manifest, lost=lost)
        except ConflictError:
            raise
        except AsyncJobError as error:
            yield from waiting.outlast(error)
            lost = True


def _existing(path: str, manifest: JsonObject, patience: float) -> Steps[JsonObject | None]:
    name = text(child(manifest, "metadata"), "name")
    try:
        return (yield from patiently(Call("GET", f"{path}/{name}"), patience)).object
    except NotFoundError:
        return None


def _compared(found: JsonObject, manifest: JsonObject, *, lost: bool) -> Done:
    metadata = child(found, "metadata")
    uid = text(metadata, "uid")
    before = text(child(child(manifest, "metadata"), "annotations"), RESTORED_FROM_ANNOTATION)
    restored_from = text(child(metadata, "annotations"), RESTORED_FROM_ANNOTATION)
    if before in {uid, restored_from}:
        mine = lost and restored_from == before
        return Done(Became.CREATED if mine else Became.THERE, uid)
    return Done(Became.TAKEN, uid)
