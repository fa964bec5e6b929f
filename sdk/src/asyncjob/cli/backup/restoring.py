"""Creates what comes back, one object after the other."""

from typing import IO, Final

from asyncjob.cli.backup.bodies import RestoreContext, RestoredObject, restored_object
from asyncjob.cli.backup.contents import ExportContents, ExportRecord
from asyncjob.cli.backup.creating import CreateResult, RestoreOutcome, create_object
from asyncjob.cli.backup.format import PLURALS
from asyncjob.cli.backup.moving import NamespaceMap
from asyncjob.cli.backup.planning import RestorePlan
from asyncjob.cli.backup.reading import read_object
from asyncjob.cli.backup.tally import RestoreReport
from asyncjob.cli.failures import error_message
from asyncjob.cli.naming import current_program
from asyncjob.cli.progress import ProgressBar
from asyncjob.cli.straight import DirectCluster
from asyncjob.client.errors import NotFoundError, UnauthenticatedError, UnavailableError
from asyncjob.errors import AsyncJobError
from asyncjob.names import CRON_JOB_KIND, JOB_KIND, collection_path

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
            said = error_message(error, current_program())
            self._report.refused.append((record, said))
            kind, namespace, name = record.key
            bar.message(f"error: {record.location}: {kind} {namespace}/{name}: {said}")
        else:
            self._record_result(record, wanted, done)

    def _create(self, record: ExportRecord, obj: RestoredObject) -> CreateResult:
        path = collection_path(obj.namespace, PLURALS[record.key.kind])
        steps = create_object(
            path, obj.manifest, self._cluster.retry_seconds, dry_run=self._report.dry_run
        )
        try:
            return self._cluster.run(steps)
        except NotFoundError as error:
            if _NAMESPACE_MISSING not in str(error):
                raise
            missing = obj.namespace
            raise NotFoundError(
                f"there is no namespace {missing}: kubectl create namespace {missing}"
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
