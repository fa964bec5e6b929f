"""A worker process on a real API server: payloads from elsewhere, and results that go elsewhere."""

import base64
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from asyncjob.models.job_status import ResultReference
from asyncjob.offload import Address, AllowList, Store, default_prefixes, fetch, offload
from asyncjob_dev.supervisor import DevWorker
from support.loopback.stores import BUCKET, CREDENTIALS, FaultyS3, good_s3
from support.processes.workers import ACCOUNT, WorkerNamespace

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

PAYLOADS_ROLE = "asyncjob-worker-payloads"
NO_RETRY = {"retryPolicy": {"maxRetries": 0}}
LATER = {"retryPolicy": {"maxRetries": 20, "initialDelaySeconds": 0, "jitter": 0}}


def allow_payloads(ns: WorkerNamespace) -> None:
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": PAYLOADS_ROLE},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": PAYLOADS_ROLE,
        },
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": ns.namespace}],
    }
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{ns.namespace}/rolebindings"
    ns.api.create(path, binding)


def put_secret(ns: WorkerNamespace, name: str, **texts: str) -> None:
    data = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}
    ns.api.create(f"/api/v1/namespaces/{ns.namespace}/secrets", body)


def put_config_map(ns: WorkerNamespace, name: str, **texts: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": texts}
    ns.api.create(f"/api/v1/namespaces/{ns.namespace}/configmaps", body)


def secret_ref(name: str, key: str) -> dict[str, Any]:
    return {"secretKeyRef": {"name": name, "key": key}}


def config_map_ref(name: str, key: str) -> dict[str, Any]:
    return {"configMapKeyRef": {"name": name, "key": key}}


def test_payloads_come_from_secrets_config_maps_and_files_and_large_results_go_to_files(
    ns: WorkerNamespace,
) -> None:
    url, store = f"file://{ns.folder}/store", Store()
    worker = ns.worker(
        "worker-0", "--concurrency=4", f"--offload-url={url}", "--offload-limit=2000000"
    )
    check_writes_of_a_plain_job(ns)
    ns.create("forbidden", "order", payloadFrom=secret_ref("shop", "order"), **NO_RETRY)
    status = ns.until_phase("forbidden", "DeadLetter")
    assert status["error"]["category"] == "Permission"
    assert f"bind the ClusterRole {PAYLOADS_ROLE}" in status["message"]

    allow_payloads(ns)
    put_secret(ns, "shop", order='{"number": 7}', broken="hunter2", wrong='{"number": "hunter2"}')
    put_config_map(ns, "shop", order='{"number": 8}')
    large = "y" * 300_000
    source = offload(large, url, namespace=ns.namespace, store=store)

    ns.create("from-secret", "order", payloadFrom=secret_ref("shop", "order"), **LATER)
    ns.create("from-config", "order", payloadFrom=config_map_ref("shop", "order"), **LATER)
    ns.create("from-file", "echo", payloadFrom={"uri": source.uri})
    assert ns.until_phase("from-secret", "Succeeded")["result"] == 7
    assert ns.until_phase("from-config", "Succeeded")["result"] == 8
    status = ns.until_phase("from-file", "Succeeded")
    assert "result" not in status
    allowed = AllowList(default_prefixes(Address.folder(url), ns.namespace))
    reference = ResultReference.model_validate(status["resultRef"])
    assert reference.size_bytes == 300_002
    assert fetch(reference, allowed=allowed, store=store) == large

    ns.create("chained", "echo", payloadFrom={"uri": reference.uri})
    assert ns.until_phase("chained", "Succeeded")["resultRef"]["sha256"] == reference.sha256
    tell_mistakes(ns, worker, url)


def check_writes_of_a_plain_job(ns: WorkerNamespace) -> None:
    ns.create("warm-up", "echo", 1)
    ns.until_phase("warm-up", "Succeeded")
    before = ns.writes()
    ns.create("plain", "echo", {"a": 1})
    ns.until_phase("plain", "Succeeded")
    assert ns.writes() - before == Counter({"POST  201": 1, "PATCH status 200": 2})


def tell_mistakes(ns: WorkerNamespace, worker: DevWorker, url: str) -> None:
    mistakes: dict[str, tuple[dict[str, Any], str, str]] = {
        "no-object": (secret_ref("none", "order"), "NotFound", "there is no Secret 'none'"),
        "no-key": (config_map_ref("shop", "none"), "NotFound", "ConfigMap 'shop' in namespace"),
        "no-file": (
            {"uri": f"{url}/payloads/{ns.namespace}/none"},
            "NotFound",
            "object, folder or bucket not found",
        ),
        "no-json": (secret_ref("shop", "broken"), "Validation", "is not JSON at line 1 column 1"),
        "no-fit": (secret_ref("shop", "wrong"), "Validation", "does not fit: number: int_parsing"),
        "outside": ({"uri": "file:///etc/passwd"}, "Validation", "is not below what may be read"),
        "upwards": (
            {"uri": f"{url}/../a"},
            "Validation",
            "'..' is not the name of a folder or object",
        ),
    }
    for name, (source, _, _) in mistakes.items():
        ns.create(name, "order", payloadFrom=source, **NO_RETRY)
    for name, (_, category, words) in mistakes.items():
        status = ns.until_phase(name, "DeadLetter")
        assert status["error"]["category"] == category, name
        assert words in status["message"], name
        found = "InvalidPayload" if category == "Validation" else "RetriesExhausted"
        assert status["reason"] == found, name
        assert "hunter2" not in str(status)
    ns.create("too-large", "big", 2_000_001)
    status = ns.until_phase("too-large", "DeadLetter")
    assert status["reason"] == "ResultRefused"
    assert "2000003 bytes, the limit is 2000000" in status["message"]
    assert "hunter2" not in ns.log(worker)


def s3_worker(ns: WorkerNamespace, endpoint: str, *options: str) -> DevWorker:
    driver = (
        f'{{"endpoint_url": "{endpoint}", "config_kwargs": {{"retries": {{"max_attempts": 1}}}}}}'
    )
    return ns.worker(
        "worker-0",
        f"--offload-url=s3://{BUCKET}/pre",
        f"--offload-options={driver}",
        "--offload-timeout=1",
        *options,
        env=CREDENTIALS,
    )


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with good_s3() as url:
        yield url


def test_results_go_to_s3_and_come_back_as_payloads(ns: WorkerNamespace, endpoint: str) -> None:
    s3_worker(ns, endpoint)
    ns.create("j", "big", 5_000_000)
    reference = ns.until_phase("j", "Succeeded")["resultRef"]
    assert reference["sizeBytes"] == 5_000_002
    uri = f"{reference['uri']}#sha256={reference['sha256']}"
    ns.create("again", "echo", payloadFrom={"uri": uri})
    assert ns.until_phase("again", "Succeeded")["resultRef"]["sha256"] == reference["sha256"]


def test_an_outage_of_the_store_is_outlasted_under_heartbeats_and_a_refusal_is_told(
    ns: WorkerNamespace,
) -> None:
    with FaultyS3(0) as s3:
        worker = s3_worker(ns, s3.options["endpoint_url"], "--grace=0", "--stop-wait=0.5")
        ns.create("outage", "big", 300_000, leaseDurationSeconds=5)
        ns.until_log(worker, "the result could not be stored")
        ns.until_status("outage", lambda status: status["lease"]["renewals"] >= 2)
        s3.codes = [500, 500, 200]
        status = ns.until_phase("outage", "Succeeded", within=30)
        assert (status["attempt"], status["resultRef"]["sizeBytes"]) == (1, 300_002)
        s3.codes = [403]
        ns.create("refused", "big", 300_000)
        status = ns.until_phase("refused", "DeadLetter", within=30)
        assert status["reason"] == "ResultRefused"
        assert "the result has 300002 bytes, but cannot write s3://" in status["message"]
        assert "the store does not allow it" in status["message"]
        s3.codes = [0]
        ns.create("late", "big", 300_000, executionTimeoutSeconds=3, **NO_RETRY)
        status = ns.until_phase("late", "DeadLetter", within=30)
        assert (
            "the attempt ran longer than 3 s: the result could not be stored" in status["message"]
        )
        ns.create("drained", "big", 300_000)
        s3.asked.clear()
        assert s3.asked.wait(30)
        worker.process.terminate()
        status = ns.until_phase("drained", "Queued")
        assert status["reason"] == "Released"
        worker.wait_ended(20)
        assert worker.process.returncode == 0
        assert CREDENTIALS["AWS_SECRET_ACCESS_KEY"] not in ns.log(worker)
