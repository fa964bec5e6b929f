"""CEL for who asks: the pod that a token is bound to, and the verbs of operator and gateway."""

from typing import Final

from asyncjob.names import GROUP, JOBS, OPERATE_VERB, VOUCH_VERB, WORKER_ACCOUNT

_EXTRA_PREFIX: Final = "authentication.kubernetes.io"


def _extra(key: str) -> str:
    # The key is absent for users without extras.
    return f"request.userInfo.?extra[?'{_EXTRA_PREFIX}/{key}'][?0].orValue('')"


REQUEST_POD: Final = _extra("pod-name")
REQUEST_POD_UID: Final = _extra("pod-uid")

IS_WORKER: Final = (
    f"request.userInfo.username.matches('^system:serviceaccount:[^:]+:{WORKER_ACCOUNT}(-[^:]*)?$')"
)
"""By the name of the ServiceAccount, which costs no call to the authorizer."""


def _may(verb: str) -> str:
    return (
        f"authorizer.group('{GROUP}').resource('{JOBS}').namespace(request.namespace)"
        f".check('{verb}').allowed()"
    )


def may_on(resource: str, verb: str, subresource: str = "", *, named: bool = True) -> str:
    """Return that who asks may do something with resources of ours in the request's namespace.

    `resource` is CEL; `named`: with the very object of the request.
    """
    below = f".subresource('{subresource}')" if subresource else ""
    name = ".name(object.metadata.?name.orValue(''))" if named else ""
    return (
        f"authorizer.group('{GROUP}').resource({resource}){below}.namespace(request.namespace)"
        f"{name}.check('{verb}').allowed()"
    )


MAY_OPERATE: Final = _may(OPERATE_VERB)
MAY_VOUCH: Final = _may(VOUCH_VERB)
