"""What became of all, counted, and how it is told. Pure but for the counting."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from asyncjob.cli.backup.contents import Record
from asyncjob.cli.backup.creating import Became
from asyncjob.cli.backup.planning import WHY_DOCS, Plan, Why
from asyncjob.cli.backup.remarks import REMARK_DOCS, Remark
from asyncjob.cli.backup.words import counted, quantity
from asyncjob.cli.exit_codes import ExitCode
from asyncjob.json_types import Json, JsonObject
from asyncjob.names import JOB_KIND

NAMED = 3
"""So many are named; the rest is counted."""


@dataclass
class Tally:
    """What became of the objects so far."""

    dry_run: bool
    became: dict[Became, list[Record]] = field(
        default_factory=lambda: {became: [] for became in Became}
    )
    refused: list[tuple[Record, str]] = field(default_factory=list)
    remarks: dict[Remark, list[str]] = field(default_factory=dict)

    @property
    def code(self) -> ExitCode:
        """Return the exit code: a queue or schedule that is there is as good as restored."""
        jobs_taken = any(one.key.kind == JOB_KIND for one in self.became[Became.TAKEN])
        return ExitCode.FAILED if self.refused or jobs_taken else ExitCode.OK

    @property
    def tried(self) -> int:
        """Return how many were tried."""
        return len(self.refused) + sum(map(len, self.became.values()))

    def remark(self, remarks: Sequence[tuple[Remark, str]]) -> None:
        """Keep what is to be said about one that was created."""
        for remark, detail in remarks:
            self.remarks.setdefault(remark, []).append(detail)


def report(tally: Tally, plan: Plan) -> Iterator[str]:
    """Yield what people are told."""
    did = "would restore" if tally.dry_run else "restored"
    created = tally.became[Became.CREATED]
    yield f"{did} {_kinds(created)}"
    if there := tally.became[Became.THERE]:
        yield f"there already: {_kinds(there)}"
    if taken := tally.became[Became.TAKEN]:
        yield f"left as they are, other objects of these names: {_named(taken)}"
    if tally.refused:
        yield f"refused: {_kinds([record for record, _ in tally.refused])}"
    for why, count in _left_out(plan).items():
        yield f"left out, {WHY_DOCS[why]}: {count}"
    yield from _begun(created)
    for remark, details in tally.remarks.items():
        yield f"note: {REMARK_DOCS[remark]} ({_some(details)})"
    if left := len(plan.records) - tally.tried:
        yield f"not tried: {left}; the same command goes on"


def as_json(tally: Tally, plan: Plan) -> JsonObject:
    """Return the same for programs."""
    refused: list[Json] = [
        {**_told(record), "where": record.where, "detail": detail}
        for record, detail in tally.refused
    ]
    return {
        "dryRun": tally.dry_run,
        **{became.value: [_told(one) for one in found] for became, found in tally.became.items()},
        "refused": refused,
        "leftOut": {why.value: count for why, count in _left_out(plan).items()},
        "notes": {remark.value: list(details) for remark, details in tally.remarks.items()},
    }


def _told(record: Record) -> dict[str, Json]:
    kind, namespace, name = record.key
    return {"kind": kind, "namespace": namespace, "name": name}


def _left_out(plan: Plan) -> Mapping[Why, int]:
    found = Counter(why for _, why in plan.left_out)
    return {why: found[why] for why in WHY_DOCS if found[why]}


def _begun(created: Sequence[Record]) -> Iterator[str]:
    begun = [one for one in created if one.begun]
    kept = sum(one.checkpoint for one in begun)
    if begun:
        of_them = f", {kept} of them with a checkpoint" if kept else ""
        yield (
            f"{quantity(len(begun), 'job')} had begun{of_them}: a status cannot be restored, they "
            "start anew, without a checkpoint; the file keeps what there was"
        )


def _kinds(records: Sequence[Record]) -> str:
    return counted(Counter(one.key.kind for one in records))


def _named(records: Sequence[Record]) -> str:
    return _some([f"{one.key.kind} {one.key.namespace}/{one.key.name}" for one in records])


def _some(texts: Sequence[str]) -> str:
    more = len(texts) - NAMED
    return ", ".join(texts[:NAMED]) + (f" and {more} more" if more > 0 else "")
