"""What a restored job still has to wait for: a job that succeeded does not come back. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from asyncjob.cli.backup.contents import Contents, Key, Record
from asyncjob.cli.backup.planning import Plan
from asyncjob.json_types import Json, JsonObject, as_object, flag, text
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import JOB_KIND

MOST = 20
"""So many jobs can be waited for."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The dependencies left, by their names in the file, and those that nobody will satisfy."""

    left: tuple[JsonObject, ...] = ()
    hopeless: tuple[str, ...] = field(default=())


def settled(dependencies: Sequence[Json], namespace: str, plan: Plan) -> Settled:
    """Return what is left to wait for.

    In the place of a job that is over come those of its children that are not, if they were meant.
    """
    left: dict[str, JsonObject] = {}
    hopeless = []
    for one in map(as_object, dependencies):
        found = tuple(_left(one, namespace, plan))
        hopeless += [text(each, "name") for each in found if _is_hopeless(each, namespace, plan)]
        left.update((text(each, "name"), each) for each in found)
    if len(left) > MOST:
        return Settled(tuple(map(as_object, dependencies)), tuple(hopeless))
    return Settled(tuple(left.values()), tuple(hopeless))


def _left(dependency: JsonObject, namespace: str, plan: Plan) -> Iterator[JsonObject]:
    record = _record(dependency, namespace, plan.contents)
    if record is None or not _satisfies(record, dependency):
        yield dependency
    elif flag(dependency, "children"):
        for child in plan.contents.children.get(record.uid, ()):
            if not _satisfies(child, dependency) or plan.contents.children.get(child.uid):
                yield {**dependency, "name": child.key.name}


def _record(dependency: JsonObject, namespace: str, contents: Contents) -> Record | None:
    return contents.by_key.get(Key(JOB_KIND, namespace, text(dependency, "name")))


def _satisfies(record: Record, dependency: JsonObject) -> bool:
    any_end = text(dependency, "outcome") == "Any"
    return record.over and (any_end or record.phase is Phase.SUCCEEDED)


def _is_hopeless(dependency: JsonObject, namespace: str, plan: Plan) -> bool:
    """Return whether the file has the job, and yet it does not come back."""
    record = _record(dependency, namespace, plan.contents)
    return record is not None and record not in plan.restored
