"""Access to the API server.

The few requests that running the environment takes, and kubeconfig files. No retries and no
watches: the caller knows whether a failure matters.
"""

import base64
import json
import ssl
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import yaml

from asyncjob_dev.errors import ApiStatusError, ApiUnavailableError
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
        self._kept: httpx.Client | None = None
        self._keeping = threading.Lock()

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
        """Return an object or a list; `ApiStatusError` with its status where there is none."""
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

    def request_token(
        self,
        namespace: str,
        account: str,
        *,
        pod: tuple[str, str] | None = None,
        seconds: int = 3600,
    ) -> Object:
        """Return a token of a service account, and when it expires: a TokenRequest's status.

        It may be bound to a `pod`, by name and uid.
        """
        spec: Object = {"expirationSeconds": seconds}
        if pod:
            name, uid = pod
            spec["boundObjectRef"] = {"kind": "Pod", "apiVersion": "v1", "name": name, "uid": uid}
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        status: Object = self.create(path, {"spec": spec})["status"]
        return status

    def delete(self, path: str, options: Object | None = None) -> Object:
        """Delete with these DeleteOptions."""
        return self._json("DELETE", path, options, query={})

    def answers(self, path: str) -> bool:
        """Whether the server is there and GET `path` succeeds."""
        try:
            self.read(path)
        except (ApiStatusError, ApiUnavailableError):
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
        answer = json.loads(
            self.read(path, method=method, body=body, content_type=content_type, query=query)
        )
        assert isinstance(answer, dict)
        return answer

    def read(
        self,
        path: str,
        *,
        method: str = "GET",
        body: Object | None = None,
        content_type: str = JSON,
        query: Mapping[str, str] | None = None,
    ) -> bytes:
        """Return an answer as it is; raises ApiStatusError or ApiUnavailableError."""
        target = f"{path}?{urlencode(query)}" if query else path
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": content_type,
            "User-Agent": "asyncjob-dev",
            # Packing costs the API server more than loopback costs us.
            "Accept-Encoding": "identity",
            **self._headers,
        }
        try:
            answer = self._connected().request(
                method,
                f"{self.url}{target}",
                headers=headers,
                content=None if body is None else json.dumps(body),
            )
        except (OSError, httpx.HTTPError) as error:
            if not isinstance(error, httpx.ReadTimeout):  # the others may still be answered
                self._disconnect()
            raise ApiUnavailableError(f"{method} {self.url}{target}: {error}") from error
        if answer.is_error:
            raise _error(f"{method} {target}", answer)
        return answer.content

    def _connected(self) -> httpx.Client:
        """Return the connections that are kept: a handshake costs more than most requests.

        They are made again after an error, as the file of the authority appears, and may change,
        while an API server is waited for. Whoever forgets this has them closed.
        """
        with self._keeping:
            if self._kept is None:
                trust = ssl.create_default_context(cafile=self.ca_file)
                client = httpx.Client(verify=trust, timeout=self._timeout, trust_env=False)
                self._kept, self._close = client, weakref.finalize(self, client.close)
            return self._kept

    def _disconnect(self) -> None:
        """Close all connections: the API server is not there, or another one is."""
        with self._keeping:
            if self._kept is not None:
                self._kept = None
                self._close()


def _error(request: str, answer: httpx.Response) -> ApiStatusError:
    try:
        details = answer.json()
    except ValueError:
        details = None
    if not isinstance(details, dict):
        return ApiStatusError(request, answer.status_code, "", answer.text[:500])
    return ApiStatusError(
        request,
        answer.status_code,
        str(details.get("reason", "")),
        str(details.get("message", "")),
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
