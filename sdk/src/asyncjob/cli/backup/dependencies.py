"""What a restored job still has to wait for: a job that succeeded does not come back. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from asyncjob.cli.backup.contents import ExportContents, ExportRecord, ObjectKey
from asyncjob.cli.backup.planning import RestorePlan
from asyncjob.json_types import Json, JsonObject, as_object, flag, text
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import JOB_KIND

MAX_DEPENDENCIES = 20
"""So many jobs can be waited for."""


@dataclass(frozen=True, slots=True)
class RemainingDependencies:
    """The dependencies left, by their names in the file, and those that nobody will satisfy."""

    remaining: tuple[JsonObject, ...] = ()
    unsatisfiable: tuple[str, ...] = field(default=())


def remaining_dependencies(
    dependencies: Sequence[Json], namespace: str, plan: RestorePlan
) -> RemainingDependencies:
    """Return what is left to wait for.

    In the place of a job that is over come those of its children that are not, if they were meant.
    """
    left: dict[str, JsonObject] = {}
    hopeless = []
    for one in map(as_object, dependencies):
        found = tuple(_remaining(one, namespace, plan))
        hopeless += [
            text(each, "name") for each in found if _is_unsatisfiable(each, namespace, plan)
        ]
        left.update((text(each, "name"), each) for each in found)
    if len(left) > MAX_DEPENDENCIES:
        return RemainingDependencies(tuple(map(as_object, dependencies)), tuple(hopeless))
    return RemainingDependencies(tuple(left.values()), tuple(hopeless))


def _remaining(dependency: JsonObject, namespace: str, plan: RestorePlan) -> Iterator[JsonObject]:
    record = _dependency_record(dependency, namespace, plan.contents)
    if record is None or not _satisfies(record, dependency):
        yield dependency
    elif flag(dependency, "children"):
        for child in plan.contents.children.get(record.uid, ()):
            if not _satisfies(child, dependency) or plan.contents.children.get(child.uid):
                yield {**dependency, "name": child.key.name}


def _dependency_record(
    dependency: JsonObject, namespace: str, contents: ExportContents
) -> ExportRecord | None:
    return contents.by_key.get(ObjectKey(JOB_KIND, namespace, text(dependency, "name")))


def _satisfies(record: ExportRecord, dependency: JsonObject) -> bool:
    any_end = text(dependency, "outcome") == "Any"
    return record.is_done and (any_end or record.phase is Phase.SUCCEEDED)


def _is_unsatisfiable(dependency: JsonObject, namespace: str, plan: RestorePlan) -> bool:
    """Return whether the file has the job, and yet it does not come back."""
    record = _dependency_record(dependency, namespace, plan.contents)
    return record is not None and record not in plan.restored
