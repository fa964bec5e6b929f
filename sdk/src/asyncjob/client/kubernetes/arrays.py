"""Arrays: submit, read, list, cancel, suspend, redrive.

An array is created under a name that is chosen before the first request, so that the request may be
repeated: the API server refuses the second, and a read tells whether it is the same array.
"""

from dataclasses import dataclass

from asyncjob.client import errors
from asyncjob.client.connection import Call, RetryBudget
from asyncjob.client.kubernetes.calls import KubernetesCalls
from asyncjob.client.kubernetes.changes import DecideChange, apply_change, set_field
from asyncjob.client.options import check_name
from asyncjob.errors import AlreadyExistsError, AsyncJobError, ConflictError, ObjectNotFoundError
from asyncjob.json_types import JsonObject, child, flag, integer, text
from asyncjob.lifecycle.arrays.phases import ArrayPhase
from asyncjob.names import ARRAYS, array_path, collection_path
from asyncjob.rest.arrays import (
    ArrayInfo,
    ArraySelection,
    FailedItems,
    SubmittedArray,
    array_of,
    array_position,
    failed_items_of,
    matches_array,
)
from asyncjob.submission.arrays import ArrayManifest


async def submit_array(api: KubernetesCalls, wanted: ArrayManifest) -> SubmittedArray:
    """Create the array, or find the one that the same submission created before."""
    waiting, lost = RetryBudget(api.connection, api.patience), False
    call = Call("POST", collection_path(wanted.namespace, ARRAYS), body=wanted.manifest)
    while True:
        try:
            return _submitted((await api.send_once(call)).object, created=True)
        except AlreadyExistsError:
            return await _accept_existing(api, wanted, created=lost)
        except ConflictError:  # the namespace is going, or quota was in the way for a moment
            raise
        except AsyncJobError as error:
            await waiting.wait_or_raise(error)
            lost = True


async def _accept_existing(
    api: KubernetesCalls, wanted: ArrayManifest, *, created: bool
) -> SubmittedArray:
    try:
        existing = await api.get(_path(wanted.namespace, wanted.name))
    except ObjectNotFoundError as error:
        raise errors.UnavailableError(
            f"array {wanted.name} was there a moment ago and is deleted by now; try again"
        ) from error
    if not wanted.is_same(existing):
        raise errors.ArrayExistsError(
            f"name: another array is called {wanted.name}; choose another name"
        )
    return _submitted(existing, created=created)


def _submitted(array: JsonObject, *, created: bool) -> SubmittedArray:
    return SubmittedArray(name=_name(array), created=created, phase=_phase(array))


async def get_array(api: KubernetesCalls, namespace: str, name: str) -> ArrayInfo:
    """Return one array with spec and status."""
    return array_of(await api.get(_path(namespace, name)), detailed=True)


async def get_failed_items(api: KubernetesCalls, namespace: str, name: str) -> FailedItems:
    """Return which items of an array have failed."""
    return failed_items_of(await api.get(_path(namespace, name)))


async def list_arrays(
    api: KubernetesCalls, namespace: str | None, selection: ArraySelection
) -> list[ArrayInfo]:
    """Return the arrays that match, newest first; namespace None: of all."""
    labels = (("labelSelector", selection.label),) if selection.label else ()

    def read(obj: JsonObject) -> ArrayInfo | None:
        array = array_of(obj)
        return array if matches_array(array, selection) else None

    found = await api.list_all(collection_path(namespace, ARRAYS), labels, read)
    return sorted(found, key=array_position, reverse=True)


async def change_array(
    api: KubernetesCalls, namespace: str, name: str, decide: DecideChange
) -> ArrayInfo:
    """Apply a change and return the array."""
    return array_of(await apply_change(api, _path(namespace, name), decide), detailed=True)


def set_array_suspended(*, suspended: bool) -> DecideChange:
    """Return the change that suspends an array or lets it go on."""
    return set_field("suspend", suspended, default=False)


def set_array_cancel(array: JsonObject) -> JsonObject | None:
    """Return the change that requests a cancel."""
    if _phase(array) is ArrayPhase.SUCCEEDED:
        raise errors.NotCancellableError(
            f"array {_name(array)} has succeeded: there is nothing left to cancel"
        )
    if _phase(array) is ArrayPhase.FAILED and not _is_redriven(array):
        raise errors.NotCancellableError(
            f"array {_name(array)} has failed: nothing of it runs; redrive it, or delete it"
        )
    done = _phase(array) is ArrayPhase.CANCELLED or flag(child(array, "spec"), "cancel")
    return None if done else {"cancel": True}


@dataclass(slots=True)
class ArrayRedriveRequest:
    """The request to run the failed items again; its number is set by the first read."""

    number: int = 0

    def __call__(self, array: JsonObject) -> JsonObject | None:
        """Decide."""
        requested = integer(child(array, "spec"), "redrive")
        done = integer(child(array, "status"), "redrives")
        if (self.number and max(requested, done) >= self.number) or requested > done:
            return None
        if _phase(array) is not ArrayPhase.FAILED:
            raise errors.JobStateError(
                f"array {_name(array)} is {_phase(array).value}; only a failed array can be"
                " redriven"
            )
        self.number = max(requested, done) + 1
        return {"redrive": self.number}


def _is_redriven(array: JsonObject) -> bool:
    """Return whether a redrive was requested that the operator has not seen yet."""
    requested = integer(child(array, "spec"), "redrive")
    return requested > integer(child(array, "status"), "redrives")


def _phase(array: JsonObject) -> ArrayPhase:
    return ArrayPhase(text(child(array, "status"), "phase", ArrayPhase.PENDING))


def _name(array: JsonObject) -> str:
    return text(child(array, "metadata"), "name")


def _path(namespace: str, name: str) -> str:
    return array_path(namespace, check_name(name, errors.ArrayNotFoundError))
