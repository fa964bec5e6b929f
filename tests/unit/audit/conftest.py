"""An API server for the recorder: a script of answers for each resource, and a session on it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from asyncjob.audit.recorder import RECORDED
from asyncjob.kube import KubeSession, load_access
from support.loopback.kube_answers import Server
from support.loopback.kubeconfigs import plain_kubeconfig


@pytest.fixture
def servers() -> dict[str, Server]:
    """Scripts by resource."""
    return {name: Server() for name in RECORDED}


@pytest.fixture
async def session(servers: dict[str, Server], tmp_path: Path) -> AsyncIterator[KubeSession]:
    app = web.Application()
    for name, server in servers.items():
        app.router.add_get(f"/{{path:.*}}/{name}", server.handle)
    async with TestServer(app, host="127.0.0.1") as running:
        url = str(running.make_url("")).rstrip("/")
        file = plain_kubeconfig(tmp_path / "kubeconfig", url)
        async with KubeSession(await load_access(str(file)), field_manager="test") as opened:
            yield opened
