"""What a job has when it is finished or retrying, and what changes only while it runs."""

from typing import Final

from asyncjob.schema.laws.expressions import unchanged, unchanged_json
from asyncjob.schema.laws.law import Rule, StatusWrite

_CONDITION_BY_PHASE: Final = (
    "{'Succeeded': 'Complete', 'DeadLetter': 'Failed', 'Cancelled': 'Cancelled'}"
)

FINISHED_COMPLETION_TIME: Final = Rule(
    "finished.completion-time",
    "A job has a completionTime if, and only if, it is finished; durationSeconds only then.",
    {
        StatusWrite.CLAIM: "!has(now.completionTime) && !has(now.durationSeconds)",
        StatusWrite.PHASE_CHANGE: "has(now.completionTime) == finished"
        " && (finished || !has(now.durationSeconds))",
        StatusWrite.SAME_PHASE: f"{unchanged('completionTime')} && {unchanged('durationSeconds')}",
    },
)
FINISHED_CONDITION: Final = Rule(
    "finished.condition",
    "A finished job has exactly the condition of its phase (Complete, Failed, Cancelled), True; "
    "any other job has none.",
    {
        StatusWrite.CLAIM: "!has(now.conditions)",
        StatusWrite.PHASE_CHANGE: "!finished ? !has(now.conditions) : has(now.conditions)"
        " && now.conditions.size() == 1 && now.conditions[0].status == 'True'"
        f" && now.conditions[0].type == {_CONDITION_BY_PHASE}[now.phase]",
        StatusWrite.SAME_PHASE: unchanged("conditions"),
    },
)
FINISHED_FROZEN: Final = Rule(
    "finished.frozen",
    "The status of a finished job stays as it is, but for reruns.",
    {
        StatusWrite.SAME_PHASE: f"!finished || ({unchanged('message')} && "
        f"{unchanged('lastUpdateTime')})"
    },
)
RETRYING_DELAY: Final = Rule(
    "retrying.delay",
    "A job has retryDelaySeconds and nextAttemptTime if, and only if, it is Retrying; while it is, "
    "they stay.",
    {
        StatusWrite.CLAIM: "!has(now.retryDelaySeconds) && !has(now.nextAttemptTime)",
        StatusWrite.PHASE_CHANGE: "has(now.retryDelaySeconds) == (now.phase == 'Retrying')"
        " && has(now.nextAttemptTime) == (now.phase == 'Retrying')",
        StatusWrite.SAME_PHASE: f"{unchanged('retryDelaySeconds')} && "
        f"{unchanged('nextAttemptTime')}",
    },
)
STEADY_LAST_TRANSITION_TIME: Final = Rule(
    "steady.last-transition-time",
    "Each change of phase, and nothing else, sets lastTransitionTime.",
    {
        StatusWrite.CLAIM: "has(now.lastTransitionTime)",
        StatusWrite.PHASE_CHANGE: "has(now.lastTransitionTime)",
        StatusWrite.SAME_PHASE: unchanged("lastTransitionTime"),
    },
)
STEADY_ERROR: Final = Rule(
    "steady.error",
    "The error changes only as the job leaves a phase.",
    {StatusWrite.SAME_PHASE: unchanged("error")},
)
RESULT_BY_SUCCESS: Final = Rule(
    "result.by-success",
    "A job gets its result, or the reference to it, by going from Running to Succeeded; nothing "
    "changes it afterwards.",
    {
        StatusWrite.CLAIM: "!has(dyn(now).result) && !has(now.resultRef)",
        StatusWrite.PHASE_CHANGE: "now.phase == 'Succeeded' || !has(dyn(now).result) && "
        "!has(now.resultRef)",
        StatusWrite.SAME_PHASE: f"{unchanged_json('now', 'result')} && {unchanged('resultRef')}",
    },
)
RESULT_ONCE: Final = Rule(
    "result.once",
    "A job has a result or a reference to one, not both.",
    {StatusWrite.PHASE_CHANGE: "!has(dyn(now).result) || !has(now.resultRef)"},
)
RUNNING_PROGRESS: Final = Rule(
    "running.progress",
    "Progress changes only while the job runs, or as it leaves Running.",
    {
        StatusWrite.CLAIM: unchanged("progress"),
        StatusWrite.PHASE_CHANGE: f"was.phase == 'Running' || {unchanged('progress')}",
        StatusWrite.SAME_PHASE: f"was.phase == 'Running' || {unchanged('progress')}",
    },
)
RUNNING_CHECKPOINT: Final = Rule(
    "running.checkpoint",
    "The checkpoint changes only while the job runs, or as it leaves Running.",
    {
        StatusWrite.CLAIM: unchanged_json("now", "checkpoint"),
        StatusWrite.PHASE_CHANGE: "was.phase == 'Running' || "
        f"{unchanged_json('now', 'checkpoint')}",
        StatusWrite.SAME_PHASE: f"was.phase == 'Running' || {unchanged_json('now', 'checkpoint')}",
    },
)
