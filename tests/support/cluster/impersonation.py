"""Acting in a pod's name with an admin's rights: for pods that run nothing, or are not there.

The policies take the pod from what the API server knows of the requester, and so does this: they
cannot tell it from a token that is bound to the pod. RBAC is not what such a test is about.
"""

from collections.abc import Mapping
from typing import Final

from asyncjob.names import WORKER_ACCOUNT

_EXTRA: Final = "Impersonate-Extra-authentication.kubernetes.io%2F"


def as_pod(namespace: str, name: str, uid: str) -> Mapping[str, str]:
    """Return the headers that have an admin's request come from a worker's pod."""
    return {
        "Impersonate-User": f"system:serviceaccount:{namespace}:{WORKER_ACCOUNT}",
        "Impersonate-Group": "system:masters",
        f"{_EXTRA}pod-name": name,
        f"{_EXTRA}pod-uid": uid,
    }
