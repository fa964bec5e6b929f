"""Creates what comes back, one object after the other."""

from typing import IO, Final

from asyncjob.cli.backup.bodies import Around, Body, body
from asyncjob.cli.backup.contents import Contents, Record
from asyncjob.cli.backup.creating import Became, Done, create
from asyncjob.cli.backup.format import PLURALS
from asyncjob.cli.backup.moving import Moves
from asyncjob.cli.backup.planning import Plan
from asyncjob.cli.backup.reading import reread
from asyncjob.cli.backup.tally import Tally
from asyncjob.cli.failures import sentence
from asyncjob.cli.naming import program
from asyncjob.cli.progress import Progress
from asyncjob.cli.straight import Cluster
from asyncjob.client.errors import NotFoundError, UnauthenticatedError, UnavailableError
from asyncjob.errors import AsyncJobError
from asyncjob.names import CRON_JOB_KIND, JOB_KIND, collection

FOR_ALL: Final = (NotFoundError, UnauthenticatedError, UnavailableError)
"""What is so for one is so for all: no need to go on."""

_NO_NAMESPACE: Final = 'namespaces "'
"""How the API server begins to say that there is none."""


class Restoring:
    """Creates one object after the other."""

    def __init__(
        self, cluster: Cluster, stream: IO[bytes], made: Plan, where: Moves, tally: Tally
    ) -> None:
        self._cluster, self._stream, self._tally = cluster, stream, tally
        self._uids: dict[str, str] = {}
        names = _names(made.contents, stream, where)
        self._around = Around(made, where, names, self._uids)

    def all(self, bar: Progress) -> None:
        """Create all that comes back; raises what would keep each of them from it."""
        for record in self._around.plan.records:
            self._one(record, bar)
            bar.advance()

    def _one(self, record: Record, bar: Progress) -> None:
        wanted = body(reread(self._stream, record), record, self._around)
        try:
            done = self._create(record, wanted)
        except FOR_ALL:
            raise
        except AsyncJobError as error:
            said = sentence(error, program())
            self._tally.refused.append((record, said))
            kind, namespace, name = record.key
            bar.tell(f"error: {record.where}: {kind} {namespace}/{name}: {said}")
        else:
            self._take(record, wanted, done)

    def _create(self, record: Record, wanted: Body) -> Done:
        path = collection(wanted.namespace, PLURALS[record.key.kind])
        steps = create(path, wanted.manifest, self._cluster.patience, dry_run=self._tally.dry_run)
        try:
            return self._cluster.run(steps)
        except NotFoundError as error:
            if _NO_NAMESPACE not in str(error):
                raise
            missing = wanted.namespace
            raise NotFoundError(
                f"there is no namespace {missing}: kubectl create namespace {missing}"
            ) from error

    def _take(self, record: Record, wanted: Body, done: Done) -> None:
        self._tally.became[done.became].append(record)
        if record.key.kind == CRON_JOB_KIND and record.uid:
            self._uids[record.uid] = done.uid
        if done.became is Became.CREATED:
            self._tally.remark(wanted.remarks)


def _names(contents: Contents, stream: IO[bytes], where: Moves) -> dict[tuple[str, str], str]:
    """Return what jobs are called where they go, of those that are called otherwise."""
    if not where.targets:
        return {}
    found = {}
    for one in contents.records:
        kind, namespace, name = one.key
        if kind == JOB_KIND and (new := where.name(reread(stream, one))) != name:
            found[namespace, name] = new
    return found
