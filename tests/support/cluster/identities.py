"""Identities on a real API server: service accounts, and tokens bound to pods."""

from dataclasses import dataclass
from typing import Any

from support.cluster.api import Client
from support.cluster.enforcement import until_granted

RBAC = "apis/rbac.authorization.k8s.io/v1"
WORKER_ACCOUNT = "asyncjob-worker"
OPERATOR_ACCOUNT = "asyncjob-operator"


@dataclass(frozen=True)
class Worker:
    """A worker's pod and what is asked in its name."""

    pod: str
    pod_uid: str
    client: Client


@dataclass(frozen=True)
class Space:
    """A namespace, seen by the admin, and who else there is in it."""

    name: str
    admin: Client

    def create(self) -> "Space":
        """Create the namespace with the service accounts of worker and operator."""
        self.admin.create(
            "/api/v1/namespaces",
            {"metadata": {"name": self.name}},
        ).object()
        for account in (WORKER_ACCOUNT, OPERATOR_ACCOUNT):
            self.account(account)
            self.bind(account, account)
        election = f"{OPERATOR_ACCOUNT}-election"
        self.bind(OPERATOR_ACCOUNT, election, called=election)
        return self

    def label(self, **labels: str) -> None:
        """Label the namespace; two underscores stand for a slash, one for a dot."""
        spelled = {key.replace("__", "/").replace("_", "."): value for key, value in labels.items()}
        path = f"/api/v1/namespaces/{self.name}"
        self.admin.merge(path, {"metadata": {"labels": spelled}}).object()

    def path(self, plural: str, group: str = "api/v1") -> str:
        """Return the path of a collection of Kubernetes' own."""
        return f"/{group}/namespaces/{self.name}/{plural}"

    def account(self, name: str) -> None:
        """Create a ServiceAccount."""
        self.admin.create(self.path("serviceaccounts"), {"metadata": {"name": name}}).object()

    def bind(self, account: str, cluster_role: str, *, called: str = "") -> None:
        """Give the account a ClusterRole here, and wait until it holds."""
        role = self.admin.get(f"/{RBAC}/clusterroles/{cluster_role}").object()
        self._bind(called or account, account, "ClusterRole", cluster_role)
        until_granted(self.admin, self.name, account, role["rules"][0])

    def grant(self, account: str, *rules: dict[str, Any]) -> None:
        """Create an account with a Role of these rules, and wait until it holds."""
        self.account(account)
        role = {"metadata": {"name": account}, "rules": list(rules)}
        self.admin.create(self.path("roles", RBAC), role).object()
        self._bind(account, account, "Role", account)
        until_granted(self.admin, self.name, account, rules[0])

    def _bind(self, name: str, account: str, kind: str, role: str) -> None:
        binding = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": self.name}],
        }
        self.admin.create(self.path("rolebindings", RBAC), binding).object()

    def as_account(self, name: str) -> Client:
        """Return a client in a service account's name."""
        return self._client(name, {})

    def operator(self) -> Client:
        """Return the operator's client."""
        return self.as_account(OPERATOR_ACCOUNT)

    def worker(self, pod: str, account: str = WORKER_ACCOUNT) -> Worker:
        """Create a pod and return a client with a token that is bound to it."""
        body = {
            "metadata": {"name": pod},
            "spec": {
                "nodeName": "nowhere",
                "terminationGracePeriodSeconds": 0,  # no kubelet there would end it
                "serviceAccountName": account,
                "automountServiceAccountToken": False,
                "containers": [{"name": "worker", "image": "worker"}],
            },
        }
        made = self.admin.create(self.path("pods"), body).object()
        uid = made["metadata"]["uid"]
        return Worker(pod, uid, self._bound(account, pod, uid))

    def bound_to(self, worker: Worker, account: str) -> Client:
        """Return a client with another token of the worker's pod."""
        return self._bound(account, worker.pod, worker.pod_uid)

    def _bound(self, account: str, pod: str, uid: str) -> Client:
        bound = {"kind": "Pod", "apiVersion": "v1", "name": pod, "uid": uid}
        return self._client(account, {"boundObjectRef": bound})

    def _client(self, account: str, spec: dict[str, Any]) -> Client:
        path = f"{self.path('serviceaccounts')}/{account}/token"
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": spec,
        }
        token = self.admin.create(path, request).object()["status"]["token"]
        return self.admin.with_token(token)
