"""How a job ended, and its result: in the job itself, or in a store that the client was given."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from asyncjob.client.errors import (
    ArrayFailedError,
    ArrayGoneError,
    JobFailedError,
    JobGoneError,
    NoResultError,
    ResultElsewhereError,
)
from asyncjob.json_types import Json
from asyncjob.lifecycle.arrays.item_ranges import ItemRanges
from asyncjob.lifecycle.arrays.item_results import (
    ItemResult,
    ItemResultsError,
    ResultObjects,
    ResultReader,
)
from asyncjob.lifecycle.arrays.phases import ArrayPhase
from asyncjob.models.job_status import ResultReference
from asyncjob.offload import Address, AllowList, Store, fetch
from asyncjob.offload.transfer import StoredFolder
from asyncjob.rest.arrays import ArrayInfo
from asyncjob.rest.item_states import run_items
from asyncjob.rest.jobs import Job


def check_outcome(job: Job | None, job_id: str, *, raise_on_failure: bool) -> Job:
    """Return the job; raises JobFailedError if it did not succeed and `raise_on_failure` is set."""
    if job is None:
        raise JobGoneError(f"no status received for job {job_id}")
    if raise_on_failure and not job.succeeded:
        raise JobFailedError(job)
    return job


def check_array_outcome(array: ArrayInfo | None, name: str, *, raise_on_failure: bool) -> ArrayInfo:
    """Return the array; raises ArrayFailedError if it did not succeed and that is asked for."""
    if array is None:
        raise ArrayGoneError(f"no status received for array {name}")
    if raise_on_failure and array.phase is not ArrayPhase.SUCCEEDED:
        raise ArrayFailedError(array)
    return array


class ResultFetcher(Protocol):
    """Fetches results that are kept outside of jobs and arrays, blocking until done."""

    def fetch(self, reference: ResultReference) -> Json:
        """Return the result; raises OffloadError."""

    def folder(self, uri: str) -> ResultObjects:
        """Return the folder of an array's results; raises OffloadError."""


@dataclass(frozen=True, slots=True)
class StoredResults:
    """Results in stores, as far as `allowed` lets them be read."""

    allowed: AllowList
    store: Store

    def fetch(self, reference: ResultReference) -> Json:
        """Return the result; raises OffloadError."""
        return fetch(reference, allowed=self.allowed, store=self.store)

    def folder(self, uri: str) -> ResultObjects:
        """Return the folder of an array's results; raises OffloadError."""
        return StoredFolder(Address.folder(uri), self.allowed, self.store)


@dataclass(frozen=True, slots=True)
class LocatedResult:
    """A result, or where it lies; to read it from there blocks."""

    value: Json = None
    reference: ResultReference | None = None
    store: ResultFetcher | None = None

    def read(self) -> Json:
        """Return the result; raises OffloadError."""
        if self.reference is None or self.store is None:
            return self.value
        return self.store.fetch(self.reference)


def result_of(job: Job, store: ResultFetcher | None) -> LocatedResult:
    """Return the job's result; raises NoResultError, or ResultElsewhereError without a store."""
    if job.result_ref is not None:
        return stored_result(job.id, job.result_ref, store)
    if job.has_result:
        return LocatedResult(job.result)
    why = "its handler returned nothing" if job.succeeded else f"it is {job.phase.value}"
    raise NoResultError(f"job {job.id} has no result: {why}")


def stored_result(
    job_id: str, reference: ResultReference, store: ResultFetcher | None
) -> LocatedResult:
    """Return the result at an address; raises ResultElsewhereError without a store."""
    if store is None:
        raise ResultElsewhereError(
            f"the result of job {job_id} lies at {reference.uri}; give the client a store to"
            " fetch it from there",
            uri=reference.uri,
        )
    return LocatedResult(reference=reference, store=store)


class ItemResults:
    """The results of the items of one array that are done, in the order of the items; blocks."""

    def __init__(self, array: ArrayInfo, objects: ResultObjects) -> None:
        self._array = array
        self._reader = ResultReader(objects, run_items(array))

    def __iter__(self) -> Iterator[ItemResult]:
        """Yield them; raises OffloadError, and ItemResultsError for what are no results."""
        return iter(self._reader)

    def check(self) -> None:
        """Raise ItemResultsError if items have no result, once all others were read.

        A failed item whose number the status has no room for has none.
        """
        missing = self._reader.missing
        unlisted = (self._array.status.failed_unlisted or 0) if self._array.status else 0
        if len(missing) > unlisted:
            number = "1 item that is" if len(missing) == 1 else f"{len(missing)} items that are"
            raise ItemResultsError(
                f"{self._array.results} has no result of {number} done: {_shortened(missing)}; "
                "was something deleted there, or the array begun by an operator of before there "
                "were results?"
            )


def item_results_of(array: ArrayInfo, store: ResultFetcher | None) -> ItemResults:
    """Return the results of an array that was read with its status.

    Raises NoResultError where it keeps none, ResultElsewhereError without a store.
    """
    if not array.results:
        raise NoResultError(f"array {array.name} keeps no results: it has no spec.results")
    if store is None:
        raise ResultElsewhereError(
            f"the results of array {array.name} are in {array.results}; give the client a store "
            "to read them from there",
            uri=array.results,
        )
    return ItemResults(array, store.folder(array.results))


_SHOWN_CHARACTERS: Final = 200


def _shortened(items: ItemRanges) -> str:
    text = str(items)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"
