"""Results of items in a local folder and in a bucket: stored before counted, read in order."""

import json
from pathlib import Path

import pytest

from asyncjob.client import KubernetesJobsClient
from asyncjob.client.results import StoredResults
from asyncjob.lifecycle.arrays.item_ranges import ItemRanges
from asyncjob.lifecycle.arrays.item_results import ItemResult
from asyncjob.offload import Address, AllowList, Store
from asyncjob_dev.controlplane import ControlPlane
from support.driven.arrays import Arrays, all_of
from support.loopback.stores import BUCKET, CREDENTIALS, good_s3

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

S3_KEYS = {"key": CREDENTIALS["AWS_ACCESS_KEY_ID"], "secret": CREDENTIALS["AWS_SECRET_ACCESS_KEY"]}

SECONDS_OF_ITEMS = 3
"""What a killed worker makes run again: a write and the checkpoint after it, a second apart."""


def read(plane: ControlPlane, arrays: Arrays, name: str, store: StoredResults) -> list[ItemResult]:
    """Return the results of an array, as a client reads them."""
    place = str(plane.kubeconfig), arrays.ns.namespace
    with KubernetesJobsClient.connect(*place, store=store) as client:
        return [*client.item_results(name)]


def twice(found: list[ItemResult]) -> list[tuple[int, object]]:
    """Return the items, and what the handler has made of their numbers."""
    return [(one.item, one.result["twice"]) for one in found if isinstance(one.result, dict)]


class LocalStore:
    """A folder that workers keep results in."""

    def __init__(self, plane: ControlPlane, arrays: Arrays, folder: Path) -> None:
        self.plane = plane
        self.arrays = arrays
        self.root = Address.folder(f"file://{folder}")
        self.folder = folder
        self.results = self.root.join("results", arrays.ns.namespace)

    def create(self, name: str, count: int, **spec: object) -> None:
        self.arrays.create(
            name,
            str(spec.pop("type", "double")),
            count,
            **{
                "results": {"uri": str(self.results)},
                "leaseDurationSeconds": 5,
                "retryPolicy": {"initialDelaySeconds": 0.2, "maxRetries": 0},
                **spec,
            },
        )

    def read(self, name: str) -> list[ItemResult]:
        store = StoredResults(AllowList((self.results,)), Store())
        return read(self.plane, self.arrays, name, store)


@pytest.fixture
def local(plane: ControlPlane, arrays: Arrays, tmp_path: Path) -> LocalStore:
    """Prepare a folder."""
    folder = tmp_path / "store"
    folder.mkdir()
    return LocalStore(plane, arrays, folder)


def test_results_of_all_items_are_read_in_order_after_a_worker_was_killed(
    arrays: Arrays, local: LocalStore
) -> None:
    option = f"--offload-url={local.root}"
    killed = arrays.worker("worker-0", option, "--concurrency=4")
    local.create("doubled", 600, chunkSize=100, parallelism=3)
    arrays.until_some_run("doubled", 150)
    killed.process.kill()
    arrays.worker("worker-1", option, "--concurrency=4")
    status = arrays.until_phase("doubled", "Succeeded", within=120)
    assert all_of(status) == (600, 0, "")
    assert twice(local.read("doubled")) == [(item, 2 * item) for item in range(600)]
    runs = arrays.runs("doubled")
    assert set(runs) == set(range(600))
    assert sum(runs.values()) - 600 <= SECONDS_OF_ITEMS * 3 * 8 * 20
    assert not list(local.folder.rglob(".*"))


def test_without_a_store_the_array_stops_and_a_redrive_goes_on_once_there_is_one(
    arrays: Arrays, local: LocalStore
) -> None:
    bare = arrays.worker("worker-0")
    local.create("late", 30, chunkSize=10)
    status = arrays.until_phase("late", "Failed")
    assert status["reason"] == "ResultsNotStored"
    assert status["message"] == (
        "results.uri: this worker has no store for results: start it with --offload-url"
    )
    assert (all_of(status), arrays.runs("late")) == ((0, 0, ""), {})
    bare.process.terminate()
    bare.process.wait(timeout=30)
    arrays.worker("worker-1", f"--offload-url={local.root}")
    arrays.ask("late", redrive=1)
    assert all_of(arrays.until_phase("late", "Succeeded")) == (30, 0, "")
    assert [one.item for one in local.read("late")] == [*range(30)]


def test_items_in_a_process_of_their_own_have_the_worker_store_what_they_return(
    arrays: Arrays, local: LocalStore
) -> None:
    arrays.worker("worker-0", f"--offload-url={local.root}")
    local.create("apart", 20, type="apart-double", chunkSize=10)
    assert all_of(arrays.until_phase("apart", "Succeeded")) == (20, 0, "")
    assert twice(local.read("apart")) == [(item, 2 * item) for item in range(20)]
    other = f"{local.root}/results/other"
    local.create("refused", 3, type="apart-double", results={"uri": other})
    status = arrays.until_phase("refused", "Failed")
    assert status["reason"] == "ResultsNotStored"
    assert f"not below where results go: {local.results}/" in status["message"]


def test_a_folder_of_another_namespace_is_refused_by_name(
    arrays: Arrays, local: LocalStore
) -> None:
    arrays.worker("worker-0", f"--offload-url={local.root}")
    other = f"{local.root}/results/other"
    local.create("foreign", 3, results={"uri": other})
    status = arrays.until_phase("foreign", "Failed")
    assert status["reason"] == "ResultsNotStored"
    assert status["message"].startswith(f"results.uri: {other}/")
    assert f"not below where results go: {local.results}/" in status["message"]
    assert not (local.folder / "results" / "other").exists()


def test_a_result_that_is_too_large_fails_its_item_and_no_other(
    arrays: Arrays, local: LocalStore
) -> None:
    (arrays.ns.folder / "large").write_text("4")
    arrays.worker("worker-0", f"--offload-url={local.root}")
    local.create("large", 9, chunkSize=5, maxFailed=1)
    status = arrays.until_phase("large", "Succeeded")
    assert all_of(status) == (8, 1, "4")
    [error] = status["errors"]
    assert (error["item"], error["type"]) == (4, "ResultRefused")
    assert "the limit is 262144; let the handler store what is large" in error["message"]
    assert ItemRanges.of(one.item for one in local.read("large")) == ItemRanges.parse("0-3,5-8")


def test_a_store_that_cannot_be_written_stops_the_array_and_fails_no_item(
    arrays: Arrays, local: LocalStore
) -> None:
    (local.folder / "results").write_text("in the way")
    arrays.worker("worker-0", f"--offload-url={local.root}")
    local.create("blocked", 8, chunkSize=8)
    status = arrays.until_phase("blocked", "Failed", within=90)
    assert status["reason"] == "ResultsNotStored"
    assert status["message"].startswith("results of items cannot be stored: cannot write file:")
    assert (all_of(status), status["requeued"]) == ((0, 0, ""), "0-7")


def test_results_go_into_a_bucket_and_are_read_from_there(
    plane: ControlPlane, arrays: Arrays
) -> None:
    with good_s3() as endpoint:
        options = json.dumps({"endpoint_url": endpoint})
        arrays.ns.worker(
            "worker-0",
            f"--offload-url=s3://{BUCKET}/jobs",
            f"--offload-options={options}",
            app="support.apps.items:app",
            env=CREDENTIALS,
        )
        uri = f"s3://{BUCKET}/jobs/results/{arrays.ns.namespace}"
        arrays.create("bucket", "double", 40, chunkSize=10, results={"uri": uri})
        assert all_of(arrays.until_phase("bucket", "Succeeded")) == (40, 0, "")
        store = Store({"s3": {"endpoint_url": endpoint, **S3_KEYS}})
        reader = StoredResults(AllowList((Address.folder(uri),)), store)
        found = read(plane, arrays, "bucket", reader)
    assert [one.item for one in found] == [*range(40)]
