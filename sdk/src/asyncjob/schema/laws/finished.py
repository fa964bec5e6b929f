"""What a job has when it is finished or retrying, and what changes only while it runs."""

from typing import Final

from asyncjob.schema.laws.expressions import same, same_json
from asyncjob.schema.laws.law import Law, Write

_CONDITION: Final = "{'Succeeded': 'Complete', 'DeadLetter': 'Failed', 'Cancelled': 'Cancelled'}"

COMPLETION: Final = Law(
    "finished.completion-time",
    "A job has a completionTime if, and only if, it is finished; durationSeconds only then.",
    {
        Write.CLAIM: "!has(now.completionTime) && !has(now.durationSeconds)",
        Write.MOVE: "has(now.completionTime) == finished"
        " && (finished || !has(now.durationSeconds))",
        Write.STAY: f"{same('completionTime')} && {same('durationSeconds')}",
    },
)
CONDITION: Final = Law(
    "finished.condition",
    "A finished job has exactly the condition of its phase (Complete, Failed, Cancelled), True; "
    "any other job has none.",
    {
        Write.CLAIM: "!has(now.conditions)",
        Write.MOVE: "!finished ? !has(now.conditions) : has(now.conditions)"
        " && now.conditions.size() == 1 && now.conditions[0].status == 'True'"
        f" && now.conditions[0].type == {_CONDITION}[now.phase]",
        Write.STAY: same("conditions"),
    },
)
FROZEN: Final = Law(
    "finished.frozen",
    "The status of a finished job stays as it is, but for reruns.",
    {Write.STAY: f"!finished || ({same('message')} && {same('lastUpdateTime')})"},
)
RETRYING: Final = Law(
    "retrying.delay",
    "A job has retryDelaySeconds and nextAttemptTime if, and only if, it is Retrying; while it is, "
    "they stay.",
    {
        Write.CLAIM: "!has(now.retryDelaySeconds) && !has(now.nextAttemptTime)",
        Write.MOVE: "has(now.retryDelaySeconds) == (now.phase == 'Retrying')"
        " && has(now.nextAttemptTime) == (now.phase == 'Retrying')",
        Write.STAY: f"{same('retryDelaySeconds')} && {same('nextAttemptTime')}",
    },
)
TRANSITION_TIME: Final = Law(
    "steady.last-transition-time",
    "Each change of phase, and nothing else, sets lastTransitionTime.",
    {
        Write.CLAIM: "has(now.lastTransitionTime)",
        Write.MOVE: "has(now.lastTransitionTime)",
        Write.STAY: same("lastTransitionTime"),
    },
)
ERROR: Final = Law(
    "steady.error",
    "The error changes only as the job leaves a phase.",
    {Write.STAY: same("error")},
)
RESULT: Final = Law(
    "result.by-success",
    "A job gets its result, or the reference to it, by going from Running to Succeeded; nothing "
    "changes it afterwards.",
    {
        Write.CLAIM: "!has(dyn(now).result) && !has(now.resultRef)",
        Write.MOVE: "now.phase == 'Succeeded' || !has(dyn(now).result) && !has(now.resultRef)",
        Write.STAY: f"{same_json('now', 'result')} && {same('resultRef')}",
    },
)
RESULT_ONCE: Final = Law(
    "result.once",
    "A job has a result or a reference to one, not both.",
    {Write.MOVE: "!has(dyn(now).result) || !has(now.resultRef)"},
)
PROGRESS: Final = Law(
    "running.progress",
    "Progress changes only while the job runs, or as it leaves Running.",
    {
        Write.CLAIM: same("progress"),
        Write.MOVE: f"was.phase == 'Running' || {same('progress')}",
        Write.STAY: f"was.phase == 'Running' || {same('progress')}",
    },
)
CHECKPOINT: Final = Law(
    "running.checkpoint",
    "The checkpoint changes only while the job runs, or as it leaves Running.",
    {
        Write.CLAIM: same_json("now", "checkpoint"),
        Write.MOVE: f"was.phase == 'Running' || {same_json('now', 'checkpoint')}",
        Write.STAY: f"was.phase == 'Running' || {same_json('now', 'checkpoint')}",
    },
)
