"""Access to the API server.

The few requests that running the environment takes, and kubeconfig files. Standard library HTTP,
one connection per request, no retries and no watches: the caller knows whether a failure matters.
"""

import base64
import http.client
import json
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import yaml

from asyncjob_dev.errors import ApiError, ApiUnavailableError
from asyncjob_dev.files import write_private

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

Object = dict[str, Any]


class Api:
    """One identity on one API server."""

    def __init__(
        self,
        url: str,
        *,
        ca_file: Path,
        token: str,
        timeout: float = 10.0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.url = url
        self.ca_file = ca_file
        self._token = token
        self._timeout = timeout
        self._headers = dict(headers or {})

    def sending(self, headers: Mapping[str, str]) -> "Api":
        """Return the same identity with further headers, such as those of impersonation."""
        return Api(
            self.url,
            ca_file=self.ca_file,
            token=self._token,
            timeout=self._timeout,
            headers={**self._headers, **headers},
        )

    def get(self, path: str, **query: str) -> Object:
        """Return an object or a list; `ApiError` with its status where there is none."""
        return self._json("GET", path, query=query)

    def create(self, path: str, body: Object, **query: str) -> Object:
        """POST to a collection or to a subresource such as `token`."""
        return self._json("POST", path, body, query=query)

    def merge(self, path: str, patch: Object, **query: str) -> Object:
        """JSON merge patch."""
        return self._json("PATCH", path, patch, content_type=MERGE_PATCH, query=query)

    def apply(self, path: str, body: Object, manager: str) -> Object:
        """Server-side apply, taking fields over from others."""
        query = {"fieldManager": manager, "force": "true"}
        return self._json("PATCH", path, body, content_type=APPLY_PATCH, query=query)

    def delete(self, path: str, options: Object | None = None) -> Object:
        """Delete with these DeleteOptions."""
        return self._json("DELETE", path, options, query={})

    def answers(self, path: str) -> bool:
        """Whether the server is there and GET `path` succeeds."""
        try:
            self._request("GET", path, None, JSON, {})
        except (ApiError, ApiUnavailableError):
            return False
        return True

    def _json(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        *,
        content_type: str = JSON,
        query: dict[str, str],
    ) -> Object:
        answer = json.loads(self._request(method, path, body, content_type, query))
        assert isinstance(answer, dict)
        return answer

    def _request(
        self, method: str, path: str, body: Object | None, content_type: str, query: dict[str, str]
    ) -> bytes:
        target = f"{path}?{urlencode(query)}" if query else path
        try:
            status, answer = self._exchange(method, target, body, content_type)
        except (OSError, http.client.HTTPException) as error:
            raise ApiUnavailableError(f"{method} {self.url}{target}: {error}") from error
        if status >= http.HTTPStatus.BAD_REQUEST:
            raise _error(f"{method} {target}", status, answer)
        return answer

    def _exchange(
        self, method: str, target: str, body: Object | None, content_type: str
    ) -> tuple[int, bytes]:
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": content_type,
            **self._headers,
        }
        connection = http.client.HTTPSConnection(
            urlsplit(self.url).netloc,
            timeout=self._timeout,
            context=ssl.create_default_context(cafile=self.ca_file),
        )
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, target, text, headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()


def _error(request: str, status: int, answer: bytes) -> ApiError:
    text = answer.decode("utf-8", errors="replace")
    try:
        details = json.loads(text)
    except ValueError:
        details = None
    if not isinstance(details, dict):
        return ApiError(request, status, "", text[:500])
    return ApiError(
        request, status, str(details.get("reason", "")), str(details.get("message", ""))
    )


def write_kubeconfig(
    path: Path,
    *,
    url: str,
    ca_file: Path,
    user: dict[str, str],
    namespace: str = "default",
    name: str = "asyncjob-dev",
) -> None:
    """Write a file with one context; `user` is `{"token": …}` or `{"tokenFile": …}`."""
    ca = base64.b64encode(ca_file.read_bytes()).decode("ascii")
    context = {"cluster": name, "user": name, "namespace": namespace}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": url, "certificate-authority-data": ca}}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": context}],
    }
    write_private(path, yaml.safe_dump(document, sort_keys=False))
