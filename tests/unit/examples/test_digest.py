"""The digest handler: what it counts, and that it goes on where an attempt ended."""

import hashlib
from pathlib import Path

import pytest
from examples.handlers import digest as module
from examples.handlers.digest import DigestRequest, digest, digest_files
from pydantic import ValidationError

from asyncjob import Fail
from unit.examples.notes import Notes, StartJob


def test_a_file_is_described_by_checksum_and_lines(folder: Path) -> None:
    content = b"one\n\n  \nlonger line\r\nno newline"
    (folder / "a.txt").write_bytes(content)
    row = digest(Path("a.txt"))
    assert row.sha256 == hashlib.sha256(content).hexdigest()
    assert (row.size, row.lines, row.blank, row.longest) == (len(content), 5, 2, 11)


def test_an_empty_file_has_no_lines(folder: Path) -> None:
    (folder / "a.txt").touch()
    row = digest(Path("a.txt"))
    assert (row.size, row.lines, row.blank, row.longest) == (0, 0, 0, 0)


def test_a_folder_is_walked_in_order_and_added_up(
    folder: Path, start: StartJob, notes: Notes
) -> None:
    (folder / "in" / "deep").mkdir(parents=True)
    (folder / "in" / "b.txt").write_text("b\nb\n")
    (folder / "in" / "deep" / "c.txt").write_text("c\n")
    (folder / "in" / "a.txt").write_text("a\n")
    table = digest_files(start(), DigestRequest(folder=Path("in")))
    assert [row.file for row in table.files] == ["in/a.txt", "in/b.txt", "in/deep/c.txt"]
    assert (table.size, table.lines) == (8, 4)
    assert notes.percents == [33, 66, 100]
    assert len(notes.checkpoints) == 3


def test_files_in_the_checkpoint_are_not_read_again(
    folder: Path, start: StartJob, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [Path(name) for name in ("a.txt", "b.txt", "c.txt")]
    for file in files:
        file.write_text(file.name)
    request = DigestRequest(files=files)
    whole = digest_files(start(), request)
    read: list[Path] = []

    def noting(path: Path) -> module.FileDigest:
        read.append(path)
        return digest(path)

    monkeypatch.setattr(module, "digest", noting)
    resumed = digest_files(start(attempt=2, checkpoint=notes.checkpoints[1]), request)
    assert read == [Path("c.txt")]
    assert resumed == whole


def test_a_stopped_handler_reads_no_further_file(
    folder: Path, start: StartJob, notes: Notes
) -> None:
    for name in ("a.txt", "b.txt"):
        (folder / name).touch()
    job = start()
    notes.after_checkpoint = lambda _count: job.stop()
    digest_files(job, DigestRequest(folder=Path()))
    assert len(notes.checkpoints) == 1


def test_a_missing_folder_is_named(folder: Path, start: StartJob) -> None:
    with pytest.raises(NotADirectoryError, match="nowhere"):
        digest_files(start(), DigestRequest(folder=Path("nowhere")))


def test_more_files_than_a_result_can_hold_are_refused(
    folder: Path, start: StartJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_FILES", 1)
    for name in ("a.txt", "b.txt"):
        (folder / name).touch()
    with pytest.raises(Fail, match="2 files, more than 1"):
        digest_files(start(), DigestRequest(folder=Path()))


@pytest.mark.parametrize(
    "payload", [{}, {"folder": "a", "files": ["b"]}, {"folder": "a", "recursive": True}]
)
def test_a_request_names_one_source_and_nothing_unknown(payload: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        DigestRequest.model_validate(payload)
