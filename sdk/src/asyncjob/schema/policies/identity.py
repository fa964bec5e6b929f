"""CEL for who asks: the pod that a token is bound to, and the verbs of operator and gateway."""

from typing import Final

from asyncjob.names import GROUP, JOBS, OPERATE_VERB, VOUCH_VERB

_EXTRA: Final = "authentication.kubernetes.io"


def _extra(key: str) -> str:
    # The key is absent for users without extras.
    return f"request.userInfo.?extra[?'{_EXTRA}/{key}'][?0].orValue('')"


POD: Final = _extra("pod-name")
POD_UID: Final = _extra("pod-uid")


def _may(verb: str) -> str:
    return (
        f"authorizer.group('{GROUP}').resource('{JOBS}').namespace(request.namespace)"
        f".check('{verb}').allowed()"
    )


OPERATES: Final = _may(OPERATE_VERB)
VOUCHES: Final = _may(VOUCH_VERB)
