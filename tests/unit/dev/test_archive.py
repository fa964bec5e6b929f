"""The official archive: checked before anything in it is used."""

import hashlib
import io
import socket
import tarfile
from pathlib import Path
from typing import BinaryIO

import pytest

from asyncjob_dev.binaries.cache import BinaryCache
from asyncjob_dev.binaries.downloads import (
    ArchiveDownload,
    PinnedArchive,
    open_url,
    read_pinned_archive,
)
from asyncjob_dev.errors import ChecksumMismatchError, DownloadError

TARGET = "linux-amd64"


def packed(*tools: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for tool in tools:
            content = f"#!/bin/sh\necho {tool}\n".encode()
            member = tarfile.TarInfo(f"controller-tools/envtest/{tool}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def release(content: bytes) -> PinnedArchive:
    return PinnedArchive(
        version="v1.36.2",
        tools=("etcd", "kubectl"),
        url="https://example.test/{version}-{platform}.tar.gz",
        member="controller-tools/envtest/{tool}",
        sha512={TARGET: hashlib.sha512(content).hexdigest()},
    )


def archive(tmp_path: Path, pinned: bytes, served: bytes) -> ArchiveDownload:
    def serve(_url: str) -> BinaryIO:
        return io.BytesIO(served)

    return ArchiveDownload(BinaryCache(tmp_path), TARGET, release(pinned), serve)


def test_all_tools_of_the_archive_are_installed_at_once(tmp_path: Path) -> None:
    content = packed("etcd", "kubectl")
    subject = archive(tmp_path, content, content)
    subject.install()
    for tool in ("etcd", "kubectl"):
        path = subject.path(tool)
        assert path is not None
        assert path.stat().st_mode & 0o111
        assert tool in path.read_text()


def test_a_checksum_mismatch_names_both_sums(tmp_path: Path) -> None:
    good, evil = packed("etcd", "kubectl"), packed("etcd")
    with pytest.raises(ChecksumMismatchError) as caught:
        archive(tmp_path, good, evil).install()
    assert hashlib.sha512(good).hexdigest() in str(caught.value)
    assert hashlib.sha512(evil).hexdigest() in str(caught.value)


def test_nothing_of_a_wrong_archive_stays(tmp_path: Path) -> None:
    with pytest.raises(ChecksumMismatchError):
        archive(tmp_path, packed("etcd", "kubectl"), packed("etcd")).install()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_an_archive_without_our_platform_has_nothing_for_us(tmp_path: Path) -> None:
    subject = ArchiveDownload(BinaryCache(tmp_path), "linux-riscv64", release(b""))
    assert subject.path("etcd") is None


def test_the_controller_manager_is_not_in_the_archive(tmp_path: Path) -> None:
    subject = ArchiveDownload(BinaryCache(tmp_path), TARGET, read_pinned_archive())
    assert subject.path("kube-controller-manager") is None
    assert subject.path("kube-apiserver") is not None


def test_four_platforms_are_pinned_with_whole_checksums() -> None:
    pinned = read_pinned_archive()
    assert set(pinned.sha512) == {
        "linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64"
    }  # fmt: skip
    assert {len(checksum) for checksum in pinned.sha512.values()} == {128}
    assert pinned.version.startswith("v1.36.")


def test_a_refused_connection_is_a_download_error() -> None:
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unheard.getsockname()[1]}/archive.tar.gz"
        with pytest.raises(DownloadError, match="cannot be fetched"):
            open_url(url)
