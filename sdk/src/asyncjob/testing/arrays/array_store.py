"""The arrays of the fake cluster, version by version, checked as the API server checks them.

As with jobs, the rules that matter are written out once more, and the contract tests hold the two
together.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from asyncjob.app.files import NO_FILES
from asyncjob.errors import AlreadyExistsError, ObjectNotFoundError
from asyncjob.json_types import Json, JsonObject, child, flag, integer, items, text
from asyncjob.lifecycle.arrays.item_ranges import ItemRanges
from asyncjob.lifecycle.arrays.phases import ArrayPhase
from asyncjob.lifecycle.arrays.state import ArrayView, read_array
from asyncjob.names import API_VERSION, ARRAY_KIND
from asyncjob.offload import Address
from asyncjob.offload.store import ObjectStat
from asyncjob.rules import array_policies
from asyncjob.rules.rule import Rule
from asyncjob.testing.dependencies import broken_dependency_rules, depends_on_itself
from asyncjob.testing.errors import NotFakedError
from asyncjob.testing.manifests import invalid_error
from asyncjob.testing.store import FakeJobStore

_CONFLICT = 409
_NOT_FOUND = 404
_SOURCES = ("count", "inline", "from")


def check_new_array(name: str, spec: JsonObject) -> None:
    """Raise InvalidError for a spec that no array is created with, NotFakedError for a file."""
    source = child(spec, "items")
    if sum(name in source for name in _SOURCES) != 1:
        raise _broken(array_policies.ARRAY_ONE_SOURCE)
    if not _skips_its_own(source):
        raise _broken(array_policies.ARRAY_SKIP)
    if "maxFailed" in spec and "maxFailedPercent" in spec:
        raise _broken(array_policies.ARRAY_ONE_LIMIT)
    for rule in broken_dependency_rules(spec, array_policies.ARRAY_DEPENDENCIES):
        raise _broken(rule)
    if depends_on_itself(spec, name, "array"):
        raise invalid_error(
            f"spec.dependsOn: array {name} cannot depend on itself; leave it out "
            f"({array_policies.ARRAY_DEPENDS_ON_OTHERS.id})"
        )
    if integer(spec, "redrive"):
        raise _broken(array_policies.ARRAY_REDRIVE_NOT_AT_CREATION)
    if "from" in source:
        raise NotFakedError(
            "the fake cluster reads no files: give the items themselves, as items.inline or as a "
            "list to job.map"
        )


def _skips_its_own(source: JsonObject) -> bool:
    try:
        skip = ItemRanges.parse(text(source, "skip"))
    except ValueError:
        return False
    end = integer(source, "count") or len(items(source, "inline"))
    return "from" in source or not skip or skip.ranges[-1][1] < end


def check_array_change(before: JsonObject, after: JsonObject, phase: ArrayPhase) -> None:
    """Raise InvalidError for a change of spec that the API server refuses."""
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    if changed.difference(array_policies.ARRAY_CONTROL_FIELDS):
        raise _broken(array_policies.ARRAY_SPEC_FIXED)
    if flag(before, "cancel") and not flag(after, "cancel"):
        raise _broken(array_policies.ARRAY_CANCEL_LATCHES)
    redrives = integer(after, "redrive") - integer(before, "redrive")
    cancels = flag(after, "cancel") and not flag(before, "cancel")
    if cancels and phase is ArrayPhase.FAILED and not redrives:
        raise _broken(array_policies.ARRAY_CANCEL_UNENDED)
    if redrives < 0:
        raise _broken(array_policies.ARRAY_REDRIVE_GROWS)
    if redrives > 0 and phase is not ArrayPhase.FAILED:
        raise _broken(array_policies.ARRAY_REDRIVE_FAILED)


def _broken(rule: Rule) -> Exception:
    return invalid_error(rule.message_text)


@dataclass(slots=True)
class ArrayRecord:
    """An array with all its versions.

    `created` are the UIDs of the chunks that exist and are not in the status yet, by name.
    """

    versions: list[JsonObject]
    created: dict[str, str] = field(default_factory=dict)

    @property
    def obj(self) -> JsonObject:
        """The newest version."""
        return self.versions[-1]

    @property
    def view(self) -> ArrayView:
        """The array as decisions see it."""
        return read_array(self.obj)


class FakeFolder:
    """The results of one array, in memory."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[str, bytes]] = {}

    async def write(self, folder: str, name: str, data: bytes) -> None:
        """Write an object, in place of one of that name."""
        self._objects.setdefault(folder, {})[name] = data

    def names(self, folder: str) -> Sequence[str]:
        """Return what is in a folder, `""` for this one itself."""
        return list(self._objects.get(folder, {}) if folder else self._objects)

    def read(self, folder: str, name: str) -> bytes:
        """Return the content of an object."""
        return self._objects[folder][name]


class FakeFiles:
    """What chunks read and write: no files, and results anywhere."""

    def __init__(self) -> None:
        self._folders: dict[str, FakeFolder] = {}

    async def stat(self, uri: str) -> ObjectStat:
        """Refuse: there are no files."""
        return await NO_FILES.stat(uri)

    async def read(self, uri: str, start: int, end: int) -> bytes:
        """Refuse: there are no files."""
        return await NO_FILES.read(uri, start, end)

    def results(self, uri: str) -> FakeFolder:
        """Return a folder for results; each address is taken."""
        return self._folders.setdefault(str(Address.folder(uri)), FakeFolder())


class FakeArrayStore:
    """The arrays of the namespace of these jobs."""

    def __init__(self, jobs: FakeJobStore, namespace: str) -> None:
        self._jobs = jobs
        self._namespace = namespace
        self._records: dict[str, ArrayRecord] = {}
        self.files = FakeFiles()

    def __iter__(self) -> Iterator[ArrayRecord]:
        return iter(list(self._records.values()))

    def __contains__(self, name: str) -> bool:
        return name in self._records

    def get(self, name: str) -> ArrayRecord:
        """Return an array; raises ObjectNotFoundError."""
        if name not in self._records:
            raise ObjectNotFoundError(f'asyncarrays "{name}" not found', status=_NOT_FOUND)
        return self._records[name]

    def create(self, metadata: JsonObject, spec: JsonObject) -> ArrayRecord:
        """Store a new array; raises AlreadyExistsError, InvalidError or NotFakedError."""
        name = text(metadata, "name")
        if name in self._records:
            raise AlreadyExistsError(f'asyncarrays "{name}" already exists', status=_CONFLICT)
        check_new_array(name, spec)
        obj: JsonObject = {
            "apiVersion": API_VERSION,
            "kind": ARRAY_KIND,
            "metadata": {**metadata, **self._jobs.new_identity(), "namespace": self._namespace},
            "spec": spec,
            "status": {"phase": ArrayPhase.PENDING.value},
        }
        record = self._records[name] = ArrayRecord([obj])
        return record

    def change_spec(self, record: ArrayRecord, spec: JsonObject) -> None:
        """Store a user's change; raises InvalidError for one that the API server refuses."""
        before = child(record.obj, "spec")
        if spec == before:
            return
        check_array_change(before, spec, record.view.state.phase)
        self._write(record, {"spec": spec})

    def change_status(self, record: ArrayRecord, fields: Mapping[str, Json]) -> None:
        """Replace fields of the status whole; None removes one."""
        merged = {**child(record.obj, "status"), **fields}
        status = {name: value for name, value in merged.items() if value is not None}
        self._write(record, {"status": status})

    def _write(self, record: ArrayRecord, parts: JsonObject) -> None:
        version = self._jobs.next_version()
        metadata = {**child(record.obj, "metadata"), "resourceVersion": version}
        record.versions.append({**record.obj, **parts, "metadata": metadata})
