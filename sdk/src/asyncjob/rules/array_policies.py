"""Policies of an array, and their rules: what it must be, what may change, that counts add up.

The API server adds up the counts itself, from the items that each part of the status names, and
keeps a chunk as it was listed until it leaves. So no writer can lose an item or count one twice by
wrong numbers, or by a chunk that changes or comes back. That two lists do not name the same item is
nothing that a rule could find out at a bearable cost.
"""

from dataclasses import replace
from typing import Final

from asyncjob.lifecycle.arrays.item_index import MAX_RECORDS
from asyncjob.names import ARRAYS, GROUP, VERSION
from asyncjob.rules.job_spec import SHAPE_DEPENDENCIES
from asyncjob.rules.policy import MAY_OPERATE, AdmissionPolicy, PolicyTarget
from asyncjob.rules.rule import Rule, cel_and, cel_list

ARRAY_CONTROL_FIELDS: Final = ("suspend", "cancel", "redrive")

_ITEMS: Final = "dyn(spec.items)"
"""Of the items themselves no schema tells the API server, so it knows no field of that name."""

_ENDED: Final = "['Succeeded', 'Failed', 'Cancelled']"
_MAX_RANGES: Final = 1000


def _count(field: str) -> str:
    return f"now.?{field}.orValue(0)"


def _grows(field: str) -> str:
    return f"{_count(field)} >= was.?{field}.orValue(0)"


def _size(notation: str) -> str:
    """Return how many items interval notation names."""
    first, last = "int(part.split('-')[0])", "int(part.split('-')[1])"
    return (
        f"({notation} == '' ? 0 : {notation}.split(',')"
        f".map(part, part.contains('-') ? {last} - {first} + 1 : 1).sum())"
    )


def _ascends(notation: str) -> str:
    """Return that the numbers in interval notation ascend: no range is less than nothing."""
    return (
        f"({notation} == '' || {notation}.replace('-', ',').split(',')"
        ".map(bound, int(bound)).isSorted())"
    )


_OPEN: Final = f"now.?open.orValue([]).map(chunk, {_size('chunk.items')}).sum()"
_WAS_OPEN: Final = f"was.?open.orValue([]).map(chunk, {_size('chunk.items')}).sum()"
_STILL_OPEN: Final = (
    "now.?open.orValue([]).map(chunk, chunk.generation > was.?generation.orValue(0) ? 0"
    f" : {_size('chunk.items')}).sum()"
)
_SUSPECTS: Final = f"now.?suspects.orValue([]).map(group, {_size('group')}).sum()"
_REQUEUED: Final = _size("now.?requeued.orValue('')")
_FAILED_ITEMS: Final = "now.?failedItems.orValue('')"
_REDRIVEN: Final = (
    "was.phase == 'Failed' && (now.phase == 'Running' ||"
    " (now.phase == 'Pending' && now.?generation.orValue(0) == 0))"
)
_WAITS: Final = "(has(dyn(spec).notBefore) || has(dyn(spec).dependsOn))"

ARRAY_ONE_SOURCE: Final = Rule(
    "array.one-source",
    "items must have exactly one of count, inline and from.",
    f"[has({_ITEMS}.count), has({_ITEMS}.inline), has({_ITEMS}.from)]"
    ".filter(given, given).size() == 1",
)
_SKIP_ENDS: Final = (
    f"has({_ITEMS}.count) ? {_ITEMS}.count : has({_ITEMS}.inline) ? size({_ITEMS}.inline)"
    f" : {MAX_RECORDS}"
)
ARRAY_SKIP: Final = Rule(
    "array.skip",
    "items.skip must name items that the array has, from the smaller number to the greater.",
    f"{_ITEMS}.?skip.orValue('') == '' || {_ITEMS}.skip.split(',').all(part,"
    " int(part.split('-')[0]) <= int(part.split('-')[part.contains('-') ? 1 : 0])"
    f" && int(part.split('-')[part.contains('-') ? 1 : 0]) < ({_SKIP_ENDS}))",
)
ARRAY_ONE_LIMIT: Final = Rule(
    "array.one-limit",
    "maxFailed and maxFailedPercent exclude each other.",
    "!has(self.maxFailed) || !has(self.maxFailedPercent)",
)

ARRAY_DEPENDENCIES: Final = replace(SHAPE_DEPENDENCIES, id="array.dependencies")
ARRAY_DEPENDS_ON_OTHERS: Final = Rule(
    "array.depends-on-others",
    "An array cannot depend on itself.",
    "dyn(spec).?dependsOn.orValue([]).all(one, one.?array.orValue('') != object.metadata.name)",
    "'spec.dependsOn: array ' + object.metadata.name + ' cannot depend on itself; leave it out'",
)

# Every field but these, those that are added some day included.
ARRAY_SPEC_FIXED: Final = Rule(
    "array.spec-fixed",
    f"Of an array's spec only {', '.join(ARRAY_CONTROL_FIELDS)} can be changed.",
    f"dyn(spec).all(key, key in {cel_list(ARRAY_CONTROL_FIELDS)}"
    " || dyn(spec_was)[?key] == optional.of(dyn(spec)[key]))"
    f" && dyn(spec_was).all(key, key in {cel_list(ARRAY_CONTROL_FIELDS)} || key in dyn(spec))",
)
ARRAY_CANCEL_LATCHES: Final = Rule(
    "array.cancel-latches",
    "spec.cancel of an array cannot be reverted.",
    "!spec_was.?cancel.orValue(false) || spec.?cancel.orValue(false)",
)
ARRAY_CANCEL_UNENDED: Final = Rule(
    "array.cancel-unended",
    "spec.cancel cannot be set on a failed array that is not being redriven.",
    "!spec.?cancel.orValue(false) || spec_was.?cancel.orValue(false) || was.phase != 'Failed'"
    " || spec.?redrive.orValue(0) > was.?redrives.orValue(0)",
    "'spec.cancel: this array has failed, and nothing of it runs any more; delete it, or raise'"
    " + ' spec.redrive to run the failed items again'",
)
ARRAY_REDRIVE_GROWS: Final = Rule(
    "array.redrive-grows",
    "spec.redrive of an array must not decrease.",
    "spec.?redrive.orValue(0) >= spec_was.?redrive.orValue(0)",
)
ARRAY_REDRIVE_FAILED: Final = Rule(
    "array.redrive-failed",
    "spec.redrive of an array can only be increased once it has failed.",
    "spec.?redrive.orValue(0) <= spec_was.?redrive.orValue(0) || was.phase == 'Failed'",
    "'spec.redrive can only be increased on a failed array; this one is ' + was.phase",
)
ARRAY_REDRIVE_NOT_AT_CREATION: Final = Rule(
    "array.redrive-not-at-creation",
    "redrive of an array cannot be set at creation.",
    "spec.?redrive.orValue(0) == 0",
)

ARRAY_WRITER: Final = Rule(
    "array.writer",
    "The status of an array can be written only with the permission `operate` on asyncjobs.",
    MAY_OPERATE,
    is_forbidden=True,
)
ARRAY_PHASES: Final = Rule(
    "array.phases",
    "An array goes from Pending to Running, and from both to Succeeded, Failed or Cancelled; only "
    "a redrive takes it from Failed back to Running, or to Pending if no chunk has been cut.",
    f"!moved || (was.phase in ['Pending', 'Running'] ? now.phase != 'Pending' : {_REDRIVEN}"
    " && now.?redrives.orValue(0) > was.?redrives.orValue(0))",
    "'an array cannot go from ' + was.phase + ' to ' + now.phase",
)
ARRAY_REDRIVES: Final = Rule(
    "array.redrives",
    "redrives changes only on a failed array, and becomes spec.redrive.",
    "now.?redrives.orValue(0) == was.?redrives.orValue(0)"
    " || (was.phase == 'Failed' && now.?redrives.orValue(0) == spec.?redrive.orValue(0))",
)
ARRAY_TOTAL: Final = Rule(
    "array.total",
    "total is the number of items of the spec, or of records that the index job has found.",
    f"{_count('total')} == (has({_ITEMS}.count) ? {_ITEMS}.count : has({_ITEMS}.inline)"
    f" ? size({_ITEMS}.inline) : now.?index.?records.orValue(0))",
)
ARRAY_INDEX: Final = Rule(
    "array.index",
    "index is set once, on an array whose items are in a file.",
    "dyn(now).?index == dyn(was).?index"
    f" || (!has(was.index) && has(now.index) && has({_ITEMS}.from))",
)
ARRAY_ADMITTED: Final = Rule(
    "array.admitted",
    "An array with notBefore or dependsOn gets chunks only once admitted is set, which stays so.",
    f"dyn(now).?admitted.orValue(false) || (!dyn(was).?admitted.orValue(false)"
    f" && ({_count('generation')} == 0 || !{_WAITS}))",
)
ARRAY_COUNTS_GROW: Final = Rule(
    "array.counts-grow",
    "next, succeeded, failed and generation do not decrease; only a redrive sets failed to 0.",
    cel_and(
        (
            _grows("next"),
            _grows("succeeded"),
            _grows("generation"),
            f"{_grows('failed')} || ({_REDRIVEN} && {_count('failed')} == 0)",
        )
    ),
)
ARRAY_COUNTS_ADD_UP: Final = Rule(
    "array.counts-add-up",
    "succeeded, failed, and the items in open, requeued and suspects are together next, which is "
    "not more than total.",
    f"{_count('succeeded')} + {_count('failed')} + {_OPEN} + {_REQUEUED} + {_SUSPECTS}"
    f" == {_count('next')} && {_count('next')} <= {_count('total')}",
    f"'next is ' + string({_count('next')}) + ' of ' + string({_count('total')}) + ', but there are"
    f" ' + string({_count('succeeded')}) + ' succeeded, ' + string({_count('failed')})"
    f" + ' failed, ' + string({_OPEN}) + ' open and ' + string({_REQUEUED} + {_SUSPECTS})"
    " + ' to be run again'",
)
ARRAY_ITEMS_ASCEND: Final = Rule(
    "array.items-ascend",
    "The numbers in requeued, failedItems, and the items of open and suspects must ascend.",
    cel_and(
        (
            _ascends("now.?requeued.orValue('')"),
            _ascends(_FAILED_ITEMS),
            f"now.?suspects.orValue([]).all(group, {_ascends('group')})",
            f"now.?open.orValue([]).all(chunk, {_ascends('chunk.items')})",
        )
    ),
)
ARRAY_OPEN_KEPT: Final = Rule(
    "array.open-kept",
    "A chunk in open stays as it is, but for its uid, which is set once; one that is new has a "
    "generation of its own, above that of the array before and not above that after.",
    "now.?open.orValue([]).all(chunk,"
    " now.open.exists_one(other, other.generation == chunk.generation)"
    " && (chunk.generation > was.?generation.orValue(0)"
    f" ? chunk.generation <= {_count('generation')}"
    " : was.?open.orValue([]).exists(kept, kept.generation == chunk.generation"
    " && kept.name == chunk.name && kept.items == chunk.items && kept.?suspect == chunk.?suspect"
    " && (!has(kept.uid) || kept.?uid == chunk.?uid))))",
)
ARRAY_DONE_BY_CHUNKS: Final = Rule(
    "array.done-by-chunks",
    "succeeded grows at most by the items of chunks that leave open, and by skipped ones.",
    f"{_count('succeeded')} - was.?succeeded.orValue(0) <= {_WAS_OPEN} - {_STILL_OPEN}"
    f" + ({_ITEMS}.?skip.orValue('') == '' ? 0 : {_count('next')} - was.?next.orValue(0))",
)
ARRAY_HELD: Final = Rule(
    "array.held",
    "No chunk is cut of an array while spec.suspend or spec.cancel is true.",
    "(!spec.?suspend.orValue(false) && !spec.?cancel.orValue(false))"
    f" || ({_count('next')} == was.?next.orValue(0)"
    f" && {_count('generation')} == was.?generation.orValue(0))",
)
ARRAY_FAILED_LISTED: Final = Rule(
    "array.failed-listed",
    "failed is the number of items in failedItems and of those that it has no room for, which are "
    f"none as long as it has fewer than {_MAX_RANGES} ranges.",
    f"{_count('failed')} == {_size(_FAILED_ITEMS)} + {_count('failedUnlisted')}"
    f" && ({_count('failedUnlisted')} == 0 || {_FAILED_ITEMS}.split(',').size() == {_MAX_RANGES})",
)
_WITHIN_LIMIT: Final = (
    f"(has(spec.maxFailed) ? {_count('failed')} <= spec.maxFailed"
    f" : {_count('failed')} * 100 <= {_count('total')} * spec.?maxFailedPercent.orValue(0))"
)
ARRAY_ENDED: Final = Rule(
    "array.ended",
    "An array has a completion time, and the one condition of its phase, exactly while it has "
    "ended, and then no open chunk; a cancelled one has spec.cancel.",
    f"now.phase in {_ENDED} ? (!has(now.open) && has(now.completionTime)"
    " && size(now.?conditions.orValue([])) == 1 && now.conditions[0].status == 'True'"
    " && now.conditions[0].type == {'Succeeded': 'Complete', 'Failed': 'Failed',"
    " 'Cancelled': 'Cancelled'}[now.phase]"
    " && (now.phase != 'Cancelled' || spec.?cancel.orValue(false)))"
    " : (!has(now.completionTime) && !has(now.conditions))",
)
ARRAY_SUCCEEDED: Final = Rule(
    "array.succeeded",
    "A succeeded array has all its items counted, those of a file included, and not more of them "
    "failed than maxFailed or maxFailedPercent allows.",
    f"now.phase != 'Succeeded' || ({_count('succeeded')} + {_count('failed')} == {_count('total')}"
    f" && (!has({_ITEMS}.from) || has(now.index)) && {_WITHIN_LIMIT})",
)
ARRAY_FROZEN: Final = Rule(
    "array.frozen",
    "The status of a succeeded or cancelled array cannot be changed, and of a failed one only "
    "reason, message and redrives, unless a redrive runs it again.",
    f"!(was.phase in {_ENDED}) || (was.phase == 'Failed' ? {_REDRIVEN}"
    " || dyn(now).all(key, key in ['reason', 'message', 'redrives']"
    " || dyn(was)[?key] == optional.of(dyn(now)[key]))"
    " && dyn(was).all(key, key in ['reason', 'message', 'redrives'] || key in dyn(now))"
    " : dyn(now) == dyn(was))",
)


ARRAY_CREATION_POLICY: Final = AdmissionPolicy(
    name=f"array-creation.{GROUP}",
    title="What a new array must not contain.",
    targets=(PolicyTarget(GROUP, VERSION, (ARRAYS,)),),
    operations=("CREATE",),
    rules=(
        ARRAY_ONE_SOURCE,
        ARRAY_SKIP,
        ARRAY_DEPENDS_ON_OTHERS,
        ARRAY_REDRIVE_NOT_AT_CREATION,
    ),
)

ARRAY_SPEC_POLICY: Final = AdmissionPolicy(
    name=f"array-spec.{GROUP}",
    title="Which changes of an array's spec are valid.",
    targets=(PolicyTarget(GROUP, VERSION, (ARRAYS,)),),
    operations=("UPDATE",),
    rules=(
        ARRAY_SPEC_FIXED,
        ARRAY_CANCEL_LATCHES,
        ARRAY_CANCEL_UNENDED,
        ARRAY_REDRIVE_GROWS,
        ARRAY_REDRIVE_FAILED,
    ),
)

ARRAY_STATUS_POLICY: Final = AdmissionPolicy(
    name=f"array-status.{GROUP}",
    title="Who may write an array's status, and which changes of it are valid.",
    targets=(PolicyTarget(GROUP, VERSION, (f"{ARRAYS}/status",)),),
    operations=("UPDATE",),
    rules=(
        ARRAY_WRITER,
        ARRAY_PHASES,
        ARRAY_REDRIVES,
        ARRAY_TOTAL,
        ARRAY_INDEX,
        ARRAY_ADMITTED,
        ARRAY_COUNTS_GROW,
        ARRAY_COUNTS_ADD_UP,
        ARRAY_ITEMS_ASCEND,
        ARRAY_FAILED_LISTED,
        ARRAY_OPEN_KEPT,
        ARRAY_DONE_BY_CHUNKS,
        ARRAY_HELD,
        ARRAY_ENDED,
        ARRAY_SUCCEEDED,
        ARRAY_FROZEN,
    ),
)
