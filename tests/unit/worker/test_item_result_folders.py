"""Where a worker writes results of items: below its own store's results of the namespace."""

import asyncio
from pathlib import Path

import pytest

from asyncjob.offload import Address, AddressError, StoreRefusedError
from asyncjob_worker.execution.object_store import AllowedFiles, ObjectStoreClient
from asyncjob_worker.settings import OffloadSettings


def files(url: str | None) -> AllowedFiles:
    settings = OffloadSettings(Address.folder(url) if url else None)
    return AllowedFiles(ObjectStoreClient.from_settings(settings, 1), settings, "ns")


def test_an_object_is_written_whole_below_the_results_of_the_namespace(tmp_path: Path) -> None:
    folder = files(f"file://{tmp_path}").results(f"file://{tmp_path}/results/ns/mine/uid")
    for data in (b"first", b"second"):
        asyncio.run(folder.write("0", "1-1-a-0.jsonl", data))
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert written == [tmp_path / "results/ns/mine/uid/0/1-1-a-0.jsonl"]
    assert written[0].read_bytes() == b"second"


def test_a_worker_without_a_store_says_what_it_lacks() -> None:
    with pytest.raises(StoreRefusedError, match="start it with --offload-url"):
        files(None).results("s3://bucket/results/ns/uid")


@pytest.mark.parametrize(
    "uri",
    [
        "s3://bucket/results/other/uid",
        "s3://bucket/payloads/ns/uid",
        "s3://bucket/results/ns",
        "s3://other/results/ns/uid",
        "file:///results/ns/uid",
    ],
)
def test_a_folder_of_somebody_else_is_refused_and_the_right_one_is_named(uri: str) -> None:
    with pytest.raises(AddressError, match="is not below where results go: s3://bucket/results/ns"):
        files("s3://bucket").results(uri)


def test_an_address_that_leads_out_of_its_folder_is_none() -> None:
    with pytest.raises(AddressError, match="is not the name of a folder"):
        files("s3://bucket").results("s3://bucket/results/ns/../other/uid")


async def test_a_link_out_of_the_results_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "own" / "results" / "ns").mkdir(parents=True)
    (tmp_path / "own" / "results" / "ns" / "out").symlink_to(tmp_path / "elsewhere")
    root = f"file://{tmp_path}/own"
    with pytest.raises(AddressError, match="leads out of its folder"):
        await files(root).results(f"{root}/results/ns/out/uid").write("0", "1-1-a-0.jsonl", b"x")
    assert not (tmp_path / "elsewhere").exists()
