"""Which changes of files are noticed, and when they are told."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from asyncjob_dev.server import source
from asyncjob_dev.server.source import changed, changes, stamps


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("hello.py", "shop/mail.py", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    return tmp_path


def names(project: Path) -> set[str]:
    return {Path(path).relative_to(project).as_posix() for path in stamps(project)}


def test_python_files_of_the_project_count(project: Path) -> None:
    assert names(project) == {"hello.py", "shop/mail.py"}


@pytest.mark.parametrize(
    "folder", [".asyncjob/demo", ".git", "node_modules/a", "__pycache__", "lib/site-packages"]
)
def test_what_is_not_the_projects_own_does_not(project: Path, folder: str) -> None:
    (project / folder).mkdir(parents=True)
    (project / folder / "other.py").write_text("1")
    assert names(project) == {"hello.py", "shop/mail.py"}


def test_a_virtual_environment_of_any_name_does_not(project: Path) -> None:
    (project / "env/lib").mkdir(parents=True)
    (project / "env/pyvenv.cfg").touch()
    (project / "env/lib/other.py").touch()
    assert names(project) == {"hello.py", "shop/mail.py"}


def test_a_link_in_a_circle_is_not_followed(project: Path) -> None:
    (project / "shop/again").symlink_to(project)
    (project / "gone.py").symlink_to(project / "nowhere.py")
    assert names(project) == {"hello.py", "shop/mail.py"}


def test_new_gone_and_changed_files_are_told_apart_from_the_others() -> None:
    before = {"same": (1, 1), "other": (1, 1), "longer": (1, 1), "gone": (1, 1)}
    now = {"same": (1, 1), "other": (2, 1), "longer": (1, 2), "new": (1, 1)}
    assert changed(before, now) == ["gone", "longer", "new", "other"]
    assert changed(before, before) == []


class Looks(threading.Event):
    """Stops after so many looks, each of which finds the next state."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *states: dict[str, tuple[int, int]]
    ) -> None:
        super().__init__()
        self._left: Iterator[dict[str, tuple[int, int]]] = iter(states)
        self._next: dict[str, tuple[int, int]] | None = next(self._left)
        monkeypatch.setattr(source, "stamps", self._look)

    def _look(self, _folder: Path) -> dict[str, tuple[int, int]]:
        assert self._next is not None
        found, self._next = self._next, next(self._left, None)
        return found

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        return self._next is None


def test_a_change_is_told_once_nothing_moves_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two, three = {"a": (1, 1)}, {"a": (2, 1)}, {"a": (2, 1), "b": (1, 1)}
    looks = Looks(monkeypatch, one, one, two, three, three, three)
    assert list(changes(Path(), looks)) == [["a", "b"]]


def test_a_change_that_is_taken_back_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = {"a": (1, 1)}, {"a": (2, 1)}
    assert list(changes(Path(), Looks(monkeypatch, one, two, one, one, one))) == []


def test_each_change_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = {"a": (1, 1)}, {"a": (2, 1)}
    looks = Looks(monkeypatch, one, two, two, one, one)
    assert list(changes(Path(), looks)) == [["a"], ["a"]]
