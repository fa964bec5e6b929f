"""The cache: atomic, locked, honest about a full disk."""

import errno
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

from asyncjob_dev.binaries.cache import BinaryCache, holder_text, is_executable
from asyncjob_dev.errors import CacheUnusableError, DiskFullError

HOLDER = """
import sys
from pathlib import Path
from asyncjob_dev.binaries.cache import BinaryCache
with BinaryCache(Path(sys.argv[1])).lock("etcd"):
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_a_program_appears_whole_and_executable(tmp_path: Path) -> None:
    cache = BinaryCache(tmp_path)
    final = cache.path("etcd", "v3", "linux-amd64", "abc")
    draft = cache.draft(final)
    draft.write_text("program")
    assert not is_executable(final)
    cache.install(draft, final)
    assert is_executable(final)
    assert not draft.exists()


class ReleasingStream(io.StringIO):
    """Lets the holder of the lock go as soon as the waiting is announced."""

    def __init__(self, holder: "subprocess.Popen[str]") -> None:
        super().__init__()
        self._holder = holder

    def write(self, text: str) -> int:
        if "waiting for" in text and self._holder.stdin:
            self._holder.stdin.write("go on\n")
            self._holder.stdin.flush()
        return super().write(text)


def test_a_second_process_waits_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        stream = ReleasingStream(holder)
        monkeypatch.setattr(sys, "stderr", stream)
        with BinaryCache(tmp_path).lock("kubectl"):
            assert stream.getvalue() == ""
        with BinaryCache(tmp_path).lock("etcd"):
            said = stream.getvalue()
    holder_is = rf"process {holder.pid} \(-c {tmp_path}, since \d\d:\d\d:\d\d\)"
    assert re.search(rf"waiting for {holder_is}, which is getting etcd", said)


def test_a_holder_that_has_not_signed_yet_is_another_process() -> None:
    assert holder_text("") == "another process"
    assert holder_text("12\tasyncjob_dev demo\t10:11:12\n") == (
        "process 12 (asyncjob_dev demo, since 10:11:12)"
    )


def test_who_held_the_lock_before_is_not_named(tmp_path: Path) -> None:
    cache = BinaryCache(tmp_path)
    with cache.lock("etcd"), cache.lock("kubectl"):
        pass
    with cache.lock("etcd"):
        signed = (tmp_path / "locks" / "etcd.lock").read_text()
    assert signed.count("\n") == 1


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_becomes_an_error_that_says_what_to_set(tmp_path: Path, number: int) -> None:
    with (
        pytest.raises(DiskFullError, match="ASYNCJOB_CACHE"),
        BinaryCache(tmp_path).translate_errors(),
    ):
        raise OSError(number, "full")


def test_a_cache_that_is_a_file_is_named_with_the_way_out(tmp_path: Path) -> None:
    root = tmp_path / "file"
    root.touch()
    cache = BinaryCache(root)
    words = rf"cannot use the cache {root}: .*; set ASYNCJOB_CACHE to a folder you may write"
    with pytest.raises(CacheUnusableError, match=words), cache.lock("etcd"):
        pass
    with pytest.raises(CacheUnusableError, match=words):
        cache.draft(cache.path("etcd", "v3", "linux-amd64", "abc"))


def test_a_cache_that_cannot_be_read_or_written_is_named_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object, **_options: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    cache = BinaryCache(tmp_path)
    for name in ("stat", "mkdir", "chmod", "is_file"):
        monkeypatch.setattr(Path, name, refuse)
    with pytest.raises(CacheUnusableError, match="Permission denied; set ASYNCJOB_CACHE"):
        cache.has(tmp_path / "etcd")
    with pytest.raises(CacheUnusableError, match="Permission denied"), cache.lock("etcd"):
        pass
    with pytest.raises(CacheUnusableError, match="Permission denied"):
        cache.install(tmp_path / "draft", tmp_path / "etcd")


def test_errors_of_those_who_hold_the_lock_are_not_blamed_on_the_cache(tmp_path: Path) -> None:
    with pytest.raises(PermissionError), BinaryCache(tmp_path).lock("etcd"):
        raise PermissionError(errno.EACCES, "no")
