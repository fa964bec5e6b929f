"""When an informer of the simulation lists its collection again without need, and when with it."""

from collections.abc import Sequence

import pytest

from asyncjob.kube.informer import MAX_WATCH_FAILURES
from asyncjob.names import QUEUES, collection_path
from asyncjob_simulation.relists import Relists

PATH = collection_path("tests", QUEUES)
LIST = {"limit": "20"}
WATCH = {"watch": "true", "resourceVersion": "7"}


def judged(steps: Sequence[str]) -> list[str]:
    """Return what is wrong with the requests of one informer, one after the other."""
    broken: list[str] = []
    relists = Relists(lambda _, words: broken.append(words))
    does = {
        "list": lambda: relists.on_list("worker-0", PATH, LIST),
        "next page": lambda: relists.on_list("worker-0", PATH, {**LIST, "continue": "token"}),
        "watch": lambda: relists.on_watch("worker-0", PATH, WATCH),
        "410": lambda: relists.on_expired("worker-0", PATH, WATCH),
        "list of others": lambda: relists.on_list("worker-1", PATH, LIST),
        "list of another selection": lambda: relists.on_list(
            "worker-0", PATH, {**LIST, "fieldSelector": "metadata.name=other"}
        ),
    }
    for step in steps:
        does[step]()
    return broken


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(["list", "watch", "list"], id="after a watch that broke off"),
        pytest.param(["list", "watch", "410", "list", "watch", "list"], id="once without need"),
        pytest.param(
            ["list", *["watch"] * (MAX_WATCH_FAILURES - 1), "list"], id="a watch too early"
        ),
    ],
)
def test_a_list_that_nothing_called_for_is_noticed(steps: list[str]) -> None:
    (words,) = judged(steps)
    assert words.startswith(f"lists {PATH} again after ")


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(["list", "watch", "watch"], id="goes on from where it was"),
        pytest.param(["list", "list", "watch"], id="the first list failed"),
        pytest.param(["list", "next page", "watch"], id="a list of two pages"),
        pytest.param(["list", "watch", "410", "list"], id="its place is lost"),
        pytest.param(["list", *["watch"] * MAX_WATCH_FAILURES, "list"], id="watches keep failing"),
        pytest.param(["list", "watch", "list of others"], id="another process"),
        pytest.param(["list", "watch", "list of another selection"], id="other objects"),
    ],
)
def test_a_list_that_is_needed_is_not(steps: list[str]) -> None:
    assert not judged(steps)
