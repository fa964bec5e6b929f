"""Objects in a local folder and in memory, and submitters' and readers' side of them."""

import errno
import os
import uuid
from pathlib import Path
from typing import Any

import pytest

from asyncjob.free_json import FreeJsonError
from asyncjob.models.job_status import ResultReference
from asyncjob.offload import (
    Address,
    AddressError,
    AllowList,
    DriverMissingError,
    IntegrityError,
    ObjectMissingError,
    ObjectTooLargeError,
    Store,
    StoreRefusedError,
    StoreUnavailableError,
    default_prefixes,
    fetch,
    offload,
)
from asyncjob.offload.addresses import split_checksum
from asyncjob.offload.store import check_driver
from asyncjob.offload.transfer import result_reference

VALUE: Any = {"rows": [1, None, "ü"], "deep": {"a": [[]]}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "own").mkdir()
    return tmp_path / "own"


def at(folder: Path, *names: str) -> Address:
    return Address.folder(f"file://{folder}").join(*names)


def read(folder: Path, *names: str, store: Store | None = None) -> bytes:
    return (store or Store()).read(at(folder, *names), [Address.folder(f"file://{folder}")])


def test_what_was_written_is_read_back_and_no_draft_is_left(folder: Path) -> None:
    Store().write(at(folder, "a", "b.json"), b"[1]", at(folder))
    assert read(folder, "a", "b.json") == b"[1]"
    assert [file.name for file in (folder / "a").iterdir()] == ["b.json"]


def test_a_write_that_fails_half_way_leaves_what_was_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store()
    store.write(at(folder, "a"), b"old", at(folder))

    def pipe_half(_: object, path: str, data: bytes) -> None:
        Path(path).write_bytes(data[:1])
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr("fsspec.implementations.local.LocalFileSystem.pipe_file", pipe_half)
    with pytest.raises(StoreUnavailableError, match="no space left"):
        store.write(at(folder, "a"), b"new", at(folder))
    assert [(file.name, file.read_bytes()) for file in folder.iterdir()] == [("a", b"old")]


def test_a_file_is_on_disk_before_it_has_its_name_and_its_folder_after(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[str, bool]] = []

    def note(number: int) -> None:
        what = Path(f"/proc/self/fd/{number}").readlink()
        synced.append((what.name[:2], (folder / "a").exists()))

    monkeypatch.setattr("os.fsync", note)
    Store().write(at(folder, "a"), b"1", at(folder))
    assert synced == [(".a", False), ("ow", True)]


def test_the_names_in_a_folder_are_listed_and_none_are_in_one_that_is_not_there(
    folder: Path,
) -> None:
    store = Store()
    store.write(at(folder, "sub", "b.json"), b"1", at(folder))
    store.write(at(folder, "sub", "deep", "c.json"), b"1", at(folder))
    assert sorted(store.names(at(folder, "sub"), [at(folder)])) == ["b.json", "deep"]
    assert store.names(at(folder, "none"), [at(folder)]) == []
    (folder / "out").symlink_to(folder.parent)
    with pytest.raises(AddressError, match="leads out of its folder"):
        store.names(at(folder, "out"), [at(folder)])


def test_a_missing_object_is_missing(folder: Path) -> None:
    with pytest.raises(ObjectMissingError) as error:
        read(folder, "none")
    assert f"cannot read file://{folder}/none: object, folder or bucket not found" in str(
        error.value
    )


def test_a_folder_and_a_pipe_are_no_objects(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "sub").mkdir()
    for name in ("pipe", "sub"):
        with pytest.raises(StoreRefusedError, match="not an object or plain file"):
            read(folder, name)


def test_an_object_over_the_limit_is_not_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_all_the_same(*_: object) -> bytes:
        raise AssertionError

    monkeypatch.setattr("fsspec.spec.AbstractFileSystem.cat_file", read_all_the_same)
    (folder / "big").write_bytes(b"x" * 11)
    with pytest.raises(ObjectTooLargeError, match="big has 11 bytes, the limit is 10"):
        read(folder, "big", store=Store(limit=10))
    with pytest.raises(ObjectTooLargeError):
        Store(limit=10).write(at(folder, "new"), b"x" * 11, at(folder))


def test_a_link_within_the_folder_is_followed_and_one_out_of_it_is_not(folder: Path) -> None:
    outside = folder.parent / "secret"
    outside.write_text("1")
    (folder / "file").write_text("2")
    (folder / "good").symlink_to(folder / "file")
    (folder / "bad").symlink_to(outside)
    (folder / "up").symlink_to(folder.parent)
    assert read(folder, "good") == b"2"
    for names in (["bad"], ["up", "secret"]):
        with pytest.raises(AddressError, match="leads out of its folder"):
            read(folder, *names)
    with pytest.raises(AddressError, match="leads out of its folder"):
        Store().write(at(folder, "up", "new"), b"1", at(folder))
    assert not (folder.parent / "new").exists()


def test_a_folder_that_is_itself_a_link_is_what_it_leads_to(folder: Path) -> None:
    (folder / "a").write_text("1")
    linked = folder.parent / "linked"
    linked.symlink_to(folder)
    assert read(linked, "a") == b"1"


def test_a_file_in_the_way_of_a_folder_is_said(folder: Path) -> None:
    (folder / "a").write_text("1")
    with pytest.raises(StoreRefusedError, match=r"cannot write .*/a/b"):
        Store().write(at(folder, "a", "b"), b"1", at(folder))


def test_a_missing_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "gcsfs", None)
    with pytest.raises(DriverMissingError, match=r"no driver for gs://: pip install gcsfs"):
        check_driver("gs")
    with pytest.raises(DriverMissingError, match="fsspec does not know this protocol"):
        check_driver("nonsense")


@pytest.fixture(params=["memory", "file"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"file://{tmp_path}" if request.param == "file" else f"memory://{uuid.uuid4().hex}"


def test_an_offloaded_payload_has_one_address_whoever_writes_it(url: str) -> None:
    store = Store()
    first = offload(VALUE, url, namespace="ns", store=store)
    again = offload(VALUE, url + "/", namespace="ns", store=store)
    assert first == again
    address, sha256 = split_checksum(first.uri or "")
    assert str(address) == f"{url}/payloads/ns/{sha256}.json"
    assert store.read(address, default_prefixes(Address.folder(url), "ns"))


def test_a_payload_that_is_no_json_or_too_large_is_refused(url: str) -> None:
    with pytest.raises(FreeJsonError, match="the payload is not JSON"):
        offload(object(), url, namespace="ns", store=Store())
    with pytest.raises(FreeJsonError, match="the payload has 12 bytes, the limit is 10"):
        offload("x" * 10, url, namespace="ns", store=Store(limit=10))


def written(url: str, data: bytes) -> ResultReference:
    root = Address.folder(url)
    address = root.join("results", "ns", "u", "1-c.json")
    Store().write(address, data, root)
    return result_reference(address, data)


def fetched(reference: ResultReference, url: str) -> Any:
    allowed = AllowList(default_prefixes(Address.folder(url), "ns"))
    return fetch(reference, allowed=allowed, store=Store())


def test_a_result_is_fetched_by_its_reference(url: str) -> None:
    reference = written(url, b'{"a": [1, null]}')
    assert reference.size_bytes == 16
    assert fetched(reference, url) == {"a": [1, None]}


@pytest.mark.parametrize(("now", "words"), [(b"[2]", "sha256 mismatch"), (b"[10]", "4 bytes")])
def test_a_result_that_was_changed_is_not_returned(url: str, now: bytes, words: str) -> None:
    reference = written(url, b"[1]")
    written(url, now)
    with pytest.raises(IntegrityError, match=words):
        fetched(reference, url)


def test_a_reference_to_elsewhere_is_not_followed(url: str) -> None:
    reference = written(url, b"[1]")
    with pytest.raises(AddressError, match="is not below what may be read"):
        fetched(reference, f"{url}/other")
