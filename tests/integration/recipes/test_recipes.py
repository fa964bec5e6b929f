"""Each recipe as its page has it, and what the page says happens when something dies."""

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.typedefs import Handler
from examples.limited_api import build

from asyncjob.names import CRON_JOBS, PARENT_LABEL, collection_path, job_path
from asyncjob_dev.api import Object
from support.docs.recipe_runs import Recipe
from support.driven.jobs import now
from support.loopback.api_thread import serving
from support.processes.workers import ROOT, WorkerNamespace, is_gone, until

pytestmark = [
    pytest.mark.integration,
    pytest.mark.chaos,
    pytest.mark.soak,
    pytest.mark.timeout(120),
]

RECIPES = ROOT / "examples" / "recipes"
SOON: dict[str, Any] = {"retryPolicy": {"initialDelaySeconds": 0.2}}


def page(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("recipe", [name], indirect=True, ids=[name])


def succeeded_after_a_crash(ns: WorkerNamespace, name: str) -> Any:
    """Wait for the end of a job whose worker was killed once, and return its result."""
    status = ns.until_phase(name, "Succeeded", within=30)
    assert (status["attempt"], status.get("crashes", 0)) == (2, 1)
    return status["result"]


def children_of(ns: WorkerNamespace, name: str) -> dict[str, Object]:
    uid = ns.get(name)["metadata"]["uid"]
    return {
        job["metadata"]["uid"]: job["status"]
        for job in ns.jobs()
        if job["metadata"].get("labels", {}).get(PARENT_LABEL) == uid
    }


@page("approval.md")
def test_a_deployment_waits_for_approval_and_outlives_its_worker(recipe: Recipe) -> None:
    ns = recipe.ns
    workers = recipe.start_all()
    until_approval_is_asked_for(ns)
    recipe.follow()

    release = {"service": "shop", "version": "8", "hosts": ["a", "b", "c"], "pause": 0.7}
    ns.create("deploy-8", "deploy.apply", release, suspend=True, **SOON)
    ns.patch("deploy-8", {"spec": {"suspend": False}})
    saved = ns.until_status("deploy-8", lambda status: status.get("checkpoint"))
    workers["default"].kill()
    recipe.start(name="second")
    assert succeeded_after_a_crash(ns, "deploy-8") == ["a", "b", "c"]
    assert saved["checkpoint"] != ["a", "b", "c"]
    hosts = ns.folder / ".dev/out/hosts"
    assert {(hosts / host / "shop.txt").read_text() for host in "abc"} == {"8"}

    ns.create("deploy-9", "deploy.apply", release, suspend=True, notAfter=now(0.5))
    assert ns.until_phase("deploy-9", "Cancelled")["reason"] == "DeadlineExceeded"


def until_approval_is_asked_for(ns: WorkerNamespace) -> None:
    """Install the policy: an API server takes a moment to know it."""
    plane, here = ns.plane, f"--namespace={ns.namespace}"
    plane.kubectl("apply", f"--filename={RECIPES / 'approval/policy.yaml'}")
    bind = ("create", "rolebinding", "eager", "--clusterrole=asyncjob-job-admin", "--user=eager")
    plane.kubectl(*bind, here)
    job = {
        "apiVersion": "asyncjob.dev/v1alpha1",
        "kind": "AsyncJob",
        "metadata": {"name": "unapproved"},
        "spec": {"type": "deploy.apply"},
    }
    create = ("create", here, "--dry-run=server", "--as=eager", "--filename=-")

    def is_refused() -> bool:
        answer = plane.kubectl(*create, input=json.dumps(job), check=False)
        assert answer.returncode == 0 or "the right to approve" in answer.stderr
        return answer.returncode != 0

    until(is_refused, 20, lambda: "the policy is in force")


@page("nightly-files.md")
def test_a_night_goes_on_with_the_same_parts(recipe: Recipe) -> None:
    ns = recipe.ns
    workers = recipe.start_all()
    recipe.follow()
    assert len(list((ns.folder / ".dev/out/nightly").glob("*.sha256"))) == 8

    night = {"source": "examples/data", "target": ".dev/out/second", "part": 3, "pause": 0.4}
    ns.create("second", "files.nightly", night, **SOON)
    until(lambda: len(children_of(ns, "second")) == 3, 15, lambda: "children")
    submitted = set(children_of(ns, "second"))
    (ns.folder / ".dev/out/hello.txt").write_text("a file that comes later")
    workers["default"].kill()
    recipe.start(name="second-parent")
    assert succeeded_after_a_crash(ns, "second")["files"] == 8
    children = children_of(ns, "second")
    assert set(children) == submitted
    assert sum(child["result"] for child in children.values()) == 8
    assert {child["attempt"] for child in children.values()} == {1}


@page("webhook.md")
def test_a_delivery_is_one_job_whoever_dies(recipe: Recipe) -> None:
    """The page shows the sender's repeat; here the receiver is killed before it."""
    ns = recipe.ns
    recipe.start_all()
    recipe.follow()
    [first] = ns.jobs()
    with recipe.shell() as shell:

        def deliver(body: str) -> str:
            sign = f"printf %s '{body}' | openssl dgst -sha256 -hmac s3 | sed 's/.* //'"
            code, printed = shell.run(
                "curl -s --retry 20 --retry-connrefused --retry-delay 1 -H 'X-Delivery: 99'"
                f" -H X-Signature:\\ $({sign}) -d '{body}' http://127.0.0.1:8090/push"
            )
            assert code == 0, printed
            return printed

        start = "WEBHOOK_SECRET=s3 python -m examples.recipes.webhook.receiver --port 8090 &"
        body = '{"repository": "shop", "commit": "77"}'
        shell.run(start)
        assert '"created": true' in deliver(body)
        shell.run("kill -KILL %1; wait %1")
        shell.run(start)
        assert '"created": false' in deliver(body)
        assert "no JSON" not in deliver("not JSON")
    [second] = [job for job in ns.jobs() if job["metadata"]["uid"] != first["metadata"]["uid"]]
    status = ns.until_phase(second["metadata"]["name"], "Succeeded")
    assert (status["attempt"], status["result"]) == (1, "built shop at 77")


class Stalled:
    """Takes every request, and keeps the answer to the first one back."""

    def __init__(self) -> None:
        self.taken = threading.Event()
        self._count = 0

    def api(self) -> web.Application:
        api = build(lambda: True)

        @web.middleware
        async def stall(request: web.Request, handler: Handler) -> web.StreamResponse:
            answer = await handler(request)
            self._count += request.method == "POST"
            if request.method == "POST" and self._count == 1:
                self.taken.set()
                while request.transport and not request.transport.is_closing():  # noqa: ASYNC110
                    await asyncio.sleep(0.05)  # no event says that the caller has gone
            return answer

        api.middlewares.append(stall)
        return api


@page("rate-limited-api.md")
def test_an_order_whose_answer_is_lost_is_one_order(recipe: Recipe) -> None:
    ns = recipe.ns
    workers = recipe.start_all()
    recipe.follow()
    workers["api"].kill()
    workers["api"].wait_ended(20)

    stalled = Stalled()
    with serving(stalled.api()) as api:
        caller = recipe.start("api", "caller", EXAMPLE_API=api)
        ns.until_log(caller, "worker started")
        call = {"path": "/orders", "body": {"product": "Mug"}}
        ns.create("lost-answer", "api.call", call, queue="api", **SOON)
        assert stalled.taken.wait(20)
        caller.kill()
        recipe.start("api", "second", EXAMPLE_API=api)
        assert succeeded_after_a_crash(ns, "lost-answer")["body"] == {"order": 1}


@page("gpu-batch.md")
def test_a_native_job_is_started_once_and_ends_with_a_cancel(recipe: Recipe) -> None:
    """The API server of tests has no nodes: the page says in its place that the pod is done."""
    ns = recipe.ns
    workers = recipe.start_all()
    recipe.follow()

    jobs = f"/apis/batch/v1/namespaces/{ns.namespace}/jobs"
    training = {"image": "registry.example/x:1", "command": ["train"], "gpus": 2}
    made = ns.create("second", "model.train", training, queue="gpu", **SOON)
    path = f"{jobs}/train-{made['metadata']['uid']}"
    until(lambda: not is_gone(ns.api, path), 15, lambda: "the native Job")
    native = ns.api.get(path)
    workers["gpu"].kill()
    second = recipe.start("gpu", "second")
    ns.until_log(second, "found the Job of an earlier attempt")
    assert ns.api.get(path)["metadata"]["uid"] == native["metadata"]["uid"]
    ns.cancel("second")
    ns.until_phase("second", "Cancelled")
    until(lambda: is_gone(ns.api, path), 15, lambda: "the native Job is deleted")


@page("order-with-compensation.md")
def test_an_order_is_undone_whoever_is_killed(recipe: Recipe) -> None:
    ns = recipe.ns
    workers = recipe.start_all()
    recipe.follow()

    place = {"number": "7", "sold_out": True, "pause": 0.1}
    ns.create("order-7", "order.place", place)
    settle = {"number": "7", "pause": 0.7}
    depends = [{"name": "order-7", "outcome": "Any"}]
    ns.create("settle-7", "order.settle", settle, dependsOn=depends, **SOON)
    ns.until_status("settle-7", lambda status: status.get("checkpoint"))
    workers["default"].kill()
    recipe.start(name="second")
    result = succeeded_after_a_crash(ns, "settle-7")
    assert result == {"shipped": False, "undone": ["charge", "reserve"]}

    ns.patch("order-7", {"spec": {"redrive": 1}})
    late = ns.until_status("order-7", lambda status: status["attempt"] == 2)
    late = ns.until_phase("order-7", "DeadLetter")
    assert late["message"] == "order 7 is closed"

    ns.create("order-8", "order.place", {"number": "8"})
    ns.create(
        "settle-8",
        "order.settle",
        {"number": "8"},
        dependsOn=[{"name": "order-8", "outcome": "Any"}],
    )
    assert ns.until_phase("settle-8", "Succeeded")["result"] == {"shipped": True, "undone": []}


@page("import-with-checkpoints.md")
def test_the_import_runs_as_its_page_says(recipe: Recipe) -> None:
    """Kills: `test_handlers.py` of the examples."""
    recipe.start_all()
    recipe.follow()


@page("fan-out.md")
def test_the_fan_out_runs_as_its_page_says(recipe: Recipe) -> None:
    """Kills: `test_handlers.py` of the examples."""
    recipe.start_all()
    recipe.follow()


@page("time-zone.md")
def test_each_day_has_one_run_also_where_clocks_change(recipe: Recipe) -> None:
    ns = recipe.ns
    workers = recipe.start_all()
    recipe.follow()
    books = ns.folder / ".dev/out/books"
    assert sorted(path.stem for path in books.iterdir()) == [
        "2026-10-23",
        "2026-10-24",
        "2026-10-25",
    ]

    payload = {"zone": "Europe/Berlin", "folder": ".dev/out/march", "pause": 1.0}
    schedule = {
        "apiVersion": "asyncjob.dev/v1alpha1",
        "kind": "AsyncCronJob",
        "metadata": {"name": "spring"},
        "spec": {
            "schedule": "30 2 * * *",
            "timeZone": "Europe/Berlin",
            "concurrencyPolicy": "Forbid",
            "jobTemplate": {"spec": {"type": "books.close", "payload": payload, **SOON}},
            "backfill": {"from": "2026-03-28T00:00:00Z", "to": "2026-03-28T12:00:00Z"},
        },
    }
    ns.api.create(collection_path(ns.namespace, CRON_JOBS), schedule)
    run = "spring-20260328t0130z"
    until(lambda: not is_gone(ns.api, job_path(ns.namespace, run)), 15, lambda: run)
    ns.until_phase(run, "Running")
    workers["default"].kill()
    recipe.start(name="second")
    assert succeeded_after_a_crash(ns, run) == "2026-03-27"
    [file] = Path(ns.folder / ".dev/out/march").iterdir()
    assert file.read_text().strip() == "closed,2026-03-27,2"


@page("from-celery.md")
def test_an_invoice_whose_worker_is_killed_is_sent(recipe: Recipe) -> None:
    ns = recipe.ns
    workers = recipe.start_all()
    recipe.follow()

    ns.create("slow", "invoice.send", {"number": 9, "pause": 1.5}, **SOON)
    ns.until_phase("slow", "Running")
    workers["default"].kill()
    recipe.start(name="second")
    assert succeeded_after_a_crash(ns, "slow") == "invoice 9 sent"
