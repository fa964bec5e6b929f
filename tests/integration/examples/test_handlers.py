"""The examples as a user runs them: manifests as they stand, real workers, one of them killed."""

import csv
import math
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from examples.limited_api import build

from asyncjob.names import PARENT_LABEL
from asyncjob_dev.api import Object
from asyncjob_dev.supervisor import DevWorker
from support.loopback.api_thread import serving
from support.processes.workers import ROOT, WorkerNamespace, until

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(120)]

EXAMPLES = ROOT / "examples"
APP = "examples.handlers:app"
ORDERS = 6_000
CALLS = 6
TEXTS = [path.read_text("utf-8") for path in (EXAMPLES / "data" / "texts").rglob("*.txt")]
WORDS = sum(len(re.findall(r"\w+", text)) for text in TEXTS)


class Now:
    """Refuses every third request, and notes when each came."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def __call__(self) -> bool:
        self.times.append(time.monotonic())
        return len(self.times) % 3 != 0


def apply(ns: WorkerNamespace, manifest: str, *names: str) -> None:
    """Apply a manifest of the examples, once for each name if there are any."""
    text = (EXAMPLES / f"{manifest}.yaml").read_text()
    named = [text.replace(f"name: {manifest}\n", f"name: {name}\n") for name in names]
    documents = "\n---\n".join(named or [text])
    here = f"--namespace={ns.namespace}"
    ns.plane.kubectl("apply", here, "--validate=strict", "--filename=-", input=documents)


def start_worker(ns: WorkerNamespace, name: str, queue: str, **env: str) -> DevWorker:
    env["PYTHONPATH"] = str(ROOT)
    options = (f"--queue={queue}", "--concurrency=4")
    return ns.start_worker(name, *options, app=APP, env=env, cwd=ns.folder)


def write_orders(path: Path) -> None:
    """Write more orders than are imported in a moment."""
    with path.open("w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(["order", "date", "product", "quantity", "amount"])
        rows.writerows([f"A-{n}", "2025-01-01", "Mug", 1, "9.80"] for n in range(ORDERS))


@contextmanager
def locked(database: Path, within: float) -> Iterator[None]:
    """Hold the database once there are orders in it, so that the import stands still."""
    connection = sqlite3.connect(database, timeout=0, isolation_level=None)
    give_up_at = time.monotonic() + within
    while not _has_locked(connection):
        assert time.monotonic() < give_up_at, "no orders, or no lock"
    yield
    connection.close()


def _has_locked(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError:  # the import has it
        return False
    if connection.execute("SELECT count(*) FROM orders").fetchone()[0]:
        return True
    connection.execute("ROLLBACK")
    return False


def children_of(ns: WorkerNamespace, name: str) -> list[Object]:
    uid = ns.get(name)["metadata"]["uid"]
    return [job for job in ns.jobs() if job["metadata"].get("labels", {}).get(PARENT_LABEL) == uid]


def test_the_examples_run_and_outlive_their_worker(ns: WorkerNamespace) -> None:
    database = ns.folder / ".dev" / "out" / "orders.sqlite"
    write_orders(ns.folder / "examples" / "data" / "orders.csv")
    (ns.folder / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n and no more")
    allows = Now()
    with serving(build(allows)) as api:
        apply(ns, "api-queue")
        killed = start_worker(ns, "worker-0", "default")
        caller = start_worker(ns, "caller", "api", EXAMPLE_API=api)
        ns.until_log(killed, "worker started")
        ns.until_log(caller, "worker started")

        called = time.monotonic()
        calls = [f"call-{number}" for number in range(CALLS)]
        apply(ns, "call-api", *calls)
        apply(ns, "count-words")
        apply(ns, "thumbnails")
        broken = {"source": "broken.png", "folder": ".dev/out"}
        ns.create("broken", "images.thumbnails", broken)
        apply(ns, "import-orders")

        with locked(database, within=20):
            check_thumbnails(ns)
            until(lambda: len(children_of(ns, "count-words")) == len(TEXTS), 10, lambda: "children")
            saved = ns.until_status("import-orders", lambda status: status.get("checkpoint"))
            submitted = {child["metadata"]["uid"] for child in children_of(ns, "count-words")}
            killed.kill()
            killed.wait_ended(10)
        start_worker(ns, "worker-1", "default")
        start_worker(ns, "counter", "words")
        for name in calls:
            ns.until_phase(name, "Succeeded", within=20)
        check_calls(ns, calls, allows, called)
    check_words(ns, submitted)
    check_import(ns, saved["checkpoint"]["rows"], database)


def check_thumbnails(ns: WorkerNamespace) -> None:
    made = ns.until_phase("thumbnails", "Succeeded")["result"]
    assert [(line["width"], line["height"]) for line in made] == [(32, 21), (64, 43), (128, 85)]
    for line in made:
        assert (ns.folder / line["file"]).stat().st_size == line["size_bytes"]
    broken = ns.until_phase("broken", "DeadLetter")
    assert (broken["attempt"], broken["error"]["category"]) == (1, "Validation")
    assert "broken.png is no image" in broken["message"]


def check_calls(ns: WorkerNamespace, calls: list[str], allows: Now, called: float) -> None:
    """Every call is one order, refused ones were made again, and no more started than may."""
    statuses = [ns.status(name) for name in calls]
    assert sorted(one["result"]["body"]["order"] for one in statuses) == [1, 2, 3, 4, 5, 6]
    assert sum(one["attempt"] for one in statuses) == len(allows.times) > CALLS
    limit = yaml.safe_load((EXAMPLES / "api-queue.yaml").read_text())["spec"]["rateLimit"]["count"]
    assert allows.times[-1] - called >= math.ceil(len(allows.times) / limit) - 1


def check_words(ns: WorkerNamespace, submitted: set[str]) -> None:
    parent = ns.until_phase("count-words", "Succeeded", within=30)
    # It was killed with its worker, or was parked by then; it may be parked once more after that.
    assert parent["attempt"] == 1 + parent.get("crashes", 0) + parent.get("parks", 0)
    assert parent.get("crashes", 0) <= 1 < parent["attempt"]
    assert (parent["result"]["files"], parent["result"]["total"]) == (len(TEXTS), WORDS)
    children = children_of(ns, "count-words")
    assert {child["metadata"]["uid"] for child in children} == submitted
    assert {child["status"]["attempt"] for child in children} == {1}


def check_import(ns: WorkerNamespace, saved: int, database: Path) -> None:
    status = ns.until_phase("import-orders", "Succeeded", within=30)
    assert (status["attempt"], status.get("crashes", 0)) == (2, 1)
    expected = {"rows": ORDERS, "imported": ORDERS, "bad": []}
    assert status["result"] == {**expected, "resumed_from": status["result"]["resumed_from"]}
    assert 0 < saved <= status["result"]["resumed_from"] < ORDERS
    connection = sqlite3.connect(database)
    assert connection.execute("SELECT count(*) FROM orders").fetchone() == (ORDERS,)
    assert connection.execute("SELECT attempt FROM imports").fetchall() == [(2,)]
    connection.close()
