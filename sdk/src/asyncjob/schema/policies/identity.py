"""CEL for who asks: the pod that a token is bound to, and the operator's verb."""

from typing import Final

from asyncjob.names import GROUP, JOBS, OPERATE_VERB

_EXTRA: Final = "authentication.kubernetes.io"


def _extra(key: str) -> str:
    # The key is absent for users without extras.
    return f"request.userInfo.?extra[?'{_EXTRA}/{key}'][?0].orValue('')"


POD: Final = _extra("pod-name")
POD_UID: Final = _extra("pod-uid")
OPERATES: Final = (
    f"authorizer.group('{GROUP}').resource('{JOBS}').namespace(request.namespace)"
    f".check('{OPERATE_VERB}').allowed()"
)
