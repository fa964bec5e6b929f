"""Reviews: whose token is that, and who may do what. Nothing of them is stored."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from asyncjob_simulation.apiserver.errors import StatusError, not_found
from asyncjob_simulation.apiserver.identities import (
    Identity,
    Tokens,
    account_identity,
    pod_identity,
)
from asyncjob_simulation.apiserver.rbac import Action, RbacAuthorizer
from asyncjob_simulation.apiserver.resources import Target
from asyncjob_simulation.apiserver.storage import Storage
from asyncjob_simulation.apiserver.timestamps import whole_seconds

Object = dict[str, Any]

_TOKEN_SECONDS: Final = 3600


class Reviewer:
    """Answers what is posted to be reviewed, and requests for tokens."""

    def __init__(
        self,
        storage: Storage,
        tokens: Tokens,
        authorizer: RbacAuthorizer,
        clock: Callable[[], float],
    ) -> None:
        self._storage = storage
        self._tokens = tokens
        self._authorizer = authorizer
        self._clock = clock

    def is_review(self, target: Target) -> bool:
        """Return whether what is posted there is reviewed instead of stored."""
        plural = target.resource.plural
        return plural.endswith("reviews") or target.subresource == "token"

    def review(self, target: Target, body: Object, caller: Identity) -> Object:
        """Return what was posted, with the answer in its status."""
        if target.subresource == "token":
            status = self._new_token(target, body.get("spec") or {})
        elif target.resource.plural == "tokenreviews":
            status = self._whose(body["spec"].get("token", ""))
        elif target.resource.plural == "selfsubjectreviews":
            status = {"userInfo": caller.user_info()}
        elif target.resource.plural == "subjectaccessreviews":
            status = self._may(_subject(body["spec"]), body["spec"])
        else:
            status = self._may(caller, body["spec"])
        resource = target.resource
        names = {"apiVersion": resource.api_version, "kind": resource.kind}
        if target.subresource == "token":
            names = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
        return {**names, "metadata": {}, **body, "status": status}

    def _whose(self, token: str) -> Object:
        identity = self._tokens.authenticate(token)
        if identity is None:
            words = "[invalid bearer token, token lookup failed]"
            return {"user": {}, "error": words}
        return {"authenticated": True, "user": identity.user_info()}

    def _may(self, identity: Identity, spec: Mapping[str, Any]) -> Object:
        asked = spec.get("resourceAttributes")
        if asked is None:
            return {"allowed": False}
        part, resource = asked.get("subresource"), asked.get("resource", "")
        action = Action(
            verb=asked.get("verb", ""),
            group=asked.get("group", ""),
            resource=f"{resource}/{part}" if part else resource,
            namespace=asked.get("namespace", ""),
            name=asked.get("name", ""),
        )
        return {"allowed": self._authorizer.allows(identity, action)}

    def _new_token(self, target: Target, spec: Mapping[str, Any]) -> Object:
        if target.resource.plural != "serviceaccounts":
            raise StatusError(404, "NotFound", "the server could not find the requested resource")
        account = self._storage.get(("", "serviceaccounts"), (target.namespace, target.name))
        if account is None:
            raise not_found("serviceaccounts", target.name)
        bound = spec.get("boundObjectRef")
        identity = account_identity(target.namespace, target.name, account["metadata"]["uid"])
        if bound:
            identity = self._bound(target, bound)
        seconds = int(spec.get("expirationSeconds") or _TOKEN_SECONDS)
        token = self._tokens.issue(identity, namespace=target.namespace, seconds=seconds)
        return {"token": token, "expirationTimestamp": whole_seconds(self._clock() + seconds)}

    def _bound(self, target: Target, bound: Mapping[str, Any]) -> Identity:
        pod = self._storage.get(("", "pods"), (target.namespace, bound["name"]))
        if pod is None:
            raise not_found("pods", bound["name"])
        uid = pod["metadata"]["uid"]
        if bound.get("uid", uid) != uid:
            words = f"the UID in the bound object reference ({bound['uid']}) does not match"
            raise StatusError(409, "Conflict", words)
        return pod_identity(target.namespace, target.name, bound["name"], uid)


def _subject(spec: Mapping[str, Any]) -> Identity:
    extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
    return Identity(
        spec.get("user", ""),
        tuple(spec.get("groups") or ()),
        spec.get("uid", ""),
        tuple(sorted(extra.items())),
    )
