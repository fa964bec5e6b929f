"""What a failed `go` means."""

import pytest

from asyncjob_dev.binaries.gofailure import failure
from asyncjob_dev.errors import (
    BinaryError,
    BuildError,
    CompilerKilledError,
    DiskFullError,
    SourcesUnreachableError,
)

PROXY = "https://proxy.example.test"


def error_for(said: str) -> BinaryError:
    return failure("etcd v3.6.5", 1, said, proxy=PROXY, folders=["GOCACHE (/a)", "GOTMPDIR (/b)"])


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("write /a/x: no space left on device", DiskFullError),
        ("mkdir /a/x: disk quota exceeded", DiskFullError),
        ('x.test/y@v1.0.0: Get "https://p.test/y/@v/v1.0.0.zip": EOF', SourcesUnreachableError),
        ("dial tcp: lookup p.test: no such host", SourcesUnreachableError),
        ("read tcp 10.0.0.2:443: connection reset by peer", SourcesUnreachableError),
        ("reading https://p.test/x.zip: 502 Bad Gateway", SourcesUnreachableError),
        ("x.test/y@v1.0.0: module lookup disabled by GOPROXY=off", SourcesUnreachableError),
        ("go: download go1.26.0 for linux/amd64: toolchain not available", SourcesUnreachableError),
        ("/usr/local/go/pkg/tool/linux_amd64/compile: signal: killed", CompilerKilledError),
        ("x.test/y@v1.0.0: checksum mismatch", BuildError),
        ("main.go:3:1: undefined: Foo", BuildError),
    ],
)
def test_the_kind_of_failure_is_told_by_what_go_said(said: str, kind: type[BinaryError]) -> None:
    assert type(error_for(said)) is kind


def test_a_full_disk_names_the_folders_and_what_to_set() -> None:
    text = str(error_for("no space left on device"))
    assert "GOCACHE (/a) or GOTMPDIR (/b)" in text
    assert "ASYNCJOB_CACHE" in text


def test_a_lost_network_says_what_to_check_and_that_nothing_is_lost() -> None:
    text = str(error_for("dial tcp: i/o timeout"))
    assert f"GOPROXY (now {PROXY})" in text
    assert "the same command goes on from there" in text
    assert "dial tcp" in text


def test_a_killed_compiler_says_how_to_take_less_memory() -> None:
    assert "GOFLAGS=-p=1" in str(error_for("compile: signal: killed"))
