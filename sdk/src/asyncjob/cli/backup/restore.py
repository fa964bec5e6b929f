"""Restores the planned objects one after the other and reports the outcome of each."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Final

from asyncjob.cli.backup.create import CreateResult, RestoreOutcome, create_object
from asyncjob.cli.backup.export_file import PLURALS
from asyncjob.cli.backup.manifests import (
    RESTORE_NOTE_DOCS,
    NamespaceMap,
    RestoreContext,
    RestoredObject,
    RestoreNote,
    restored_object,
)
from asyncjob.cli.backup.plan import SKIP_REASON_DOCS, RestorePlan, SkipReason
from asyncjob.cli.backup.reader import read_object
from asyncjob.cli.backup.records import ExportContents, ExportRecord, count_by_kind, quantity
from asyncjob.cli.direct import DirectCluster
from asyncjob.cli.error_messages import error_message
from asyncjob.cli.exit_codes import ExitCode
from asyncjob.cli.input.resource_names import current_program
from asyncjob.cli.output.printer import ProgressBar
from asyncjob.client.errors import NotFoundError, UnauthenticatedError, UnavailableError
from asyncjob.errors import AsyncJobError
from asyncjob.json_types import Json, JsonObject
from asyncjob.names import ARRAY_KIND, CRON_JOB_KIND, JOB_KIND, collection_path

MAX_NAMED = 3
"""Maximum number of names; the rest is counted."""


@dataclass
class RestoreReport:
    """What became of the objects so far."""

    dry_run: bool
    by_outcome: dict[RestoreOutcome, list[ExportRecord]] = field(
        default_factory=lambda: {became: [] for became in RestoreOutcome}
    )
    refused: list[tuple[ExportRecord, str]] = field(default_factory=list)
    notes: dict[RestoreNote, list[str]] = field(default_factory=dict)

    @property
    def code(self) -> ExitCode:
        """Return the exit code: a queue or cron job that exists already counts as restored."""
        taken = any(
            one.key.kind in {JOB_KIND, ARRAY_KIND}
            for one in self.by_outcome[RestoreOutcome.NAME_TAKEN]
        )
        return ExitCode.FAILED if self.refused or taken else ExitCode.OK

    @property
    def attempted(self) -> int:
        """Return how many were tried."""
        return len(self.refused) + sum(map(len, self.by_outcome.values()))

    def add_notes(self, notes: Sequence[tuple[RestoreNote, str]]) -> None:
        """Keep what is to be said about one that was created."""
        for remark, detail in notes:
            self.notes.setdefault(remark, []).append(detail)


def report_lines(report: RestoreReport, plan: RestorePlan) -> Iterator[str]:
    """Yield what people are told."""
    did = "would restore" if report.dry_run else "restored"
    created = report.by_outcome[RestoreOutcome.CREATED]
    yield f"{did} {_count_kinds(created)}"
    if there := report.by_outcome[RestoreOutcome.EXISTS]:
        yield f"there already: {_count_kinds(there)}"
    if taken := report.by_outcome[RestoreOutcome.NAME_TAKEN]:
        yield f"left as they are, other objects of these names: {_name_objects(taken)}"
    if report.refused:
        yield f"refused: {_count_kinds([record for record, _ in report.refused])}"
    for why, count in _count_skipped(plan).items():
        yield f"left out, {SKIP_REASON_DOCS[why]}: {count}"
    yield from _restarted(created, all_items=plan.selection.all_items)
    for remark, details in report.notes.items():
        yield f"note: {RESTORE_NOTE_DOCS[remark]} ({_join_some(details)})"
    if left := len(plan.records) - report.attempted:
        yield f"not tried: {left}; repeat the command to continue"


def report_json(report: RestoreReport, plan: RestorePlan) -> JsonObject:
    """Return the same for programs."""
    refused: list[Json] = [
        {**_identify(record), "where": record.location, "detail": detail}
        for record, detail in report.refused
    ]
    return {
        "dryRun": report.dry_run,
        **{
            became.value: [_identify(one) for one in found]
            for became, found in report.by_outcome.items()
        },
        "refused": refused,
        "leftOut": {why.value: count for why, count in _count_skipped(plan).items()},
        "notes": {remark.value: list(details) for remark, details in report.notes.items()},
    }


def _identify(record: ExportRecord) -> dict[str, Json]:
    kind, namespace, name = record.key
    return {"kind": kind, "namespace": namespace, "name": name}


def _count_skipped(plan: RestorePlan) -> Mapping[SkipReason, int]:
    found = Counter(why for _, why in plan.skipped)
    return {why: found[why] for why in SKIP_REASON_DOCS if found[why]}


def _restarted(created: Sequence[ExportRecord], *, all_items: bool) -> Iterator[str]:
    arrays = [one for one in created if one.started and one.array_phase]
    if arrays:
        again = "all items run" if all_items else "items that are not done yet run"
        yield (
            f"{quantity(len(arrays), 'array')} had started: a status cannot be restored; "
            f"{again}; the file keeps the old status"
        )
    begun = [one for one in created if one.started and one.phase]
    kept = sum(one.has_checkpoint for one in begun)
    if begun:
        of_them = f", {kept} of them with a checkpoint" if kept else ""
        yield (
            f"{quantity(len(begun), 'job')} had started{of_them}: a status cannot be restored; "
            "they run again from the beginning, without a checkpoint; the file keeps the old status"
        )


def _count_kinds(records: Sequence[ExportRecord]) -> str:
    return count_by_kind(Counter(one.key.kind for one in records))


def _name_objects(records: Sequence[ExportRecord]) -> str:
    return _join_some([f"{one.key.kind} {one.key.namespace}/{one.key.name}" for one in records])


def _join_some(texts: Sequence[str]) -> str:
    more = len(texts) - MAX_NAMED
    return ", ".join(texts[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


FATAL_ERRORS: Final = (NotFoundError, UnauthenticatedError, UnavailableError)
"""What is so for one is so for all: no need to go on."""

_NAMESPACE_MISSING: Final = 'namespaces "'
"""How the API server begins to say that there is none."""


class Restorer:
    """Creates one object after the other."""

    def __init__(
        self,
        cluster: DirectCluster,
        stream: IO[bytes],
        plan: RestorePlan,
        namespaces: NamespaceMap,
        report: RestoreReport,
    ) -> None:
        self._cluster, self._stream, self._report = cluster, stream, report
        self._cron_job_uids: dict[str, str] = {}
        names = _renamed_jobs(plan.contents, stream, namespaces)
        self._context = RestoreContext(plan, namespaces, names, self._cron_job_uids)

    def run(self, bar: ProgressBar) -> None:
        """Create all that comes back; raises what would keep each of them from it."""
        for record in self._context.plan.records:
            self._restore_one(record, bar)
            bar.advance()

    def _restore_one(self, record: ExportRecord, bar: ProgressBar) -> None:
        wanted = restored_object(read_object(self._stream, record), record, self._context)
        try:
            done = self._create(record, wanted)
        except FATAL_ERRORS:
            raise
        except AsyncJobError as error:
            message = error_message(error, current_program())
            self._report.refused.append((record, message))
            kind, namespace, name = record.key
            bar.message(f"error: {record.location}: {kind} {namespace}/{name}: {message}")
        else:
            self._record_result(record, wanted, done)

    def _create(self, record: ExportRecord, obj: RestoredObject) -> CreateResult:
        path = collection_path(obj.namespace, PLURALS[record.key.kind])
        creation = create_object(
            self._cluster.api, path, obj.manifest, dry_run=self._report.dry_run
        )
        try:
            return self._cluster.run(creation)
        except NotFoundError as error:
            if _NAMESPACE_MISSING not in str(error):
                raise
            missing = obj.namespace
            raise NotFoundError(
                f"namespace {missing} does not exist: kubectl create namespace {missing}"
            ) from error

    def _record_result(
        self, record: ExportRecord, obj: RestoredObject, result: CreateResult
    ) -> None:
        self._report.by_outcome[result.outcome].append(record)
        if record.key.kind == CRON_JOB_KIND and record.uid:
            self._cron_job_uids[record.uid] = result.uid
        if result.outcome is RestoreOutcome.CREATED:
            self._report.add_notes(obj.notes)


def _renamed_jobs(
    contents: ExportContents, stream: IO[bytes], namespaces: NamespaceMap
) -> dict[tuple[str, str], str]:
    """Return what jobs are called where they go, of those that are called otherwise."""
    if not namespaces.targets:
        return {}
    found = {}
    for one in contents.records:
        kind, namespace, name = one.key
        if kind == JOB_KIND and (new := namespaces.target_name(read_object(stream, one))) != name:
            found[namespace, name] = new
    return found
