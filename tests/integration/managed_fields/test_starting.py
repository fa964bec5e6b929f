"""What the policy costs: a started API server creates no jobs until it has their schema for it."""

from collections.abc import Iterator
from http import HTTPStatus

import pytest

from asyncjob import KubernetesJobsClient
from asyncjob.names import JOBS, collection_path
from asyncjob_dev.controlplane import ControlPlane
from asyncjob_dev.errors import ApiStatusError
from support.cluster.installation import install
from support.driven.jobs import Jobs, until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

NO_SCHEMA_YET = "There can be a delay between when CustomResourceDefinitions are created"


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane() as running:
        install(running, mutating=True)
        yield running


def create_at_last(jobs: Jobs, name: str) -> list[ApiStatusError]:
    """Create a job, however often that takes; return the refusals."""
    refusals: list[ApiStatusError] = []

    def created() -> bool:
        try:
            jobs.create(name)
        except ApiStatusError as error:
            refusals.append(error)
            return False
        return True

    until(created, 30, "a job that is created")
    return refusals


def started_again(plane: ControlPlane) -> None:
    """Start the API server again; return once it serves jobs."""
    plane.restart_apiserver()
    until(lambda: plane.api.answers(collection_path("default", JOBS)), 30, "jobs to be served")


def test_a_started_api_server_refuses_for_no_other_reason_than_that_it_has_no_schema_yet(
    plane: ControlPlane,
) -> None:
    jobs = Jobs(plane.api)
    started_again(plane)
    refusals = create_at_last(jobs, "plain")
    assert {(one.status, NO_SCHEMA_YET in str(one)) for one in refusals} <= {
        (HTTPStatus.SERVICE_UNAVAILABLE, True)
    }
    assert "managedFields" not in jobs.get("plain")["metadata"]


def test_our_client_tries_again_until_the_job_is_created(plane: ControlPlane) -> None:
    jobs = Jobs(plane.api)
    with KubernetesJobsClient.connect(str(plane.kubeconfig), jobs.namespace) as client:
        started_again(plane)
        assert client.submit("echo", name="plain").created
    assert "managedFields" not in jobs.get("plain")["metadata"]
