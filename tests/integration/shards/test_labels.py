"""The label of a shard on jobs that are applied: the very one that clients would have set."""

import random
import string
import uuid
from collections.abc import Iterator
from functools import partial

import pytest

from asyncjob.names import JOBS, SHARD_LABEL, collection_path
from asyncjob.shards import SHARDS, shard_of
from asyncjob_dev.controlplane import ControlPlane
from support.cluster.api import Answer, Client
from support.cluster.enforcement import until
from support.cluster.installation import install
from support.objects.builders import job

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

PATH = collection_path("default", JOBS)
CHANCE = random.Random(64)


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane() as running:
        install(running, mutating=True)
        yield running


@pytest.fixture(scope="module")
def admin(plane: ControlPlane) -> Client:
    """Act as who may do everything; nothing is stored."""
    client = Client(plane.url, plane.ca_file, plane.admin_token).dry()
    attempt = partial(client.create, PATH, job("trial"))
    until(lambda answer: label(answer) is not None, attempt, "jobs are labelled")
    return client


def label(answer: Answer) -> str | None:
    labels = answer.body.get("metadata", {}).get("labels", {})
    found: str | None = labels.get(SHARD_LABEL)
    return found


def names() -> Iterator[str]:
    """Yield names as clients, schedules and people make them, and some of the greatest length."""
    for number in range(60):
        yield f"job-{number}"
        yield f"nightly-202611{number % 28 + 1:02d}t{number % 24:02d}00z"
        yield str(uuid.UUID(int=CHANCE.getrandbits(128), version=4))
        yield f"{uuid.UUID(int=CHANCE.getrandbits(128))}-{999_999_999 - number}"
        length = CHANCE.randrange(1, 252)
        inner = "".join(CHANCE.choices(f"{string.ascii_lowercase}{string.digits}-", k=length))
        yield f"a{inner}0"
    yield "a" * 253
    yield "z.9-" * 62 + "z"
    yield "0"


def test_client_and_policy_come_to_the_same_shard_for_any_name(admin: Client) -> None:
    seen = set()
    for name in names():
        found = label(admin.create(PATH, job(name)))
        assert found == str(shard_of(name)), name
        seen.add(found)
    assert len(seen) == SHARDS


def test_a_label_that_is_there_is_left_as_it_is(admin: Client) -> None:
    body = job("job-1")
    body["metadata"]["labels"] = {SHARD_LABEL: "none", "team": "mail"}
    created = admin.create(PATH, body).object()
    assert created["metadata"]["labels"] == {SHARD_LABEL: "none", "team": "mail"}


def test_other_labels_stay_beside_it(admin: Client) -> None:
    body = job("job-1")
    body["metadata"]["labels"] = {"team": "mail"}
    created = admin.create(PATH, body).object()
    expected = {SHARD_LABEL: str(shard_of("job-1")), "team": "mail"}
    assert created["metadata"]["labels"] == expected


def test_a_job_that_is_yet_to_be_named_has_none(admin: Client) -> None:
    body = job("unused")
    body["metadata"] = {"generateName": "job-"}
    created = admin.create(PATH, body).object()
    assert created["metadata"]["name"].startswith("job-")
    assert "labels" not in created["metadata"]
