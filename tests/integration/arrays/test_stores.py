"""Items in files elsewhere: in a bucket and on a web server, which may be away, and readers die."""

import json
import urllib.request
from collections.abc import Iterator

import pytest

from support.driven.arrays import Arrays, all_of
from support.loopback.file_server import FileServer
from support.loopback.stores import BUCKET, CREDENTIALS, good_s3

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

ROWS = 40
PAD = 100_000
"""Bytes of a record: the file takes several of the parts in which it is read."""


def content() -> bytes:
    rows = ({"name": f"row-{one}", "size": one, "pad": "x" * PAD} for one in range(ROWS))
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


@pytest.fixture
def server() -> Iterator[FileServer]:
    with FileServer(content()) as running:
        yield running


def create(arrays: Arrays, name: str, uri: str) -> None:
    arrays.create(
        name,
        "rows",
        0,
        items={"from": {"uri": uri}},
        chunkSize=10,
        parallelism=2,
        leaseDurationSeconds=5,
        retryPolicy={"initialDelaySeconds": 0.2},
    )


def rows_run(arrays: Arrays) -> list[str]:
    lines = (arrays.ns.folder / "rows").read_text().splitlines()
    return sorted(lines, key=lambda line: int(line.split(" ")[0]))


ALL_ROWS = [f"{one} row-{one} {one}" for one in range(ROWS)]


def test_the_items_of_a_file_in_a_bucket_are_run_once_each(arrays: Arrays) -> None:
    with good_s3() as endpoint:
        scope = "Credential=testing/20260101/us-east-1/s3/aws4_request"
        headers = {
            "Authorization": f"AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature=x",
            "Content-Type": "application/octet-stream",
        }
        address = f"{endpoint}/{BUCKET}/in/items.jsonl"
        put = urllib.request.Request(address, content(), headers, method="PUT")
        urllib.request.urlopen(put).close()
        arrays.ns.worker(
            "worker-0",
            f"--offload-url=s3://{BUCKET}/results",
            f"--payload-prefix=s3://{BUCKET}/in",
            f"--offload-options={json.dumps({'endpoint_url': endpoint})}",
            app="support.apps.items:app",
            env=CREDENTIALS,
        )
        create(arrays, "bucket", f"s3://{BUCKET}/in/items.jsonl")
        status = arrays.until_phase("bucket", "Succeeded")
        create(arrays, "missing", f"s3://{BUCKET}/in/none.jsonl")
        missing = arrays.until_phase("missing", "Failed")
    assert all_of(status) == (ROWS, 0, "")
    assert rows_run(arrays) == ALL_ROWS
    assert missing["reason"] == "ItemsUnreadable"
    assert f"cannot read s3://{BUCKET}/in/none.jsonl" in missing["message"]


def test_a_web_server_is_asked_for_parts_and_may_be_away_for_a_while(
    arrays: Arrays, server: FileServer
) -> None:
    arrays.worker("worker-0", f"--payload-prefix={server.folder}")
    server.status = 503
    create(arrays, "web", server.url)
    arrays.until("web", lambda _: any("503" in str(chunk) for chunk in arrays.chunks()))
    server.status = 0
    assert all_of(arrays.until_phase("web", "Succeeded", within=90)) == (ROWS, 0, "")
    assert rows_run(arrays) == ALL_ROWS
    assert all(last - first < len(server.content) / 2 for first, last in server.parts)


def test_an_index_whose_reader_is_killed_is_read_by_another_and_once_counted(
    arrays: Arrays, server: FileServer
) -> None:
    reader = arrays.worker("worker-0", f"--payload-prefix={server.folder}")
    server.hold()
    create(arrays, "orphan", server.url)
    assert server.await_part()
    [index] = arrays.chunks()
    assert (index["spec"]["type"], index["status"]["phase"]) == ("rows/index", "Running")
    reader.process.kill()
    arrays.worker("worker-1", f"--payload-prefix={server.folder}")
    server.release()
    status = arrays.until_phase("orphan", "Succeeded", within=90)
    assert all_of(status) == (ROWS, 0, "")
    assert (status["total"], status["index"]["records"]) == (ROWS, ROWS)
    assert rows_run(arrays) == ALL_ROWS
    arrays.until_no_chunks()
