"""Which cluster and namespace a kubeconfig's context means."""

from pathlib import Path

import pytest
import yaml

from asyncjob.errors import ConfigError, NoClusterError
from asyncjob.kube import load_access


@pytest.fixture
def two_contexts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write a kubeconfig of two clusters; nothing of a pod is there to get in its way."""
    monkeypatch.delenv("POD_NAMESPACE", raising=False)
    names = ("home", "away")
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "home",
        "clusters": [{"name": n, "cluster": {"server": f"http://{n}.example"}} for n in names],
        "users": [{"name": "me", "user": {"token": "t"}}],
        "contexts": [
            {"name": n, "context": {"cluster": n, "user": "me", "namespace": f"ns-{n}"}}
            for n in names
        ],
    }
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return str(file)


async def test_the_current_context_is_taken_unless_another_is_named(two_contexts: str) -> None:
    home = await load_access(two_contexts)
    away = await load_access(two_contexts, context="away")
    assert (home.host, home.namespace) == ("http://home.example", "ns-home")
    assert (away.host, away.namespace) == ("http://away.example", "ns-away")


async def test_credentials_are_read_again_from_the_same_context(two_contexts: str) -> None:
    away = await load_access(two_contexts, context="away")
    await away.reload()
    assert away.host == "http://away.example"


async def test_a_context_that_is_not_there_is_one_clear_line(two_contexts: str) -> None:
    with pytest.raises(NoClusterError, match="nowhere"):
        await load_access(two_contexts, context="nowhere")


async def test_a_context_is_looked_for_even_in_a_pod(
    two_contexts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", two_contexts)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "192.0.2.1")
    assert (await load_access(context="away")).host == "http://away.example"


async def test_without_any_kubeconfig_one_line_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(NoClusterError, match="--kubeconfig"):
        await load_access()
    assert caplog.text == ""


async def test_what_is_no_namespace_never_becomes_part_of_a_path(two_contexts: str) -> None:
    with pytest.raises(ConfigError, match=r"'\.\./x' is not a valid namespace name"):
        await load_access(two_contexts, namespace="../x")


async def test_a_kubeconfig_that_is_no_mapping_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "odd").write_text("just words")
    with pytest.raises(NoClusterError, match="the kubeconfig is not a mapping"):
        await load_access(str(tmp_path / "odd"))
