"""Objects on S3 over HTTP: a good one, and one that fails, refuses or never answers."""

import logging
from collections.abc import Iterator

import pytest

from asyncjob.offload import (
    Address,
    AllowList,
    ObjectMissingError,
    Store,
    StoreForbiddenError,
    StoreUnavailableError,
    fetch,
    offload,
)
from asyncjob.offload.addresses import split_checksum
from asyncjob.offload.transfer import result_reference
from support.loopback.stores import BUCKET, FaultyS3, good_s3

pytestmark = pytest.mark.usefixtures("s3_credentials")

ROOT = Address.folder(f"s3://{BUCKET}/pre")
OBJECT = ROOT.join("a.json")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with good_s3() as url:
        yield url


def test_payloads_and_results_pass_through_s3(endpoint: str) -> None:
    store = Store({"s3": {"endpoint_url": endpoint}})
    source = offload(["x" * 1_000_000], str(ROOT), namespace="ns", store=store)
    address, sha256 = split_checksum(source.uri or "")
    data = store.read(address, [ROOT])
    assert (len(data), result_reference(address, data).sha256) == (1_000_004, sha256)
    store.write(OBJECT, b'{"a": null}', ROOT)
    reference = result_reference(OBJECT, b'{"a": null}')
    assert fetch(reference, allowed=AllowList((ROOT,)), store=store) == {"a": None}


def test_the_names_below_a_prefix_are_listed_as_they_are_now(endpoint: str) -> None:
    store = Store({"s3": {"endpoint_url": endpoint}})
    folder = ROOT.join("listed")
    assert store.names(folder, [ROOT]) == []
    store.write(folder.join("a.json"), b"1", ROOT)
    assert store.names(folder, [ROOT]) == ["a.json"]
    store.write(folder.join("0", "b.json"), b"1", ROOT)
    assert sorted(store.names(folder, [ROOT])) == ["0", "a.json"]


def test_a_missing_object_and_a_missing_bucket_are_missing(endpoint: str) -> None:
    store = Store({"s3": {"endpoint_url": endpoint}})
    with pytest.raises(ObjectMissingError):
        store.read(ROOT.join("none"), [ROOT])
    with pytest.raises(ObjectMissingError, match="bucket does not exist"):
        store.write(Address.parse("s3://nowhere/a"), b"1", ROOT)


def test_an_object_that_comes_later_is_found(endpoint: str) -> None:
    store = Store({"s3": {"endpoint_url": endpoint}})
    late = ROOT.join("late.json")
    with pytest.raises(ObjectMissingError):
        store.read(late, [ROOT])
    Store({"s3": {"endpoint_url": endpoint}}).write(late, b"1", ROOT)
    assert store.read(late, [ROOT]) == b"1"


def test_without_credentials_nothing_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    with FaultyS3(200) as s3, pytest.raises(StoreForbiddenError, match="Unable to locate"):
        Store({"s3": s3.options}).write(OBJECT, b"1", ROOT)


@pytest.mark.parametrize("code", [500, 503])
def test_a_failure_of_the_store_is_an_outage(code: int) -> None:
    with FaultyS3(code) as s3:
        store = Store({"s3": s3.options})
        with pytest.raises(StoreUnavailableError, match=f"cannot write {OBJECT}"):
            store.write(OBJECT, b"1", ROOT)
        with pytest.raises(StoreUnavailableError, match=f"cannot read {OBJECT}"):
            store.read(OBJECT, [ROOT])


def test_a_store_that_refuses_is_said_to(caplog: pytest.LogCaptureFixture) -> None:
    with FaultyS3(403) as s3, caplog.at_level(logging.INFO):
        store = Store({"s3": s3.options})
        with pytest.raises(StoreForbiddenError, match="the store does not allow it"):
            store.write(OBJECT, b"1", ROOT)
        with pytest.raises(StoreForbiddenError):
            store.read(OBJECT, [ROOT])
    assert "testing-secret" not in caplog.text


def test_a_store_that_never_answers_is_given_up_in_time() -> None:
    with FaultyS3(0) as s3:
        store = Store({"s3": s3.options}, timeout=0.3)
        with pytest.raises(StoreUnavailableError, match="did not answer in time"):
            store.write(OBJECT, b"1", ROOT)


def test_a_store_that_is_not_there_is_an_outage() -> None:
    with FaultyS3(200) as s3:
        options = s3.options
    with pytest.raises(StoreUnavailableError):
        Store({"s3": options}, timeout=3).write(OBJECT, b"1", ROOT)


def test_payloads_may_come_over_plain_http() -> None:
    with FaultyS3(200) as there:
        there.objects["/data/a"] = b"[1]"
        root = Address.folder(f"{there.options['endpoint_url']}/data")
        assert Store().read(root.join("a"), [root]) == b"[1]"
        with pytest.raises(ObjectMissingError):
            Store().read(root.join("b"), [root])


def test_a_redirect_leads_nowhere() -> None:
    with FaultyS3(302) as there:
        url = f"{there.options['endpoint_url']}/data"
        root = Address.folder(url)
        assert Store().read(root.join("a"), [root]) == b""
    assert {request.split()[1] for request in there.requests} == {"/data/a"}
