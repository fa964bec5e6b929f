"""Where the peer's database can run, and where it is left out."""

from pathlib import Path

import pytest

from asyncjob_bench.errors import LeftOutError
from asyncjob_bench.parts import peer


def programs(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).touch(mode=0o755)
    return folder


def found(monkeypatch: pytest.MonkeyPatch, debian: Path, path: str = "") -> Path:
    monkeypatch.setattr(peer, "DEBIAN", debian)
    monkeypatch.setenv("PATH", path)
    peer.postgres_programs.cache_clear()
    try:
        return peer.postgres_programs()
    finally:
        peer.postgres_programs.cache_clear()


def test_without_postgresql_the_peer_is_left_out_and_told_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(LeftOutError, match="apt-get install postgresql"):
        found(monkeypatch, tmp_path / "none")


def test_of_several_versions_the_newest_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    programs(tmp_path / "9.6" / "bin", "initdb", "postgres")
    newest = programs(tmp_path / "15" / "bin", "initdb", "postgres")
    assert found(monkeypatch, tmp_path) == newest


def test_a_client_without_a_server_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    programs(tmp_path / "debian" / "16" / "bin", "initdb")
    whole = programs(tmp_path / "debian" / "15" / "bin", "initdb", "postgres")
    half = programs(tmp_path / "half", "initdb")
    assert found(monkeypatch, tmp_path / "debian", str(half)) == whole
