"""The API server: takes a request, and answers with a status code and a body, or with a watch.

It is synchronous and holds no clock: a request takes effect at once, as of the time that `clock`
tells. Delays and losses are the business of the connection.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson

from asyncjob_simulation.apiserver.admission import Admission
from asyncjob_simulation.apiserver.discovery import discover
from asyncjob_simulation.apiserver.encoding import encode
from asyncjob_simulation.apiserver.errors import (
    StatusError,
    bad_request,
    no_such_path,
    unauthorized,
)
from asyncjob_simulation.apiserver.forms import Form
from asyncjob_simulation.apiserver.identities import (
    ADMIN,
    MASTERS,
    Identity,
    Tokens,
    impersonated,
)
from asyncjob_simulation.apiserver.patches import apply_json_patch, merge
from asyncjob_simulation.apiserver.rbac import Action, RbacAuthorizer
from asyncjob_simulation.apiserver.reads import Reader
from asyncjob_simulation.apiserver.resources import CRDS, Registry, Target
from asyncjob_simulation.apiserver.reviews import Reviewer
from asyncjob_simulation.apiserver.storage import Storage
from asyncjob_simulation.apiserver.timestamps import http_date
from asyncjob_simulation.apiserver.watches import Watch
from asyncjob_simulation.apiserver.writes import Caller, Transform, Writer

Object = dict[str, Any]

MAX_BODY_BYTES: Final = 3 * 1024 * 1024
_JSON_PATCH: Final = "application/json-patch+json"
_MERGE_PATCH: Final = "application/merge-patch+json"
_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch"}


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request, as far as an API server looks at it."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    content_type: str = "application/json"
    accept: str = "application/json"
    token: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_watch(self) -> bool:
        """Whether the answer is to go on for long."""
        return self.query.get("watch") in {"true", "1"}


@dataclass(frozen=True, slots=True)
class Response:
    """The answer to a request; one to a watch has no body."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    watch: Watch | None = None
    warnings: tuple[str, ...] = ()


class ApiServer:
    """One API server. `clock` gives epoch seconds; `seed` makes UIDs, generated names and tokens.

    The same requests at the same times are answered the same, to the byte. `like` is a server whose
    objects the new one begins with: installing everything again takes fifty times as long.
    """

    def __init__(
        self, clock: Callable[[], float], *, seed: int = 0, like: "ApiServer | None" = None
    ) -> None:
        self.clock = clock
        self.storage = Storage(clock)
        self._authorizer = RbacAuthorizer(self.storage)
        admission = Admission(self.storage, self._authorizer)
        self.writer = Writer(self.storage, admission, clock, seed)
        self.reader = Reader(self.storage, clock)
        self.tokens = Tokens(clock, self.writer.new_id, self._pod_uid)
        self._reviewer = Reviewer(self.storage, self.tokens, self._authorizer, clock)
        self._registry = Registry.of(())
        self._crds_end = 0
        self.admin_token = self.tokens.issue(ADMIN)
        if like is not None:
            self._begin_like(like)
            return
        for namespace in ("default", "kube-system"):
            self.create("/api/v1/namespaces", {"metadata": {"name": namespace}})

    def _begin_like(self, other: "ApiServer") -> None:
        self.storage.copy_from(other.storage)
        self._registry = other.registry
        self._crds_end = self.storage.collection(CRDS).end

    # ---- for who prepares a test

    def install(self, manifests: Iterable[Object]) -> None:
        """Create what the manifests describe, as `kubectl apply` would in an empty cluster."""
        for manifest in manifests:
            self.create(self._collection_of(manifest), manifest)

    def create(self, path: str, body: Object) -> Object:
        """Create an object past authorization, but through all rules; raises StatusError."""
        return self.writer.create(self.registry.resolve(path), body, Caller(ADMIN, "setup"))

    def get(self, path: str) -> Object:
        """Return an object; raises StatusError."""
        return self.reader.get(self.registry.resolve(path))

    def _collection_of(self, manifest: Object) -> str:
        for resource in self.registry:
            if (resource.api_version, resource.kind) == (manifest["apiVersion"], manifest["kind"]):
                root = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
                scope = manifest["metadata"].get("namespace", "default")
                where = f"/namespaces/{scope}" if resource.namespaced else ""
                return f"{root}{where}/{resource.plural}"
        raise bad_request(f"no resource of kind {manifest['kind']} in {manifest['apiVersion']}")

    def _pod_uid(self, namespace: str, name: str) -> str:
        pod = self.storage.get(("", "pods"), (namespace, name))
        return pod["metadata"]["uid"] if pod else ""

    # ---- requests

    def handle(self, request: Request) -> Response:
        """Answer a request."""
        date = {"Date": http_date(self.clock())}
        try:
            response = self._answer(request)
        except StatusError as error:
            body = encode(error.status())
            return Response(error.http_code, body, {**date, "Content-Type": "application/json"})
        return replace(response, headers={**date, "Content-Type": "application/json"})

    def authenticate(self, request: Request) -> Identity:
        """Return who asks; raises StatusError."""
        identity = self.tokens.authenticate(request.token)
        if identity is None:
            raise unauthorized()
        if "Impersonate-User" in request.headers and MASTERS not in identity.groups:
            raise StatusError(403, "Forbidden", "users is forbidden: impersonation is for admins")
        return impersonated(identity, request.headers)

    def _answer(self, request: Request) -> Response:
        identity = self.authenticate(request)
        if len(request.body) > MAX_BODY_BYTES:
            words = f"Request entity too large: limit is {MAX_BODY_BYTES}"
            raise StatusError(413, "RequestEntityTooLarge", words)
        if request.method == "GET":
            found = discover(request.path, self.registry)
            if found is not None:
                return Response(200, encode(found))
        target = self.registry.resolve(request.path)
        self._authorize(identity, target, _verb(request, target))
        if request.method == "GET":
            return self._read(request, target)
        return self._write(request, target, identity)

    @property
    def registry(self) -> Registry:
        """The resources that there are, those of the CRDs that are stored among them."""
        crds = self.storage.collection(CRDS)
        if crds.end != self._crds_end:
            self._crds_end = crds.end
            self._registry = Registry.of(crds.objects.values())
        return self._registry

    def _authorize(self, identity: Identity, target: Target, verb: str) -> None:
        resource, part = target.resource, target.subresource
        full = f"{resource.plural}/{part}" if part else resource.plural
        action = Action(verb, resource.group, full, target.namespace, target.name)
        if self._authorizer.allows(identity, action):
            return
        what = f'{resource.qualified} "{target.name}"' if target.name else resource.qualified
        scope = (
            f'in the namespace "{target.namespace}"' if target.namespace else "at the cluster scope"
        )
        raise StatusError(
            403,
            "Forbidden",
            f'{what} is forbidden: User "{identity.username}" cannot {verb} resource "{full}" in '
            f'API group "{resource.group}" {scope}',
        )

    def _read(self, request: Request, target: Target) -> Response:
        form = self.reader.form(target.resource, request.accept, request.query)
        if request.is_watch:
            return Response(200, watch=self.reader.watch(target, request.query, form))
        if target.name:
            return Response(200, encode(form.one(self.reader.get(target))))
        return Response(200, encode(self.reader.list_objects(target, request.query, form)))

    def _write(self, request: Request, target: Target, identity: Identity) -> Response:
        caller = Caller(
            identity,
            manager=request.query.get("fieldManager", "unknown"),
            dry_run=request.query.get("dryRun") == "All",
            field_validation=request.query.get("fieldValidation") or "Warn",
        )
        form = self.reader.form(target.resource, request.accept, request.query)
        code = 200
        if request.method == "DELETE":
            answer = self._delete(request, target, caller, form)
        else:
            body = _parsed(request, target)
            if request.method == "POST":
                code, answer = 201, self._post(target, body, caller)
            else:
                answer = self.writer.update(target, _transform(request, target, body), caller)
        if answer.get("kind") == target.resource.kind and "spec" in answer:
            answer = form.one(answer)
        return Response(code, encode(answer), warnings=tuple(caller.warnings))

    def _post(self, target: Target, body: Any, caller: Caller) -> Object:
        if self._reviewer.is_review(target):
            return self._reviewer.review(target, body, caller.identity)
        if target.name:
            raise no_such_path()
        return self.writer.create(target, body, caller)

    def _delete(self, request: Request, target: Target, caller: Caller, form: Form) -> Object:
        options = orjson.loads(request.body) if request.body else {}
        if target.name:
            return self.writer.delete(target, options, caller)
        listed = self.reader.list_objects(target, request.query, replace(form, kind=""))
        for obj in listed["items"]:
            metadata = obj["metadata"]
            one = replace(target, name=metadata["name"], namespace=metadata.get("namespace", ""))
            self.writer.delete(one, options, caller)
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


def _verb(request: Request, target: Target) -> str:
    if request.method == "GET":
        if request.is_watch:
            return "watch"
        return "get" if target.name else "list"
    if request.method == "DELETE":
        return "delete" if target.name else "deletecollection"
    if request.method not in _VERBS:
        raise StatusError(405, "MethodNotAllowed", "the server does not allow this method")
    return _VERBS[request.method]


def _parsed(request: Request, target: Target) -> Any:
    try:
        return orjson.loads(request.body)
    except orjson.JSONDecodeError as error:
        kind = target.resource.kind
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind}): couldn't get "
            f"version/kind; json parse error: {error}"
        ) from error


def _transform(request: Request, target: Target, body: Any) -> Transform:
    if request.method == "PUT":
        return lambda old: _replaced(target, old, body)
    if request.content_type == _JSON_PATCH:
        return lambda old: apply_json_patch(old, body)
    if request.content_type == _MERGE_PATCH:
        return lambda old: merge(old, body)
    raise StatusError(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: "
        f"{_JSON_PATCH}, {_MERGE_PATCH}",
    )


def _replaced(target: Target, old: Object, body: Object) -> Object:
    """Return the object that replaces another, which has to say which version of a custom one."""
    metadata = body.get("metadata") or {}
    if target.resource.schema is not None and not metadata.get("resourceVersion"):
        words = "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
        what = f'{target.resource.qualified} "{target.name}"'
        raise StatusError(422, "Invalid", f"{what} is invalid: {words}")
    uid = metadata.get("uid", old["metadata"]["uid"])
    return {**body, "metadata": {**metadata, "uid": uid}}
