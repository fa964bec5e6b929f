"""The options about stores: what they become, and one clear line for each mistake."""

import sys
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from fsspec.registry import _registry

from asyncjob.offload import Address
from asyncjob_worker.options import offload_options
from asyncjob_worker.settings import OffloadSettings


def run(*options: str, env: dict[str, str] | None = None) -> tuple[Result, OffloadSettings | None]:
    seen: list[OffloadSettings] = []

    @click.command()
    @click.option("--other", default=1)
    @offload_options
    def command(other: int, offload: OffloadSettings) -> None:
        seen.append(offload)

    result = CliRunner().invoke(command, options, env=env)
    return result, seen[0] if seen else None


def test_by_default_nothing_goes_anywhere() -> None:
    result, settings = run()
    assert (result.exit_code, settings) == (0, OffloadSettings())


def test_options_and_environment_say_the_same() -> None:
    options = {"endpoint_url": "http://store"}
    _, by_option = run(
        "--offload-url=s3://b/p/",
        '--offload-options={"endpoint_url": "http://store"}',
        "--offload-limit=5",
        "--offload-timeout=2",
        "--payload-prefix=s3://b/x",
        "--payload-prefix=file:///data/",
    )
    _, by_environment = run(
        env={
            "ASYNCJOB_WORKER_OFFLOAD_URL": "s3://b/p",
            "ASYNCJOB_WORKER_OFFLOAD_OPTIONS": '{"endpoint_url": "http://store"}',
            "ASYNCJOB_WORKER_OFFLOAD_LIMIT": "5",
            "ASYNCJOB_WORKER_OFFLOAD_TIMEOUT": "2",
            "ASYNCJOB_WORKER_PAYLOAD_PREFIX": "s3://b/x file:///data",
        }
    )
    prefixes = (Address.folder("s3://b/x"), Address.folder("file:///data"))
    wanted = OffloadSettings(Address.folder("s3://b/p"), prefixes, options, 5, 2.0)
    assert by_option == by_environment == wanted


def test_jobs_may_read_what_is_their_namespaces_unless_told_otherwise() -> None:
    url, other = Address.folder("s3://b/p"), Address.folder("s3://other/x")
    own = [str(folder) for folder in OffloadSettings(url).allowed("ns").folders]
    assert own == ["s3://b/p/payloads/ns", "s3://b/p/results/ns"]
    assert OffloadSettings(url, (other,)).allowed("ns").folders == (other,)


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--offload-url=/data"], 2, "begins with a protocol"),
        (["--offload-url=s3://"], 2, "comes a bucket or host"),
        (["--offload-url=s3://" + "a" * 1100], 2, "at most 1024 characters"),
        (["--payload-prefix=s3://b/../c"], 2, "not the name of a folder"),
        (["--offload-url=s3://b", "--offload-options=[]"], 2, "has to be a JSON object"),
        (["--offload-url=s3://b", "--offload-options=hunter2"], 2, "has to be a JSON object"),
        (["--offload-options={}"], 2, "--offload-options needs --offload-url"),
        (["--offload-url=nonsense://b"], 1, "fsspec does not know this protocol"),
        (["--offload-url=s3://b"], 1, "no driver for s3://: pip install s3fs"),
        (["--payload-prefix=s3://b"], 1, "no driver for s3://: pip install s3fs"),
    ],
)
def test_each_mistake_is_one_clear_line(
    options: list[str], code: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(_registry, "s3", raising=False)
    result, settings = run(*options)
    assert settings is None
    assert result.exit_code == code
    assert words in " ".join(result.output.split())
    assert "hunter2" not in result.output


def test_options_of_a_driver_are_not_shown() -> None:
    secret: dict[str, Any] = {"secret": "hunter2"}
    assert "hunter2" not in repr(OffloadSettings(Address.folder("s3://b"), options=secret))
