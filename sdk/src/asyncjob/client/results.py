"""How a job ended, and its result: in the job itself, or in a store that the client was given."""

from dataclasses import dataclass
from typing import Protocol

from asyncjob.client.errors import (
    ArrayFailedError,
    ArrayGoneError,
    JobFailedError,
    JobGoneError,
    NoResultError,
    ResultElsewhereError,
)
from asyncjob.json_types import Json
from asyncjob.lifecycle.arrays.phases import ArrayPhase
from asyncjob.models.job_status import ResultReference
from asyncjob.offload import AllowList, Store, fetch
from asyncjob.rest.arrays import ArrayInfo
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
    """Fetches results that are kept outside of the job, blocking until done."""

    def fetch(self, reference: ResultReference) -> Json:
        """Return the result; raises OffloadError."""


@dataclass(frozen=True, slots=True)
class StoredResults:
    """Results in stores, as far as `allowed` lets them be read."""

    allowed: AllowList
    store: Store

    def fetch(self, reference: ResultReference) -> Json:
        """Return the result; raises OffloadError."""
        return fetch(reference, allowed=self.allowed, store=self.store)


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
