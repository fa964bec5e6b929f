"""Creates one object of an export exactly once.

The manifest carries the UID of the exported object in an annotation, so when the name is taken it
is known whether by this object, from an earlier run or a lost answer, or by another one.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from asyncjob.client.connection import Call, RetryBudget
from asyncjob.client.kubernetes.calls import KubernetesCalls
from asyncjob.errors import AlreadyExistsError, AsyncJobError, ConflictError, ObjectNotFoundError
from asyncjob.json_types import JsonObject, child, text
from asyncjob.names import RESTORED_FROM_ANNOTATION

STRICT_VALIDATION: Final = ("fieldValidation", "Strict")
"""A field that the cluster does not know is refused; it would be dropped in silence otherwise."""

DRY_RUN: Final = ("dryRun", "All")


class RestoreOutcome(StrEnum):
    """What became of an object."""

    CREATED = "created"
    EXISTS = "there"
    """It is there already, from an earlier restore or because it was never gone."""

    NAME_TAKEN = "taken"
    """Another object has its name."""


@dataclass(frozen=True, slots=True)
class CreateResult:
    """What became of it, and the UID of what has its name now."""

    outcome: RestoreOutcome
    uid: str


async def create_object(
    api: KubernetesCalls, path: str, manifest: JsonObject, *, dry_run: bool
) -> CreateResult:
    """Create it in the collection of this path, or look at what has its name."""
    waiting, lost = RetryBudget(api.connection, api.patience), False
    params = (STRICT_VALIDATION, DRY_RUN) if dry_run else (STRICT_VALIDATION,)
    call = Call("POST", path, params, body=manifest)
    while True:
        try:
            created = (await api.send_once(call)).object
            return CreateResult(RestoreOutcome.CREATED, text(child(created, "metadata"), "uid"))
        except AlreadyExistsError:
            found = await _get_existing(api, path, manifest)
            if found is not None:
                return _compare(found, manifest, answer_lost=lost)
        except ConflictError:
            raise
        except AsyncJobError as error:
            await waiting.wait_or_raise(error)
            lost = True


async def _get_existing(api: KubernetesCalls, path: str, manifest: JsonObject) -> JsonObject | None:
    name = text(child(manifest, "metadata"), "name")
    try:
        return await api.get(f"{path}/{name}")
    except ObjectNotFoundError:
        return None


def _compare(found: JsonObject, manifest: JsonObject, *, answer_lost: bool) -> CreateResult:
    metadata = child(found, "metadata")
    uid = text(metadata, "uid")
    before = text(child(child(manifest, "metadata"), "annotations"), RESTORED_FROM_ANNOTATION)
    restored_from = text(child(metadata, "annotations"), RESTORED_FROM_ANNOTATION)
    if before in {uid, restored_from}:
        mine = answer_lost and restored_from == before
        return CreateResult(RestoreOutcome.CREATED if mine else RestoreOutcome.EXISTS, uid)
    return CreateResult(RestoreOutcome.NAME_TAKEN, uid)
