"""Bugs planted in waits for children, and in deadlines."""

import itertools
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

from asyncjob.app import child_manifest
from asyncjob_operator.cache import jobs
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.policies import gates
from asyncjob_simulation.planting import mutation
from asyncjob_simulation.profiles import Profile
from asyncjob_worker.execution.attempt_waits import AttemptWaits


@mutation("a parent is woken once any of its children has ended", profile=Profile.CHILDREN)
def woken_by_any_child() -> AbstractContextManager[object]:
    def is_any_over(wait: Any, snapshot: Any) -> bool:
        open_uids = snapshot.dependencies.awaited.open
        return any(child.uid not in open_uids for child in wait.children)

    @contextmanager
    def both() -> Iterator[None]:
        with (
            patch.object(gates, "_has_no_open_child", is_any_over),
            patch.object(gates, "_are_children_over", is_any_over),
        ):
            yield

    return both()


@mutation("the end of a child has nobody look at its parent", profile=Profile.CHILDREN)
def child_ends_unseen() -> AbstractContextManager[object]:
    return patch.object(jobs, "awaited_children", lambda _: ())


@mutation("a parent that runs again submits its children again", profile=Profile.CHILDREN)
def submitted_again() -> AbstractContextManager[object]:
    numbers = itertools.count()
    derive = child_manifest.derived_name
    return patch.object(
        child_manifest, "derived_name", lambda *args: f"{derive(*args)}-{next(numbers)}"
    )


@mutation("that children have timed out is not stored", profile=Profile.CHILDREN)
def late_children_taken() -> AbstractContextManager[object]:
    async def forget(*_: object, **__: object) -> bool:
        return True

    return patch.object(AttemptWaits, "_mark_late", forget)


@mutation("a deadline is judged by the clock of the machine that leads", profile=Profile.CHILDREN)
def deadline_by_own_clock() -> AbstractContextManager[object]:
    return patch.object(Now, "server_wall", property(lambda self: self.wall))
