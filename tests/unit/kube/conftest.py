"""An HTTP server that answers from a script, and a session on it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer

from asyncjob.kube import ClusterAccess, KubeSession, load_access
from support.loopback.kube_answers import Server


@pytest.fixture
async def server() -> Server:
    return Server()


@pytest.fixture
async def url(server: Server) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    async with TestServer(app, host="127.0.0.1") as running:
        yield str(running.make_url("")).rstrip("/")


@pytest.fixture
def token(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text("first")
    return file


@pytest.fixture
def kubeconfig(url: str, token: Path, tmp_path: Path) -> Path:
    file = tmp_path / "kubeconfig"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"tokenFile": str(token)}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "ns"}}],
        "current-context": "x",
    }
    file.write_text(yaml.safe_dump(config))
    return file


@pytest.fixture
async def access(kubeconfig: Path) -> ClusterAccess:
    return await load_access(str(kubeconfig))


@pytest.fixture
async def session(access: ClusterAccess) -> AsyncIterator[KubeSession]:
    async with KubeSession(access, field_manager="tester") as opened:
        yield opened
