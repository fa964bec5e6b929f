"""The fan-out: a child for each file, once however often the parent runs, and the sums."""

from pathlib import Path

import pytest
from examples.handlers import words as module
from examples.handlers.words import app

from asyncjob.testing import FakeCluster, Phase, run_handler

TYPE = "words.count"
REQUEST = {"folder": "in", "top": 2}
COUNTED = {"files": 3, "total": 7, "top": [["a", 4], ["b", 2]]}


@pytest.fixture
def texts(folder: Path) -> Path:
    (folder / "in" / "deep").mkdir(parents=True)
    (folder / "in" / "1.txt").write_text("a b a\n")
    (folder / "in" / "2.txt").write_text("A, b\nc")
    (folder / "in" / "deep" / "1.txt").write_text("a")
    return folder / "in"


async def test_a_folder_is_counted_by_a_child_for_each_file(texts: Path) -> None:
    run = await run_handler(app, TYPE, REQUEST, raise_errors=True)
    assert run.result == COUNTED
    assert run.progress[-1] == (100, "3 of 3 files")
    assert {child.model.spec.queue for child in run.children} == {"words"}
    assert {str(child.model.spec.payload) for child in run.children} == {
        str({"file": f"in/{name}.txt"}) for name in ("1", "2", "deep/1")
    }


async def test_a_parent_that_crashes_counts_no_file_twice(texts: Path) -> None:
    async with FakeCluster(app) as cluster:
        parent = await cluster.submit(TYPE, REQUEST)
        await cluster.run_until(lambda: len(parent.children) == 2)
        await parent.crash()
        await cluster.run_until_idle()
        assert (parent.phase, parent.attempt, parent.result) == (Phase.SUCCEEDED, 2, COUNTED)
        assert [child.attempt for child in parent.children] == [1, 1, 1]


async def test_a_child_that_fails_is_the_end_of_its_parent(texts: Path) -> None:
    (texts / "2.txt").write_bytes(b"\xff")
    async with FakeCluster(app) as cluster:
        parent = await cluster.submit(TYPE, REQUEST)
        await cluster.run_until_idle()
        assert (parent.phase, parent.status.retries) == (Phase.DEAD_LETTER, 0)
        assert (parent.attempt, parent.status.parks) == (2, 1)  # until the last retry of the child
        assert parent.error is not None
        assert parent.error.category == "Dependency"
        failed = [child for child in parent.children if child.phase is Phase.DEAD_LETTER]
        assert [child.attempt for child in failed] == [4]


async def test_a_folder_without_texts_is_refused(folder: Path) -> None:
    run = await run_handler(app, TYPE, REQUEST)
    assert run.outcome.phase is Phase.DEAD_LETTER
    assert "in has 0 files, not 1 to 1000" in str(run.outcome.message)


async def test_a_child_tells_no_more_words_than_a_result_holds(
    texts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_WORDS", 1)
    run = await run_handler(app, "words.count-file", {"file": "in/1.txt"})
    assert run.result == {"total": 3, "frequency": {"a": 2}}
