"""`JobsClient` and `AsyncJobsClient`: jobs behind a gateway."""

import uuid
from pathlib import Path
from ssl import SSLContext

import httpx

from asyncjob.client.async_shell import AsyncShell
from asyncjob.client.rest.async_world import AsyncHttpWorld
from asyncjob.client.rest.auth import TokenSource, address_from, token_from
from asyncjob.client.rest.http import RequestBuilder
from asyncjob.client.rest.operations import DEFAULT_PATIENCE_SECONDS, RestOperations
from asyncjob.client.rest.world import HttpWorld
from asyncjob.client.results import ResultStore
from asyncjob.client.shell import Shell

USER_AGENT = "asyncjob-client"


class JobsClient(Shell):
    """Jobs behind a gateway, for plain code; the methods are those of `Jobs`.

    `url` is the gateway's address, else ASYNCJOB_SERVER. `token` is a bearer token, a function or
    a file that gives it, else ASYNCJOB_TOKEN or the file ASYNCJOB_TOKEN_FILE. `namespace`: else
    the gateway's own. `patience` is how many seconds a gateway that is away is waited for, where
    repeating does no harm. `verify` is whom to trust with TLS, as httpx takes it. `store` fetches
    results that are kept outside of their jobs.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | TokenSource | Path | None = None,
        namespace: str | None = None,
        patience: float = DEFAULT_PATIENCE_SECONDS,
        verify: SSLContext | bool = True,
        store: ResultStore | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        wire = RequestBuilder(address_from(url), token_from(token), USER_AGENT)
        operations = RestOperations(new_id, namespace, patience, store)
        http = httpx.Client(verify=verify, transport=transport)
        super().__init__(operations, lambda: HttpWorld(http, wire), http.close)


class AsyncJobsClient(AsyncShell):
    """Jobs behind a gateway, for an event loop; the methods are those of `AsyncJobs`.

    It is made like a JobsClient.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | TokenSource | Path | None = None,
        namespace: str | None = None,
        patience: float = DEFAULT_PATIENCE_SECONDS,
        verify: SSLContext | bool = True,
        store: ResultStore | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        wire = RequestBuilder(address_from(url), token_from(token), USER_AGENT)
        operations = RestOperations(new_id, namespace, patience, store)
        http = httpx.AsyncClient(verify=verify, transport=transport)
        super().__init__(operations, lambda: AsyncHttpWorld(http, wire), http.aclose)


def new_id() -> str:
    """Return a fresh UUID."""
    return str(uuid.uuid4())
