"""Who reads Secrets and ConfigMaps on an API server with the chart's roles."""

import itertools
from typing import Any

import pytest

from support.cluster.api import Client
from support.cluster.charts import NAMESPACE, Rendered
from support.rights import parts_of
from support.rights.principals import REVIEWS
from support.rights.probes.worker import SOURCE

pytestmark = pytest.mark.integration

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete")
RESOURCES = ("secrets", "configmaps")


def may(admin: Client, user: str, verb: str, resource: str, name: str) -> bool:
    attributes = {"namespace": NAMESPACE, "verb": verb, "resource": resource, "name": name}
    spec = {"user": user, "resourceAttributes": attributes}
    kinds = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    answer: Any = admin.create(REVIEWS, {**kinds, "spec": spec}).object()
    return bool(answer["status"]["allowed"])


def test_of_all_accounts_one_reads_secrets_and_only_the_one_it_was_given(
    admin: Client, rendered: Rendered
) -> None:
    """That worker's values name one Secret, and all ConfigMaps."""
    accounts = [item["metadata"]["name"] for item in rendered.of("ServiceAccount")]
    bound = {
        part.account
        for part in parts_of(rendered, NAMESPACE)
        if not part.account.startswith("job-")
    }
    found = {
        (account, verb, resource, name)
        for account, verb, resource, name in itertools.product(
            accounts, VERBS, RESOURCES, (SOURCE, "other")
        )
        if may(admin, f"system:serviceaccount:{NAMESPACE}:{account}", verb, resource, name)
    }

    assert set(accounts) == bound
    rich = "asyncjob-worker-rich"
    assert found == {
        (rich, "get", "secrets", SOURCE),
        (rich, "get", "configmaps", SOURCE),
        (rich, "get", "configmaps", "other"),
    }
