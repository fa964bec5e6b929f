"""What it means that the API server does not take a child job, and the way out."""

from asyncjob.app.child_errors import SubmitError, SubmitForbiddenError, SubmitRefusedError
from asyncjob.app.child_order import ChildManifest
from asyncjob.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    TooLargeError,
    UnauthorizedError,
)
from asyncjob_worker.enforcement import is_policy_refusal

CHILDREN_ROLE = "asyncjob-worker-children"
"""ClusterRole that lets workers submit jobs."""

_RBAC_DENIED = 'cannot create resource "asyncjobs"'


def is_transient(error: ApiError) -> bool:
    """Return whether the same request may succeed later; a lost token is the heartbeats' matter."""
    return error.retryable or isinstance(error, ConflictError | UnauthorizedError)


def submit_error(error: ApiError, order: ChildManifest, namespace: str) -> SubmitError:
    """Return what the handler is told."""
    what = f"child {order.name}"
    if isinstance(error, ForbiddenError):
        return SubmitForbiddenError(f"{what}: {error}{_rbac_hint(error, namespace)}")
    if isinstance(error, TooLargeError):
        return SubmitRefusedError(f"{what} is too large, hand data over by reference: {error}")
    if isinstance(error, InvalidError):
        return SubmitRefusedError(f"{what}: {error}")
    return SubmitError(f"{what}: {error}")


def _rbac_hint(error: ForbiddenError, namespace: str) -> str:
    if is_policy_refusal(error) or _RBAC_DENIED not in str(error):
        return ""
    return (
        f"; workers submit jobs only with the ClusterRole {CHILDREN_ROLE}: kubectl -n {namespace} "
        "create "
        f"rolebinding {CHILDREN_ROLE} --clusterrole={CHILDREN_ROLE} "
        f"--serviceaccount={namespace}:asyncjob-worker"
    )
