"""A field is taken at its bound and refused one beyond it, by the models and by the API server."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from asyncjob.client.errors import InvalidRequestError
from asyncjob.client.options import check_signal
from asyncjob.lifecycle.arrays.item_index import ItemIndex, read_index
from asyncjob.lifecycle.arrays.state import read_array
from asyncjob.models import AsyncArraySpec, AsyncArrayStatus, AsyncJobSpec, AsyncJobStatus
from asyncjob.names import ARRAYS, JOBS, collection_path
from support.cluster.identities import Space
from support.in_memory.memory import memory_admin, memory_server
from support.objects.builders import array, at, job

LONGEST_NAME = "s" * 63
NUMBERS = [
    ("job", "priority", -1000, 1000),
    ("job", "executionTimeoutSeconds", 1, 31_536_000),
    ("job", "deadlineSeconds", 1, 315_360_000),
    ("job", "retryPolicy.initialDelaySeconds", 0, 31_536_000),
    ("job", "retryPolicy.maxDelaySeconds", 0, 31_536_000),
    ("array", "priority", -1000, 1000),
    ("array", "chunkSize", 1, 10_000),
    ("array", "parallelism", 1, 100),
]
IDS = [f"{kind} {path}" for kind, path, _, _ in NUMBERS]


@pytest.fixture(scope="module")
def space() -> Space:
    return Space("bounds", memory_admin(memory_server())).create()


def manifest(kind: str, path: str, number: int) -> dict[str, Any]:
    """Return an object with that number in a field of its spec."""
    field, _, inner = path.partition(".")
    spec: dict[str, Any] = {field: {inner: number} if inner else number}
    return job("bound", **spec) if kind == "job" else array("bound", **spec)


@pytest.mark.parametrize(("kind", "path", "smallest", "largest"), NUMBERS, ids=IDS)
def test_a_number_is_taken_within_its_bounds_by_the_models(
    kind: str, path: str, smallest: int, largest: int
) -> None:
    model = AsyncJobSpec if kind == "job" else AsyncArraySpec
    for number in (smallest, largest):
        model.model_validate(manifest(kind, path, number)["spec"])
    for number in (smallest - 1, largest + 1):
        with pytest.raises(ValidationError) as refusal:
            model.model_validate(manifest(kind, path, number)["spec"])
        [error] = refusal.value.errors()
        assert ".".join(map(str, error["loc"])) == path


@pytest.mark.parametrize(("kind", "path", "smallest", "largest"), NUMBERS, ids=IDS)
def test_a_number_is_taken_within_its_bounds_by_the_api_server(
    space: Space, kind: str, path: str, smallest: int, largest: int
) -> None:
    collection = collection_path(space.name, JOBS if kind == "job" else ARRAYS)

    def answer(number: int) -> Any:
        return space.admin.dry().create(collection, manifest(kind, path, number))

    assert [answer(number).message for number in (smallest, largest)] == ["", ""]
    for number in (smallest - 1, largest + 1):
        assert f"spec.{path}: Invalid value: " in answer(number).message


def signals(number: int) -> dict[str, Any]:
    sent = {"payload": True, "sentBy": "ada", "sentAt": at()}
    return {"type": "test", "signals": {f"s{one}": sent for one in range(number)}}


def steps(number: int) -> dict[str, Any]:
    record = {"startTime": at(), "completionTime": at(), "attempt": 1, "sizeBytes": 4}
    return {"steps": {str(one): record for one in range(number)}}


def waits(number: int) -> dict[str, Any]:
    return {"waits": {str(one): {"kind": "Sleep", "until": at()} for one in range(number)}}


def index_of(records: int) -> ItemIndex:
    """Return the index of a file of which it has each record."""
    return ItemIndex(records, 10 * records, "v1", 1, tuple(range(records)))


def index(number: int) -> dict[str, Any]:
    return {"index": index_of(number).to_json()}


@pytest.mark.parametrize(
    ("model", "made", "most"),
    [
        (AsyncJobSpec, signals, 16),
        (AsyncJobStatus, steps, 200),
        (AsyncJobStatus, waits, 200),
        (AsyncArrayStatus, index, 2000),
    ],
    ids=["signals", "steps", "waits", "offsets of an index"],
)
def test_as_many_are_taken_as_the_bound_says_and_not_one_more(
    model: type[BaseModel], made: Callable[[int], dict[str, Any]], most: int
) -> None:
    model.model_validate(made(most))
    with pytest.raises(ValidationError, match=f"at most {most} items"):
        model.model_validate(made(most + 1))


def test_an_index_with_more_offsets_than_a_status_takes_is_not_read() -> None:
    assert len(read_index(index_of(2000).to_json()).offsets) == 2000
    with pytest.raises(ValueError, match="2001 offsets"):
        read_index(index_of(2001).to_json())


def test_the_name_of_a_signal_has_63_characters_at_most(space: Space) -> None:
    assert check_signal(LONGEST_NAME, 1) == 1
    with pytest.raises(InvalidRequestError, match="63 at most"):
        check_signal(f"{LONGEST_NAME}s", 1)
    jobs = collection_path(space.name, JOBS)
    space.admin.create(jobs, job("signalled")).object()

    def send(name: str) -> Any:
        sent = {name: {"payload": 1, "sentBy": "ada", "sentAt": at()}}
        return space.admin.merge(f"{jobs}/signalled", {"spec": {"signals": sent}})

    assert "(signal.name)" in send(f"{LONGEST_NAME}s").message
    assert send(LONGEST_NAME).accepted


def test_an_array_that_says_nothing_of_its_chunks_has_twenty_whose_size_is_not_set(
    space: Space,
) -> None:
    created = space.admin.create(collection_path(space.name, ARRAYS), array("plain")).object()
    assert created["spec"]["parallelism"] == 20
    assert "chunkSize" not in created["spec"]
    model = AsyncArraySpec.model_validate(array()["spec"])
    assert (model.chunk_size, model.parallelism) == (None, 20)
    view = read_array(array())
    assert (view.chunk_size, view.parallelism) == (None, 20)
